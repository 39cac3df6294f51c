"""State of an episode of a world of others, and its answers as they are taken in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import ToolCall


class ForeignSeat(NamedTuple):
    """The system message of an agent, and its tools as canonical JSON: they may change from turn to turn."""

    system: str = ""
    tools: str = "[]"


class ForeignState(NamedTuple):
    """Everything that was done, as JSON texts in order, and a digest of all that was heard. The live world follows from it."""

    task: str
    acts: tuple[str, ...] = ()
    heard: str = ""
    admissible: tuple[str, ...] = ()
    agent: str = "agent"  # who acts
    seats: tuple[tuple[str, ForeignSeat], ...] = ()

    def seat(self, agent: str) -> ForeignSeat:
        """Return the system message and the tools that an agent has been told."""
        return dict(self.seats).get(agent, ForeignSeat())

    def after(self, acts: tuple[str, ...], heard: str, said: WorldAnswer) -> ForeignState:
        """The state after an answer; what it tells is told to whoever acts next."""
        agent = said.agent or self.agent
        seat = self.seat(agent)
        told = ForeignSeat(said.system or seat.system, said.tools or seat.tools)
        seats = tuple(sorted({**dict(self.seats), agent: told}.items()))
        return ForeignState(self.task, acts, heard, said.admissible, agent, seats)


class WorldAnswer(NamedTuple):
    """One answer of a world: what it shows, pays and offers, and whether that was the end.

    ``refused`` is the answer to an action that means nothing there and changed nothing. ``agent`` acts next, where several do; the
    rewards are the first agent's. ``results`` has what each call came to, in their order, and stands in the place of ``text``.
    """

    text: str = ""
    rewards: Mapping[str, float] = {}
    end: EndReason | None = None
    refused: str = ""
    admissible: tuple[str, ...] = ()
    system: str = ""
    tools: str = ""  # left out: as before
    details: Mapping[str, Json] = {}
    agent: str = ""  # left out: as before
    results: tuple[str, ...] = ()

    def shown(self, calls: Sequence[ToolCall]) -> str | Messages:
        """Return what the agent sees: a result for each call that it made by its id, else all of it as one text."""
        if not self.results or len(calls) != len(self.results):
            return "\n".join(self.results) or self.text
        pairs = zip(calls, self.results, strict=True)
        return Messages(Message("tool", result, tool_call_id=call.id) for call, result in pairs)

    @property
    def heard(self) -> Json:
        """All of it as JSON."""
        return [
            self.text,
            dict(self.rewards),
            self.end and self.end.value,
            self.refused,
            *self[4:7],
            dict(self.details),
            self.agent,
            list(self.results),
        ]


def read_answer(value: Json) -> WorldAnswer:
    """Return an answer as it was sent, checked field by field.

    Raises:
        InfraError: it is none; the field is named.
    """
    if not isinstance(value, dict):
        raise _odd("an answer", value)
    given = cast("dict[str, Any]", value)
    unknown = sorted(set(given) - set(WorldAnswer._fields))
    if unknown:
        raise InfraError(
            f"A world answers with the field {unknown[0]!r}.", f"Fields: {', '.join(WorldAnswer._fields)}."
        )
    for name in ("text", "refused", "system", "agent"):
        if not isinstance(given.get(name, ""), str):
            raise _odd(name, given[name])
    rewards, end = given.get("rewards") or {}, given.get("end")
    if not isinstance(rewards, dict) or not all(_is_number(paid) for paid in rewards.values()):
        raise _odd("rewards", rewards)
    if end is not None and end not in list(EndReason):
        raise _odd("end", end)
    for name in ("admissible", "results"):
        several = given.get(name) or []
        if not isinstance(several, list) or not all(isinstance(each, str) for each in several):
            raise _odd(name, several)
    return WorldAnswer(
        given.get("text", ""), {name: float(paid) for name, paid in rewards.items()}, end and EndReason(end),
        given.get("refused", ""), tuple(given.get("admissible") or ()), given.get("system", ""), canonical(given["tools"]) if "tools" in given else "",
        given.get("details") or {}, given.get("agent", ""), tuple(given.get("results") or ()),
    )  # fmt: skip


def _is_number(paid: object) -> bool:
    return isinstance(paid, (int, float)) and not isinstance(paid, bool) and math.isfinite(paid)


def _odd(field: str, value: object) -> InfraError:
    return InfraError(
        f"A world answers with {field} = {value!r:.80}, which its protocol does not have.",
        "docs/how-to/foreign-worlds.md lists the fields of an answer.",
    )
