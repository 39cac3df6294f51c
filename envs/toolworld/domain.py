"""What a domain is made of: tables, tools, a policy in prose with its rules, and the words of its users."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from turnwise.envs.toolworld.database import Database
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolError, ToolSpec, tool

if TYPE_CHECKING:
    from turnwise.envs.toolworld.drafts import Draft
    from turnwise.envs.toolworld.moments import ToolState
    from turnwise.envs.toolworld.story import PlanStep, Stage

ActKind: TypeAlias = Literal["read", "identify", "write", "note", "end"]
"""read: looks only. identify: looks, and the customer that it finds is verified. write: changes data, needs the
user's yes. note: changes data, needs no yes (a refusal on record). end: a note that ends the conversation."""


class Written(NamedTuple):
    """What a tool returns: the database after it, what the caller is told, the customer whom it identified."""

    db: Database
    result: Json
    customer: str = ""


@dataclass(frozen=True)
class Act:
    """A tool over a database: ``tool.function(db, **arguments)`` gives a result, or :class:`Written`."""

    tool: Tool
    kind: ActKind
    owner: Callable[..., str | None] | None = None  # (db, **arguments) → the customer whose data it changes

    @property
    def name(self) -> str:
        return self.tool.spec.name

    def run(self, db: Database, arguments: Mapping[str, Any]) -> Written:
        """Carry the act out.

        Raises:
            ToolError: it cannot be, and the database stays as it is.
        """
        result = self.tool.function(db, **arguments)
        return result if isinstance(result, Written) else Written(db, result)


def act(
    function: Callable[..., Any], kind: ActKind = "read", owner: Callable[..., str | None] | None = None
) -> Act:
    """An act of a typed function whose first parameter is the database."""
    return Act(tool(function, skip=1), kind, owner)


def as_json(value: object) -> Json:
    """An argument as JSON, as a plan writes it."""
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else value


def renamed(made: Act, names: Mapping[str, str]) -> Act:
    """The same act with other argument names (what a world's API documentation says)."""
    inner, spec = made.tool, made.tool.spec
    back = {new: old for old, new in names.items()}
    schema = dict(spec.parameters)
    schema["properties"] = {names.get(key, key): value for key, value in schema.get("properties", {}).items()}
    if "required" in schema:
        schema["required"] = [names.get(key, key) for key in schema["required"]]

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        unknown = [name for name in arguments if name not in back]
        if unknown:
            raise ToolError(f"{spec.name} has no argument {unknown[0][:40]!r}.")
        return inner.check({back[name]: value for name, value in arguments.items()})

    return Act(
        Tool(ToolSpec(spec.name, spec.description, schema), inner.function, check), made.kind, made.owner
    )


Rule: TypeAlias = Callable[[Database, str, Mapping[str, Any]], Sequence[str]]
"""(database before, tool, arguments) → names of the policy's rules that the call breaks."""

Primitive: TypeAlias = "Callable[[Draft], Stage | None]"
"""Draws one request of a story, or None where the world has nothing that fits it."""


class Deed(NamedTuple):
    """Something that a user can do with what is his own: the words that ask for it, and what it does."""

    name: str
    words: tuple[tuple[str, ...], ...]  # alternatives of words that must all occur
    does: Callable[[Database, str], Written]  # (database, customer)


def _no_rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    return ()


def _nobody(draft: Draft) -> bool:
    return True


@dataclass(frozen=True)
class Domain:
    """A domain of tool worlds; see the sub-packages for the ones that there are."""

    name: str
    policy: str  # shown to the agent
    build: Callable[[Random, int], Database]  # (chance, size) → a world
    acts: tuple[Act, ...]
    requests: Mapping[str, Primitive] = field(default_factory=dict[str, Primitive])
    traps: Mapping[str, Primitive] = field(default_factory=dict[str, Primitive])  # what the policy forbids
    enter: Callable[[Draft], bool] = _nobody  # choose the customer; False where nobody fits
    slots: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )  # how each is asked for
    rules: Rule = _no_rules
    deeds: tuple[Deed, ...] = ()
    checks: Mapping[str, Callable[[Database, str], bool]] = field(
        default_factory=dict[str, Callable[[Database, str], bool]]
    )  # what a user can see for himself
    asks_consent: bool = True
    compact: bool = False  # few words, for small models
    confuse: Callable[[ToolState, PlanStep, Random], PlanStep | None] | None = None  # a hasty clerk's error

    @functools.cached_property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(made.tool for made in self.acts)

    def act(self, name: str) -> Act | None:
        return self._by_name.get(name)

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Act]:
        return {made.name: made for made in self.acts}
