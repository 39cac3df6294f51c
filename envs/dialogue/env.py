"""``turnwise/Dialogue-v0``: negotiation, persuasion, comfort, and meetings with goals on both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from turnwise.envs.dialogue.bargain import BargainPlay
from turnwise.envs.dialogue.comfort import ComfortPlay
from turnwise.envs.dialogue.persuade import PersuadePlay
from turnwise.envs.dialogue.social import SocialPlay
from turnwise.envs.dialogue.tasks import DialogueKnobs, draw_task
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import Kept, without_thoughts
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.sessions import Play, Said, SessionEnv
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError, find_tool, tool

_WORD = re.compile(r"[a-z]+|\d+")
_LONGEST = 2000  # characters of what is said
_SCENES = {"bargain": BargainPlay, "persuade": PersuadePlay, "comfort": ComfortPlay, "social": SocialPlay}


def say(text: str) -> str:
    """Say something to the other, in plain words."""
    return text


def _make(task: Task) -> Play[Any]:
    return _SCENES[task.options["scene"]](task)


_play: Kept[Play[Any]] = Kept(_make)


class DialogueEnv(SessionEnv):
    """One conversation a task. With the knob ``partner: agent`` a second policy plays the partner."""

    tools = (tool(say),)
    seats = ("agent", "partner")
    turn_limit = 10
    floor: ClassVar[float] = 0.2
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        scene: {"scene": scene, "turn_limit": 14} for scene in _SCENES
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(DialogueKnobs, knobs, "dialogue"))

    def play_of(self, task: Task) -> Play[Any]:
        return _play(task)

    def hear(self, action: Message) -> Said:
        text = self._text(action)
        if len(text) > _LONGEST:
            raise ToolError(f"Say at most {_LONGEST} characters.")
        words = tuple(_WORD.findall(text.lower()))
        if not words:
            raise ToolError("Say something.")
        sayable = "".join(sign if sign.isprintable() else " " for sign in text)
        return Said(words, sayable)

    def _text(self, action: Message) -> str:
        match action.tool_calls:
            case ():
                return without_thoughts(action.content)
            case (call,):
                return find_tool(self.tools, call.name).validate(call)["text"]
            case _:
                raise ToolError("Say one thing per turn: make one call.")
