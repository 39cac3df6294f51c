"""Changes that the operator can make for its customers: how each is asked for, offered and reported, and when
it is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from turnwise.envs.toolworld.alternatives import limit_for
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import (
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
MONTHLY = ("What does that cost per month?", "What will I pay each month?", "How much is that a month?", "What does it come to per month?")  # fmt: skip
PRICE = (
    "What do I pay for that?",
    "How much is it?",
    "What's the price of that?",
    "What would I owe you for it?",
)
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
        new, name = able[0], draft.words(*_ENOUGH)
    elif way < 0.5:
        limit = limit_for(draft, new.price, within=True)
        name = draft.words(*(text.format(limit=dollars(limit)) for text in _FOR_PRICE))
        if any(new.price < plan.price <= limit for plan in plans):
            return None
    fill, reads = {"plan": name}, (call("list_plans"),)
    return _wish(operation, draft, line, {"plan_id": new.plan_id}, fill=fill, amount=new.price, reads=reads)


_ENOUGH = (
    "the cheapest plan that still covers the data that I have used this month", "the cheapest plan with more data than I used this month",
    "whatever plan costs least and is enough for my use this month", "the cheapest of the plans that give more data than I have used this month",
    "the least expensive plan that would have been enough this month", "the plan with the lowest price that covers my data of this month",
)  # fmt: skip
_FOR_PRICE = (
    "the plan with most data for at most {limit} per month", "the biggest plan that costs no more than {limit} per month",
    "the largest plan that is to be had for {limit} a month or less", "the plan that gives most data for {limit} per month at the most",
    "the plan with the largest allowance below or at {limit} a month", "whatever plan has most data and a monthly price of {limit} at most",
)  # fmt: skip


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
    verb = (
        draft.words("allow", "enable", "activate")
        if enabled
        else draft.words("forbid", "disable", "deactivate")
    )
    fill = {
        "verb": verb,
        "does": "allow" if enabled else "forbid",
        "done": "allowed" if enabled else "forbidden",
    }
    why = draft.words(*_TRAVELS[enabled]) if draft.rng.random() < 0.5 else ""
    return _wish(operation, draft, line, {"enabled": enabled}, fill=fill, said=why)


_TRAVELS = {
    True: ("A trip abroad is ahead.", "Next week somebody travels abroad with it.", "It goes on holiday to another country.", "The country is left soon."),
    False: ("The trip abroad is over.", "Nobody travels with it any more.", "The cost of it frightens me.", "The holidays have ended."),
}  # fmt: skip


def resuming(operation: Operation, draft: StoryDraft, line: PhoneLine, *, pays: bool = True) -> WishedChange:
    """A suspended line is resumed; after an overdue bill is paid, unless they say that they pay nothing."""
    due = my_bills(draft, "overdue") if pays else []
    before = [
        step
        for bill in due
        for step in (call("send_payment_request", bill_id=bill.bill_id), guide("pay_bill"))
    ]
    said = "" if pays else draft.words(*_UNWILLING)
    reads = (look_at_bills(draft),)
    return _wish(operation, draft, line, said=said, before=tuple(before), reads=reads)


def _resume(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    return resuming(operation, draft, line, pays=draft.rng.random() < 0.6)


_UNWILLING = (
    "I will not pay any bill for that, so do not ask me to.", "But I pay nothing before that.", "You get no money from me for it, though.",
    "And I refuse to pay any bills for it.",
)  # fmt: skip


def _discount(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    share = draft.rng.choice((10, 15, 20, 25, 30, 50))
    return _wish(operation, draft, line, fill={"share": f"{share} percent"})


def _block(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    return _wish(operation, draft, line, {"blocked": True})


def _unbar(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    return _wish(operation, draft, line, {"barred": False})


def _tether(operation: Operation, draft: StoryDraft, line: PhoneLine) -> WishedChange:
    return _wish(operation, draft, line, {"enabled": True}, amount=TETHERING_PRICE)


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

PLAN = Operation(
    "plan", "change_plan",
    ("move {it} to {plan}", "change {it} to {plan}", "switch {it} to {plan}", "put {it} on {plan}", "give {it} {plan}", "let {it} have {plan}"),
    "change your plan to {plan_id}, {money} per month", "your plan is changed to {plan_id}, {money} per month.",
    {**_RULES, "suspended": _of_line(lambda db, line, given: line.status != "suspended")},
    lines, _plan, DESK, MONTHLY, "What does my new plan cost per month?", rethink=_other_plan, topics=(ALLOWANCE,),
    second=("Hm, no: {plan}, please.", "I have thought again: make it {plan}.", "Wait, rather {plan}.", "Actually, {plan} would suit me better."),
    prepare={"suspended": _so(status="suspended")},
)  # fmt: skip
DATA = Operation(
    "data", "add_data",
    ("add {many} to {it}", "put {many} more on {it}", "book {many} more for {it}", "give {it} {many} more", "load {many} more onto {it}", "top {it} up by {many}"),
    "add {many} to your line for {money}", "{many} are added to your line for {money}.",
    {**_RULES, "data_limit": lambda db, customer, given: given["gigabytes"] <= MOST},
    lines, _data, DESK, PRICE, "What do I pay for that?", topics=(ALLOWANCE, CHARGES),
)  # fmt: skip
ROAMING = Operation(
    "roaming", "set_roaming",
    ("{verb} roaming on {it}", "{verb} roaming for {it}", "{verb} the roaming of {it}", "{verb} on {it} the roaming service", "{verb} the use of {it} abroad, which is roaming",
     "{verb} roaming where {it} is concerned"),
    "{does} roaming on your line, at no cost", "roaming is {done} on your line.", _RULES, lines, _roaming, DESK, topics=("travel",),
)  # fmt: skip
RESUME = Operation(
    "resume", "resume_line",
    ("resume {it}", "reactivate {it}", "lift the suspension of {it}", "take the suspension off {it}", "end the suspension of {it}", "restore {it}, which is suspended"),
    "resume your line, at no cost", "your line is active again.",
    {**_RULES, "contract_ended": _of_line(lambda db, line, given: line.contract != "ended"), "unpaid": _of_line(_is_settled)},
    lines, _resume, DESK, topics=("status", CHARGES), read_for=("unpaid",),
    prepare={"": suspended, "contract_ended": partial(suspended, contract="ended"), "unpaid": partial(suspended, due=1)},
)  # fmt: skip
CLOSE = Operation(
    "close", "close_line",
    ("close {it} for good", "end the contract of {it} today", "terminate the contract for {it}", "let me out of the contract of {it} now", "cancel the contract of {it}", "shut {it} down for good"),
    "close your line for good, at no cost", "your line is closed.",
    {**_RULES, "contract_running": _of_line(lambda db, line, given: line.contract != "running")},
    lines, _wish, DESK, topics=("contract",), prepare={"": _over},
)  # fmt: skip
BLOCK = Operation(
    "premium", "set_premium_block",
    ("block paid services on {it}", "bar premium services on {it}", "stop all paid services for {it}", "disable premium services on {it}", "block paid numbers for {it}", "lock {it} for paid services"),
    "block premium services on your line, at no cost", "paid services are blocked on your line.", _RULES, lines, _block, DESK, topics=("services",),
)  # fmt: skip
UNBAR = Operation(
    "unbar", "set_call_barring",
    ("lift the call barring of {it}", "remove the call barring from {it}", "end the barring of calls on {it}", "allow incoming calls on {it} again", "take the call barring off {it}", "unbar the incoming calls of {it}"),
    "lift the call barring of your line, at no cost", "call barring is lifted on your line.", _RULES, lines, _unbar, DESK, topics=("calls",),
    prepare={"": _so(barred=True)},
)  # fmt: skip
TETHER = Operation(
    "tethering", "set_tethering",
    ("allow tethering on {it}", "enable tethering for {it}", "activate tethering on {it}", "permit other devices to use the data of {it}", "switch tethering on for {it}", "add tethering to {it}"),
    "allow tethering on your line for {money}", "tethering is allowed on your line for {money}.", _RULES, lines, _tether, DESK, PRICE, "What do I pay for that?",
    topics=("sharing", CHARGES), prepare={"": _so(tethering=False)},
)  # fmt: skip
PAPER = Operation(
    "paper", "set_billing",
    ("send me my bills on paper", "switch my bills to paper", "let me have my bills on paper", "change my billing to paper", "send my bills by post", "get my bills to me by post"),
    "switch your bills to paper, {money} per month", "your bills are switched to paper for {money} per month.", {}, lines, _paper, DESK,
    MONTHLY, "What do paper bills cost per month?", topics=("paper",),
)  # fmt: skip
DISCOUNT = Operation(
    "discount", "",
    ("give me {share} off the plan of {it}", "take {share} off the monthly price of {it}", "make the plan of {it} {share} cheaper", "grant me a discount of {share} on {it}"),
    "", "", {**_RULES, "no_discount": never}, lines, _discount, DESK, topics=("discount",),
)  # fmt: skip
OPERATIONS = (PLAN, DATA, ROAMING, RESUME, CLOSE, BLOCK, UNBAR, TETHER, PAPER, DISCOUNT)
