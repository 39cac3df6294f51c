"""Changes that an agent can make in accounts. Tools keep the data whole; the policy is the agent's to keep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Literal

from turnwise.envs.toolworld.apps.account.state import (
    TODAY,
    AppAccount,
    AppDevice,
    AppFamily,
    AppSubscription,
    DataExport,
    GiftCode,
    KeptData,
    Purchase,
    SeatTeam,
    StoragePlan,
    StoreApp,
    price_of,
    seats_price,
)
from turnwise.envs.toolworld.database import Database, fresh_key
from turnwise.envs.toolworld.domain import Written, act
from turnwise.envs.toolworld.facts import dollars
from turnwise.tools.core import ToolError

Tier = Literal["basic", "standard", "premium"]
Period = Literal["monthly", "yearly"]


def cancel_subscription(db: Database, subscription_id: str, refund: bool) -> Written:
    """End a subscription with its period, or at once with its whole price refunded."""
    old = _running(db, subscription_id)
    db = db.update("subscriptions", subscription_id, status="refunded" if refund else "cancelled")
    ends = TODAY if refund else old.renews
    return Written(db, {"ends": ends, "refund": dollars(old.price if refund else 0)})


def change_tier(db: Database, subscription_id: str, tier: Tier) -> Written:
    """Change the tier: a higher one at once for the difference, a lower one from the next period on."""
    old = _running(db, subscription_id)
    if old.tier == tier:
        raise ToolError(f"It is {tier} already.")
    price = price_of(db.get("store", old.app), tier, old.period)
    db = db.update("subscriptions", subscription_id, tier=tier, price=price)
    return Written(db, {"tier": tier, "charged": dollars(max(0, price - old.price))})


def change_period(db: Database, subscription_id: str, period: Period) -> Written:
    """Change between monthly and yearly payment; a year is paid at once."""
    old = _running(db, subscription_id)
    if old.period == period:
        raise ToolError(f"It is paid {period} already.")
    price = price_of(db.get("store", old.app), old.tier, period)
    if period == "monthly":
        return Written(db.update("subscriptions", subscription_id, period=period, price=price), "changed")
    renews = (date.fromisoformat(TODAY) + timedelta(365)).isoformat()
    db = db.update("subscriptions", subscription_id, period=period, price=price, paid_on=TODAY, renews=renews)
    return Written(db, {"renews": renews, "charged": dollars(price)})


def pause_subscription(db: Database, subscription_id: str, months: int) -> Written:
    """Pause a subscription for some months, in which it costs nothing and cannot be used."""
    old = _running(db, subscription_id)
    if old.status == "paused":
        raise ToolError("It is paused already.")
    return Written(db.update("subscriptions", subscription_id, status="paused", paused_before=True, paused_months=months), "paused")  # fmt: skip


def resume_subscription(db: Database, subscription_id: str) -> Written:
    """End a pause; the price of a period is charged."""
    old = _running(db, subscription_id)
    if old.status != "paused":
        raise ToolError("It is not paused.")
    return Written(db.update("subscriptions", subscription_id, status="active", paused_months=0), {"charged": dollars(old.price)})  # fmt: skip


def subscribe(db: Database, account_id: str, app: str, tier: Tier, period: Period) -> Written:
    """Take out a subscription, charged to the account's card."""
    found: StoreApp = db.get("store", app)
    db.get("accounts", account_id)
    price = price_of(found, tier, period)
    renews = (date.fromisoformat(TODAY) + timedelta(30 if period == "monthly" else 365)).isoformat()
    key = fresh_key(db, "subscriptions", "U", account_id, app, tier, period)
    row = AppSubscription(key, account_id, app, tier, period, price, TODAY, renews)
    return Written(db.put("subscriptions", key, row), {"subscription_id": key, "charged": dollars(price)})


def share_subscription(db: Database, subscription_id: str, shared: bool) -> Written:
    """Share a subscription with the family, or stop sharing it."""
    old = _running(db, subscription_id)
    if old.shared == shared:
        raise ToolError("So it is already.")
    return Written(db.update("subscriptions", subscription_id, shared=shared), "changed")


def refund_purchase(db: Database, purchase_id: str, to: Literal["card", "credit"]) -> Written:
    """Refund a purchase to the card with which it was paid, or as credit of the account."""
    found = _paid(db, purchase_id)
    db = db.update("purchases", purchase_id, status="refunded")
    if to == "credit":
        account: AppAccount = db.get("accounts", found.account_id)
        db = db.update("accounts", account.account_id, credit=account.credit + found.price)
    return Written(db, {"to": to, "refund": dollars(found.price)})


def open_dispute(
    db: Database, purchase_id: str, reason: Literal["unknown_purchase", "charged_twice"]
) -> Written:
    """Contest a charge; the bank decides within ten days."""
    _paid(db, purchase_id)
    return Written(db.update("purchases", purchase_id, status=f"disputed: {reason}"), "opened")


def redeem_code(db: Database, account_id: str, code: str) -> Written:
    """Add what a gift code is worth to the credit of an account."""
    found: GiftCode = db.get("codes", code)
    account: AppAccount = db.get("accounts", account_id)
    db = db.update("codes", code, status="redeemed")
    credit = account.credit + found.amount
    return Written(db.update("accounts", account_id, credit=credit), {"credit": dollars(credit)})


def buy_gift_code(db: Database, account_id: str, email: str, dollars_worth: int) -> Written:
    """Buy a gift code with the account's card, and send it to a mail address."""
    account: AppAccount = db.get("accounts", account_id)
    if dollars_worth < 1:
        raise ToolError("A gift code is worth a dollar or more.")
    code = fresh_key(db, "codes", "G", account_id, email, dollars_worth)
    row = GiftCode(code, 100 * dollars_worth, account.country, sent_to=_address(email))
    return Written(db.put("codes", code, row), {"code": code, "charged": dollars(100 * dollars_worth)})


def change_card(db: Database, account_id: str, card: str) -> Written:
    """Charge what is bought from now on to another card."""
    db.get("accounts", account_id)
    return Written(db.update("accounts", account_id, card=card.strip()), "changed")


def change_storage(db: Database, account_id: str, plan_id: str) -> Written:
    """Change the storage plan; a month of a dearer one is charged at once."""
    plan: StoragePlan = db.get("plans", plan_id)
    account: AppAccount = db.get("accounts", account_id)
    if account.plan_id == plan_id:
        raise ToolError("The account has this plan.")
    old: StoragePlan = db.get("plans", account.plan_id)
    charged = plan.price if plan.price > old.price else 0
    return Written(db.update("accounts", account_id, plan_id=plan_id), {"charged": dollars(charged)})


def change_email(db: Database, account_id: str, email: str) -> Written:
    """Change the mail address of an account; it holds when a link that is sent to it is opened."""
    db.get("accounts", account_id)
    if any(account.email == email for account in db.rows("accounts")):
        raise ToolError("Another account has this address.")
    return Written(db.update("accounts", account_id, new_email=_address(email)), "changed")


def remove_device(db: Database, device_id: str) -> Written:
    """Sign a device out and take it off its account."""
    db.get("devices", device_id)
    return Written(db.drop("devices", device_id), "removed")


def lock_device(db: Database, device_id: str) -> Written:
    """Lock a lost device from afar."""
    device: AppDevice = db.get("devices", device_id)
    if device.status == "lost":
        raise ToolError("It is locked already.")
    return Written(db.update("devices", device_id, status="lost"), "locked")


def export_data(db: Database, account_id: str, app: str, format: Literal["json", "csv", "html"]) -> Written:
    """Send a copy of what an app keeps about somebody to the account's mail address."""
    _kept(db, account_id, app)
    key = fresh_key(db, "exports", "X", account_id, app, format)
    return Written(db.put("exports", key, DataExport(key, account_id, app, format, TODAY)), "on its way")


def delete_app_data(db: Database, account_id: str, app: str) -> Written:
    """Delete all that an app keeps about somebody. Cannot be undone."""
    return Written(db.drop("kept", _kept(db, account_id, app).data_id), "deleted")


def delete_account(db: Database, account_id: str) -> Written:
    """Close an account for good in fourteen days; its credit is lost."""
    account: AppAccount = db.get("accounts", account_id)
    db = db.update("accounts", account_id, status="closing")
    return Written(db, {"closes": "2026-07-02", "credit_lost": dollars(account.credit)})


def add_family_member(db: Database, family_id: str, email: str) -> Written:
    """Take the account with a mail address into a family."""
    family: AppFamily = db.get("families", family_id)
    found = [account for account in db.rows("accounts") if account.email == email.strip().lower()]
    if not found or found[0].account_id in family.members:
        raise ToolError("No account has this address, or it is of the family already.")
    key = found[0].account_id
    db = db.update("families", family_id, members=(*family.members, key))
    return Written(db.update("accounts", key, family_id=family_id), "added")


def remove_family_member(db: Database, family_id: str, account_id: str) -> Written:
    """Take somebody out of a family."""
    family: AppFamily = db.get("families", family_id)
    if account_id not in family.members or account_id == family.organizer:
        raise ToolError("Nobody of the family, or its organizer.")
    left = tuple(member for member in family.members if member != account_id)
    db = db.update("families", family_id, members=left)
    return Written(db.update("accounts", account_id, family_id=""), "removed")


def set_age_limit(db: Database, account_id: str, limit: Literal["4+", "9+", "12+", "16+", "18+"]) -> Written:
    """Say up to which rating a child may buy and see."""
    return Written(db.update("accounts", account_id, age_limit=limit), "set")


def set_allowance(db: Database, account_id: str, allowance_dollars: int) -> Written:
    """Say how much a child may spend in a month."""
    if allowance_dollars < 0:
        raise ToolError("An allowance is not negative.")
    return Written(db.update("accounts", account_id, allowance=100 * allowance_dollars), "set")


def add_seats(db: Database, team_id: str, seats: int) -> Written:
    """Add seats to a business team; their price is charged each month, for the first time now."""
    team: SeatTeam = db.get("teams", team_id)
    if seats < 1:
        raise ToolError("Add a seat or more.")
    charged = seats_price(team.seats, seats)
    return Written(db.update("teams", team_id, seats=team.seats + seats), {"charged": dollars(charged)})


def remove_seats(db: Database, team_id: str, seats: int) -> Written:
    """Give seats of a business team back, with the end of the month."""
    team: SeatTeam = db.get("teams", team_id)
    if not 0 < seats <= team.seats:
        raise ToolError("The team has not so many seats.")
    return Written(db.update("teams", team_id, seats=team.seats - seats), "changed")


def assign_seat(db: Database, team_id: str, email: str) -> Written:
    """Give somebody a seat of a business team."""
    team: SeatTeam = db.get("teams", team_id)
    members = tuple(sorted({*team.members, _address(email)}))
    return Written(db.update("teams", team_id, members=members), "assigned")


def free_seat(db: Database, team_id: str, email: str) -> Written:
    """Take somebody's seat of a business team away."""
    team: SeatTeam = db.get("teams", team_id)
    if email not in team.members:
        raise ToolError("This address has no seat.")
    return Written(db.update("teams", team_id, members=tuple(m for m in team.members if m != email)), "free")


def in_charge(db: Database, account_id: str) -> str | None:
    """Return who decides about an account: its owner, or the organizer of a child's family."""
    account: AppAccount | None = db.find("accounts", account_id)
    if account is None:
        return None
    if account.age >= 16 or not account.family_id:
        return account_id
    return db.get("families", account.family_id).organizer


def _running(db: Database, subscription_id: str) -> AppSubscription:
    found: AppSubscription = db.get("subscriptions", subscription_id)
    if found.status in ("cancelled", "refunded"):
        raise ToolError("The subscription is cancelled.")
    return found


def _paid(db: Database, purchase_id: str) -> Purchase:
    found: Purchase = db.get("purchases", purchase_id)
    if found.status != "paid":
        raise ToolError(f"The purchase is {found.status}.")
    return found


def _kept(db: Database, account_id: str, app: str) -> KeptData:
    for row in db.rows("kept"):
        if (row.account_id, row.app) == (account_id, app):
            return row
    raise ToolError(f"{app[:40]!r} keeps nothing about this account.")


def _address(text: str) -> str:
    if text.count("@") != 1 or " " in text:
        raise ToolError(f"{text[:40]!r} is no mail address.")
    return text.strip().lower()


def _of(table: str, argument: str) -> Callable[..., str | None]:
    """Return a function that finds who decides about a row of a table that a call names."""

    def owner(db: Database, **given: Any) -> str | None:
        row = db.find(table, given[argument])
        return in_charge(db, row.account_id) if row else None

    return owner


def _of_family(db: Database, family_id: str, **_: object) -> str | None:
    found: AppFamily | None = db.find("families", family_id)
    return found.organizer if found else None


def _of_storage(db: Database, account_id: str, **_: object) -> str | None:
    """A family's storage is the organizer's."""
    account: AppAccount | None = db.find("accounts", account_id)
    return _of_family(db, account.family_id) if account and account.family_id else account_id


CHANGES = (
    *(act(one, "write", _of("subscriptions", "subscription_id")) for one in (
        cancel_subscription, change_tier, change_period, pause_subscription, resume_subscription, share_subscription,
    )),
    *(act(one, "write", _of("purchases", "purchase_id")) for one in (refund_purchase, open_dispute)),
    *(act(one, "write", _of("accounts", "account_id")) for one in (
        subscribe, redeem_code, buy_gift_code, change_card, change_email, export_data, delete_app_data, delete_account,
        set_age_limit, set_allowance,
    )),
    act(change_storage, "write", _of_storage),
    *(act(one, "write", _of("devices", "device_id")) for one in (remove_device, lock_device)),
    *(act(one, "write", _of_family) for one in (add_family_member, remove_family_member)),
    *(act(one, "write", _of("teams", "team_id")) for one in (add_seats, remove_seats, assign_seat, free_seat)),
)  # fmt: skip
