"""Changes that the operator can make for its customers: what each is about, and when it is allowed (operations.yaml has the
words)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from turnwise.envs.toolworld.alternatives import limit_for
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import (
    ChangeTable,
    Kept,
    Operation,
    Patch,
    WishedChange,
    about,
    never,
    owned,
    wished,
)
from turnwise.envs.toolworld.story import call
from turnwise.envs.toolworld.telecom.actions import GIGABYTE_PRICE, PAPER_PRICE, TETHERING_PRICE
from turnwise.envs.toolworld.telecom.parts import DESK, called, guide, lines, look_at_bills, my_bills
from turnwise.envs.toolworld.telecom.state import PhoneLine, PhonePlan
from turnwise.tasks.core import Json

SECTIONS = {
    "not_owner": "1.2", "contract_ended": "5.3", "unpaid": "5.3", "suspended": "3.2", "data_limit": "3.3", "contract_running": "6.1",
    "no_discount": "6.2",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
MOST = 10  # gigabytes that are added at once
ALLOWANCE, CHARGES = "allowance", "charges"
"""Topics of requests: the data of a month, and whatever is owed."""


# --- the policy's rules ------------------------------------------------------------------------------


def _is_settled(db: Database, line: PhoneLine, given: Mapping[str, Any]) -> bool:
    own = (bill for bill in db.rows("bills") if bill.customer_id == line.customer_id)
    return all(bill.status not in ("overdue", "requested") for bill in own)


_of_line = partial(about, "lines", "line_id")
_RULES: Mapping[str, Kept] = {"not_owner": owned("lines", "line_id", "customer_id")}


# --- wishes ------------------------------------------------------------------------------------------


def _wish(
    operation: Operation, draft: StoryDraft, line: PhoneLine, given: Mapping[str, Json] = {}, **more: Any
) -> WishedChange:
    arguments = {"line_id": line.line_id, **given}
    return wished(operation, line.line_id, arguments, called(draft, line), **more)


def _plan(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange | None:
    """A plan with enough data: by its size, or the best one for what is used or for a price."""
    plans: list[PhonePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [plan for plan in plans if 1000 * plan.gigabytes > line.used]
    if not able:
        return None
    new, way = draft.rng.choice(able), draft.rng.random()
    name = f"the plan with {new.gigabytes} GB"
    if way < 0.25:
        new, name = able[0], draft.say("plan enough")
    elif way < 0.5:
        limit = limit_for(draft, new.price, within=True)
        name = draft.say("plan for price", limit=dollars(limit))
        if any(new.price < plan.price <= limit for plan in plans):
            return None
    fill, reads = {"plan": name}, (call("list_plans"),)
    return _wish(operation, draft, line, {"plan_id": new.plan_id}, fill=fill, amount=new.price, reads=reads)


def _other_plan(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    """Another plan, by its size: that is the last word, whatever the first one was called."""
    other = _plan(wish.operation, draft, draft.db.get("lines", wish.subject))
    sized = other is not None and other.fill["plan"].endswith("GB") and other.arguments != wish.arguments
    return other if sized else None


def _data(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    most = MOST if draft.rng.random() < 0.6 else 5 * MOST
    return adding(operation, draft, line, draft.rng.randint(most // 8, most))


def adding(operation: Operation, draft: StoryDraft, line: PhoneLine, gigabytes: int) -> WishedChange:
    fill, cost = {"many": f"{gigabytes} GB"}, gigabytes * GIGABYTE_PRICE
    return _wish(operation, draft, line, {"gigabytes": gigabytes}, fill=fill, amount=cost)


def _roaming(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    """Roaming is allowed before a journey, or forbidden after it; at times with the reason."""
    enabled = draft.rng.random() < 0.5
    does = "allow" if enabled else "forbid"
    fill = {"verb": draft.say(does), "does": does, "done": "allowed" if enabled else "forbidden"}
    why = draft.say(f"{does} roaming") if draft.rng.random() < 0.5 else ""
    return _wish(operation, draft, line, {"enabled": enabled}, fill=fill, said=why)


def resuming(operation: Operation, draft: StoryDraft, line: PhoneLine, *, pays: bool = True) -> WishedChange:
    """A suspended line is resumed; after an overdue bill is paid, unless they say that they pay nothing."""
    due = my_bills(draft, "overdue") if pays else []
    before = [
        step
        for bill in due
        for step in (call("send_payment_request", bill_id=bill.bill_id), guide("pay_bill"))
    ]
    said = "" if pays else draft.say("unwilling")
    reads = (look_at_bills(draft),)
    return _wish(operation, draft, line, said=said, before=tuple(before), reads=reads)


def _discount(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    share = draft.rng.choice((10, 15, 20, 25, 30, 50))
    return _wish(operation, draft, line, fill={"share": f"{share} percent"})


def _asking_for(amount: int = 0, **given: Json) -> Callable[[Operation, StoryDraft, PhoneLine], WishedChange]:
    """Return what wishes the same for each line."""
    return lambda operation, draft, line: _wish(operation, draft, line, given, amount=amount)


def _paper(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    given: Mapping[str, Json] = {"customer_id": line.customer_id, "mode": "paper"}
    return wished(operation, line.line_id, given, called(draft, line), amount=PAPER_PRICE)


# --- the worlds that they need -----------------------------------------------------------------------


def _so(**fields: Any) -> Any:
    """A line that differs in some fields."""
    return lambda draft, line: [("lines", line.line_id, fields)]


def overdue(draft: StoryDraft) -> Patch:
    """One of the customer's bills becomes overdue."""
    return ("bills", draft.rng.choice(my_bills(draft, "open", "paid")).bill_id, {"status": "overdue"})


def suspended(
    draft: StoryDraft, line: PhoneLine, contract: str = "running", due: float = 0.4
) -> Sequence[Patch]:
    """A suspended line, with an overdue bill by a probability."""
    patches: list[Patch] = [("lines", line.line_id, {"status": "suspended", "contract": contract})]
    return [*patches, overdue(draft)] if draft.rng.random() < due else patches


def _over(draft: StoryDraft, line: PhoneLine) -> Sequence[Patch]:
    fields = {"status": draft.rng.choice(("active", "suspended")), "contract": "ended"}
    return [("lines", line.line_id, fields)]


# --- the changes -------------------------------------------------------------------------------------

_CHANGES = ChangeTable("turnwise.envs.toolworld.telecom", DESK)
PLAN = _CHANGES.operation(
    "plan", "change_plan", lines, _plan, {**_RULES, "suspended": _of_line(lambda db, line, given: line.status != "suspended")},
    rethink=_other_plan, topics=(ALLOWANCE,), prepare={"suspended": _so(status="suspended")},
)  # fmt: skip
DATA = _CHANGES.operation(
    "data", "add_data", lines, _data, {**_RULES, "data_limit": lambda db, customer, given: given["gigabytes"] <= MOST}, topics=(ALLOWANCE, CHARGES)
)  # fmt: skip
ROAMING = _CHANGES.operation("roaming", "set_roaming", lines, _roaming, _RULES, topics=("travel",))
RESUME = _CHANGES.operation(
    "resume", "resume_line", lines, lambda operation, draft, line: resuming(operation, draft, line, pays=draft.rng.random() < 0.6),
    {**_RULES, "contract_ended": _of_line(lambda db, line, given: line.contract != "ended"), "unpaid": _of_line(_is_settled)},
    topics=("status", CHARGES), read_for=("unpaid",),
    prepare={"": suspended, "contract_ended": partial(suspended, contract="ended"), "unpaid": partial(suspended, due=1)},
)  # fmt: skip
CLOSE = _CHANGES.operation(
    "close", "close_line", lines, _wish, {**_RULES, "contract_running": _of_line(lambda db, line, given: line.contract != "running")},
    topics=("contract",), prepare={"": _over},
)  # fmt: skip
BLOCK = _CHANGES.operation(
    "premium", "set_premium_block", lines, _asking_for(blocked=True), _RULES, topics=("services",)
)
UNBAR = _CHANGES.operation(
    "unbar",
    "set_call_barring",
    lines,
    _asking_for(barred=False),
    _RULES,
    topics=("calls",),
    prepare={"": _so(barred=True)},
)
TETHER = _CHANGES.operation(
    "tethering", "set_tethering", lines, _asking_for(TETHERING_PRICE, enabled=True), _RULES, topics=("sharing", CHARGES),
    prepare={"": _so(tethering=False)},
)  # fmt: skip
PAPER = _CHANGES.operation("paper", "set_billing", lines, _paper, {}, topics=("paper",))
DISCOUNT = _CHANGES.operation(
    "discount", "", lines, _discount, {**_RULES, "no_discount": never}, topics=("discount",)
)
OPERATIONS = (PLAN, DATA, ROAMING, RESUME, CLOSE, BLOCK, UNBAR, TETHER, PAPER, DISCOUNT)
