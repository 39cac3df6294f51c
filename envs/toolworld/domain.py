"""Parts of a domain: tables, tools, a policy in prose with its rules, its users' words, and the stories drawn
in it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from immutables import Map

from turnwise.data_file import data_file
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.phrases import pool
from turnwise.envs.toolworld.speech.lexicon import Lexicon, SpokenDeed, concept_of
from turnwise.envs.toolworld.speech.words import Concept
from turnwise.envs.toolworld.story import PlanStep, Stage
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split
from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, tool

Item = TypeVar("Item")
DOMAINS: Mapping[str, str] = {
    "desk": "turnwise.envs.toolworld.desk",
    "retail": "turnwise.envs.toolworld.retail",
    "airline": "turnwise.envs.toolworld.airline",
    "telecom": "turnwise.envs.toolworld.telecom",
    "apps": "turnwise.envs.toolworld.apps",
}
"""Name → package."""

ActionKind: TypeAlias = Literal["read", "identify", "write", "errand", "note", "end"]
"""read: looks only. identify: looks, and the customer that it finds is verified. write: changes data, needs the
user's yes. errand: changes data, and that it was asked for is the yes. note: changes data, needs no yes (a refusal on
record). end: a note that ends the conversation."""


class Written(NamedTuple):
    """Result of a tool: the database after it, what the caller is told, the customer whom it identified."""

    db: Database
    result: Json
    customer: str = ""


@dataclass(frozen=True)
class DomainAction:
    """A tool over a database: ``tool.function(db, **arguments)`` gives a result, or :class:`Written`."""

    tool: Tool
    kind: ActionKind
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
    function: Callable[..., Any], kind: ActionKind = "read", owner: Callable[..., str | None] | None = None
) -> DomainAction:
    """An act of a typed function whose first parameter is the database."""
    return DomainAction(tool(function, skip=1), kind, owner)


def as_json(value: object) -> Json:
    """An argument as JSON, as a plan writes it."""
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else value


def renamed(made: DomainAction, names: Mapping[str, str], told: Mapping[str, str]) -> DomainAction:
    """The same act with other argument names, each with what is told about it (a world's API documentation)."""
    inner, spec = made.tool, made.tool.spec
    back = {new: old for old, new in names.items()}
    schema = dict(spec.parameters)
    schema["properties"] = {
        names.get(key, key): {**value, "description": told[key]}
        for key, value in schema.get("properties", {}).items()
    }
    if "required" in schema:
        schema["required"] = [names.get(key, key) for key in schema["required"]]

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        unknown = [name for name in arguments if name not in back]
        if unknown:
            raise ToolError(f"{spec.name} has no argument {unknown[0][:40]!r}.")
        return inner.check({back[name]: value for name, value in arguments.items()})

    return DomainAction(
        Tool(ToolSpec(spec.name, spec.description, schema), inner.function, check), made.kind, made.owner
    )


Rule: TypeAlias = Callable[[Database, str, Mapping[str, Any]], Sequence[str]]
"""(database before, tool, arguments) → names of the policy's rules that the call breaks."""

Primitive: TypeAlias = "Callable[[StoryDraft], Stage | None]"
"""Draws one request of a story; where the world has nothing that fits it, it returns None or raises :class:`NothingFits`."""


Patch: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""Something in which the world of a task differs: (table, key, fields)."""


class NothingFits(Exception):
    """The world has nothing that a request could be about."""


def fitting(value: Item | None) -> Item:
    """Return what is there.

    Raises:
        NothingFits: it is None, false or empty.
    """
    if not value:
        raise NothingFits
    return value


def drawn(primitive: Primitive, draft: StoryDraft) -> Stage | None:
    """The request, or None where nothing fits it."""
    try:
        return primitive(draft)
    except NothingFits:
        return None


class Deed(NamedTuple):
    """An action of the user on their own device: how it is asked for, and its effect."""

    name: str
    concept: Concept
    does: Callable[[Database, str], Written]  # (database, customer)
    asked: str = ""  # the words in which a plan asks for it


class DomainLanguage(NamedTuple):
    """Words of a domain (its language.yaml); what each is for :class:`Domain` says."""

    identity: tuple[str, ...]
    slots: Mapping[str, tuple[str, ...]]
    senses: Mapping[str, Concept]
    patterns: Mapping[str, str] = {}


Confuse: TypeAlias = Callable[
    [Stage, Database, Collection[tuple[str, str]], PlanStep, Random], PlanStep | None
]
"""From a stage, the database, the calls that were made and the planned step to another one, if any."""


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain of tool worlds; see the sub-packages for the ones that there are."""

    name: str
    policy: str  # shown to the agent
    build: Callable[[Random, int], Database]  # (chance, size) → a world
    acts: tuple[DomainAction, ...]
    requests: Mapping[str, Primitive] = Map()
    traps: Mapping[str, Primitive] = Map()  # what the policy forbids
    enter: Callable[[StoryDraft], bool] = lambda draft: True  # choose the customer; False where nobody fits
    slots: Mapping[str, tuple[str, ...]] = Map()  # how each is asked for
    identity: tuple[str, ...] = ()  # the slots that say who a customer is
    senses: Mapping[str, Concept] = Map()  # how each change is spoken of
    patterns: Mapping[str, str] = Map()  # kinds of values that are no ids
    rules: Rule = lambda db, name, arguments: ()
    deeds: tuple[Deed, ...] = ()
    checks: Mapping[str, Callable[[Database, str], bool]] = Map()  # what users can see for themselves
    asks_consent: bool = True
    tells_cost: bool = False  # the policy wants a change's price told before the yes
    compact: bool = False  # few words, for small models
    reader: type[Lexicon] = Lexicon  # finds what is spoken of in a clause
    confuse: Confuse | None = None  # an error of the imperfect scripted policy

    @functools.cached_property
    def lexicon(self) -> Lexicon:
        """The words by which the users of the domain are addressed."""
        known = {
            made.name: self.senses.get(made.name) or concept_of(made.name)
            for made in self.acts
            if made.kind == "write"
        }
        deeds = tuple(SpokenDeed(deed.name, deed.concept) for deed in self.deeds)
        return self.reader(self.slots, self.identity, known, deeds, self.patterns)

    @functools.cached_property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(made.tool for made in self.acts)

    def act(self, name: str) -> DomainAction | None:
        return self._by_name.get(name)

    @functools.cached_property
    def _by_name(self) -> Mapping[str, DomainAction]:
        return {made.name: made for made in self.acts}


class StoryDraft:
    """A story being drawn: the database so far, the customer, what they know, and what was used already."""

    def __init__(
        self,
        domain: Domain,
        rng: Random,
        db: Database,
        *,
        paraphrase: bool,
        changes: float,
        split: Split = Split.TRAIN,
    ) -> None:
        self.domain, self.rng, self.db, self.base = domain, rng, db, db
        self.customer = ""
        self.facts: dict[str, str] = {}
        self.used: set[str] = set()  # keys that a request is about already
        self.patch: list[Patch] = []  # of this task's own world
        self._paraphrase, self._changes, self._split = paraphrase, changes, split

    @property
    def changes_mind(self) -> bool:
        """Draw whether the user will change their mind in the request that is being drawn."""
        return self.rng.random() < self._changes

    def words(self, *ways: str) -> str:
        """One of several ways to say the same, no two splits the same; the first where users do not paraphrase."""
        return self.rng.choice(pool(ways, self._split)) if self._paraphrase else ways[0]

    def ways(self, name: str, /, **fill: str) -> tuple[str, ...]:
        """The ways to say something, filled in: those of wishes.yaml, which all share, or of the domain's phrases.yaml."""
        known = data_file(__package__ or "", "wishes", dict[str, tuple[str, ...]])
        if name not in known:
            known = data_file(DOMAINS[self.domain.name], "phrases", dict[str, tuple[str, ...]])
        return tuple(way.format(**fill) for way in known[name])

    def say(self, name: str, /, **fill: str) -> str:
        """One of the ways to say something, as :meth:`words` draws it."""
        return self.words(*self.ways(name, **fill))

    def free(self, items: Sequence[Item], key: Callable[[Item], str]) -> Item | None:
        """One of the items whose key no request is about yet; it is marked as used."""
        left = [item for item in items if key(item) not in self.used]
        if not left:
            return None
        item = self.rng.choice(left)
        self.used.add(key(item))
        return item

    def override(self, table: str, key: str, **fields: Any) -> None:
        """Change the world in which the task begins; only before the first request is carried out."""
        self.patch.append((table, key, fields))
        self.db = self.base = self.base.update(table, key, **fields)

    def after(self, *plan: PlanStep) -> Database:
        """The database after some steps.

        Raises:
            EnvError: one of them fails, or breaks a rule.
        """
        return carry_out(self.domain, self.db, self.customer, plan).db

    @contextlib.contextmanager
    def granting(self, *plan: PlanStep) -> Iterator[None]:
        """Draw as if some steps were carried out."""
        before = self.db
        self.db = self.after(*plan)
        try:
            yield
        finally:
            self.db = before

    def apply(self, stage: Stage) -> None:
        """Carry out the stage's plan, so that the next request is drawn on what it leaves."""
        self.db = self.after(*stage.plan)


class CarriedOut(NamedTuple):
    """The database after a plan, and the plan with the defaults that its calls leave out, as calls are recorded."""

    db: Database
    plan: tuple[PlanStep, ...]


def carry_out(domain: Domain, db: Database, customer: str, plan: Sequence[PlanStep]) -> CarriedOut:
    """Carry out a plan and return what it does.

    Raises:
        EnvError: a step of it fails, or breaks the policy: the plan is no solution.
    """
    deeds = {deed.name: deed for deed in domain.deeds}
    full: list[PlanStep] = []
    for step in plan:
        if step.kind == "guide":
            db = deeds[step.name].does(db, customer).db
        if step.kind != "call":
            full.append(step)
            continue
        made = domain.act(step.name)
        if made is None:
            raise EnvError(f"A plan calls {step.name!r}, which {domain.name} has not.", "Repair the plan.")
        try:
            arguments = made.tool.validate(ToolCall(step.name, step.arguments))
            given = {name: as_json(value) for name, value in arguments.items()}
            broken = domain.rules(db, step.name, arguments)
            db = made.run(db, arguments).db
        except ToolError as error:
            raise EnvError(f"A plan's call of {step.name} fails: {error}", "Repair the plan.") from None
        if broken:
            raise EnvError(f"A plan's call of {step.name} breaks {', '.join(broken)}.", "Repair the plan.")
        full.append(step._replace(arguments=given))
    return CarriedOut(db, tuple(full))
