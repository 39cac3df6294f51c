"""Changes of money: subscriptions, purchases, gift codes, cards, storage (operations.yaml has the words)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.envs.toolworld.apps.account.parts import (
    TABLE,
    called,
    children,
    family_of,
    leads,
    me,
    myself,
    of_account,
    purchase_called,
    redrawn,
    subscription_called,
    things,
    wish,
)
from turnwise.envs.toolworld.apps.account.rules import MAY, refunds_whole, running, twins
from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    TIERS,
    AppAccount,
    AppSubscription,
    GiftCode,
    Purchase,
    StoragePlan,
    price_of,
)
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import Kept, Operation, Patch, WishedChange, never
from turnwise.envs.toolworld.story import call
from turnwise.envs.toolworld.vocabulary import counted
from turnwise.tasks.core import Json

UNITS = {"monthly": "month", "yearly": "year"}
_WHERE = {"credit": "as credit", "card": "to my card"}


# --- wishes ------------------------------------------------------------------------------------------


def _of(operation: Operation, draft: StoryDraft, row: AppSubscription, given: dict[str, Json], **more: Any) -> WishedChange:  # fmt: skip
    """A wish about a subscription, which is named by its app or by its number."""
    it = subscription_called(draft, row)
    fill = {"app": row.app, "unit": UNITS[row.period], **more.pop("fill", {})}
    return wish(operation, draft, row.subscription_id, {"subscription_id": row.subscription_id, **given}, it, fill=fill, **more)  # fmt: skip


def _cancel(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    whole = refunds_whole(row)
    told = (f"{dollars(row.price)} will be refunded" if whole else f"it can be used until {row.renews}, and $0.00 is refunded")  # fmt: skip
    return _of(operation, draft, row, {"refund": whole}, fill={"told": told}, amount=row.price if whole else 0)  # fmt: skip


def _tier(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    new = draft.rng.choice([name for name in TIERS if name != row.tier])
    price = price_of(draft.db.get("store", row.app), new, row.period)
    return _of(
        operation, draft, row, {"tier": new}, fill={"charged": dollars(max(0, price - row.price))}, amount=price,
        reads=(call("get_app", app=row.app),), claims="stays paused", share=1,
    )  # fmt: skip


def _period(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    new = "yearly" if row.period == "monthly" else "monthly"
    price = price_of(draft.db.get("store", row.app), row.tier, new)
    cost = f"{dollars(price)} now" if new == "yearly" else f"{dollars(price)} from then on"
    return _of(
        operation, draft, row, {"period": new}, fill={"cost": cost, "unit": UNITS[new]}, amount=price,
        reads=(call("get_app", app=row.app),), claims="stays paused", share=1,
    )  # fmt: skip


def _pause(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    months = draft.rng.choice((1, 2, 3, 1, 2, 3, 4, 6))
    return _of(operation, draft, row, {"months": months}, fill={"many": counted(months, "month")})


def _share(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    return _of(operation, draft, row, {"shared": operation.name == "share_subscription"})


def _subscribe(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    app = draft.rng.choice(draft.db.rows("store"))
    tier, period = draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))
    own = running(draft.db, draft.customer, app.app)
    seen = [call("get_subscription", subscription_id=s.subscription_id) for s in own]
    family = [call("get_family", family_id=account.family_id)] if account.family_id and not own else []
    return of_account(
        operation, draft, f"app {app.app}", {"app": app.app, "tier": tier, "period": period}, fill={"unit": UNITS[period]},
        amount=price_of(app, tier, period), reads=(call("get_app", app=app.app), *seen, *family), claims="new to me",
    )  # fmt: skip


def _refund(operation: Operation, draft: StoryDraft, row: Purchase) -> WishedChange:
    return refunding(operation, draft, row, draft.rng.choice(("card", "card", "credit")))


def refunding(operation: Operation, draft: StoryDraft, row: Purchase, to: str) -> WishedChange:
    """A refund of what somebody bought, or a child of theirs."""
    it = purchase_called(draft, row)
    child: AppAccount = draft.db.get("accounts", row.account_id)
    is_childs = row.account_id != draft.customer and operation.name == "child_refund"
    find = ((call("get_family", family_id=child.family_id), call("get_account", account_id=child.account_id)) if is_childs else ())  # fmt: skip
    return wish(
        operation, draft, row.purchase_id, {"purchase_id": row.purchase_id, "to": to}, it, amount=row.price,
        fill={"sold": f"the {row.kind} {row.title}", "where": _WHERE[to], "who": child.name.split()[0]}, claims="" if is_childs else "recent",
    )._replace(find=find)  # fmt: skip


def _as_credit(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    row: Purchase = draft.db.get("purchases", old.subject)
    wanted = old.arguments["to"] == "card"
    return refunding(old.operation, draft, row, "credit") if wanted else None


def _childs(draft: StoryDraft, own: bool) -> list[Purchase]:
    """List the paid purchases of the children in the family that the speaker leads."""
    keys = {one.account_id for one in children(draft, own)} if leads(draft) else set[str]()
    return [p for p in draft.db.rows("purchases") if p.account_id in keys and p.status == "paid"]


def _dispute(operation: Operation, draft: StoryDraft, row: Purchase) -> WishedChange:
    twice = operation.name == "dispute_twice"
    alike = [p.purchase_id for p in twins(draft.db, row)] if twice else []
    reads = [call("get_purchase", purchase_id=key) for key in alike] if twice else [call("get_device", device_id=row.device_id)]  # fmt: skip
    given: dict[str, Json] = {"purchase_id": row.purchase_id, "reason": "charged_twice" if twice else "unknown_purchase"}  # fmt: skip
    it = called(draft, row.account_id, "", f"purchase {row.purchase_id}")
    return wish(operation, draft, row.purchase_id, given, it, reads=tuple(reads), claims="late")


def _redeem(operation: Operation, draft: StoryDraft, code: GiftCode) -> WishedChange:
    given: dict[str, Json] = {"account_id": draft.customer, "code": code.code}
    after = me(draft).credit + code.amount
    return wish(operation, draft, code.code, given, fill={"worth": dollars(code.amount)}, amount=after, claims="good code")  # fmt: skip


def _gift(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    worth = draft.rng.choice((draft.rng.randrange(10, 210, 10), draft.rng.randrange(5, 400, 5)))
    email = draft.rng.choice(draft.db.rows("contacts")).email
    given: dict[str, Json] = {"account_id": account.account_id, "email": email, "dollars_worth": worth}
    return wish(operation, draft, "gift", given, about=account.account_id, amount=100 * worth)


def _other_worth(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    worth = draft.rng.randrange(10, 210, 10)
    given = {**old.arguments, "dollars_worth": worth}
    fill = {**old.fill, "dollars_worth": str(worth), "money": dollars(100 * worth)}
    return None if given == old.arguments else old._replace(arguments=given, fill=fill, amount=100 * worth)


def _store(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    """A named plan, or the cheapest that is large enough."""
    plans: list[StoragePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [p for p in plans if p.gigabytes >= account.used_gigabytes]
    if draft.rng.random() < 0.3:
        return storing(operation, draft, account, able[0], "the cheapest plan that holds all of it")
    return storing(operation, draft, account, draft.rng.choice(plans))


def storing(
    operation: Operation, draft: StoryDraft, account: AppAccount, plan: StoragePlan, name: str = ""
) -> WishedChange:
    old: StoragePlan = draft.db.get("plans", account.plan_id)
    family = family_of(draft)
    mine, ours = draft.say("my storage"), draft.say("our storage")
    charged = plan.price if plan.price > old.price else 0
    return wish(
        operation, draft, "storage", {"account_id": account.account_id, "plan_id": plan.plan_id}, ours if family and draft.rng.random() < 0.5 else mine,
        about=family.family_id if family and not leads(draft) else account.account_id, amount=plan.price,
        fill={"new": name or f"{plan.gigabytes} GB", "gigabytes": str(plan.gigabytes), "charged": dollars(charged), "unit": "month"},
        reads=(call("list_storage_plans"),), claims="" if name else "little",
    )  # fmt: skip


def _other_plan(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    """Another plan, where one was named."""
    others = [plan for plan in draft.db.rows("plans") if plan.plan_id != old.arguments["plan_id"]]
    named = old.fill["new"].endswith("GB")
    return storing(old.operation, draft, me(draft), draft.rng.choice(others)) if named else None


def _shared(draft: StoryDraft, row: AppSubscription) -> list[Patch]:
    return [("subscriptions", row.subscription_id, {"shared": True})] if row.tier == "premium" else []


def _rules(tool: str, *names: str) -> Mapping[str, Kept]:
    """Some of the rules for a tool."""
    return {name: MAY[tool][name] for name in names}


def _codes(draft: StoryDraft, own: bool) -> list[GiftCode]:
    return draft.db.rows("codes") if myself(draft, own) else []


def _in_a_family(draft: StoryDraft, own: bool) -> list[AppSubscription]:
    found = things("subscriptions", lambda s: s.status == "active")(draft, own)
    return found if me(draft).family_id else []


SUBSCRIPTIONS, PURCHASES = things("subscriptions"), things("purchases", lambda p: p.status == "paid")

# --- the changes -------------------------------------------------------------------------------------

PAYING = (
    TABLE.operation("cancel", "cancel_subscription", SUBSCRIPTIONS, _cancel),
    TABLE.operation("tier", "change_tier", SUBSCRIPTIONS, _tier, rethink=redrawn("subscriptions", "subscription_id")),
    TABLE.operation("period", "change_period", SUBSCRIPTIONS, _period),
    TABLE.operation("pause", "pause_subscription", SUBSCRIPTIONS, _pause, matches=("months",), rethink=redrawn("subscriptions", "subscription_id")),
    TABLE.operation("resume", "resume_subscription", SUBSCRIPTIONS, lambda operation, draft, row: _of(operation, draft, row, {}, amount=row.price)),
    TABLE.operation(
        "subscribe", "subscribe", myself, _subscribe, read_for=("age_rating", "already_covered"),
        prepare={"age_rating": lambda draft, account: [("accounts", account.account_id, {"age": CHILD + 1})]},
    ),
    TABLE.operation("share_subscription", "share_subscription", _in_a_family, _share),
    TABLE.operation("unshare", "share_subscription", _in_a_family, _share, _rules("share_subscription", "not_owner"), prepare={"": _shared}),
    TABLE.operation("refund", "refund_purchase", PURCHASES, _refund, matches=("to",), rethink=_as_credit),
    TABLE.operation("child_refund", "refund_purchase", _childs, _refund, _rules("refund_purchase", "refund_period", "refund_to")),
    TABLE.operation(
        "dispute_unknown", "open_dispute", PURCHASES, _dispute,
        _rules("open_dispute", "not_owner", "dispute_period", "known_device"), read_for=("known_device",),
    ),
    TABLE.operation("dispute_twice", "open_dispute", PURCHASES, _dispute, _rules("open_dispute", "not_owner", "dispute_period", "no_duplicate")),
    TABLE.operation("redeem", "redeem_code", _codes, _redeem),
    TABLE.operation("gift", "buy_gift_code", myself, _gift, rethink=_other_worth),
    TABLE.operation(
        "card", "change_card", myself, lambda operation, draft, account: of_account(operation, draft, "card", {"card": f"card_{draft.rng.randint(1000, 9999)}"}),
        rethink=redrawn("accounts", "account_id"),
    ),
    TABLE.operation("storage", "change_storage", myself, _store, read_for=("storage_full",), rethink=_other_plan),
    TABLE.operation(
        "pay_out", "", myself, lambda operation, draft, account: wish(operation, draft, "credit", {"account_id": account.account_id}, about=account.account_id),
        {"no_cash": never},
    ),
)  # fmt: skip
