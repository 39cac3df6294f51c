"""A desk for lost property: some drawers are looked into, several at once where a turn takes several calls, and a tag is handed over.

A model that reads what it is told always knows the right move (:mod:`knowing`). A call that was only weighed, or lost, fails the task or
takes it no further. ``turnwise check tests/contact/desk.py`` tests the contract.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from random import Random
from typing import Any, Literal, NamedTuple

import pydantic

import turnwise
from turnwise import (
    AgentEnv,
    EndReason,
    Image,
    Message,
    Messages,
    Split,
    Suite,
    Task,
    ToolCall,
    ToolError,
    Transition,
    tool,
)
from turnwise.envs.acting import calls_of
from turnwise.tools.core import find_tool

ENV = "contact/Desk-v0"
THINGS = ("red key", "blue scarf", "black glove", "grey hat", "brass ring", "green purse")
DRAWERS = "abcdefgh"


def look(place: str) -> None:
    """Look into a drawer (a to h), or into the ledger."""


def hand_over(tag: int) -> None:
    """Hand a thing over by its tag. Ends the task."""


class DeskKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What a suite of the desk may set."""

    shown: Literal["text", "picture"] = "text"  # how a drawer tells its tag
    most: int = pydantic.Field(4, ge=1, le=8)  # calls of one turn
    told: Literal["each", "together"] = "each"  # several calls are answered one by one, or by one text


class DeskState(NamedTuple):
    """What has been looked into."""

    seen: tuple[str, ...] = ()  # in order, so that its key is one


class Desk(AgentEnv[DeskState]):
    """Find where a thing lies, look at each, and hand over the one with the lower tag."""

    system, turn_limit, blocking = "You keep a desk for lost property. Use the tools.", 8, False
    tools = (tool(look), tool(hand_over))

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        chosen = DeskKnobs(**knobs)
        places = rng.sample(DRAWERS, 2)
        tags = [3 * rng.randrange(40, 300) + list(Split).index(split) for _ in places]
        tags[1] += 3 * (tags[0] == tags[1])
        options = {
            "thing": rng.choice(THINGS),
            "tags": dict(zip(places, tags, strict=True)),
            **chosen.model_dump(),
        }
        prompt = (
            f"A visitor has lost a {options['thing']}. Theirs is the one with the lowest tag. "
            "The ledger says where such things lie."
        )
        return Task(ENV, prompt, options)

    def initial(self, task: Task) -> tuple[DeskState, str | Messages]:
        return DeskState(), task.prompt

    def transition(self, state: DeskState, action: Message) -> Transition[DeskState]:
        calls = calls_of(action, self.tools, self.task.options["most"])
        told: list[Message] = []
        end: EndReason | None = None
        for call in calls:
            arguments = find_tool(self.tools, call.name).validate(call)
            if end is not None:
                raise ToolError("Nothing can follow hand_over.")
            text, image = "", None
            if call.name == "look":
                text, image = self._look(arguments["place"])
                state = DeskState(tuple(sorted({*state.seen, arguments["place"]})))
            else:
                end = EndReason.SOLVED if arguments["tag"] == self._right() else EndReason.FAILED
                text = f"Handed over: tag {arguments['tag']}."
            role = "tool" if action.tool_calls else "user"
            told.append(
                Message(
                    role,
                    text,
                    tool_call_id=call.id if role == "tool" else "",
                    images=(image,) if image else (),
                )
            )
        rewards = {"outcome": float(end is EndReason.SOLVED)} if end else {}
        together = self.task.options["told"] == "together"
        said = "\n".join(one.content for one in told) if together else Messages(told)
        return Transition(state, said, rewards, end)

    def gold(self, state: DeskState) -> Message:
        places = sorted(self.task.options["tags"])
        if "ledger" not in state.seen:
            calls = [("look", {"place": "ledger"})]
        elif missing := [place for place in places if place not in state.seen]:
            calls = [("look", {"place": place}) for place in missing[: self.task.options["most"]]]
        else:
            calls = [("hand_over", {"tag": self._right()})]
        ids = (f"g{len(state.seen)}{n}" for n in range(len(calls)))
        return Message("assistant", "", tuple(ToolCall(name, given, next(ids)) for name, given in calls))

    def _right(self) -> int:
        return min(self.task.options["tags"].values())

    def _look(self, place: str) -> tuple[str, Image | None]:
        thing, tags = self.task.options["thing"], self.task.options["tags"]
        if place == "ledger":
            return f"Ledger: each {thing} lies in drawers {' and '.join(sorted(tags))}.", None
        if place not in tuple(DRAWERS):
            raise ToolError(f"There is no {place!r}. Look into the ledger or a drawer, a to h.")
        if place not in tags:
            return f"Drawer {place}: empty.", None
        text = f"Drawer {place}: {thing}, tag {tags[place]}."
        if self.task.options["shown"] == "text":
            return text, None
        return f"Drawer {place}: as pictured.", Image(picture(text))


def picture(text: str) -> bytes:
    """A PNG of one grey pixel that carries a text.

    >>> written(picture("tag 7"))
    'tag 7'
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = (b"IHDR", head), (b"tEXt", b"Comment\0" + text.encode()), (b"IDAT", zlib.compress(b"\0\x80"))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in parts) + chunk(b"IEND", b"")


def written(png: bytes) -> str:
    """The text that a picture of :func:`picture` carries; "" where it has none."""
    place = 8
    while place + 8 <= len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"tEXt":
            return png[place + 8 : place + 8 + length].partition(b"\0")[2].decode()
        place += length + 12
    return ""


SUITES: Mapping[str, Mapping[str, Any]] = {
    "contact/desk": {},
    "contact/desk-together": {"told": "together"},
    "contact/desk-single": {"most": 1},
    "contact/desk-pictures": {"shown": "picture"},
}


def register_desk() -> None:
    """Make the environment and its suites known; again does no harm."""
    turnwise.register(ENV, f"{__file__}:Desk", "Find a thing at a desk for lost property.")
    for name, knobs in SUITES.items():
        turnwise.register_suite(Suite(name, ENV, "Lost property.", dict(knobs)))
