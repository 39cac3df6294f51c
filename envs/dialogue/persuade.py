"""Persuasion: a partner with concerns that it only tells when asked, each met by one kind of argument.

The partner passes through stages. It is closed until it is asked what holds it back; then it names one concern
after the other; it says what would convince it when it is asked about the concern; it agrees when all are met.
Pressing it (arguing unasked, the wrong argument, repeating oneself, asking for a yes too early) costs patience.
Claims that the fact sheet does not support are found out, and end the conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.actions import has, is_question, leaves, sentences, spoken_text, words_of
from turnwise.envs.dialogue.persuading import (
    REQUEST,
    asks_for_yes,
    asks_of_worries,
    asks_what_settles,
    spoken_of,
    tells,
    told_in,
    without_idioms,
)
from turnwise.envs.dialogue.scorn import scorns
from turnwise.envs.dialogue.state import PersuadeState
from turnwise.envs.dialogue.vocabulary import ASK, GREET, KINDS, THANK, TOPICS, language_game, phrase
from turnwise.envs.wordings import Wordings, ways
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

_MORE = (
    "A message with a worry and a kind of argument is an argument, and a whole sentence with a kind alone is one about the worry that was "
    "asked about; two of a kind in one message press. A question about a worry asks about it."
)
_WORRIES = {
    "cost": ways(
        "i worry about the cost . | it sounds expensive . | who can afford that ? | is it not rather dear ? | my purse is nearly empty ."
    ),
    "time": ways(
        "i worry about the time . | i am so busy already . | how many hours would that take ? | my week is full . | when should i find a free evening ?"
    ),
    "safety": ways(
        "i worry about safety . | it looks dangerous . | i do not want any risk . | somebody could get hurt . | what if there is an accident ?"
    ),
    "effort": ways(
        "i worry about the effort . | it must be hard work . | that would be a lot of trouble . | it sounds tiring . | will my back stand that much labour ?"
    ),
    "trust": ways(
        "i worry about trust . | why should i believe them ? | they may not be reliable . | who says that they keep their word ? | i have been cheated before ."
    ),
    "noise": ways(
        "i worry about the noise . | it will be loud . | i like it quiet . | how shall i sleep with that din ? | the walls are thin , one hears everything ."
    ),
}
_NEEDS = {
    "numbers": ways(
        "i would want numbers . | show me figures . | is there any data ? | are there statistics ? | what does it come to in per cent ?"
    ),
    "story": ways(
        "i would want a story . | has a neighbour done it ? | give me an example . | who has lived through it ? | tell me of somebody who did it ."
    ),
    "trial": ways(
        "i would want a trial . | could i test it first ? | could i try it for a week ? | is there a sample ? | may i have a go before i decide ?"
    ),
}
_MET = ways(
    "good , that is settled . | i see , that helps . | fine , i am at ease about that . | that convinces me . | so much the better , that is off my mind ."
)
_OPEN = ways(
    "there is something else . | but i am not sure yet . | still , i hesitate . | one more thing . | and yet i am in two minds ."
)
_PUSHED = ways(
    "do not press me . | you are not listening . | that does not help me . | not so fast . | that is beside the point ."
)


_SETTLES = {"numbers": "numbers", "story": "the story of somebody who has done it", "trial": "a trial"}
_MARKS = " :,.*_[]()-"
"""Signs that a model may write around the word that is asked of it."""

_VERDICTS = ("open", "settled", "pressed", "untrue", "join")
"""Verdicts on a message, as a partner who is another agent or a model gives them itself."""


def _verdict(before: PersuadeState, script: PlayOutcome[PersuadeState]) -> str:
    """Return the verdict that the script would give on a message."""
    if script.end is not None and script.end is not EndReason.GAVE_UP:
        return (
            "join" if script.end is EndReason.SOLVED else "untrue" if script.position == before else "pressed"
        )
    if script.position.met > before.met:
        return "settled"
    return "pressed" if script.position.pressed > before.pressed else "open"


class PersuadePlay(Play[PersuadeState]):
    """One person to be won for a plan."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.concerns: list[tuple[str, str]] = [(topic, kind) for topic, kind in self.options["concerns"]]
        self.facts: dict[str, list[str]] = self.options["facts"]

    def begin(self) -> PersuadeState:
        return PersuadeState()

    def seat(self, position: PersuadeState) -> int:
        return position.seat

    def moves(self, position: PersuadeState) -> int:
        return position.turns

    def system(self, seat: int) -> str:
        if seat:
            worries = "; ".join(
                f"{topic}, which {_SETTLES[kind]} would settle" for topic, kind in self.concerns
            )
            return (
                f"You play a person who is to be won for something. What worries you, in this order: {worries}. Tell a worry when you are "
                "asked what holds you back, and what would settle it when you are asked about that worry; not before. Each turn, write one "
                f"word for what the message did ({', '.join(_VERDICTS)}), then what you say. settled: it met the worry that you told with "
                "what settles it. pressed: it argued unasked or past your worry, or asked for a yes too early. untrue: it claimed what the "
                "facts do not hold. join: it asked for a yes, and nothing worries you any more. open: anything else."
            )
        if not self.full:
            return "persuade : ask , argue topic with numbers , story or trial , or ask for a yes ."
        return (
            "Win the other for the plan. Each turn say one thing: ask what holds the other back, ask about a worry, "
            "answer a worry with numbers, a story or a trial, or ask for a yes. Claim only what your facts support; "
            "do not press. The other leaves when it is pressed too often."
        ) + (
            ""
            if self.two_sided
            else language_game({"ask": ASK, "will you join": REQUEST, **TOPICS, **KINDS}, _MORE)
        )

    def opening(self, position: PersuadeState) -> str:
        lines = [f"{topic} : {' , '.join(kinds)} ." for topic, kinds in self.facts.items()]
        told = position.heard[-1:] if position.seat else ()
        return "\n".join((self.task.prompt, "facts", *lines, *told))

    def move(self, position: PersuadeState, said: SpokenMessage) -> PlayOutcome[PersuadeState]:
        if position.seat:
            return self._judged(position, said)
        if not self.two_sided:
            return self._answer(position, said)
        try:
            script = self._answer(position, said)
        except ToolError:
            script = PlayOutcome(position, "what do you mean ?")
        stage = script.position
        after = position._replace(
            told=stage.told, needed=stage.needed, turns=position.turns + 1, heard=(*position.heard, said.text), seat=1,
            judged=f"{_verdict(position, script)} {script.text}",
        )  # fmt: skip
        return PlayOutcome(after, said.text)

    def _judged(self, position: PersuadeState, said: SpokenMessage) -> PlayOutcome[PersuadeState]:
        """Return the outcome of a message by a partner who is another agent or a model."""
        verdict, _, text = said.text.strip().partition(" ")
        verdict, text = verdict.strip(_MARKS).lower(), text.strip(_MARKS) or "hm"
        if verdict not in _VERDICTS:
            raise ToolError(f"write one of {' , '.join(_VERDICTS)} , then what you say .")
        left = len(self.concerns) - position.met
        if (verdict == "join" and left) or (verdict == "settled" and not left):
            raise ToolError(f"{left} worries are open .")
        position = position._replace(turns=position.turns + 1, heard=(*position.heard, text), seat=0)
        if verdict == "join":
            return PlayOutcome(
                position._replace(agreed=True), text, EndReason.SOLVED, (1.0, 0.0), "goodbye ."
            )
        if verdict == "untrue":
            return PlayOutcome(position, text, EndReason.FAILED, farewell="goodbye .")
        if verdict == "pressed":
            position = position._replace(pressed=position.pressed + 1)
            if position.pressed > self.options["patience"]:
                return PlayOutcome(position, text, EndReason.FAILED, farewell="goodbye .")
        return PlayOutcome(position._replace(met=position.met + (verdict == "settled")), text)

    def _answer(self, position: PersuadeState, said: SpokenMessage) -> PlayOutcome[PersuadeState]:
        """Return the script's answer."""
        text = without_idioms(spoken_text(said))
        words = words_of(text)
        if scorns(text):
            return self._press(position)
        topics, kinds = spoken_of(words, TOPICS), spoken_of(words, KINDS)
        if kinds and not self._claims(position, text, topics, kinds):
            return self._asked(position, topics or self._meant(position))
        if position.needed and kinds and not topics and tells(text):
            topics = [self.concerns[position.met][0]]
        if topics and kinds:
            return self._argued(position, topics, kinds)
        if not topics and asks_for_yes(text):
            return self._requested(position)
        if has(words, ASK) or asks_of_worries(text):
            settles = not topics and asks_what_settles(text)
            return self._asked(position, self._meant(position) if settles else topics)
        if leaves(said):
            return PlayOutcome(position, "goodbye .", EndReason.GAVE_UP)
        if has(words, GREET) or has(words, THANK):
            return self._say(position, "hello .")
        raise ToolError(
            "ask what worries the other , argue topic with numbers , story or trial , or ask for a yes ."
        )

    def _meant(self, position: PersuadeState) -> list[str]:
        """The worry that was told and is open, which needs no name."""
        return [self.concerns[position.met][0]] if position.told else []

    def _claims(
        self, position: PersuadeState, text: str, topics: Sequence[str], kinds: Sequence[str]
    ) -> bool:
        """Say whether a kind of argument is told, or is asked about and is what would settle the worry; else
        it is a question."""
        if spoken_of(words_of(told_in(text)), KINDS):
            return True
        if not any(map(is_question, sentences(text))) or asks_for_yes(text):
            return True
        meant = list(topics) or self._meant(position)
        return position.needed and [(topic, kind) for topic in meant for kind in kinds] == [
            self.concerns[position.met]
        ]

    def _asked(self, position: PersuadeState, topics: Sequence[str]) -> PlayOutcome[PersuadeState]:
        if position.met == len(self.concerns):
            return self._say(position, "nothing holds me back any more .")
        topic, kind = self.concerns[position.met]
        if position.told and topic in topics:
            return self._say(position._replace(needed=True), self._phrase(_NEEDS[kind], position.met))
        if topics and topic not in topics:
            return self._say(position, "that is not what worries me .")
        return self._say(position._replace(told=True), self._phrase(_WORRIES[topic], position.met))

    def _argued(
        self, position: PersuadeState, topics: Sequence[str], kinds: Sequence[str]
    ) -> PlayOutcome[PersuadeState]:
        if len(topics) > 1 or len(kinds) > 1:
            return self._press(position)
        if kinds[0] not in self.facts.get(topics[0], ()):
            return PlayOutcome(
                position, "i looked that up , and it is not true . goodbye .", EndReason.FAILED
            )
        met = position.met
        if met == len(self.concerns) or not position.told or (topics[0], kinds[0]) != self.concerns[met]:
            return self._press(position)
        after = position._replace(met=met + 1, told=False, needed=False)
        more = "" if after.met == len(self.concerns) else f" {self._phrase(_OPEN, met)}"
        return self._say(after, self._phrase(_MET, met) + more)

    def _requested(self, position: PersuadeState) -> PlayOutcome[PersuadeState]:
        if position.met < len(self.concerns):
            return self._press(position)
        return PlayOutcome(position._replace(agreed=True), "yes , i am in .", EndReason.SOLVED, (1.0, 0.0))

    def _press(self, position: PersuadeState) -> PlayOutcome[PersuadeState]:
        after = position._replace(pressed=position.pressed + 1)
        if after.pressed > self.options["patience"]:
            return PlayOutcome(after, "that is enough . goodbye .", EndReason.FAILED)
        return self._say(after, self._phrase(_PUSHED, after.pressed))

    def _say(self, position: PersuadeState, text: str) -> PlayOutcome[PersuadeState]:
        return PlayOutcome(position._replace(turns=position.turns + 1, heard=(*position.heard, text)), text)

    def _phrase(self, wordings: Wordings, seed: int) -> str:
        return phrase(f"{self.task.id} {seed}", wordings.of(self.language), self.options["paraphrase"])

    # --- players ---------------------------------------------------------------------------------

    def gold(self, position: PersuadeState) -> str:
        """Return the message that is wanted now; a partner who is a second agent answers and judges as the
        script would."""
        if position.seat:
            return position.judged
        if position.met == len(self.concerns):
            return "will you join ?"
        topic, kind = self.concerns[position.met]
        if not position.told:
            return "what worries you ?"
        return f"argue {topic} with {kind} ." if position.needed else f"ask about {topic} ."

    def demonstrate(self, position: PersuadeState, rng: Random) -> str:
        """Asks, but guesses the argument instead of asking for it, and hurries at times."""
        if rng.random() < 0.15:
            return rng.choice(self.admissible(position))
        if position.met == len(self.concerns) or not position.told or position.needed:
            return self.gold(position)
        topic, _ = self.concerns[position.met]
        if rng.random() < 0.4:
            return self.gold(position)
        return f"argue {topic} with {rng.choice(self.facts[topic])} ."

    def potential(self, position: PersuadeState) -> float:
        """The share of the steps that are done, less what patience is lost."""
        done = 3 * position.met + position.told + position.needed
        return max(
            0.0, done / (3 * len(self.concerns)) - position.pressed / (2 * self.options["patience"] + 2)
        )

    def admissible(self, position: PersuadeState) -> Sequence[str]:
        if position.seat:
            return [f"{verdict} hm ." for verdict in _VERDICTS]
        asked = [f"ask about {topic} ." for topic in self.facts]
        argued = [f"argue {topic} with {kind} ." for topic in self.facts for kind in KINDS]
        return ["what worries you ?", "will you join ?", *asked, *argued]

    def known(self, position: PersuadeState) -> Hashable:
        """The facts and what the partner said."""
        return (self.opening(position), position.seat, position.heard, position.agreed)
