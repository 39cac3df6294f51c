"""Wishes of parts: one thing or another by what is found out, two things, the best of several and the others, all of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.facts import Fact, FactKind, dollars
from turnwise.envs.toolworld.granting import sentence
from turnwise.envs.toolworld.operations import TRIES, Operation, WishedChange, wanted, wish_for
from turnwise.envs.toolworld.story import PlanStep, Stage, confirmed, once, tell
from turnwise.envs.toolworld.vocabulary import begun


class Lookup(NamedTuple):
    """A value that can be looked up: it is asked for, or something hangs on it."""

    what: tuple[str, ...]  # the words for it
    kind: FactKind
    value: int | str
    report: str  # with its value as {}
    look: tuple[PlanStep, ...] = ()
    topics: frozenset[str] = frozenset()
    choices: tuple[str, ...] = ()  # among which a word is one

    def shown(self, value: int | str) -> str:
        return dollars(int(value)) if self.kind == "money" else str(value)

    def called(self, draft: StoryDraft) -> str:
        return draft.words(*self.what) if len(self.what) > 1 else "".join(self.what)

    @property
    def fact(self) -> Fact:
        return Fact(self.kind, str(self.value), self.choices)

    @property
    def told(self) -> str:
        return self.report.format(self.shown(self.value))


class WishPart(NamedTuple):
    """One thing that a user asks for: a clause that can follow "please", what does it, and what is reported then."""

    say: str
    steps: tuple[PlanStep, ...]
    report: str
    tells: tuple[Fact, ...] = ()
    again: str = ""
    said: str = ""  # beside the wish


def decided(
    draft: StoryDraft, look: Iterable[PlanStep], condition: str, parts: tuple[WishPart, WishPart], *, holds: bool
) -> Stage:  # fmt: skip
    """A request of which the first part is wanted where the condition holds, else the second.

    The user cannot know which it will be, so they would agree to the changes of both: their yes tells nothing.
    """
    then, otherwise = parts
    now = then if holds else otherwise
    say = draft.say("either", condition=condition, then=then.say, otherwise=otherwise.say)
    plan = (*once(look), *now.steps, tell(now.report))
    return Stage(_beside(say, *parts), plan, now.tells, again=now.again, wants=changes(*parts))


def joined(
    draft: StoryDraft, look: Iterable[PlanStep], first: WishPart, second: WishPart, say: str = ""
) -> Stage:
    """A request of two parts, both wanted."""
    plan = (*once(look), *first.steps, *second.steps, tell(f"{first.report} {second.report}"))
    again = f"{first.again} {second.again}".strip()
    say = say or draft.say("together", first=first.say, First=begun(first.say), second=second.say)
    said = _beside(say, first, second)
    return Stage(said, plan, (*first.tells, *second.tells), again=again, wants=changes(first, second))


def _beside(say: str, *parts: WishPart) -> str:
    """A wish, and what is said beside its parts; nothing of it twice."""
    return " ".join(dict.fromkeys((say, *(part.said for part in parts if part.said))))


def changes(*parts: WishPart) -> tuple[str, ...]:
    """The changes that the parts of a wish need."""
    return tuple(dict.fromkeys(step.name for part in parts for step in part.steps if step.kind == "call"))


def part(draft: StoryDraft, *wishes: WishedChange, say: str = "") -> WishPart:
    """One thing that is wanted, of one subject or of several; the first wish words it."""
    first = wishes[0]
    if ways := first.operation.beside:
        first, say = (
            first._replace(said=""),
            say or f"{first.clause(draft)}{draft.words(*(way.format(**first.fill) for way in ways))}",
        )
    asks = () if ways or first.said else once(step for wish in wishes for step in wish.open)
    offer, report = (" and ".join(wish.offer for wish in wishes)), " ".join(wish.report for wish in wishes)
    before = (step for wish in wishes for step in wish.before)
    steps = (*asks, *before, *confirmed(offer, *(wish.call for wish in wishes)))
    return WishPart(say or first.clause(draft), steps, report, said=first.said)


def then(
    draft: StoryDraft, first: WishedChange, operation: Operation, among: Sequence[Any]
) -> WishedChange | None:
    """A wish that can be granted after another one was."""
    with draft.granting(*first.steps):
        return wish_for(draft, operation, among=among)


def each(draft: StoryDraft, operation: Operation, subjects: Sequence[Any]) -> tuple[WishedChange, ...]:
    """The same wish about each of several subjects; none where it cannot be granted for all of them."""
    found: list[WishedChange] = []
    for subject in subjects:
        with draft.granting(*(step for wish in found for step in wish.steps)):
            wish = _like(draft, operation, subject, found)
        if wish is None:
            return ()
        if found:
            wish = wish.given(**{name: found[0].fill[name] for name in operation.shares})
        found.append(wish)
    return tuple(found)


def _like(
    draft: StoryDraft, operation: Operation, subject: Any, found: Sequence[WishedChange]
) -> WishedChange | None:
    """A wish about a subject that has the arguments of those before that all share."""
    for _ in range(4 * TRIES):
        wish = wish_for(draft, operation, among=[subject])
        first = found[0].arguments if found and wish else {}
        if wish is None or all(
            wish.arguments[name] == first.get(name, wish.arguments[name]) for name in operation.matches
        ):
            return wish
    return None


def limit_for(draft: StoryDraft, amount: int, *, within: bool, unit: int = 100) -> int:
    """Whole dollars, in cents (or other units): at least the amount, or less than it."""
    steps = draft.rng.randint(0, 7)
    if within:
        return (-(-amount // unit) + steps) * unit
    return max(1, (amount - 1) // unit - steps) * unit


def question(draft: StoryDraft, known: Lookup, look: Iterable[PlanStep]) -> Stage:
    """A request for a value."""
    draft.used |= known.topics
    what = known.called(draft)
    say = draft.say("asking", what=what)
    return Stage(say, once((*look, *known.look, tell(known.told))), (known.fact,), again=f"What is {what}?")


class IfClause(NamedTuple):
    """Condition of a wish, in words, and whether it holds."""

    say: str
    holds: bool


def compared(draft: StoryDraft, known: Lookup, what: str = "", *, above: bool | None = None) -> IfClause:
    """Return the clause that a number is above a limit, or at most that; one of both at random, where it is
    not said which."""
    value = int(known.value)
    unit = 100 if known.kind == "money" or value > 300 else 1
    above = draft.rng.random() < 0.5 if above is None else above
    over = draft.rng.random() < 0.5 and value > unit
    limit = known.shown(limit_for(draft, value, within=not over, unit=unit))
    what = what or known.called(draft)
    say = draft.say("above" if above else "at most", what=what, limit=limit)
    return IfClause(say, above is over)


def left_alone(draft: StoryDraft, known: Lookup, what: str = "") -> WishPart:
    """Nothing is changed, and a value is told."""
    what = what or known.called(draft)
    say = draft.say("left alone", what=what)
    return WishPart(say, (), f"{known.told} Nothing was changed.", (known.fact,), f"What is {what}?")


def one(say: str, plan: Iterable[PlanStep], wish: WishPart) -> Stage:
    """A request of one part, in a sentence that is given."""
    steps = once((*plan, *wish.steps, tell(wish.report)))
    return Stage(f"{say} {wish.said}".strip(), steps, wish.tells, again=wish.again, wants=changes(wish))


# --- of several --------------------------------------------------------------------------------------


class SeveralSubjects(NamedTuple):
    """Several subjects of a customer: how they are called together, what may tell one from the others, how they are read."""

    subjects: Sequence[Any]
    among: tuple[str, ...]
    # what is true of one, by what, and whether the most
    measures: tuple[tuple[str, Callable[[Any], Any], bool], ...]
    look: tuple[PlanStep, ...]


def _pick(draft: StoryDraft, group: SeveralSubjects) -> tuple[str, Any]:
    """One of the subjects by how it compares with the others, where no other is like it."""
    fitting(len(group.subjects) > 1)
    name, measure, most = draft.rng.choice(group.measures)
    first, second = sorted(group.subjects, key=measure, reverse=most)[:2]
    fitting(measure(first) != measure(second))
    return name, first


def best(draft: StoryDraft, group: SeveralSubjects, operations: Sequence[Operation]) -> Stage:
    """Something for the first, last, dearest or largest of several."""
    name, subject = _pick(draft, group)
    wish = wanted(draft, draft.rng.choice(operations), subject)
    the = draft.say("the one", name=name)
    made, among = part(draft, wish.named(it=the)), draft.words(*group.among)
    return one(draft.say("among", among=among, do=made.say), group.look, made)


def best_and_rest(
    draft: StoryDraft, group: SeveralSubjects, first: Operation, operations: Sequence[Operation]
) -> Stage:
    """One of several is given up, and something is done with those that remain."""
    name, subject = _pick(draft, group)
    wish, others = wanted(draft, first, subject), [other for other in group.subjects if other != subject]
    rest = fitting(each(draft, draft.rng.choice(operations), others))
    gone = part(draft, wish.named(it=f"the one that {name}"))
    left = part(draft, rest[0].named(it="what remains of them"), *rest[1:])
    among = draft.words(*group.among)
    say = draft.say("regarding", among=among, do=gone.say, then=left.say)
    return joined(draft, group.look, gone, left, say)


def every(
    draft: StoryDraft, group: SeveralSubjects, operations: Sequence[Operation], all_of: str = "all {}"
) -> Stage:
    """The same for all of several."""
    fitting(len(group.subjects) > 1)
    wishes = fitting(each(draft, draft.rng.choice(operations), group.subjects))
    made = part(draft, wishes[0].named(it=all_of.format(draft.words(*group.among))), *wishes[1:])
    return one(sentence(draft, made.say), group.look, made)


def both(
    draft: StoryDraft, look: Iterable[PlanStep], first: WishedChange, second: WishedChange, it: str = ""
) -> Stage:
    """Two wishes in one, the second about ``it``; what both would be asked for is said once."""
    if first.asks == second.asks:
        said = first.said or second.said
        first, second = first._replace(said=said), second._replace(said=said)
    if it:
        second = second.named(it=it)._replace(find=())
    return joined(draft, (*look, *first.looks, *second.looks), part(draft, first), part(draft, second))
