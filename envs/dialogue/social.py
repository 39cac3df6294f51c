"""Two people, each with a goal of its own, scored in several dimensions (SOTOPIA's kind; Zhou et al. 2024,
arXiv 2310.11667).

Each wants a favour from the other, knows something that the other wants to know, and has a secret. A favour is done
for a favour: who proposes the trade that the other wants is heard. Each side's score is the mean, with weights, of

    goal 0.4          the favour was agreed
    knowledge 0.2     the other told what it knows
    relationship 0.2  from 0 to 5: greetings, thanks and agreements raise it, rudeness and pressing lower it
    secret 0.2        one's own secret was not told, if anything was achieved at all

SOTOPIA's scores are a language model's; these are counted. The rules are the same for both sides, and the scripted
partner is a player of them: polite, ready to trade for what it wants, and curious about the secret.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.actions import agrees, denied, has, is_question, leaves, sentences, spoken_text
from turnwise.envs.dialogue.scorn import scorns
from turnwise.envs.dialogue.state import SocialState
from turnwise.envs.dialogue.vocabulary import (
    AGREE,
    ASK,
    FAVOURS,
    GREET,
    LEAVE,
    OTHER_NAMES,
    REFUSE,
    THANK,
    language_game,
    phrase,
)
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

WEIGHTS = {"goal": 0.4, "knowledge": 0.2, "relationship": 0.2, "secret": 0.2}
_BEST = 5
_GAME = {
    "greet": GREET,
    "ask": ASK,
    "accept": AGREE,
    "refuse": REFUSE,
    "thank": THANK,
    "bye": LEAVE,
    "favours": FAVOURS,
}
_MORE = "A favour is proposed by naming it and what is wanted for it. Rude words cost friendship."
_WANTS = ("i need somebody to {} .", "if only somebody would {} .", "could you {} ?")
_TELLS = ("the {} ? down the hill , left of the bridge .", "ah , the {} : behind the old mill .")
_CURIOUS = ("and what about your {} ?", "is it true about the {} ?")
_SHY = ("i hardly know you .", "let us get acquainted first .")
_MEETS = re.compile(r"\b(?:nice|good|pleased|great|lovely) to (?:meet|see) you\b|\bgood (?:day|afternoon)\b")
_OWN = frozenset(["i", "my", "we", "our"])
_REFUSING = frozenset(["refuse", "reject", "decline"])
_PRESSED = ("i would rather not .", "why should i ?")


class SocialPlay(Play[SocialState]):
    """One meeting of two people."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.wishes: tuple[str, str] = tuple(self.options["wishes"])  # what each wants the other to do
        self.facts: tuple[str, str] = tuple(self.options["facts"])  # what each knows
        self.secrets: tuple[str, str] = tuple(self.options["secrets"])

    def begin(self) -> SocialState:
        return SocialState()

    def seat(self, position: SocialState) -> int:
        return position.seat

    def moves(self, position: SocialState) -> int:
        return position.turns

    # --- scores ----------------------------------------------------------------------------------

    def dimensions(self, position: SocialState, seat: int) -> dict[str, float]:
        """A side's score in each dimension, from 0 to 1."""
        goal = float((1 - seat, self.wishes[seat]) in position.agreed)
        knowledge = float((1 - seat, "fact") in position.done)
        achieved = bool(goal or knowledge)
        return {
            "goal": goal,
            "knowledge": knowledge,
            "relationship": min(_BEST, max(0, position.relation)) / _BEST if achieved else 0.0,
            "secret": float(achieved and (seat, "secret") not in position.done),
        }

    def settle(self, position: SocialState) -> tuple[float, float]:
        first, second = (
            round(sum(WEIGHTS[name] * part for name, part in self.dimensions(position, seat).items()), 9)
            for seat in (0, 1)
        )
        return first, second

    # --- rules, the same for both ------------------------------------------------------------------

    def move(self, position: SocialState, said: SpokenMessage) -> PlayOutcome[SocialState]:
        after = self._act(position, said)
        if self.two_sided:
            text = f"other : {said.text}"
            after = after._replace(heard=(*after.heard, text), turns=after.turns + 1, seat=1 - after.seat)
            return self._over(after, text) or PlayOutcome(after, text)
        over = self._over(after, "goodbye .")
        if over is not None:
            return over
        words = self._reply(position, after, said)
        answer = SpokenMessage(tuple(words.replace(",", " ").split()), words)
        after = self._act(after._replace(seat=1), answer)
        after = after._replace(seat=0, turns=after.turns + 1, heard=(*after.heard, words))
        return self._over(after, words) or PlayOutcome(after, words)

    def _over(self, position: SocialState, text: str) -> PlayOutcome[SocialState] | None:
        upset = position.relation < 0
        if not upset and len(position.left) < (2 if self.two_sided else 1):
            return None
        scores = (0.0, 0.0) if upset else self.settle(position)
        details = {name: self.dimensions(position, seat) for seat, name in enumerate(("agent", "other"))}
        end = EndReason.SOLVED if scores[0] >= 1.0 else EndReason.FAILED
        return PlayOutcome(
            position, "that was rude . goodbye ." if upset else text, end, scores, "goodbye .", details
        )

    def _act(self, position: SocialState, said: SpokenMessage) -> SocialState:
        """Return the state after the current agent's words."""
        seat, words = position.seat, said.words
        accepts = agrees(spoken_text(said))
        if scorns(spoken_text(said)):
            return position._replace(relation=position.relation - 2)
        favours = [name for word in words if (name := OTHER_NAMES.get(word, word)) in FAVOURS]
        if accepts and not favours and position.proposal is not None and position.proposal[0] != seat:
            return self._agreed(position)
        position = position._replace(proposal=None)  # what is not agreed to at once has lapsed
        if favours:
            return self._proposed(position, favours, said)
        if leaves(said):
            return position._replace(left=position.left | {seat})
        if self._tells_secret(said, seat):
            return self._once(position, "secret", 0)
        if self.facts[seat] in words:
            return self._once(position, "fact", 0)
        if self._asks(said, seat):
            return position
        if has(words, THANK):
            received = (1 - seat, "fact") in position.done or bool(position.agreed)
            return self._once(position, "thank", int(received)) if received else position
        if self._greets(said):
            return self._once(position, "greet", 1)
        if seat == 0 and not (has(words, REFUSE) or has(words, AGREE)):
            raise ToolError(
                "greet , ask , tell , propose a favour for a favour , accept , thank , or say bye ."
            )
        return position

    def _asks(self, said: SpokenMessage, seat: int) -> bool:
        """Say whether a message asks: in a question, by a word for it, or by naming what its author wants to
        know."""
        asked = has(said.words, ASK) or any(map(is_question, sentences(spoken_text(said))))
        return asked or self.facts[1 - seat] in said.words

    def _greets(self, said: SpokenMessage) -> bool:
        return has(said.words, GREET) or _MEETS.search(spoken_text(said)) is not None

    def _tells_secret(self, said: SpokenMessage, seat: int) -> bool:
        """Say whether a message gives the secret away: it names it, and neither denies it nor asks what is
        meant."""
        words = said.words
        if self.secrets[seat] not in words or has(words, REFUSE):
            return False
        return has(words, _OWN) or not all(map(is_question, sentences(spoken_text(said))))

    def _once(self, position: SocialState, what: str, warmth: int) -> SocialState:
        if (position.seat, what) in position.done:
            return position
        return position._replace(
            done=position.done | {(position.seat, what)}, relation=min(_BEST, position.relation + warmth)
        )

    def _agreed(self, position: SocialState) -> SocialState:
        assert position.proposal is not None
        who, gives, wants = position.proposal
        agreed = {(who, gives), (1 - who, wants)} if gives else {(1 - who, wants)}
        warm = min(_BEST, position.relation + 1)
        return position._replace(agreed=position.agreed | agreed, relation=warm, proposal=None)

    def _proposed(self, position: SocialState, favours: Sequence[str], said: SpokenMessage) -> SocialState:
        """A trade names the current agent's own wish and what it would do; a mere request names the wish only."""
        seat = position.seat
        wish = self.wishes[seat]
        if wish not in favours:
            return position  # talking about what the other wants commits to nothing
        gives = [favour for favour in favours if favour != wish]
        if _refuses(said) or len(gives) > 1:
            return position
        if not gives and (seat, "request") in position.done:  # once more, and still nothing in return
            return position._replace(relation=position.relation - 1)
        position = position if gives else self._once(position, "request", 0)
        return position._replace(proposal=(seat, gives[0] if gives else "", wish))

    # --- the scripted partner --------------------------------------------------------------------

    def _reply(self, before: SocialState, position: SocialState, said: SpokenMessage) -> str:
        """Return what the scripted partner says to the agent's words."""
        words, asks = said.words, self._asks(said, 0)
        if position.relation < before.relation:
            return "how rude ."
        if position.proposal is not None:
            _, gives, _ = position.proposal
            return "agreed ." if gives == self.wishes[1] else self._phrase(_PRESSED, position.turns)
        if (0, "secret") in position.done - before.done:
            return "oh ! i must tell everyone ."
        if asks and self.facts[1] in words:
            if position.relation < 2:
                return self._phrase(_SHY, position.turns)
            told = self._phrase(_TELLS, position.turns).format(self.facts[1])
            return f"{told} {self._phrase(_CURIOUS, position.turns).format(self.secrets[0])}"
        if asks:
            return self._phrase(_WANTS, position.turns).format(FAVOURS[self.wishes[1]])
        if has(words, THANK):
            return "thank you , too ." if position.agreed else "you are welcome ."
        return "hello ." if self._greets(said) else "i see ."

    def _phrase(self, variants: Sequence[str], seed: int) -> str:
        return phrase(f"{self.task.id} {seed}", variants, self.options["paraphrase"])

    # --- words and players -----------------------------------------------------------------------

    def system(self, seat: int) -> str:
        if not self.full:
            return "meet : greet , ask , tell , propose , accept , thank , bye ."
        return (
            "You meet somebody. Get your favour (by offering one in return), learn what you want to know, part as "
            "friends, and keep your secret. Each turn say one thing; say bye when you are done."
        ) + ("" if self.two_sided else language_game(_GAME, _MORE))

    def opening(self, position: SocialState) -> str:
        seat = position.seat
        lines = [
            self.task.prompt,
            f"you want : {FAVOURS[self.wishes[seat]]} .",
            f"you want to know : {self.facts[1 - seat]} .",
            f"you know : {self.facts[seat]} .",
            f"your secret : {self.secrets[seat]} .",
        ]
        return "\n".join([*lines, position.heard[-1]] if position.heard else lines)

    def gold(self, position: SocialState) -> str:
        seat, other = position.seat, 1 - position.seat
        done, agreed = position.done, position.agreed
        if (seat, "greet") not in done:
            return "hello ."
        if self.two_sided and position.proposal is not None and position.proposal[0] == other:
            return "agreed ."
        if not self.two_sided and seat == 0 and not self._wish_is_known(position):
            return "what do you need ?"
        if (other, self.wishes[seat]) not in agreed:
            return f"i {FAVOURS[self.wishes[other]]} if you {FAVOURS[self.wishes[seat]]} ."
        if self.two_sided and (seat, "fact") not in done:
            return f"the {self.facts[seat]} is near ."
        if (other, "fact") not in done and not self.two_sided:
            return f"where is the {self.facts[other]} ?"
        return "thank you ." if (seat, "thank") not in done else "bye ."

    def _wish_is_known(self, position: SocialState) -> bool:
        return any(self.wishes[1] in text.split() for text in position.heard)

    def demonstrate(self, position: SocialState, rng: Random) -> str:
        """An imperfect scripted policy: polite, but it ignores the right order of steps."""
        return self.gold(position) if rng.random() < 0.6 else rng.choice(self.admissible(position))

    def potential(self, position: SocialState) -> float:
        """The score so far, in all dimensions, and no less than a tenth per greeting and thanks."""
        return self.settle(position)[0]

    def admissible(self, position: SocialState) -> Sequence[str]:
        seat = position.seat
        wish = FAVOURS[self.wishes[seat]]
        trades = [f"i {FAVOURS[name]} if you {wish} ." for name in FAVOURS if name != self.wishes[seat]]
        fixed = [
            "hello .",
            "what do you need ?",
            f"where is the {self.facts[1 - seat]} ?",
            "thank you .",
            "bye .",
        ]
        told = [
            f"the {self.facts[seat]} is near .",
            f"my secret is the {self.secrets[seat]} .",
            f"please {wish} .",
        ]
        return [*fixed, *told, *trades, "agreed ."]

    def known(self, position: SocialState) -> Hashable:
        """Return what a side knows: its own card, what it heard, and what it has done."""
        own = frozenset(what for who, what in position.done if who == position.seat)
        card = self.opening(SocialState(seat=position.seat))
        return (
            card,
            position.heard,
            tuple(sorted(own)),
            tuple(sorted(position.agreed)),
            position.proposal is None,
        )


def _refuses(said: SpokenMessage) -> bool:
    """Say whether a message refuses, or denies a favour that it names; what else it denies refuses nothing."""
    text = spoken_text(said)
    named = re.finditer(rf"\b(?:{'|'.join((*FAVOURS, *OTHER_NAMES))})\b", text)
    return has(said.words, _REFUSING) or any(denied(text, found.start()) for found in named)
