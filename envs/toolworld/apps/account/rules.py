"""When the policy (policy.md) allows a change of an account: each rule has the name of the reason with which it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from turnwise.envs.toolworld.apps.account.changes import CHANGES
from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    AppAccount,
    AppDevice,
    AppFamily,
    AppSubscription,
    Purchase,
    SeatTeam,
    days_since,
)
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.operations import Kept, about

SECTIONS = {
    "not_owner": "2.2", "minor": "2.3", "organizer_only": "2.4", "not_active": "4.3", "period_lock": "4.4", "pause_rules": "4.5",
    "age_rating": "4.6", "already_covered": "4.6", "not_shareable": "4.7", "refund_period": "5.1", "opened": "5.1", "refund_to": "5.3",
    "dispute_period": "5.4", "known_device": "5.4", "no_duplicate": "5.4", "code_used": "6.1", "code_expired": "6.1", "code_country": "6.1",
    "no_cash": "6.2", "gift_limit": "6.3", "storage_full": "7.1", "family_full": "8.1", "other_family": "8.1", "child_member": "8.2",
    "age_limit": "8.3", "allowance_limit": "8.3", "last_device": "9.1", "lost_device": "9.1", "export_period": "9.2",
    "active_subscription": "9.3, 9.4", "open_dispute": "9.4", "family_members": "9.4", "seat_limit": "10.1", "seat_minimum": "10.2",
    "seats_taken": "10.2", "foreign_domain": "10.3", "no_free_seat": "10.3",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
REFUND_DAYS, CHILD_REFUND_DAYS, DISPUTE_DAYS, EXPORT_DAYS = 14, 60, 120, 30
MOST_MEMBERS, MOST_SEATS, LEAST_SEATS, MOST_ALLOWANCE = 6, 50, 3, 100
OWNERS = {made.name: made.owner for made in CHANGES}


def refunds_whole(found: AppSubscription) -> bool:
    """Say whether cancelling a subscription gives the price back."""
    return found.period == "yearly" and days_since(found.paid_on) <= REFUND_DAYS


def household(db: Database, account: AppAccount) -> tuple[str, ...]:
    """The accounts of a family, or somebody's own."""
    return db.get("families", account.family_id).members if account.family_id else (account.account_id,)


def running(db: Database, account_id: str, app: str = "") -> list[AppSubscription]:
    """Somebody's subscriptions that are neither cancelled nor refunded."""
    own: list[AppSubscription] = [s for s in db.rows("subscriptions") if s.account_id == account_id]
    return [s for s in own if s.status in ("active", "paused") and app in ("", s.app)]


def covered(db: Database, account: AppAccount, app: str) -> bool:
    """Say whether the account has a running subscription to an app, or somebody in the family shares one."""
    return any(row.account_id == account.account_id or row.shared for key in household(db, account) for row in running(db, key, app))  # fmt: skip


def twins(db: Database, found: Purchase) -> list[Purchase]:
    """List the other purchases that were charged alike on the same day."""
    same = (found.account_id, found.title, found.price, found.date)
    rows: list[Purchase] = db.rows("purchases")
    return [p for p in rows if (p.account_id, p.title, p.price, p.date) == same and p != found]


def _is_childs(db: Database, found: Purchase) -> bool:
    return db.get("accounts", found.account_id).age < CHILD


def _in_time(db: Database, found: Purchase, given: Mapping[str, Any]) -> bool:
    most = CHILD_REFUND_DAYS if _is_childs(db, found) else REFUND_DAYS
    return found.kind == "pre-order" or days_since(found.date) <= most


def _unopened(db: Database, found: Purchase, given: Mapping[str, Any]) -> bool:
    return found.kind == "pre-order" or not found.opened or _is_childs(db, found)


def _unknown(db: Database, found: Purchase, given: Mapping[str, Any]) -> bool:
    device: AppDevice | None = db.find("devices", found.device_id)
    known = device is not None and device.account_id in household(db, db.get("accounts", found.account_id))
    return given["reason"] != "unknown_purchase" or not known


def _in_use(db: Database, device: AppDevice, given: Mapping[str, Any]) -> bool:
    others = [d for d in db.rows("devices") if d.account_id == device.account_id and d != device]
    return device.status != "active" or any(d.status == "active" for d in others)


def _free_to_join(db: Database, family: AppFamily, given: Mapping[str, Any]) -> bool:
    one = next((a for a in db.rows("accounts") if a.email == given["email"]), None)
    return one is None or one.family_id in ("", family.family_id)


def _leads_none(db: Database, account: AppAccount, given: Mapping[str, Any]) -> bool:
    family: AppFamily | None = db.find("families", account.family_id)
    return family is None or family.organizer != account.account_id or len(family.members) < 2


def _undisputed(db: Database, account: AppAccount, given: Mapping[str, Any]) -> bool:
    own = [p for p in db.rows("purchases") if p.account_id == account.account_id]
    return not any(p.status.startswith("disputed") for p in own)


def _exported_long_ago(db: Database, account: AppAccount, given: Mapping[str, Any]) -> bool:
    made = [x for x in db.rows("exports") if (x.account_id, x.app) == (account.account_id, given["app"])]
    return all(days_since(x.date) >= EXPORT_DAYS for x in made)


def _is_of_age(db: Database, customer: str | None, given: Mapping[str, Any]) -> bool:
    return customer is None or db.get("accounts", customer).age >= CHILD


def _theirs(tool: str) -> Kept:
    """The rule that whoever speaks decides about what a call changes."""
    owner = OWNERS[tool]
    assert owner is not None
    return lambda db, customer, given: customer is None or owner(db, **given) in (None, customer)


_subscription, _purchase = (partial(about, "subscriptions", "subscription_id"), partial(about, "purchases", "purchase_id"))  # fmt: skip
_account, _family = partial(about, "accounts", "account_id"), partial(about, "families", "family_id")
_code, _device, _team = (partial(about, "codes", "code"), partial(about, "devices", "device_id"), partial(about, "teams", "team_id"))  # fmt: skip
_in_force = _subscription(lambda db, row, given: row.status != "paused")


def _left(team: SeatTeam, given: Mapping[str, Any]) -> int:
    return team.seats - given["seats"]


_OWNERS: Mapping[str, Mapping[str, Kept]] = {
    "cancel_subscription": {"refund_rule": _subscription(lambda db, row, given: given["refund"] == refunds_whole(row))},
    "change_tier": {"not_active": _in_force},
    "change_period": {
        "not_active": _in_force,
        "period_lock": _subscription(lambda db, row, given: given["period"] != "monthly" or days_since(row.renews) >= -30),
    },
    "pause_subscription": {"pause_rules": _subscription(
        lambda db, row, given: row.period == "monthly" and not row.paused_before and 1 <= given["months"] <= 3
    )},
    "resume_subscription": {},
    "share_subscription": {"not_shareable": _subscription(lambda db, row, given: not given["shared"] or row.tier == "premium")},
    "refund_purchase": {
        "refund_period": _purchase(_in_time), "opened": _purchase(_unopened),
        "refund_to": _purchase(lambda db, row, given: row.paid_with != "credit" or given["to"] == "credit"),
    },
    "open_dispute": {
        "dispute_period": _purchase(lambda db, row, given: days_since(row.date) <= DISPUTE_DAYS),
        "known_device": _purchase(_unknown),
        "no_duplicate": _purchase(lambda db, row, given: given["reason"] != "charged_twice" or bool(twins(db, row))),
    },
    "remove_device": {"last_device": _device(_in_use), "lost_device": _device(lambda db, row, given: row.status != "lost")},
    "lock_device": {},
    "add_seats": {"seat_limit": _team(lambda db, row, given: row.seats + given["seats"] <= MOST_SEATS)},
    "remove_seats": {
        "seat_minimum": _team(lambda db, row, given: _left(row, given) >= LEAST_SEATS),
        "seats_taken": _team(lambda db, row, given: _left(row, given) >= len(row.members)),
    },
    "assign_seat": {
        "foreign_domain": _team(lambda db, row, given: given["email"].endswith(f"@{row.domain}")),
        "no_free_seat": _team(lambda db, row, given: len(row.members) < row.seats),
    },
    "free_seat": {},
}  # fmt: skip
_ORGANIZERS: Mapping[str, Mapping[str, Kept]] = {
    "change_storage": {"storage_full": _account(
        lambda db, row, given: row.used_gigabytes <= getattr(db.find("plans", given["plan_id"]), "gigabytes", row.used_gigabytes)
    )},
    "add_family_member": {
        "family_full": _family(lambda db, row, given: len(row.members) < MOST_MEMBERS), "other_family": _family(_free_to_join),
    },
    "remove_family_member": {"child_member": _account(lambda db, row, given: row.age >= CHILD)},
    "set_age_limit": {"age_limit": _account(lambda db, row, given: int(given["limit"].rstrip("+")) <= row.age)},
    "set_allowance": {"allowance_limit": lambda db, customer, given: given["allowance_dollars"] <= MOST_ALLOWANCE},
}  # fmt: skip
_led = {tool: {"organizer_only": _theirs(tool), **rules} for tool, rules in _ORGANIZERS.items()}
_ADULTS: Mapping[str, Mapping[str, Kept]] = {
    "subscribe": {
        "age_rating": _account(lambda db, row, given: row.age >= getattr(db.find("store", given["app"]), "rating", 0)),
        "already_covered": _account(lambda db, row, given: not covered(db, row, given["app"])),
    },
    "redeem_code": {
        "code_used": _code(lambda db, row, given: row.status != "redeemed"), "code_expired": _code(lambda db, row, given: row.status != "expired"),
        "code_country": _code(lambda db, row, given: row.country == getattr(db.find("accounts", given["account_id"]), "country", row.country)),
    },
    "buy_gift_code": {
        "gift_limit": lambda db, customer, given: 10 <= given["dollars_worth"] <= 200 and given["dollars_worth"] % 10 == 0
    },
    "change_card": {}, "change_email": {}, "change_storage": _led["change_storage"],
    "export_data": {"export_period": _account(_exported_long_ago)},
    "delete_app_data": {"active_subscription": _account(lambda db, row, given: not running(db, row.account_id, given["app"]))},
    "delete_account": {
        "active_subscription": _account(lambda db, row, given: not running(db, row.account_id)), "open_dispute": _account(_undisputed),
        "family_members": _account(_leads_none),
    },
}  # fmt: skip
MAY: Mapping[str, Mapping[str, Kept]] = {
    **{tool: {"not_owner": _theirs(tool), **rules} for tool, rules in _OWNERS.items()},
    **_led,
    **{tool: {"minor": _is_of_age, **rules} for tool, rules in _ADULTS.items()},
}
"""Tool → the rules for its call, in the policy's own order."""
