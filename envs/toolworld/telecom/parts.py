"""Parts of the operator's stories: the customer, a line and how it is called, a phone in somebody's hands."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Called, ServiceDesk
from turnwise.envs.toolworld.story import PlanStep, call, verified
from turnwise.envs.toolworld.telecom.device import DEEDS
from turnwise.envs.toolworld.telecom.state import Bill, PhoneLine, TelecomCustomer

_ASKED = {deed.name: deed.asked for deed in DEEDS}


def enter(draft: StoryDraft) -> bool:
    customer: TelecomCustomer = draft.rng.choice(draft.db.rows("customers"))
    draft.customer = customer.customer_id
    draft.facts["phone"] = f"My number is {customer.phone}."
    draft.facts["pin"] = f"The PIN is {customer.pin}."
    draft.facts["name"] = f"My name is {customer.name}."
    draft.facts["abroad"] = "I am at home, not abroad."
    return True


def me(draft: StoryDraft) -> TelecomCustomer:
    return draft.db.get("customers", draft.customer)


def my_line(draft: StoryDraft) -> PhoneLine:
    return draft.db.get("lines", me(draft).line_id)


def my_bills(draft: StoryDraft, *status: str) -> list[Bill]:
    return [b for b in draft.db.rows("bills") if b.customer_id == draft.customer and b.status in status]


def lines(draft: StoryDraft, own: bool) -> list[PhoneLine]:
    """The customer's line, or those of others; none that is closed."""
    rows: list[PhoneLine] = list(draft.db.rows("lines"))
    return [row for row in rows if (row.customer_id == draft.customer) is own and row.status != "closed"]


def called(draft: StoryDraft, line: PhoneLine) -> Called:
    """The customer's own line as theirs or by its number; another one by its number."""
    phone = draft.db.get("customers", line.customer_id).phone
    if line.customer_id == draft.customer:
        return Called("my line" if draft.rng.random() < 0.6 else f"the line {phone}")
    whose = draft.say("whose line")
    name = f"{whose if draft.rng.random() < 0.4 else 'the'} line {phone}"
    return Called(name, (call("get_line", line_id=phone),))


def guide(deed: str) -> PlanStep:
    return PlanStep("guide", _ASKED[deed], deed)


def look_at_bills(draft: StoryDraft) -> PlanStep:
    return call("get_bills", customer_id=draft.customer)


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    customer = me(draft)
    return (
        *verified(customer, "verify_customer", phone="What is your phone number?", pin="What is your PIN?"),
        call("get_line", line_id=customer.line_id),
    )


DESK = ServiceDesk(
    _verify, lambda wish, rule: call("record_refusal", line_id=wish.subject, reason=rule), lambda wish: ()
)
