"""Lookups of accounts that an agent can make, and notes that it can put on record."""

from __future__ import annotations

from typing import Any, Literal

from turnwise.envs.toolworld.apps.account.state import (
    AppAccount,
    AppFamily,
    AppSubscription,
    GiftCode,
    Purchase,
    SeatTeam,
    StoreApp,
)
from turnwise.envs.toolworld.database import Database, near, plain
from turnwise.envs.toolworld.domain import Written, act
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.service import recorded_refusal, recorded_transfer
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError


def sign_in(db: Database, email: str, passcode: str) -> Written:
    """Verify the owner of an account by e-mail address and passcode."""
    for account in db.rows("accounts"):
        if account.email == email.strip().lower() and account.passcode == passcode:
            return Written(db, {"account_id": account.account_id}, account.account_id)
    raise ToolError("No account has this e-mail address and this passcode.")


def get_account(db: Database, account_id: str) -> Json:
    """An account: its owner, storage, credit, and the ids of its subscriptions, purchases, devices, family and teams."""
    account: AppAccount = db.get("accounts", account_id)
    told = {name: value for name, value in account._asdict().items() if name != "passcode"}
    owned = {
        "subscriptions": {s.subscription_id: s.app for s in _of(db, "subscriptions", account_id)},
        "purchases": {p.purchase_id: p.title for p in _of(db, "purchases", account_id)},
        "devices": {d.device_id: d.kind for d in _of(db, "devices", account_id)},
        "teams": [t.team_id for t in _of(db, "teams", account_id)],
    }
    return {**told, "credit": dollars(account.credit), "allowance": dollars(account.allowance), **owned}


def get_subscription(db: Database, subscription_id: str) -> Json:
    """A subscription: tier, period, price, when it was paid last and when it renews."""
    found: AppSubscription = db.get("subscriptions", subscription_id)
    return {**plain(found), "price": dollars(found.price)}


def get_purchase(db: Database, purchase_id: str) -> Json:
    """A purchase: what it was, its price and date, how it was paid, on which device, and whether it was opened."""
    found: Purchase = db.get("purchases", purchase_id)
    return {**plain(found), "price": dollars(found.price)}


def get_device(db: Database, device_id: str) -> Json:
    """A device, and whose it is; a device with which something was bought may be no account's."""
    found = db.find("devices", device_id)
    if found is None and any(p.device_id == device_id for p in db.rows("purchases")):
        return {"device_id": device_id, "account_id": None, "status": "registered with no account"}
    return plain(db.get("devices", device_id))


def get_family(db: Database, family_id: str) -> Json:
    """A family: its organizer, and each member with name, age, limits and devices."""
    family: AppFamily = db.get("families", family_id)
    members: list[Json] = []
    for key in family.members:
        one: AppAccount = db.get("accounts", key)
        devices: list[Json] = [d.device_id for d in _of(db, "devices", key)]
        members.append(
            {"account_id": key, "name": one.name, "age": one.age, "age_limit": one.age_limit,
             "allowance": dollars(one.allowance), "devices": devices}
        )  # fmt: skip
    return {"family_id": family_id, "organizer": family.organizer, "members": members}


def get_team(db: Database, team_id: str) -> Json:
    """A business team: its domain, how many seats it has, and who has one."""
    team: SeatTeam = db.get("teams", team_id)
    return {**plain(team), "free_seats": team.seats - len(team.members)}


def get_app(db: Database, app: str) -> Json:
    """An app of the store: its age rating, and the monthly price of each tier."""
    found: StoreApp | None = db.find("store", app.strip().title())
    if found is None:
        raise ToolError(f"The store has no app {app[:40]!r}.{near(app, db.keys('store'))}")
    tiers = {name: dollars(getattr(found, name)) for name in ("basic", "standard", "premium")}
    return {"app": found.app, "rating": f"{found.rating}+", "monthly": tiers}


def list_storage_plans(db: Database) -> Json:
    """All storage plans with their monthly price."""
    return [{**plain(plan), "price": dollars(plan.price)} for plan in db.rows("plans")]


def check_code(db: Database, code: str) -> Json:
    """What a gift code is worth, where it holds, and whether it was used."""
    found: GiftCode = db.get("codes", code)
    return {"code": code, "amount": dollars(found.amount), "country": found.country, "status": found.status}


def list_kept_data(db: Database, account_id: str) -> Json:
    """What each app keeps about an account's owner, in megabytes; and earlier exports."""
    kept: dict[str, Json] = {row.app: row.megabytes for row in _of(db, "kept", account_id)}
    return {"megabytes": kept, "exports": [plain(row) for row in _of(db, "exports", account_id)]}


ErrandReason = Literal["send_limit", "shared_file"]
AccountReason = Literal[
    "not_owner", "minor", "organizer_only", "not_active", "period_lock", "pause_rules", "age_rating", "already_covered", "not_shareable",
    "refund_period", "opened", "refund_to", "dispute_period", "known_device", "no_duplicate", "code_used", "code_expired",
    "code_country", "no_cash", "gift_limit", "storage_full", "family_full", "other_family", "child_member", "age_limit",
    "allowance_limit", "last_device", "lost_device", "export_period", "active_subscription", "open_dispute", "family_members",
    "seat_limit", "seat_minimum", "seats_taken", "foreign_domain", "no_free_seat",
]  # fmt: skip
RefusalReason = Literal[AccountReason, ErrandReason]


def record_refusal(db: Database, about: str, reason: RefusalReason) -> Written:
    """Put on record that a request was refused, and why; ``about`` is the id of what it was about."""
    if not any(about in rows for rows in db.tables.values()):
        raise ToolError(f"Nothing has the id {about[:40]!r}.")
    return recorded_refusal(db, about, reason, "records")


def transfer_to_human(db: Database, reason: Literal["fraud", "bereavement", "legal", "safety"]) -> Written:
    """Hand the person over to somebody of the account service. Ends the conversation."""
    return recorded_transfer(db, reason, "records")


LOOKUPS = (
    act(sign_in, "identify"),
    *map(act, (
        get_account, get_subscription, get_purchase, get_device, get_family, get_team, get_app, list_storage_plans, check_code, list_kept_data,
    )),
)  # fmt: skip
NOTES = (act(record_refusal, "note"), act(transfer_to_human, "end"))


def _of(db: Database, table: str, account_id: str) -> list[Any]:
    return [row for row in db.rows(table) if row.account_id == account_id]
