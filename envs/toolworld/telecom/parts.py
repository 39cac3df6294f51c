"""What the operator's stories are put together from: the customer, verification, guidance, a yes, a refusal."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.telecom.state import Bill, PhoneLine, TelecomCustomer

WAYS = {
    "look_at_status": "Please look at the status of your phone: what does it show?",
    "airplane_mode_off": "Please turn airplane mode off.",
    "mobile_data_on": "Please turn mobile data on.",
    "data_roaming_on": "Please turn data roaming on.",
    "data_saver_off": "Please turn the data saver off.",
    "reseat_sim": "Please take the SIM card out and put it in again.",
    "reset_apn": "Please reset the APN settings.",
    "restart": "Please restart the phone.",
    "pay_bill": "I have sent you a payment request. Please pay the bill now.",
    "data_limit_off": "Please remove the data limit in the settings of the phone.",
    "operator_automatic": "Please set the network operator to automatic.",
    "wifi_off": "Please turn Wi-Fi off.",
    "call_forwarding_off": "Please turn call forwarding off.",
    "do_not_disturb_off": "Please turn do not disturb off.",
    "unblock_numbers": "Please clear the block list.",
    "wifi_calling_off": "Please turn Wi-Fi calling off.",
    "allow_messages": "Please give the messaging app its permission.",
    "reset_message_address": "Please reset the MMS settings.",
    "network_mode_automatic": "Please set the preferred network to automatic.",
    "vpn_off": "Please turn the VPN off.",
    "power_saving_off": "Please turn power saving off.",
    "hotspot_on": "Please turn the hotspot on.",
}


def enter(draft: StoryDraft) -> bool:
    customer: TelecomCustomer = draft.rng.choice(draft.db.rows("customers"))
    draft.customer = customer.customer_id
    draft.facts["phone"] = f"My number is {customer.phone}."
    draft.facts["pin"] = f"The PIN is {customer.pin}."
    draft.facts["name"] = f"My name is {customer.name}."
    draft.facts["abroad"] = "I am at home, not abroad."
    return True


def user(draft: StoryDraft) -> TelecomCustomer:
    return draft.db.get("customers", draft.customer)


def line(draft: StoryDraft) -> PhoneLine:
    return draft.db.get("lines", user(draft).line_id)


def verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    customer = user(draft)
    return (
        ask("What is your phone number?", "phone"),
        ask("What is your PIN?", "pin"),
        call("verify_customer", phone=customer.phone, pin=customer.pin),
        call("get_line", line_id=customer.line_id),
    )


def guide(deed: str) -> PlanStep:
    return PlanStep("guide", WAYS[deed], deed)


def confirm(text: str) -> PlanStep:
    return PlanStep("confirm", f"{text} Shall I proceed?")


def suspended(draft: StoryDraft, *, overdue: bool) -> list[PlanStep]:
    """Suspend the line, with a running contract; what gets it going again. ``overdue``: a bill must be paid first."""
    own = line(draft)
    draft.override("lines", own.line_id, status="suspended")
    look = call("get_bills", customer_id=draft.customer)
    resume = [confirm("I will resume your line, at no cost."), call("resume_line", line_id=own.line_id)]
    if not overdue:
        return [look, *resume]
    bill = overdue_bill(draft)
    return [look, call("send_payment_request", bill_id=bill.bill_id), guide("pay_bill"), *resume]


def overdue_bill(draft: StoryDraft) -> Bill:
    """One of the customer's bills, which becomes overdue."""
    bills: list[Bill] = [b for b in draft.db.rows("bills") if b.customer_id == draft.customer]
    bill = draft.rng.choice(bills)
    draft.override("bills", bill.bill_id, status="overdue")
    return bill


def refused(
    draft: StoryDraft, say: str, line_id: str, reason: str, *look: PlanStep, wants: tuple[str, ...] = ()
) -> Stage:
    """A request that is refused on record; ``wants`` is what would grant it."""
    plan = (
        *verify(draft), *look, call("record_refusal", line_id=line_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "But I really need it. Do it anyway.", "Others do that for their customers.", "Is there nobody who could allow it?",
        "I have been a customer for years. Make it possible.", "Please try, it is important to me.", "That cannot be your last word.",
    )  # fmt: skip
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.6 else "", wants=wants)
