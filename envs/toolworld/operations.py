"""Changes as descriptions. One object per change says how it is asked for, offered and reported, and when the policy allows it.

From it come a request that is granted, one refusal for each rule, and the part of a wish for two things, for one thing or
another, or for several at once. A wish that is granted and one that is refused are drawn and worded by the same code, so that
no wording gives a refusal away: only what the agent finds out tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from immutables import Map

from turnwise.data_file import data_file
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Patch, Rule, StoryDraft, fitting
from turnwise.envs.toolworld.facts import FactKind, dollars
from turnwise.envs.toolworld.story import PlanStep, call
from turnwise.envs.toolworld.vocabulary import begun
from turnwise.errors import EnvError
from turnwise.tasks.core import Json

Kept: TypeAlias = Callable[[Database, str | None, Mapping[str, Any]], bool]
"""(database, customer, arguments) → whether a rule of the policy is kept. Without a customer the change is their own."""
IMPOSSIBLE = "impossible"
"""The verdict on a wish that no rule forbids and no tool can fulfil."""
TRIES = 6
"""Wishes about one thing, until one has the verdict that is looked for."""


class Called(NamedTuple):
    """The words for what a wish is about, and the steps by which they lead to it."""

    it: str
    find: tuple[PlanStep, ...] = ()


def called_by(
    draft: StoryDraft, number: str, name: str, account: PlanStep, *, whose: str = "", share: float = 0.4
) -> Called:
    """The words for something: its number at times, and always where it has no name of its own.

    The name leads to it by way of the account. What is ``whose`` (phrases.yaml), not the customer's, is called by its number.
    """
    if whose:
        owner = draft.say(whose)
        return Called(f"{owner if draft.rng.random() < 0.4 else ''}{number}")
    if not name or draft.rng.random() < share:
        return Called(number)
    return Called(name, (account,))


@dataclass(frozen=True, eq=False)
class ServiceDesk:
    """Steps that the operations of a domain share: how a customer is verified, and how a refusal is put on
    record."""

    verify: Callable[[StoryDraft], tuple[PlanStep, ...]]
    refuse: Callable[[WishedChange, str], PlanStep]
    # what is read before anything is said about a wish
    reading: Callable[[WishedChange], tuple[PlanStep, ...]]


@dataclass(frozen=True, eq=False)
class Operation:
    """A change that can be asked for.

    ``clauses`` can follow "please". They, ``offer``, ``report`` and ``second`` are filled in by a wish. ``may`` are the rules
    of the policy in the policy's own order. ``draw`` makes a wish about a subject, whether or not it is allowed.
    """

    name: str
    tool: str  # that makes the change; "" where none does
    clauses: tuple[str, ...]
    offer: str
    report: str
    may: Mapping[str, Kept]
    subjects: Callable[[StoryDraft, bool], Sequence[Any]]  # (draft, whether the customer's own)
    draw: Callable[[Operation, StoryDraft, Any], WishedChange | None]
    desk: ServiceDesk
    question: tuple[str, ...] = ()  # for the amount
    again: str = ""  # the same question, asked once more
    # how a part of a wish says what is asked for otherwise: ", with the difference on {payment_id}"
    beside: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()  # arguments that are the same where several subjects are changed in one wish
    matches: tuple[str, ...] = ()  # arguments that are drawn until they are the same
    asked_for: tuple[str, ...] = ()  # rules that hang on what a wish asks for
    read_for: tuple[str, ...] = ()  # rules that hang on what is read beside the subject
    second: tuple[str, ...] = ()  # how somebody changes their mind
    rethink: Callable[[StoryDraft, WishedChange], WishedChange | None] | None = None
    counts: FactKind = "money"  # the kind of the amount
    topics: tuple[str, ...] = ()  # what a request is about that is not about its subject alone
    # verdict → what the world must differ in for it
    prepare: Mapping[str, Callable[[StoryDraft, Any], Sequence[Patch]]] = Map()


class WishedChange(NamedTuple):
    """A change as somebody wants it: the arguments of its call, and the words that it is spoken of with."""

    operation: Operation
    subject: str  # the key of what it is about
    arguments: Mapping[str, Json]
    fill: Mapping[str, str]
    spoken: Mapping[str, str] = {}  # what the customer calls otherwise than the agent
    find: tuple[PlanStep, ...] = ()  # how the subject is found by how it is called
    reads: tuple[PlanStep, ...] = ()  # what else must be read
    asks: tuple[PlanStep, ...] = ()  # for what is not said in the wish
    before: tuple[PlanStep, ...] = ()  # what makes the change possible
    said: str = ""  # beside the wish; then nothing needs to be asked for
    knows: Mapping[str, str] = {}  # what the customer answers when they are asked
    amount: int = 0  # cents that it costs, or gives back

    @property
    def call(self) -> PlanStep:
        return call(self.operation.tool, **self.arguments)

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """All that changes anything."""
        return (*self.before, self.call)

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that no other request of the story is about."""
        return frozenset(self.operation.topics or (self.subject,))

    @property
    def offer(self) -> str:
        return self.operation.offer.format(**self.fill)

    @property
    def report(self) -> str:
        return begun(self.operation.report.format(**self.fill))

    def named(self, **spoken: str) -> WishedChange:
        """The same wish in which the customer calls something otherwise."""
        return self._replace(spoken={**self.spoken, **spoken})

    def given(self, **arguments: str) -> WishedChange:
        """The wish with other arguments."""
        return self._replace(arguments={**self.arguments, **arguments}, fill={**self.fill, **arguments})

    def clause(self, draft: StoryDraft) -> str:
        words = {**self.fill, **self.spoken}
        return draft.words(*(way.format(**words) for way in self.operation.clauses))

    @property
    def found(self) -> tuple[PlanStep, ...]:
        """Return the steps that find and read the subject."""
        return (*self.find, *self.operation.desk.reading(self))

    @property
    def looks(self) -> tuple[PlanStep, ...]:
        """All that is read before the wish can be granted."""
        return (*self.found, *self.reads)

    @property
    def open(self) -> tuple[PlanStep, ...]:
        """Return what must be asked for."""
        return () if self.said else self.asks


def wished(
    operation: Operation, subject: str, given: Mapping[str, Json], name: Called, *,
    fill: Mapping[str, str] = {}, amount: int = 0, **more: Any,
) -> WishedChange:  # fmt: skip
    """A wish that is spoken of by its arguments, the name of its subject and its amount."""
    words = {**{key: str(value) for key, value in given.items()}, "it": name.it, "money": dollars(amount), **fill}  # fmt: skip
    return WishedChange(operation, subject, given, words, find=name.find, amount=amount, **more)


class ChangeWords(NamedTuple):
    """The words of a change (operations.yaml of its domain); what each is for :class:`Operation` says."""

    clauses: tuple[str, ...]
    offer: str = ""
    report: str = ""
    question: tuple[str, ...] = ()
    again: str = ""
    beside: tuple[str, ...] = ()
    second: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ChangeTable:
    """Changes of a domain: each has its words from operations.yaml, the rules of its tool, and the domain's desk."""

    package: str
    desk: ServiceDesk
    rules: Mapping[str, Mapping[str, Kept]] = Map()

    def operation(
        self, name: str, tool: str, subjects: Callable[[StoryDraft, bool], Sequence[Any]],
        draw: Callable[[Operation, StoryDraft, Any], WishedChange | None], may: Mapping[str, Kept] | None = None, **more: Any,
    ) -> Operation:  # fmt: skip
        """The change of this name; ``may`` where its rules are others than its tool's."""
        words = data_file(self.package, "operations", dict[str, ChangeWords])[name]
        rules = self.rules.get(tool, {}) if may is None else may
        return Operation(name, tool, may=rules, subjects=subjects, draw=draw, desk=self.desk, **words._asdict(), **more)  # fmt: skip


# --- what the policy says of a wish ------------------------------------------------------------------


def about(table: str, argument: str, kept: Callable[[Database, Any, Mapping[str, Any]], bool]) -> Kept:
    """A rule about the row that a call names; one about no row is kept."""

    def holds(db: Database, customer: str | None, given: Mapping[str, Any]) -> bool:
        row = db.find(table, given[argument])
        return row is None or kept(db, row, given)

    return holds


def owned(table: str, argument: str, owner: str) -> Kept:
    """The rule that a customer changes only rows of their own."""

    def holds(db: Database, customer: str | None, given: Mapping[str, Any]) -> bool:
        row = db.find(table, given[argument])
        return customer is None or row is None or getattr(row, owner) == customer

    return holds


def never(db: Database, customer: str | None, given: Mapping[str, Any]) -> bool:
    """The rule for what is given to nobody."""
    return False


def broken(db: Database, customer: str | None, wish: WishedChange) -> list[str]:
    """The rules that a wish breaks, in the policy's order."""
    rules = wish.operation.may
    return [name for name, kept in rules.items() if not kept(db, customer, wish.arguments)]


def verdict(draft: StoryDraft, wish: WishedChange) -> str:
    """The first rule that a wish breaks, or "impossible"; "" where it can be granted."""
    if found := broken(draft.after(*wish.before), draft.customer, wish):
        return found[0]
    try:
        return IMPOSSIBLE if draft.after(*wish.steps) == draft.db else ""
    except EnvError:
        return IMPOSSIBLE


def rules_of(operations: Iterable[Operation]) -> Rule:
    """The rules of a domain: those of each change, for the call that makes it."""
    by_tool: dict[str, dict[str, Kept]] = {}
    for one in operations:
        by_tool.setdefault(one.tool, {}).update(one.may)

    def rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
        may = by_tool.get(name, {})
        return [rule for rule, kept in may.items() if not kept(db, None, arguments)]

    return rules


def reasons(operations: Iterable[Operation], sections: Mapping[str, str]) -> str:
    """The rules by which requests are refused, as the policy lists them: ``status (3.1), changed_before (4.4)``."""
    used = {rule for one in operations for rule in one.may}
    return ", ".join(f"{rule} ({section})" for rule, section in sections.items() if rule in used)


# --- drawing wishes ----------------------------------------------------------------------------------


def wish_for(
    draft: StoryDraft, operation: Operation, rule: str = "", among: Sequence[Any] | None = None, *, own: bool = True
) -> WishedChange | None:  # fmt: skip
    """A wish that can be granted, or of which ``rule`` is the first that it breaks; about one of ``among``, if that is given."""
    subjects = list(operation.subjects(draft, own) if among is None else among)
    draft.rng.shuffle(subjects)
    prepared = operation.prepare.get(rule)
    if prepared and draft.used:
        return None  # the world is not that of the first request any more
    for subject in subjects:
        patches = prepared(draft, subject) if prepared else ()
        db = draft.db
        for table, key, fields in patches:
            draft.db = draft.db.update(table, key, **fields)
        wish = _drawn(draft, operation, subject, rule, shared=among is not None)
        draft.db = db
        if wish is not None:
            for table, key, fields in patches:
                draft.override(table, key, **fields)
            return wish
    return None


def _drawn(
    draft: StoryDraft, operation: Operation, subject: Any, rule: str, *, shared: bool
) -> WishedChange | None:
    for _ in range(TRIES):
        wish = operation.draw(operation, draft, subject)
        if wish is not None and (shared or not wish.topics & draft.used) and accept(draft, wish, rule):
            return wish
    return None


def accept(draft: StoryDraft, wish: WishedChange, rule: str = "") -> bool:
    """Make a wish part of the story if its verdict is the one looked for, and say whether it is."""
    if verdict(draft, wish) != rule:
        return False
    draft.used |= wish.topics
    draft.facts.update(wish.knows)
    return True


def accepted(draft: StoryDraft, wish: WishedChange | None, rule: str = "") -> WishedChange:
    """The wish, as a part of the story.

    Raises:
        NothingFits: there is none, or its verdict is another one.
    """
    return fitting(wish if wish and accept(draft, wish, rule) else None)


def wanted(draft: StoryDraft, operation: Operation, subject: Any, rule: str = "") -> WishedChange:
    """A wish about a subject.

    Raises:
        NothingFits: there is none.
    """
    return fitting(wish_for(draft, operation, rule, [subject]))
