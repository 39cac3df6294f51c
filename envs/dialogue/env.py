"""``turnwise/Dialogue-v0``: negotiation, persuasion, comfort, and meetings with goals on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from turnwise.envs.dialogue.actions import SAY, read_message
from turnwise.envs.dialogue.bargain import BargainPlay
from turnwise.envs.dialogue.comfort import ComfortPlay
from turnwise.envs.dialogue.knobs import DialogueKnobs
from turnwise.envs.dialogue.persuade import PersuadePlay
from turnwise.envs.dialogue.social import SocialPlay
from turnwise.envs.dialogue.tasks import draw_task
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.sessions import Play, SessionEnv, SpokenMessage
from turnwise.tasks.core import Json, Split, Task

_SCENES = {"bargain": BargainPlay, "persuade": PersuadePlay, "comfort": ComfortPlay, "social": SocialPlay}


def _make(task: Task) -> Play[Any]:
    return _SCENES[task.options["scene"]](task)


_play: WorldCache[Play[Any]] = WorldCache(_make)


class DialogueEnv(SessionEnv):
    """One conversation a task. With the knob ``partner: agent`` a second policy plays the partner."""

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

    def play_of(self, task: Task) -> Play[Any]:
        return _play(task)

    def hear(self, action: Message) -> SpokenMessage:
        return read_message(action, self.tools)
