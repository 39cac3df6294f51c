"""Values that can be looked up about an account: a number that is asked for, or on which something hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.apps.account.parts import (
    DESK,
    children,
    leads,
    myself,
    purchase_called,
    subscription_called,
    things,
)
from turnwise.envs.toolworld.apps.account.rules import running
from turnwise.envs.toolworld.apps.account.state import (
    TIERS,
    AppAccount,
    AppSubscription,
    GiftCode,
    KeptData,
    Purchase,
    SeatTeam,
    price_of,
)
from turnwise.envs.toolworld.domain import Primitive, StoryDraft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.story import PlanStep, Stage, call, once, tell


def _seen(draft: StoryDraft, tool: str, name: str, *keys: str) -> tuple[PlanStep, ...]:
    return (*DESK.verify(draft), *(call(tool, **{name: key}) for key in keys))


def _sum(what: tuple[str, ...], cents: int, report: str, look: tuple[PlanStep, ...], topic: str) -> Lookup:
    return Lookup(what, "money", cents, report, look, frozenset((topic,)))


def _number(what: tuple[str, ...], count: int, report: str, look: tuple[PlanStep, ...], topic: str) -> Lookup:
    return Lookup(what, "count", count, report, look, frozenset((topic,)))


def price(draft: StoryDraft, row: AppSubscription) -> Lookup:
    """The price of a subscription."""
    what = draft.ways("price", it=subscription_called(draft, row))
    look = _seen(draft, "get_subscription", "subscription_id", row.subscription_id)
    return _sum(what, row.price, "The price is {}.", look, row.subscription_id)


def paid(draft: StoryDraft, row: Purchase) -> Lookup:
    """The price of a purchase."""
    what = draft.ways("paid", it=purchase_called(draft, row))
    look = _seen(draft, "get_purchase", "purchase_id", row.purchase_id)
    return _sum(what, row.price, "The price was {}.", look, row.purchase_id)


def worth(draft: StoryDraft, code: GiftCode) -> Lookup:
    """The worth of a gift code, which is no secret."""
    what, look = draft.ways("worth", it=f"the gift code {code.code}"), (call("check_code", code=code.code),)
    return _sum(what, code.amount, "It is for {}.", look, code.code)


def credit(draft: StoryDraft, account: AppAccount) -> Lookup:
    """The credit of an account."""
    return _sum(draft.ways("credit"), account.credit, "The credit is {}.", DESK.verify(draft), "credit")


def seats_left(draft: StoryDraft, team: SeatTeam) -> Lookup:
    """The seats of a team that nobody has."""
    look, free = _seen(draft, "get_team", "team_id", team.team_id), team.seats - len(team.members)
    return _number(draft.ways("seats left"), free, "The number of free seats is {}.", look, team.team_id)


def kept(draft: StoryDraft, row: KeptData) -> Lookup:
    """The megabytes that an app keeps."""
    what, look = draft.ways("kept", app=row.app), _seen(draft, "list_kept_data", "account_id", draft.customer)
    return _number(what, row.megabytes, "There are {} megabytes.", look, f"data {row.app}")


def allowance(draft: StoryDraft, one: AppAccount) -> Lookup:
    """The allowance of a child."""
    what = draft.ways("allowance", first=one.name.split()[0])
    look = _seen(draft, "get_family", "family_id", one.family_id)
    return _sum(what, one.allowance, "The allowance is {}.", look, f"member {one.account_id}")


def _monthly(draft: StoryDraft, account: AppAccount) -> Lookup | None:
    """The sum of all monthly subscriptions in use: paused and yearly ones do not count."""
    own = running(draft.db, draft.customer)
    total = sum(s.price for s in own if s.period == "monthly" and s.status == "active")
    look = _seen(draft, "get_subscription", "subscription_id", *(s.subscription_id for s in own))
    return _sum(draft.ways("monthly sum"), total, "The total is {}.", look, "monthly sum") if total else None


def _allowances(draft: StoryDraft, account: AppAccount) -> Lookup | None:
    """Return the lookup of what all children together may spend; None where that is nothing."""
    total = sum(one.allowance for one in children(draft, True)) if leads(draft) else 0
    look = _seen(draft, "get_family", "family_id", account.family_id)
    return _sum(draft.ways("allowances"), total, "The sum is {}.", look, "allowed") if total else None


def _devices(draft: StoryDraft, account: AppAccount) -> Lookup:
    own = [d for d in draft.db.rows("devices") if d.account_id == account.account_id]
    look, count = _seen(draft, "get_device", "device_id", *(d.device_id for d in own)), sum(d.status == "active" for d in own)  # fmt: skip
    return _number(draft.ways("devices"), count, "There are {} devices.", look, "devices known")


def _in_store(draft: StoryDraft, account: AppAccount) -> Lookup:
    """The price of a period, which the store tells for a month; nobody has to be verified."""
    app, level, how = draft.rng.choice(draft.db.rows("store")), draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))  # fmt: skip
    what, look = (
        draft.ways("price in store", app=app.app, level=level, how=how),
        (call("get_app", app=app.app),),
    )
    return _sum(what, price_of(app, level, how), "The price is {}.", look, f"price {app.app}")


def renewal(draft: StoryDraft) -> Stage | None:
    """The day on which a subscription renews."""
    row: AppSubscription | None = draft.free(ACTIVE(draft, True), lambda s: s.subscription_id)
    if row is None:
        return None
    say = draft.say("renewal", which=subscription_called(draft, row))
    look = _seen(draft, "get_subscription", "subscription_id", row.subscription_id)
    return Stage(say, once((*look, tell(f"It renews on {row.renews}."))), (Fact("date", row.renews),), again="On which date does it renew?")  # fmt: skip


def _asked(subjects: Callable[[StoryDraft, bool], list[Any]], find: Callable[[StoryDraft, Any], Lookup | None]) -> Primitive:  # fmt: skip
    """A request for a quantity of one of some subjects."""

    def drawn(draft: StoryDraft) -> Stage | None:
        found = subjects(draft, True)
        known = find(draft, draft.rng.choice(found)) if found else None
        return question(draft, known, ()) if known and not known.topics & draft.used else None

    return drawn


ACTIVE = things("subscriptions", lambda s: s.status == "active")
QUESTIONS: dict[str, Primitive] = {
    "renewal": renewal, "price": _asked(ACTIVE, price), "monthly_sum": _asked(myself, _monthly), "bought_at": _asked(things("purchases"), paid),
    "credit": _asked(myself, credit), "app_price": _asked(myself, _in_store), "code_worth": _asked(lambda draft, own: draft.db.rows("codes"), worth),
    "devices": _asked(myself, _devices), "free_seats": _asked(things("teams"), seats_left), "kept": _asked(things("kept"), kept),
    "allowance_now": _asked(children, allowance), "allowed": _asked(myself, _allowances),
}  # fmt: skip
