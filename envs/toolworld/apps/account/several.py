"""Wishes for an account that depend on what is found out, and for several things at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from turnwise.envs.toolworld.alternatives import (
    Lookup,
    SeveralSubjects,
    WishPart,
    best,
    best_and_rest,
    both,
    compared,
    decided,
    every,
    left_alone,
    limit_for,
    part,
    then,
)
from turnwise.envs.toolworld.apps.account.keeping import KEEPING
from turnwise.envs.toolworld.apps.account.parts import DESK, children, things
from turnwise.envs.toolworld.apps.account.paying import PAYING
from turnwise.envs.toolworld.apps.account.questions import (
    ACTIVE,
    allowance,
    kept,
    paid,
    price,
    seats_left,
    worth,
)
from turnwise.envs.toolworld.apps.account.rules import REFUND_DAYS, SECTIONS
from turnwise.envs.toolworld.apps.account.state import days_since
from turnwise.envs.toolworld.domain import Primitive, StoryDraft, fitting
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import Operation, WishedChange, wanted, wish_for
from turnwise.envs.toolworld.story import Stage, call

_BY_NAME = {one.name: one for one in (*PAYING, *KEEPING)}


def _changes(names: str) -> tuple[Operation, ...]:
    return tuple(_BY_NAME[name] for name in names.split())


class Topic(NamedTuple):
    """Things of one sort: which there are, what can be looked up about one, and what can be done with it."""

    subjects: Callable[[StoryDraft, bool], list[Any]]
    quantity: Callable[[StoryDraft, Any], Lookup]
    operations: Sequence[Operation] = ()
    then: tuple[str, ...] = ()  # what can be done with one, one after the other
    table: str = ""


TOPICS: Mapping[str, Topic] = {
    "subscription": Topic(
        ACTIVE, price, _changes("cancel tier period pause share_subscription"),
        ("tier period", "period tier", "tier pause", "share_subscription period", "share_subscription pause"), "subscriptions",
    ),
    "purchase": Topic(things("purchases", lambda p: p.status == "paid"), paid, _changes("refund dispute_unknown dispute_twice")),
    "code": Topic(lambda draft, own: draft.db.rows("codes"), worth, _changes("redeem")),
    "team": Topic(
        things("teams"), seats_left, then=("free assign", "more_seats assign", "assign more_seats", "free fewer_seats"), table="teams"
    ),
    "data": Topic(things("kept"), kept, _changes("export erase"), ("export erase",), "kept"),
    "child": Topic(children, allowance, _changes("age_limit allowance"), ("age_limit allowance", "allowance age_limit"), "accounts"),
}  # fmt: skip


def _some(draft: StoryDraft, topic: Topic) -> Any:
    """A thing that no request is about yet."""
    found = [one for one in topic.subjects(draft, True) if not topic.quantity(draft, one).topics & draft.used]
    return draft.rng.choice(found) if found else None


def _part(draft: StoryDraft, wish: WishedChange) -> WishPart:
    """A wish about a thing that was named already; nothing is said beside it."""
    return part(draft, wish._replace(said="").named(it="it"))


def _otherwise(draft: StoryDraft, topic: Topic, subject: Any, known: Lookup, *but: Operation) -> WishPart:
    """Another thing that is done with a subject; or none, and a number is told."""
    others = [one for one in topic.operations if one not in but]
    wish = wish_for(draft, draft.rng.choice(others), among=[subject]) if others and draft.rng.random() < 0.5 else None  # fmt: skip
    return _part(draft, wish) if wish else left_alone(draft, known)


def hanging(draft: StoryDraft, topic: Topic) -> Stage:
    """Something is wanted if a number is high or low, and something else if it is not."""
    subject = _some(draft, topic)
    operation = draft.rng.choice(topic.operations)
    wish = wanted(draft, operation, fitting(subject))
    known = topic.quantity(draft, subject)
    condition = compared(draft, known)
    parts = (_part(draft, wish), _otherwise(draft, topic, subject, known, operation))
    return decided(draft, (*DESK.verify(draft), *known.look, *wish.looks), condition.say, parts, holds=condition.holds)  # fmt: skip


def _clause_in(draft: StoryDraft, wish: WishedChange, name: str, **fill: str) -> str:
    """One of the ways of a name, each with a clause of the wish of its own."""
    ways = draft.ways(name, do="{do}", **fill)
    return draft.words(*(way.format(do=wish.clause(draft)) for way in ways))


def allowed(draft: StoryDraft, topic: Topic) -> Stage:
    """Something is wanted if the rules allow it."""
    subject, operation = _some(draft, topic), draft.rng.choice(topic.operations)
    rules = [rule for rule in operation.may if rule in SECTIONS and rule not in ("not_owner", "minor", "organizer_only")]  # fmt: skip
    holds = draft.rng.random() < 0.5
    fitting(subject and rules)
    wish = wanted(draft, operation, subject, "" if holds else draft.rng.choice(rules))
    known = topic.quantity(draft, subject)
    condition = _clause_in(draft, wish, "allowed")
    parts = (part(draft, wish._replace(said=""), say=draft.say("do so")), _otherwise(draft, topic, subject, known, operation))  # fmt: skip
    return decided(draft, (*DESK.verify(draft), *known.look, *wish.looks), condition, parts, holds=holds)  # fmt: skip


def within(draft: StoryDraft, operation: Operation) -> Stage:
    """Something is wanted if it does not cost too much."""
    wish = fitting(wish_for(draft, operation))
    fitting(wish.amount)
    holds = draft.rng.random() < 0.5
    limit = dollars(limit_for(draft, wish.amount, within=holds))
    condition = _clause_in(draft, wish, "within", limit=limit)
    known = Lookup(draft.ways("price of that"), "money", wish.amount, "The price would be {}.")
    parts = (part(draft, wish._replace(said=""), say=draft.say("do so")), left_alone(draft, known))
    return decided(draft, (*DESK.verify(draft), *wish.looks), condition, parts, holds=holds)


def _quietly(draft: StoryDraft, first: WishedChange, second: WishedChange, it: str = "") -> Stage:
    """Two wishes, with nothing said beside them."""
    return both(draft, DESK.verify(draft), first._replace(said=""), second._replace(said=""), it)


def two_for_one(draft: StoryDraft, topic: Topic) -> Stage:
    """Two things for one subject, the second as the first one leaves it."""
    subject = _some(draft, topic)
    operation, other = _changes(draft.rng.choice(topic.then))
    first = wanted(draft, operation, fitting(subject))
    second = then(draft, first, other, [draft.after(first.call).get(topic.table, subject[0])])
    return _quietly(draft, first, fitting(second), "it")


def two_things(draft: StoryDraft) -> Stage:
    """Two changes of different things; what makes a new one is the last, since all is read before anything is changed."""
    drawn = [draft.rng.choice(_changes(some)) for some in draft.rng.sample(_PAIRED, 2)]
    one, other = sorted(drawn, key=lambda each: each.name == "subscribe")
    first = fitting(wish_for(draft, one))
    with draft.granting(first.call):
        second = wish_for(draft, other)
    return _quietly(draft, first, fitting(second))


# --- of several --------------------------------------------------------------------------------------

_GROUPS: Mapping[str, tuple[str, str, Callable[[Any], bool], Sequence[tuple[str, str, bool]]]] = {
    "subscriptions": ("subscription", "monthly ones", lambda s: s.status == "active" and s.period == "monthly", (
        ("costs most", "price", True), ("costs least", "price", False), ("renews first", "renews", False), ("renews last", "renews", True),
    )),
    "purchases": ("purchase", "bought", lambda p: p.status == "paid" and days_since(p.date) <= REFUND_DAYS, (
        ("cost most", "price", True), ("cost least", "price", False), ("was bought last", "date", True),
    )),
    "devices": ("device", "devices in use", lambda d: d.status == "active", (
        ("was registered first", "registered", False), ("was registered last", "registered", True),
    )),
}  # fmt: skip
"""Table → one of its things, the phrase for some of them, which these are, and what may be true of one by which field, the most or the least."""


def _group(draft: StoryDraft, table: str) -> SeveralSubjects:
    """Things of a table that fit; none where a request is about one of them, or there are too many."""
    thing, among, fits, measures = _GROUPS[table]
    found = things(table, fits)(draft, True)
    all_of = [row for row in draft.db.rows(table) if row.account_id == draft.customer]
    look = (*DESK.verify(draft), *(call(f"get_{thing}", **{f"{thing}_id": row[0]}) for row in all_of))
    touched = len(found) > 3 or any(row[0] in draft.used for row in all_of)
    by = tuple((name, attrgetter(field), most) for name, field, most in measures)
    return SeveralSubjects(() if touched else found, draft.ways(among), by, look)


_PAIRED = (
    "cancel tier period pause subscribe", "refund redeem", "storage", "device lost", "export erase", "more_seats free", "allowance",
)  # fmt: skip
"""Changes of things of one sort; of two such things one could be taken for the other."""


def _best(draft: StoryDraft, table: str, names: str) -> Stage:
    return best(draft, _group(draft, table), _changes(names))


def _every(draft: StoryDraft, table: str, names: str) -> Stage:
    return every(draft, _group(draft, table), _changes(names), "each of {}")


def _best_and_rest(draft: StoryDraft) -> Stage:
    first, *others = _changes("cancel pause")
    return best_and_rest(draft, _group(draft, "subscriptions"), first, others)


SEVERAL: dict[str, Primitive] = {
    **{f"if_{name}": partial(hanging, topic=topic) for name, topic in TOPICS.items() if topic.operations},
    **{f"if_allowed_{name}": partial(allowed, topic=topic) for name, topic in TOPICS.items() if topic.operations},
    **{f"{one.name}_within": partial(within, operation=one) for one in _changes("tier period subscribe storage")},
    **{f"two_for_{name}": partial(two_for_one, topic=topic) for name, topic in TOPICS.items() if topic.then},
    "two_things": two_things,
    "best_subscription": partial(_best, table="subscriptions", names="cancel pause tier period"),
    "best_purchase": partial(_best, table="purchases", names="refund"),
    "best_device": partial(_best, table="devices", names="device lost"),
    "best_and_rest": _best_and_rest,
    "every_subscription": partial(_every, table="subscriptions", names="cancel pause period"),
    "every_purchase": partial(_every, table="purchases", names="refund"),
}  # fmt: skip
