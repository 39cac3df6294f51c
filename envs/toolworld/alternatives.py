"""Wishes of parts: one thing or another by what is found out, two things, the best of several and the others, all of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, FactKind, dollars
from turnwise.envs.toolworld.operations import TRIES, Operation, WishedChange, sentence, wish_for
from turnwise.envs.toolworld.story import PlanStep, Stage, confirmed, once, tell
from turnwise.envs.toolworld.vocabulary import begun

AMONG = (
    "Look at {among} and {do}.", "This is about {among}: {do}.", "Among {among}, {do}.", "Please compare {among}, and {do}.",
    "Of {among}, please {do}.", "Go through {among}; then {do}.",
)  # fmt: skip
"""Clause about one of several → sentence."""
REGARDING = (
    "Take {among}: {do}; then {then}.", "It is about {among}. From these, {do}; {then}.", "I have thought about {among}: please {do}; and {then}.",
    "Regarding {among}, {do}; also {then}.", "With {among}, please do this: {do}; {then}.", "See {among}: {do}; that done, {then}.",
)  # fmt: skip
"""Clauses about one of several and about the others → sentence."""
THE_ONE = (
    "the one that {name}", "only the one which {name}", "that one which {name}", "just the one that {name}", "whichever {name}", "the single one that {name}",
)  # fmt: skip


ASKING = (
    "What is {what}?", "Please tell me {what}.", "Can you tell me {what}?", "I would like to know {what}.",
    "Would you look up {what}?", "Let me know {what}, please.", "I wonder what {what} is.", "May I ask what {what} is?",
)  # fmt: skip
"""A value → question for it."""
ABOVE = (
    "{what} is above {limit}", "{what} is more than {limit}", "{what} is over {limit}", "{what} lies above {limit}",
    "{what} is higher than {limit}", "{what} comes to more than {limit}",
)  # fmt: skip
AT_MOST = (
    "{what} is at most {limit}", "{what} is no more than {limit}", "{what} is {limit} or less", "{what} stays at or below {limit}",
    "{what} is not higher than {limit}", "{what} comes to {limit} at the most",
)  # fmt: skip


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


def either(draft: StoryDraft, condition: str, then: str, otherwise: str) -> str:
    """A wish for one thing where a condition holds, and for another where it does not."""
    return draft.words(
        f"If {condition}, {then}; otherwise {otherwise}.", f"Please check whether {condition}; if so, {then}, and if not, {otherwise}.",
        f"Provided that {condition}, {then}; if that is not the case, {otherwise}.",
        f"Can you see if {condition}? If so, please {then}. If not, {otherwise}.",
        f"I am not sure whether {condition}. If that is so, please {then}; if not, {otherwise}.",
        f"Suppose that {condition}, then please {then}. Otherwise, {otherwise}.",
        f"It depends on whether {condition}; if it is so, {then}; if it is not, {otherwise}.",
        f"I would like to know if {condition}. Where that is true, please {then}. Where it is not, {otherwise}.",
        f"Find out whether {condition}, please; if yes, {then}; if no, {otherwise}.",
        f"In case {condition}, {then}; in any other case, {otherwise}.",
        f"Have a look whether {condition}. In that case please {then}. Else, {otherwise}.",
        f"Is it true that {condition}? Then please {then}. If it is wrong, {otherwise}.",
    )  # fmt: skip


def together(draft: StoryDraft, first: str, second: str) -> str:
    """A wish for two things."""
    return draft.words(
        f"Please {first}, and {second}.", f"I want two things: {first}; and {second}.",
        f"There are two things to be done: {first}, and then {second}.", f"{begun(first)}, please. Also, {second}.",
        f"I have a double request: {first}; also, {second}.", f"Be so kind as to {first}. Besides that, {second}.",
        f"Two wishes at once: {first}; {second}.", f"{begun(first)}. Apart from that, please {second}.",
        f"I need you to {first} and, besides, {second}.", f"First {first}; after that, {second}.",
        f"It would be nice of you to {first}. And while you are at it, {second}.",
        f"There is something to do for you: {first}. In addition, {second}.",
    )  # fmt: skip


def decided(
    draft: StoryDraft, look: tuple[PlanStep, ...], condition: str, parts: tuple[WishPart, WishPart], *, holds: bool
) -> Stage:  # fmt: skip
    """A request of which the first part is wanted where the condition holds, else the second.

    The user cannot know which it will be, so they would agree to the changes of both: their yes tells nothing.
    """
    then, otherwise = parts
    now = then if holds else otherwise
    say = either(draft, condition, then.say, otherwise.say)
    plan = (*look, *now.steps, tell(now.report))
    return Stage(_beside(say, *parts), plan, now.tells, again=now.again, wants=changes(*parts))


def joined(
    draft: StoryDraft, look: tuple[PlanStep, ...], first: WishPart, second: WishPart, say: str = ""
) -> Stage:
    """A request of two parts, both wanted."""
    plan = (*look, *first.steps, *second.steps, tell(f"{first.report} {second.report}"))
    again = f"{first.again} {second.again}".strip()
    said = _beside(say or together(draft, first.say, second.say), first, second)
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
    before = draft.db
    draft.db = draft.after(*first.steps)
    second = wish_for(draft, operation, among=among)
    draft.db = before
    return second


def each(draft: StoryDraft, operation: Operation, subjects: Sequence[Any]) -> tuple[WishedChange, ...]:
    """The same wish about each of several subjects; none where it cannot be granted for all of them."""
    found: list[WishedChange] = []
    before = draft.db
    for subject in subjects:
        wish = _like(draft, operation, subject, found)
        if wish is None:
            draft.db = before
            return ()
        if found:
            wish = wish.given(**{name: found[0].fill[name] for name in operation.shares})
        draft.db = draft.after(*wish.steps)
        found.append(wish)
    draft.db = before
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
    say = draft.words(*(way.format(what=what) for way in ASKING))
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
    say = draft.words(*(way.format(what=what, limit=limit) for way in (ABOVE if above else AT_MOST)))
    return IfClause(say, above is over)


def left_alone(draft: StoryDraft, known: Lookup, what: str = "") -> WishPart:
    """Nothing is changed, and a value is told."""
    what = what or known.called(draft)
    say = draft.words(
        f"change nothing and just tell me {what}", f"leave everything as it is and let me know {what}", f"do nothing but tell me {what}",
        f"I only want to hear {what}, and nothing is to be changed", f"keep things as they are and name {what}", f"simply say {what} and do nothing else",
    )  # fmt: skip
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
    measures: tuple[
        tuple[str, Callable[[Any], Any], bool], ...
    ]  # what is true of one, by what, and whether the most
    look: tuple[PlanStep, ...]


def _pick(draft: StoryDraft, group: SeveralSubjects) -> tuple[str, Any] | None:
    """One of the subjects by how it compares with the others, where no other is like it."""
    if len(group.subjects) < 2:
        return None
    name, measure, most = draft.rng.choice(group.measures)
    first, second = sorted(group.subjects, key=measure, reverse=most)[:2]
    return None if measure(first) == measure(second) else (name, first)


def best(draft: StoryDraft, group: SeveralSubjects, operations: Sequence[Operation]) -> Stage | None:
    """Something for the first, last, dearest or largest of several."""
    picked = _pick(draft, group)
    wish = wish_for(draft, draft.rng.choice(operations), among=[picked[1]]) if picked else None
    if picked is None or wish is None:
        return None
    the = draft.words(*(way.format(name=picked[0]) for way in THE_ONE))
    made, among = part(draft, wish.named(it=the)), draft.words(*group.among)
    return one(draft.words(*(way.format(among=among, do=made.say) for way in AMONG)), group.look, made)


def best_and_rest(
    draft: StoryDraft, group: SeveralSubjects, first: Operation, operations: Sequence[Operation]
) -> Stage | None:
    """One of several is given up, and something is done with those that remain."""
    picked = _pick(draft, group)
    wish = wish_for(draft, first, among=[picked[1]]) if picked else None
    if picked is None or wish is None:
        return None
    rest = each(
        draft, draft.rng.choice(operations), [subject for subject in group.subjects if subject != picked[1]]
    )
    if not rest:
        return None
    gone = part(draft, wish.named(it=f"the one that {picked[0]}"))
    left = part(draft, rest[0].named(it="what remains of them"), *rest[1:])
    among = draft.words(*group.among)
    say = draft.words(*(way.format(among=among, do=gone.say, then=left.say) for way in REGARDING))
    return joined(draft, group.look, gone, left, say)


def every(
    draft: StoryDraft, group: SeveralSubjects, operations: Sequence[Operation], all_of: str = "all {}"
) -> Stage | None:
    """The same for all of several."""
    wishes = each(draft, draft.rng.choice(operations), group.subjects) if len(group.subjects) > 1 else ()
    if not wishes:
        return None
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
    plan = once((*look, *first.looks, *second.looks))
    return joined(draft, plan, part(draft, first), part(draft, second))
