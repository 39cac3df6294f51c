"""``turnwise/Dialogue-v0``: negotiation, persuasion, comfort, and meetings with goals on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from turnwise.envs.core import EndReason, Guard, Transition
from turnwise.envs.dialogue.actions import SAY, read_message
from turnwise.envs.dialogue.bargain import BargainPlay
from turnwise.envs.dialogue.comfort import ComfortPlay
from turnwise.envs.dialogue.knobs import DialogueKnobs
from turnwise.envs.dialogue.persuade import PersuadePlay
from turnwise.envs.dialogue.social import SocialPlay
from turnwise.envs.dialogue.spoken import answer
from turnwise.envs.dialogue.tasks import draw_task
from turnwise.envs.messages import Message, Messages
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.sessions import Play, PlaySession, SessionEnv, SpokenMessage
from turnwise.envs.worlds.speaking import default_spec
from turnwise.envs.worlds.speaking.speaker import check_player, is_spec, player
from turnwise.tasks.core import Json, Split, Task

_SCENES = {"bargain": BargainPlay, "persuade": PersuadePlay, "comfort": ComfortPlay, "social": SocialPlay}


def _make(task: Task) -> Play[Any]:
    return _SCENES[task.options["scene"]](task)


def _make_two_sided(task: Task) -> Play[Any]:
    return _make(Task(task.env, task.prompt, {**task.options, "two_sided": True}))


_play: WorldCache[Play[Any]] = WorldCache(_make)
_two_sided: WorldCache[Play[Any]] = WorldCache(_make_two_sided)


class DialogueEnv(SessionEnv):
    """One conversation a task. With the knob ``partner: agent`` a second policy plays the partner.

    Args:
        partner: who plays the partner, whatever the task says: ``agent`` (another agent), or a language model behind a server,
            ``openai:MODEL@URL``, ``vllm:MODEL`` or ``recorded:FILE`` (worlds/speaking).
        record: the file in which a language model's answers are kept; the default is in the cache folder.
        grounding: paid for a message that leads to a new state (:class:`turnwise.envs.worlds.commands.CommandEnv`).
    """

    tools = (SAY,)
    seats = ("agent", "partner")
    turn_limit = 10
    max_trivial_score: ClassVar[float] = 0.2
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        scene: {"scene": scene, "turn_limit": 14} for scene in _SCENES
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(DialogueKnobs, knobs, "dialogue"))

    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "partner": Guard("says who plays the partner, and at which address", words=True),
        "record": Guard("names the file that answers are read from and written to"),
    }
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {
        "partner": Guard("says at which address a model plays the partner", words=True)
    }

    def __init__(
        self,
        *,
        partner: str = "",
        record: str = "",
        grounding: float = 0.0,
        shaping: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(grounding=grounding, shaping=shaping, render_mode=render_mode)
        self.partner, self.record = check_player(partner, "partner"), record
        if is_spec(partner) or (not partner and default_spec()):
            self.blocking = True  # pyright: ignore[reportAttributeAccessIssue] (of this instance alone)

    def _partner_of(self, task: Task) -> str:
        asked = "agent" if task.options["two_sided"] else "scripted"
        return self.partner or task.options.get("partner", asked)

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One, or two where the partner is another agent."""
        two = self._snapshot is not None and self._partner_of(self._snapshot.task) == "agent"
        return self.seats if two else self.seats[:1]

    def play_of(self, task: Task) -> Play[Any]:
        return (_play if self._partner_of(task) == "scripted" else _two_sided)(task)

    def initial(self, task: Task) -> tuple[PlaySession, Messages]:
        player(self._partner_of(task), self.record, "partner")  # raises where nobody is named
        return super().initial(task)

    def transition(self, state: PlaySession, action: Message) -> Transition[PlaySession]:
        change = super().transition(state, action)
        speaker = player(self._partner_of(self.task), self.record, "partner")
        play, position = change.state
        if speaker is None:
            return change
        if not play.seat(position) or change.end not in (None, EndReason.TURN_LIMIT):
            return change._replace(rewards_to={}, messages_to={})
        turn = answer(speaker, play, position)
        told = self._in_time(turn.told)
        outcome = {} if told.end is None else {"outcome": told.scores[0]}
        details = {**told.details, **({"repairs": list(turn.repairs)} if turn.repairs else {})}
        text = told.text if told.end is None else told.farewell or told.text
        return Transition(
            PlaySession(play, told.position), text, {**change.rewards, **outcome}, told.end, details
        )

    def hear(self, action: Message) -> SpokenMessage:
        return read_message(action, self.tools)
