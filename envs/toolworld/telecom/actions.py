"""Calls that an agent of the operator can make. None of them reaches the customer's phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from turnwise.envs.toolworld.database import Database, plain
from turnwise.envs.toolworld.domain import Written, act
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.service import recorded_refusal, recorded_transfer
from turnwise.envs.toolworld.telecom.state import Bill, PhoneLine, TelecomCustomer
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError

GIGABYTE_PRICE = 250
TETHERING_PRICE = 500
PAPER_PRICE = 200


def verify_customer(db: Database, phone: str, pin: str) -> Written:
    """Find and verify a customer by phone number (555-123-4567, however its digits are set off) and PIN."""
    digits = _digits(phone)
    for user in db.rows("customers"):
        if user.pin == pin.strip() and _digits(user.phone) == digits:
            found: Json = {"customer_id": user.customer_id, "name": user.name, "line_id": user.line_id}
            return Written(db, found, user.customer_id)
    raise ToolError("No customer has this number and PIN.")


def _digits(phone: str) -> str:
    """The digits of a phone number, without the country's.

    >>> [_digits(phone) for phone in ("555-517-5188", "(555) 517 5188", "+1 555.517.5188", "0015555175188")]
    ['5555175188', '5555175188', '5555175188', '5555175188']
    """
    digits = "".join(sign for sign in phone if sign in "0123456789").lstrip("0")
    return digits[1:] if len(digits) == 11 else digits


def get_line(db: Database, line_id: str) -> Json:
    """A line, by its id or its phone number: plan, status, contract, data used and allowed (MB), services, whether it is abroad."""
    if line_id in db.tables["lines"]:
        return plain(db.get("lines", line_id))
    digits = _digits(line_id)
    named = next((user for user in db.rows("customers") if _digits(user.phone) == digits), None)
    return plain(db.get("lines", named.line_id if named else line_id))


def list_plans(db: Database) -> Json:
    """All plans with gigabytes and price per month."""
    return [{**plain(plan), "price": dollars(plan.price)} for plan in db.rows("plans")]


def get_bills(db: Database, customer_id: str) -> Json:
    """A customer's bills."""
    db.get("customers", customer_id)
    own = [bill for bill in db.rows("bills") if bill.customer_id == customer_id]
    return [{**plain(bill), "amount": dollars(bill.amount)} for bill in own]


def send_payment_request(db: Database, bill_id: str) -> Written:
    """Ask the customer, on the phone's screen, to pay a bill."""
    bill: Bill = db.get("bills", bill_id)
    if bill.status not in ("open", "overdue"):
        raise ToolError(f"The bill is {bill.status}.")
    return Written(
        db.update("bills", bill_id, status="requested"), {"bill_id": bill_id, "asked": dollars(bill.amount)}
    )


def resume_line(db: Database, line_id: str) -> Written:
    """Make a suspended line active."""
    status = _line(db, line_id).status
    if status != "suspended":
        raise ToolError(f"The line is {status}.")
    return Written(db.update("lines", line_id, status="active"), {"line_id": line_id, "status": "active"})


def close_line(db: Database, line_id: str) -> Written:
    """Close a line for good, and with it its contract."""
    if _line(db, line_id).status == "closed":
        raise ToolError("The line is closed already.")
    return Written(db.update("lines", line_id, status="closed"), {"line_id": line_id, "status": "closed"})


def add_data(db: Database, line_id: str, gigabytes: int) -> Written:
    """Add gigabytes for this month, $2.50 each, to be billed."""
    line = _line(db, line_id)
    if not 0 < gigabytes <= 50:
        raise ToolError("One to fifty gigabytes.")
    cost = gigabytes * GIGABYTE_PRICE
    db = db.update("lines", line_id, limit=line.limit + 1000 * gigabytes)
    return Written(_charged(db, line.customer_id, cost), {"line_id": line_id, "charged": dollars(cost)})


def change_plan(db: Database, line_id: str, plan_id: str) -> Written:
    """Move a line to another plan; the allowance is the new plan's at once."""
    line, plan = _line(db, line_id), db.get("plans", plan_id)
    if line.plan_id == plan_id:
        raise ToolError("The line has this plan already.")
    db = db.update("lines", line_id, plan_id=plan_id, limit=1000 * plan.gigabytes)
    return Written(db, {"line_id": line_id, "plan": plan_id, "price": dollars(plan.price)})


def set_roaming(db: Database, line_id: str, enabled: bool) -> Written:
    """Allow or forbid a line to be used abroad."""
    return Written(db.update("lines", line_id, roaming=enabled), {"line_id": line_id, "roaming": enabled})


def set_call_barring(db: Database, line_id: str, barred: bool) -> Written:
    """Bar a line's incoming calls, or let them through."""
    return Written(db.update("lines", line_id, barred=barred), {"line_id": line_id, "barred": barred})


def set_tethering(db: Database, line_id: str, enabled: bool) -> Written:
    """Allow or forbid other devices to use a line's data. To allow it costs $5.00 once."""
    line = _line(db, line_id)
    cost = TETHERING_PRICE if enabled and not line.tethering else 0
    db = db.update("lines", line_id, tethering=enabled)
    return Written(_charged(db, line.customer_id, cost), {"line_id": line_id, "charged": dollars(cost)})


def set_premium_block(db: Database, line_id: str, blocked: bool) -> Written:
    """Block paid services and numbers on a line, or allow them."""
    return Written(db.update("lines", line_id, premium=not blocked), {"line_id": line_id, "blocked": blocked})


def set_billing(db: Database, customer_id: str, mode: Literal["email", "paper"]) -> Written:
    """How a customer gets the bills. Paper costs $2.00 per month."""
    user: TelecomCustomer = db.get("customers", customer_id)
    if user.billing == mode:
        raise ToolError(f"The bills come by {mode} already.")
    cost = PAPER_PRICE if mode == "paper" else 0
    return Written(
        db.update("customers", customer_id, billing=mode), {"billing": mode, "price": dollars(cost)}
    )


def _charged(db: Database, customer_id: str, cost: int) -> Database:
    """With an amount on the bill of what is extra."""
    if not cost:
        return db
    bill_id = f"extra-{customer_id}"
    old: Bill | None = db.find("bills", bill_id)
    return db.put("bills", bill_id, Bill(bill_id, customer_id, cost + (old.amount if old else 0), "open"))


Reason = Literal[
    "contract_ended", "unpaid", "data_limit", "not_owner", "suspended", "contract_running", "no_discount"
]


def record_refusal(db: Database, line_id: str, reason: Reason) -> Written:
    """Put on record that a request about a line was refused, and why."""
    _line(db, line_id)
    return recorded_refusal(db, line_id, reason)


def transfer_to_human(db: Database, reason: Literal["sim_locked", "stolen_phone", "no_remedy"]) -> Written:
    """Hand the customer over to a person. Ends the conversation."""
    return recorded_transfer(db, reason)


def _line(db: Database, line_id: str) -> PhoneLine:
    return db.get("lines", line_id)


def _of(table: str, key: str) -> Callable[..., str | None]:
    """Return what finds the customer of a row that a call names."""
    return lambda db, **given: getattr(db.find(table, given[key]), "customer_id", None)


ACTS = (
    act(verify_customer, "identify"), *map(act, (get_line, list_plans, get_bills)), act(send_payment_request, "note", _of("bills", "bill_id")),
    *(act(one, "write", _of("lines", "line_id")) for one in (
        resume_line, close_line, add_data, change_plan, set_roaming, set_call_barring, set_tethering, set_premium_block,
    )),
    act(set_billing, "write", _of("customers", "customer_id")), act(record_refusal, "note"), act(transfer_to_human, "end"),
)  # fmt: skip
