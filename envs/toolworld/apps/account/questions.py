"""Values that can be looked up about an account: a number that is asked for, or on which something hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.apps.account.parts import DESK, called, children, leads, myself, things
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
from turnwise.envs.toolworld.story import Stage, call, once, tell


def _seen(draft: StoryDraft, tool: str, name: str, *keys: str) -> tuple[Any, ...]:
    return (*DESK.verify(draft), *(call(tool, **{name: key}) for key in keys))


def price(draft: StoryDraft, row: AppSubscription) -> Lookup:
    """The price of a subscription."""
    it = called(draft, row.account_id, f"my {row.app} subscription", f"{row.app} subscription {row.subscription_id}")  # fmt: skip
    what = (f"the price of {it}", f"the amount that I pay for {it}", f"the sum that {it} costs me each time", f"the cost of {it}")  # fmt: skip
    look = _seen(draft, "get_subscription", "subscription_id", row.subscription_id)
    return Lookup(what, "money", row.price, "The price is {}.", look, frozenset((row.subscription_id,)))


def paid(draft: StoryDraft, row: Purchase) -> Lookup:
    """The price of a purchase."""
    alone = sum(p.title == row.title for p in draft.db.rows("purchases") if p.account_id == row.account_id) == 1  # fmt: skip
    it = called(draft, row.account_id, f"the {row.kind} {row.title}" if alone else "", f"purchase {row.purchase_id}")  # fmt: skip
    what = (f"the price that I paid for {it}", f"the sum that {it} has cost me", f"the price of {it}", f"the sum that I was charged for {it}")  # fmt: skip
    look = _seen(draft, "get_purchase", "purchase_id", row.purchase_id)
    return Lookup(what, "money", row.price, "The price was {}.", look, frozenset((row.purchase_id,)))


def worth(draft: StoryDraft, code: GiftCode) -> Lookup:
    """The worth of a gift code, which is no secret."""
    it = f"the gift code {code.code}"
    what = (f"the amount of {it}", f"the worth of {it}", f"the sum that {it} is for", f"the value of {it}")
    return Lookup(what, "money", code.amount, "It is for {}.", (call("check_code", code=code.code),), frozenset((code.code,)))  # fmt: skip


def credit(draft: StoryDraft, account: AppAccount) -> Lookup:
    """The credit of an account."""
    what = ("the credit of my account", "the credit that I have left", "the sum of my credit", "the credit that is on my account")  # fmt: skip
    return Lookup(what, "money", account.credit, "The credit is {}.", DESK.verify(draft), frozenset(("credit",)))  # fmt: skip


def seats_left(draft: StoryDraft, team: SeatTeam) -> Lookup:
    """The seats of a team that nobody has."""
    what = (
        "the number of free seats of my team", "the number of seats that nobody has in my team", "the number of seats that I could still assign in my team",
        "the number of seats of my team that are not taken",
    )  # fmt: skip
    look = _seen(draft, "get_team", "team_id", team.team_id)
    return Lookup(what, "count", team.seats - len(team.members), "The number of free seats is {}.", look, frozenset((team.team_id,)))  # fmt: skip


def kept(draft: StoryDraft, row: KeptData) -> Lookup:
    """The megabytes that an app keeps."""
    what = (
        f"the number of megabytes that {row.app} keeps about me", f"the size of my {row.app} data in megabytes", f"the number of megabytes of my {row.app} data",
        f"the size in megabytes of what {row.app} has about me",
    )  # fmt: skip
    look = _seen(draft, "list_kept_data", "account_id", draft.customer)
    return Lookup(what, "count", row.megabytes, "There are {} megabytes.", look, frozenset((f"data {row.app}",)))  # fmt: skip


def allowance(draft: StoryDraft, one: AppAccount) -> Lookup:
    """The allowance of a child."""
    first = one.name.split()[0]
    what = (
        f"the allowance of {first}", f"the allowance that {first} has a month", f"the sum that {first} may spend a month", f"the monthly allowance of {first}",
    )  # fmt: skip
    look = _seen(draft, "get_family", "family_id", one.family_id)
    return Lookup(what, "money", one.allowance, "The allowance is {}.", look, frozenset((f"member {one.account_id}",)))  # fmt: skip


def _monthly(draft: StoryDraft, account: AppAccount) -> Lookup | None:
    """The sum of all monthly subscriptions in use: paused and yearly ones do not count."""
    own = running(draft.db, draft.customer)
    total = sum(s.price for s in own if s.period == "monthly" and s.status == "active")
    what = (
        "the total price of my active monthly subscriptions", "the sum that my active monthly subscriptions cost altogether", "the sum of my monthly subscriptions that are active",
        "the total that I pay a month for subscriptions that are active and billed monthly",
    )  # fmt: skip
    look = _seen(draft, "get_subscription", "subscription_id", *(s.subscription_id for s in own))
    return Lookup(what, "money", total, "The total is {}.", look, frozenset(("monthly sum",))) if total else None  # fmt: skip


def _allowances(draft: StoryDraft, account: AppAccount) -> Lookup | None:
    """Return the lookup of what all children together may spend; None where that is nothing."""
    total = sum(one.allowance for one in children(draft, True)) if leads(draft) else 0
    what = (
        "the sum that my children may spend a month in all", "the sum of the allowances of my children", "the total of my children's allowances a month",
        "the sum of all allowances in my family",
    )  # fmt: skip
    look = _seen(draft, "get_family", "family_id", account.family_id)
    return Lookup(what, "money", total, "The sum is {}.", look, frozenset(("allowed",))) if total else None


def _devices(draft: StoryDraft, account: AppAccount) -> Lookup:
    own = [d for d in draft.db.rows("devices") if d.account_id == account.account_id]
    what = (
        "the number of devices that are in use on my account", "the number of devices that I am signed in on", "the number of devices that my account is used on",
        "the number of my devices that are in use",
    )  # fmt: skip
    look = _seen(draft, "get_device", "device_id", *(d.device_id for d in own))
    count = sum(d.status == "active" for d in own)
    return Lookup(what, "count", count, "There are {} devices.", look, frozenset(("devices known",)))


def _in_store(draft: StoryDraft, account: AppAccount) -> Lookup:
    """The price of a period, which the store tells for a month; nobody has to be verified."""
    app, level, how = draft.rng.choice(draft.db.rows("store")), draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))  # fmt: skip
    what = (
        f"the price of {app.app} {level} with {how} billing", f"the {how} price of {app.app} in the {level} tier", f"the price of {app.app} {level}, paid {how}",
        f"the {how} price of {app.app} {level}",
    )  # fmt: skip
    return Lookup(what, "money", price_of(app, level, how), "The price is {}.", (call("get_app", app=app.app),), frozenset((f"price {app.app}",)))  # fmt: skip


def renewal(draft: StoryDraft) -> Stage | None:
    """The day on which a subscription renews."""
    row: AppSubscription | None = draft.free(ACTIVE(draft, True), lambda s: s.subscription_id)
    if row is None:
        return None
    which = called(draft, row.account_id, f"my {row.app} subscription", f"{row.app} subscription {row.subscription_id}")  # fmt: skip
    say = draft.words(
        f"When does {which} renew?", f"On what date will {which} be charged next?", f"Please tell me the day on which {which} renews.",
        f"What is the renewal date of {which}?",
    )  # fmt: skip
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
