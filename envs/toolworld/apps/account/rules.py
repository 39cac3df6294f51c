"""What breaks the policy of accounts (policy.py): each rule has the name of the reason with which it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    AppAccount,
    AppDevice,
    AppFamily,
    AppSubscription,
    GiftCode,
    Purchase,
    SeatTeam,
    StoragePlan,
    StoreApp,
    days_since,
)
from turnwise.envs.toolworld.database import Database

REFUND_DAYS, CHILD_REFUND_DAYS, DISPUTE_DAYS, EXPORT_DAYS = 14, 60, 120, 30
MOST_MEMBERS, MOST_SEATS, LEAST_SEATS, MOST_ALLOWANCE = 6, 50, 3, 100

Check = Callable[[Database, Mapping[str, Any]], Sequence[str]]


def refunds_whole(found: AppSubscription) -> bool:
    """Whether who cancels gets the price back."""
    return found.period == "yearly" and days_since(found.paid_on) <= REFUND_DAYS


def household(db: Database, account: AppAccount) -> tuple[str, ...]:
    """The accounts of a family, or somebody's own."""
    if not account.family_id:
        return (account.account_id,)
    return db.get("families", account.family_id).members


def refund_faults(db: Database, found: Purchase) -> list[str]:
    """Why a purchase cannot be refunded."""
    if found.kind == "pre-order":
        return []
    account: AppAccount = db.get("accounts", found.account_id)
    past = days_since(found.date)
    if account.age < CHILD:
        return ["refund_period"] if past > CHILD_REFUND_DAYS else []
    return ["refund_period"] * (past > REFUND_DAYS) + ["opened"] * found.opened


def dispute_faults(db: Database, found: Purchase, reason: str) -> list[str]:
    """Why a charge cannot be contested."""
    faults = ["dispute_period"] * (days_since(found.date) > DISPUTE_DAYS)
    if reason == "charged_twice":
        return faults + ["no_duplicate"] * (not is_twin(db, found))
    device: AppDevice | None = db.find("devices", found.device_id)
    account: AppAccount = db.get("accounts", found.account_id)
    known = device is not None and device.account_id in household(db, account)
    return faults + ["known_device"] * known


def is_twin(db: Database, found: Purchase) -> bool:
    """Whether the same was charged another time on that day."""
    same = (found.account_id, found.title, found.price, found.date)
    return any(
        (p.account_id, p.title, p.price, p.date) == same and p.purchase_id != found.purchase_id
        for p in db.rows("purchases")
    )


def _subscription(db: Database, given: Mapping[str, Any]) -> AppSubscription | None:
    return db.find("subscriptions", given["subscription_id"])


def _cancelling(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found = _subscription(db, given)
    return ("refund_rule",) if found and given["refund"] != refunds_whole(found) else ()


def _tier(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found = _subscription(db, given)
    return ("not_active",) if found and found.status == "paused" else ()


def _period(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found = _subscription(db, given)
    if found is None:
        return ()
    if found.status == "paused":
        return ("not_active",)
    late = given["period"] == "monthly" and days_since(found.renews) < -30
    return ("period_lock",) if late else ()


def _pausing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found = _subscription(db, given)
    if found is None:
        return ()
    may = found.period == "monthly" and not found.paused_before and 1 <= given["months"] <= 3
    return () if may else ("pause_rules",)


def covered(db: Database, account: AppAccount, app: str) -> bool:
    """Whether somebody has a running subscription to an app, or the family shares one."""
    return any(
        row.app == app and row.status in ("active", "paused") and (row.account_id == account.account_id or row.shared)
        for key in household(db, account)
        for row in db.rows("subscriptions")
        if row.account_id == key
    )  # fmt: skip


def _subscribing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    account: AppAccount | None = db.find("accounts", given["account_id"])
    app: StoreApp | None = db.find("store", given["app"])
    if account is None or app is None:
        return ()
    return ["age_rating"] * (account.age < app.rating) + ["already_covered"] * covered(db, account, app.app)


def _sharing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found = _subscription(db, given)
    return ("not_shareable",) if found and given["shared"] and found.tier != "premium" else ()


def _refunding(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found: Purchase | None = db.find("purchases", given["purchase_id"])
    if found is None:
        return ()
    wrong = found.paid_with == "credit" and given["to"] != "credit"
    return refund_faults(db, found) + ["refund_to"] * wrong


def _disputing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    found: Purchase | None = db.find("purchases", given["purchase_id"])
    return dispute_faults(db, found, given["reason"]) if found else ()


def _redeeming(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    code: GiftCode | None = db.find("codes", given["code"])
    account: AppAccount | None = db.find("accounts", given["account_id"])
    if code is None or account is None:
        return ()
    state = {"expired": ["code_expired"], "redeemed": ["code_used"]}.get(code.status, [])
    return state + ["code_country"] * (code.country != account.country)


def _giving(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    worth = given["dollars_worth"]
    return () if 10 <= worth <= 200 and worth % 10 == 0 else ("gift_limit",)


def _storing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    account: AppAccount | None = db.find("accounts", given["account_id"])
    plan: StoragePlan | None = db.find("plans", given["plan_id"])
    return ("storage_full",) if account and plan and account.used_gigabytes > plan.gigabytes else ()


def _removing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    device: AppDevice | None = db.find("devices", given["device_id"])
    if device is None:
        return ()
    own = [d for d in db.rows("devices") if d.account_id == device.account_id and d.status == "active"]
    last = device.status == "active" and len(own) == 1
    return ["lost_device"] * (device.status == "lost") + ["last_device"] * last


def _exporting(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    again = any(
        (row.account_id, row.app) == (given["account_id"], given["app"]) and days_since(row.date) < EXPORT_DAYS
        for row in db.rows("exports")
    )  # fmt: skip
    return ("export_period",) if again else ()


def running(db: Database, account_id: str, app: str = "") -> list[AppSubscription]:
    """Somebody's subscriptions that are neither cancelled nor refunded."""
    own: list[AppSubscription] = [s for s in db.rows("subscriptions") if s.account_id == account_id]
    return [s for s in own if s.status in ("active", "paused") and app in ("", s.app)]


def _erasing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    return ("active_subscription",) if running(db, given["account_id"], given["app"]) else ()


def _closing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    key = given["account_id"]
    account: AppAccount | None = db.find("accounts", key)
    if account is None:
        return ()
    disputed = any(p.account_id == key and p.status.startswith("disputed") for p in db.rows("purchases"))
    family: AppFamily | None = db.find("families", account.family_id)
    leads = family is not None and family.organizer == key and len(family.members) > 1
    return (
        ["active_subscription"] * bool(running(db, key)) + ["open_dispute"] * disputed + ["family_members"] * leads
    )  # fmt: skip


def _adding(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    family: AppFamily | None = db.find("families", given["family_id"])
    one = next((a for a in db.rows("accounts") if a.email == given["email"]), None)
    if family is None or one is None:
        return ()
    other = one.family_id not in ("", family.family_id)
    return ["family_full"] * (len(family.members) >= MOST_MEMBERS) + ["other_family"] * other


def _leaving(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    account: AppAccount | None = db.find("accounts", given["account_id"])
    return ("child_member",) if account and account.age < CHILD else ()


def _limiting(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    account: AppAccount | None = db.find("accounts", given["account_id"])
    return ("age_limit",) if account and int(given["limit"].rstrip("+")) > account.age else ()


def _allowing(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    return ("allowance_limit",) if given["allowance_dollars"] > MOST_ALLOWANCE else ()


def _more_seats(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    team: SeatTeam | None = db.find("teams", given["team_id"])
    return ("seat_limit",) if team and team.seats + given["seats"] > MOST_SEATS else ()


def _fewer_seats(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    team: SeatTeam | None = db.find("teams", given["team_id"])
    if team is None:
        return ()
    left = team.seats - given["seats"]
    return ["seat_minimum"] * (left < LEAST_SEATS) + ["seats_taken"] * (left < len(team.members))


def _assigning(db: Database, given: Mapping[str, Any]) -> Sequence[str]:
    team: SeatTeam | None = db.find("teams", given["team_id"])
    if team is None:
        return ()
    elsewhere = not given["email"].endswith(f"@{team.domain}")
    return ["foreign_domain"] * elsewhere + ["no_free_seat"] * (len(team.members) >= team.seats)


CHECKS: Mapping[str, Check] = {
    "cancel_subscription": _cancelling, "change_tier": _tier, "change_period": _period, "pause_subscription": _pausing,
    "subscribe": _subscribing, "share_subscription": _sharing, "refund_purchase": _refunding, "open_dispute": _disputing,
    "redeem_code": _redeeming, "buy_gift_code": _giving, "change_storage": _storing, "remove_device": _removing,
    "export_data": _exporting, "delete_app_data": _erasing, "delete_account": _closing, "add_family_member": _adding,
    "remove_family_member": _leaving, "set_age_limit": _limiting, "set_allowance": _allowing, "add_seats": _more_seats,
    "remove_seats": _fewer_seats, "assign_seat": _assigning,
}  # fmt: skip
"""Tool → what its call would break, on the database before it."""
