"""Comfort: a user who is low, with RLVER's emotion score (Wang et al. 2025, arXiv 2507.03112).

The score starts at 30 of 100. Each message changes it; at 100 the user is content and says goodbye, at 0 or below
it leaves, and after the last turn the conversation ends. The outcome is what was gained of the 70 that can be, at least
0, paid at the end; the potential is the same, so that shaping pays each turn its change. With ``paid: emotion`` both are RLVER's,
the score / 100, of which whoever says nothing keeps 0.3.

RLVER is ``scene: comfort, partner: model, paid: emotion, swing: 100, turn_limit: 8``: a language model judges each message and
answers it, in one call where theirs takes two. By default the user is a script, a small language game: it wants to be asked first, then that its
feeling is named, then what it hints at (to be heard, advised, encouraged, or shown another view), one after the
other. What fits raises the score; jokes, belittling, repetition and a feeling that it does not have lower it; to say nothing, one word,
or key words without a sentence lowers it no less than what is kind and out of place. A message does one thing (comforting.py). With two agents, or a language model as the partner, the user is played by the second
one, who says ``feel`` and a change from −20 to 20, or as many points as the knob ``swing`` says.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.actions import spoken_text
from turnwise.envs.dialogue.comforting import ComfortingAct, read_act
from turnwise.envs.dialogue.state import START, ComfortState
from turnwise.envs.dialogue.vocabulary import (
    COMFORTING_ACTS,
    FEELINGS,
    language_game,
    phrase,
)
from turnwise.envs.wordings import Wordings, ways
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

MOST = 100
GAINS = (8, 12, 17, 17, 17, 17)
"""Points that the fitting message of each stage adds: asking, naming the feeling, and what is hinted at, four
times."""
LOSS = {"joke": -12, "belittle": -15, "silence": -6, "words": -6, "hear": 0, "praise": 0, "ask": 0}
"""Points lost by a message that does not fit, by its kind; others cost ``_MISSED``."""
_REPEATED, _MISSED, _DISLIKED = -6, -2, -3
_MISTAKEN = -4  # to name a feeling that the other does not have
_UNKIND = ("joke", "belittle", "silence", "words")

_TELLS = {
    "angry": ways(
        "i am angry about it . | i could scream . | my hands turn into fists . | it makes my blood boil . | i slammed every door today ."
    ),
    "afraid": ways(
        "i am afraid of it . | i lie awake and shake . | my heart races . | my knees tremble . | i start at every sound ."
    ),
    "lonely": ways(
        "i feel lonely with it . | nobody calls me . | the house is empty . | i eat by myself . | there is no one to talk to ."
    ),
    "ashamed": ways(
        "i am ashamed of it . | i cannot look at anyone . | i want to hide . | my face burns . | i wish the ground would swallow me ."
    ),
    "tired": ways(
        "i am so tired of it . | i have no strength left . | i barely get up . | my eyes fall shut . | everything weighs a ton ."
    ),
}
_HINTS = {
    "hear": ways(
        "i just want to be heard . | is it odd to feel so ? | nobody lets me finish . | does anybody see that ? | everybody talks and no one takes it in ."
    ),
    "advise": ways(
        "what would you do ? | i need advice . | i do not know what comes next . | where do i begin ? | if only i knew how to go on ."
    ),
    "praise": ways(
        "i think i am no good . | i need to be told that i can do it . | others manage , i do not . "
        "| i fail at everything . | who would ever count on me ?"
    ),
    "reframe": ways(
        "maybe i see it too darkly . | i need another view . | is that all there is to it ? | could it mean something else ? | perhaps i look at it from the wrong end ."
    ),
}
_MOODS = ((70, "( relieved ) "), (40, "( calmer ) "), (10, "( sad ) "), (-1000, "( upset ) "))
_MORE = (
    "Say it in sentences, of which many other wordings count, too; a mere list of such words counts for nothing. Each message counts as "
    "the one thing that it says most about. Saying nothing, or one word, helps less than any of them."
)
_CHANGE = re.compile(r"feel\W*?([+-]?\d{1,3})")


def _last(done: ComfortingAct) -> str:
    """Return what is kept of a message: its act, and the feeling that it named."""
    return " ".join(done).strip()


class ComfortPlay(Play[ComfortState]):
    """One user."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.feeling: str = self.options["feeling"]
        self.aims: list[str] = self.options["aims"]
        self.dislikes: str = self.options["dislikes"]
        self.swing: int = self.options.get("swing", 20)
        self.least: int = 0 if self.options.get("paid") == "emotion" else START

    def begin(self) -> ComfortState:
        return ComfortState()

    def seat(self, position: ComfortState) -> int:
        return position.seat

    def moves(self, position: ComfortState) -> int:
        return position.turns

    def system(self, seat: int) -> str:
        if seat:
            return (
                f"You play a person who is troubled by {self.options['trouble']} and feels {self.feeling}. What you "
                f"need, one after the other: {', '.join(self.aims)}. You dislike: {self.dislikes}. Each turn, write "
                f"feel and how the message changes your mood, from -{self.swing} to {self.swing}, then what you say."
            )
        if not self.full:
            return "comfort : ask , name the feeling , hear , advise , praise or reframe ."
        return (
            "Somebody is low. Each turn say one thing that helps: ask, name what the other feels, show that you "
            "understand, advise, encourage, or offer another view, whichever is needed now."
        ) + ("" if self.two_sided else language_game({**COMFORTING_ACTS, **FEELINGS}, _MORE))

    def opening(self, position: ComfortState) -> str:
        return (
            f"{self.task.prompt}\n{position.heard[-1]}"
            if position.heard and position.seat
            else self.task.prompt
        )

    def move(self, position: ComfortState, said: SpokenMessage) -> PlayOutcome[ComfortState]:
        if position.seat:
            return self._felt(position, said)
        done = read_act(spoken_text(said), small=not self.full)
        change, stage = self._change(position, done)
        last = _last(done)
        if self.two_sided:
            heard = (*position.heard, said.text)
            after = ComfortState(position.emotion, stage, last, position.turns + 1, 1, heard, change)
            return PlayOutcome(after, said.text)
        emotion = min(MOST, position.emotion + change)
        after = position._replace(emotion=emotion, stage=stage, last=last, turns=position.turns + 1)
        return self._over(after, self._reply(after, change))

    def _wanted(self, position: ComfortState) -> str:
        stage = position.stage
        return (
            "ask"
            if stage == 0
            else self.feeling
            if stage == 1
            else self.aims[min(stage - 2, len(self.aims) - 1)]
        )

    def _change(self, position: ComfortState, done: ComfortingAct) -> tuple[int, int]:
        """Return the points that a message adds, and the stage after it; nothing that is kind costs more than
        silence."""
        wanted = self._wanted(position)
        mistaken = done.feeling not in ("", self.feeling)
        named = wanted == self.feeling == done.feeling
        if named or (done.act == wanted and not mistaken):
            return GAINS[min(position.stage, len(GAINS) - 1)], position.stage + 1
        change = min(LOSS.get(done.act, _MISSED), _MISTAKEN if mistaken else 0)
        if done.act != "other" and _last(done) == position.last:
            change = min(change, _REPEATED)
        change += _DISLIKED if done.act == self.dislikes else 0
        return change if done.act in _UNKIND else max(change, LOSS["silence"]), position.stage

    def _reply(self, position: ComfortState, change: int) -> str:
        mood = next(text for least, text in _MOODS if position.emotion >= least)
        stage = position.stage
        if stage == 0:
            text = "you do not know what it is about ." if change < 0 else "hm ."
        elif stage == 1:
            text = self._phrase(_TELLS[self.feeling], 1)
        else:
            text = self._phrase(_HINTS[self._wanted(position)], stage)
        return f"{mood}{'no . ' if change < 0 else 'yes . '}{text}"

    def _over(self, position: ComfortState, text: str) -> PlayOutcome[ComfortState]:
        position = position._replace(heard=(*position.heard, text))
        if position.emotion >= MOST:
            return PlayOutcome(
                position, "thank you , goodbye .", EndReason.SOLVED, self.settle(position), "goodbye ."
            )
        if position.emotion <= 0:
            return PlayOutcome(position, "leave me alone . goodbye .", EndReason.FAILED, farewell="goodbye .")
        return PlayOutcome(position, text)

    def _felt(self, position: ComfortState, said: SpokenMessage) -> PlayOutcome[ComfortState]:
        found = _CHANGE.search(said.text.lower())
        if found is None or abs(int(found[1])) > self.swing:
            raise ToolError(
                f"write feel and a number from -{self.swing} to {self.swing} , then what you say ."
            )
        text = (said.text[: found.start()] + said.text[found.end() :]).strip(" :,.") or "hm"
        emotion = min(MOST, position.emotion + int(found[1]))
        return self._over(position._replace(emotion=emotion, seat=0, turns=position.turns + 1), text)

    def settle(self, position: ComfortState) -> tuple[float, float]:
        """Return what is paid. Whoever plays the user earns nothing: it judges, and is not to be trained."""
        return self.potential(position), 0.0

    def _phrase(self, wordings: Wordings, seed: int) -> str:
        return phrase(f"{self.task.id} {seed}", wordings.of(self.language), self.options["paraphrase"])

    # --- players ---------------------------------------------------------------------------------

    def gold(self, position: ComfortState) -> str:
        """Return the message that is wanted now; a user played by a second agent judges and answers as the
        script would."""
        if position.seat:
            return f"feel {position.judged:+d} {self._reply(position, position.judged)}"
        wanted = self._wanted(position)
        return _SAYINGS.get(wanted, f"you feel {wanted} .")

    def demonstrate(self, position: ComfortState, rng: Random) -> str:
        """An imperfect scripted policy that gives advice too early."""
        if rng.random() < 0.5:
            return self.gold(position)
        return rng.choice(self.admissible(position))

    def potential(self, position: ComfortState) -> float:
        """The share of what can be gained, or the score / 100 where that is paid."""
        return max(position.emotion - self.least, 0) / (MOST - self.least)

    def admissible(self, position: ComfortState) -> Sequence[str]:
        if position.seat:
            return [f"feel {self.swing * part // 2} hm ." for part in range(-2, 3)]
        return [*_SAYINGS.values(), *(f"you feel {feeling} ." for feeling in FEELINGS)]

    def known(self, position: ComfortState) -> Hashable:
        """Return what the agent knows: what it heard; the score is not shown."""
        return (self.task.prompt, position.seat, position.last, position.heard)


_SAYINGS = {
    "ask": "what happened ?",
    "hear": "that is understandable .",
    "advise": "you could take a first step .",
    "praise": "you are strong .",
    "reframe": "there is another side to it .",
    "joke": "here is a joke .",
    "belittle": "it is nothing .",
}
