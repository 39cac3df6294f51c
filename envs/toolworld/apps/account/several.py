"""Wishes for an account that depend on what is found out, and for several things at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from turnwise.envs.toolworld.apps.account.keeping import (
    AGE_LIMIT,
    ALLOWANCE,
    ASSIGN,
    ERASE,
    EXPORT,
    FEWER_SEATS,
    FREE,
    LOCK,
    MORE_SEATS,
    REMOVE,
)
from turnwise.envs.toolworld.apps.account.parts import DESK, children, things
from turnwise.envs.toolworld.apps.account.paying import (
    CANCEL,
    PAUSE,
    PERIOD,
    REDEEM,
    REFUND,
    SHARE,
    STORAGE,
    SUBSCRIBE,
    TIER,
    TWICE,
    UNKNOWN,
)
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
from turnwise.envs.toolworld.domain import Primitive, StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import Operation, WishedChange, wish_for
from turnwise.envs.toolworld.story import Stage, call, once

ALLOWED = (
    "your rules allow you to {do}", "you may {do} by your rules", "it is within your rules to {do}", "your rules let you {do}", "it is allowed by your rules to {do}",
    "you are allowed to {do}",
)  # fmt: skip
WITHIN = (
    "the price comes to {limit} or less when you {do}", "the price is no more than {limit} once you {do}", "the price stays at or below {limit} if you {do}",
    "I pay a price of {limit} at the most when you {do}", "the resulting price is at most {limit} if you {do}", "it makes a price of no more than {limit} to {do}",
)  # fmt: skip
DO_SO = ("do that", "do so", "go ahead and do it", "see to it", "carry that out", "have that done")


class Topic(NamedTuple):
    """Things of one sort: which there are, what can be looked up about one, and what can be done with it."""

    subjects: Callable[[StoryDraft, bool], list[Any]]
    quantity: Callable[[StoryDraft, Any], Lookup]
    operations: Sequence[Operation]
    then: Sequence[tuple[Operation, Operation]] = ()  # what can be done with one, one after the other
    table: str = ""


_ERASES = (EXPORT, ERASE)
TOPICS: Mapping[str, Topic] = {
    "subscription": Topic(
        ACTIVE, price, (CANCEL, TIER, PERIOD, PAUSE, SHARE), ((TIER, PERIOD), (PERIOD, TIER), (TIER, PAUSE), (SHARE, PERIOD), (SHARE, PAUSE)), "subscriptions"
    ),
    "purchase": Topic(things("purchases", lambda p: p.status == "paid"), paid, (REFUND, UNKNOWN, TWICE)),
    "code": Topic(lambda draft, own: draft.db.rows("codes"), worth, (REDEEM,)),
    "team": Topic(things("teams"), seats_left, (), ((FREE, ASSIGN), (MORE_SEATS, ASSIGN), (ASSIGN, MORE_SEATS), (FREE, FEWER_SEATS)), "teams"),
    "data": Topic(things("kept"), kept, _ERASES, ((EXPORT, ERASE),), "kept"),
    "child": Topic(children, allowance, (AGE_LIMIT, ALLOWANCE), ((AGE_LIMIT, ALLOWANCE), (ALLOWANCE, AGE_LIMIT)), "accounts"),
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


def hanging(draft: StoryDraft, topic: Topic) -> Stage | None:
    """Something is wanted if a number is high or low, and something else if it is not."""
    subject = _some(draft, topic)
    operation = draft.rng.choice(topic.operations)
    wish = wish_for(draft, operation, among=[subject]) if subject else None
    if wish is None:
        return None
    known = topic.quantity(draft, subject)
    condition = compared(draft, known)
    parts = (_part(draft, wish), _otherwise(draft, topic, subject, known, operation))
    return decided(draft, once((*DESK.verify(draft), *known.look, *wish.looks)), condition.say, parts, holds=condition.holds)  # fmt: skip


def allowed(draft: StoryDraft, topic: Topic) -> Stage | None:
    """Something is wanted if the rules allow it."""
    subject, operation = _some(draft, topic), draft.rng.choice(topic.operations)
    rules = [rule for rule in operation.may if rule in SECTIONS and rule not in ("not_owner", "minor", "organizer_only")]  # fmt: skip
    holds = draft.rng.random() < 0.5
    if subject is None or not rules:
        return None
    wish = wish_for(draft, operation, "" if holds else draft.rng.choice(rules), [subject])
    if wish is None:
        return None
    known = topic.quantity(draft, subject)
    condition = draft.words(*(way.format(do=wish.clause(draft)) for way in ALLOWED))
    parts = (part(draft, wish._replace(said=""), say=draft.words(*DO_SO)), _otherwise(draft, topic, subject, known, operation))  # fmt: skip
    return decided(draft, once((*DESK.verify(draft), *known.look, *wish.looks)), condition, parts, holds=holds)  # fmt: skip


def within(draft: StoryDraft, operation: Operation) -> Stage | None:
    """Something is wanted if it does not cost too much."""
    wish = wish_for(draft, operation)
    if wish is None or not wish.amount:
        return None
    holds = draft.rng.random() < 0.5
    limit = dollars(limit_for(draft, wish.amount, within=holds))
    condition = draft.words(*(way.format(do=wish.clause(draft), limit=limit) for way in WITHIN))  # fmt: skip
    known = Lookup(
        ("the price of that", "what that would cost", "the price for it", "what I would pay for that"),
        "money",
        wish.amount,
        "The price would be {}.",
    )
    parts = (part(draft, wish._replace(said=""), say=draft.words(*DO_SO)), left_alone(draft, known))
    return decided(draft, once((*DESK.verify(draft), *wish.looks)), condition, parts, holds=holds)


def _quietly(draft: StoryDraft, first: WishedChange, second: WishedChange, it: str = "") -> Stage:
    """Two wishes, with nothing said beside them."""
    return both(draft, DESK.verify(draft), first._replace(said=""), second._replace(said=""), it)


def two_for_one(draft: StoryDraft, topic: Topic) -> Stage | None:
    """Two things for one subject, the second as the first one leaves it."""
    subject = _some(draft, topic)
    operation, other = draft.rng.choice(topic.then)
    first = wish_for(draft, operation, among=[subject]) if subject else None
    if first is None:
        return None
    second = then(draft, first, other, [draft.after(first.call).get(topic.table, subject[0])])
    return _quietly(draft, first, second, "it") if second else None


def two_things(draft: StoryDraft) -> Stage | None:
    """Two changes of different things; what makes a new one is the last, since all is read before anything is changed."""
    drawn = [draft.rng.choice(some) for some in draft.rng.sample(_PAIRED, 2)]
    one, other = sorted(drawn, key=lambda each: each is SUBSCRIBE)
    first = wish_for(draft, one)
    if first is None:
        return None
    before, draft.db = draft.db, draft.after(first.call)
    second = wish_for(draft, other)
    draft.db = before
    return _quietly(draft, first, second) if second else None


# --- of several --------------------------------------------------------------------------------------

_MONTHLY = (
    "my active monthly subscriptions", "my subscriptions that are active and paid monthly", "the subscriptions of mine that are active and billed by the month",
    "my subscriptions with monthly billing that are active", "the monthly subscriptions of mine that are active", "my active subscriptions that are charged each month",
)  # fmt: skip
_BOUGHT = (
    "my purchases of the last two weeks", "the things that I bought in the last two weeks", "my purchases from the past 14 days",
    "the purchases that I made within the last fortnight", "the purchases of mine from the last fortnight", "what I have bought within the past two weeks",
)  # fmt: skip
_MINE = (
    "my devices that are in use", "the devices of mine that are in use", "my devices that are not locked", "all devices that I am using", "the active devices on my account", "the devices that my account uses",
)  # fmt: skip


def _group(
    draft: StoryDraft, table: str, tool: str, among: tuple[str, ...], fits: Callable[[Any], bool], *measures: tuple[str, Callable[[Any], Any], bool]
) -> SeveralSubjects:  # fmt: skip
    """Things of a table that fit; none where a request is about one of them, or there are too many."""
    found = things(table, fits)(draft, True)
    all_of = [row for row in draft.db.rows(table) if row.account_id == draft.customer]
    name = {"get_subscription": "subscription_id", "get_purchase": "purchase_id", "get_device": "device_id"}[tool]  # fmt: skip
    look = (*DESK.verify(draft), *(call(tool, **{name: row[0]}) for row in all_of))
    touched = len(found) > 3 or any(row[0] in draft.used for row in all_of)
    return SeveralSubjects(() if touched else found, among, measures, look)


def subscriptions(draft: StoryDraft) -> SeveralSubjects:
    return _group(
        draft, "subscriptions", "get_subscription", _MONTHLY, lambda s: s.status == "active" and s.period == "monthly",
        ("costs most", lambda s: s.price, True), ("costs least", lambda s: s.price, False), ("renews first", lambda s: s.renews, False), ("renews last", lambda s: s.renews, True),
    )  # fmt: skip


def purchases(draft: StoryDraft) -> SeveralSubjects:
    return _group(
        draft, "purchases", "get_purchase", _BOUGHT, lambda p: p.status == "paid" and days_since(p.date) <= REFUND_DAYS,
        ("cost most", lambda p: p.price, True), ("cost least", lambda p: p.price, False), ("was bought last", lambda p: p.date, True),
    )  # fmt: skip


def devices(draft: StoryDraft) -> SeveralSubjects:
    return _group(
        draft, "devices", "get_device", _MINE, lambda d: d.status == "active",
        ("was registered first", lambda d: d.registered, False), ("was registered last", lambda d: d.registered, True),
    )  # fmt: skip


_PAIRED = (
    (CANCEL, TIER, PERIOD, PAUSE, SUBSCRIBE), (REFUND, REDEEM), (STORAGE,), (REMOVE, LOCK), (EXPORT, ERASE), (MORE_SEATS, FREE), (ALLOWANCE,),
)  # fmt: skip
"""Changes of things of one sort; of two such things one could be taken for the other."""
SEVERAL: dict[str, Primitive] = {
    **{f"if_{name}": partial(hanging, topic=topic) for name, topic in TOPICS.items() if topic.operations},
    **{f"if_allowed_{name}": partial(allowed, topic=topic) for name, topic in TOPICS.items() if topic.operations},
    **{f"{one.name}_within": partial(within, operation=one) for one in (TIER, PERIOD, SUBSCRIBE, STORAGE)},
    **{f"two_for_{name}": partial(two_for_one, topic=topic) for name, topic in TOPICS.items() if topic.then},
    "two_things": two_things,
    "best_subscription": lambda draft: best(draft, subscriptions(draft), (CANCEL, PAUSE, TIER, PERIOD)),
    "best_purchase": lambda draft: best(draft, purchases(draft), (REFUND,)),
    "best_device": lambda draft: best(draft, devices(draft), (REMOVE, LOCK)),
    "best_and_rest": lambda draft: best_and_rest(draft, subscriptions(draft), CANCEL, (PAUSE,)),
    "every_subscription": lambda draft: every(draft, subscriptions(draft), (CANCEL, PAUSE, PERIOD), "each of {}"),
    "every_purchase": lambda draft: every(draft, purchases(draft), (REFUND,), "each of {}"),
}  # fmt: skip
