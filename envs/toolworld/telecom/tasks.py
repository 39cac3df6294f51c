"""What the operator's customers want, and what is wrong with their phones."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.telecom import language
from turnwise.envs.toolworld.telecom.actions import ACTS, GIGABYTE_PRICE
from turnwise.envs.toolworld.telecom.device import DEEDS
from turnwise.envs.toolworld.telecom.rules import POLICY, rules
from turnwise.envs.toolworld.telecom.state import Bill, PhoneLine, PhonePlan, TelecomCustomer, build, works

ON_PHONE = {  # fault → (fields of the phone, deeds that repair it)
    "airplane": ({"airplane": True}, ("airplane_mode_off",)),
    "data": ({"data": False}, ("mobile_data_on",)),
    "saver": ({"saver": True}, ("data_saver_off",)),
    "sim": ({"sim": "missing"}, ("reseat_sim",)),
    "apn": ({"apn": "wrong"}, ("reset_apn", "restart")),
}
ON_LINE = ("suspended", "used_up", "abroad")
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
}


def _enter(draft: StoryDraft) -> bool:
    user: TelecomCustomer = draft.rng.choice(draft.db.rows("customers"))
    draft.customer = user.customer_id
    draft.facts["phone"] = f"My number is {user.phone}."
    draft.facts["pin"] = f"The PIN is {user.pin}."
    return True


def _user(draft: StoryDraft) -> TelecomCustomer:
    return draft.db.get("customers", draft.customer)


def _line(draft: StoryDraft) -> PhoneLine:
    return draft.db.get("lines", _user(draft).line_id)


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    user = _user(draft)
    return (
        ask("What is your phone number?", "phone"),
        ask("What is your PIN?", "pin"),
        call("verify_customer", phone=user.phone, pin=user.pin),
        call("get_line", line_id=user.line_id),
    )


def _guide(deed: str) -> PlanStep:
    return PlanStep("guide", WAYS[deed], deed)


def _confirm(text: str) -> PlanStep:
    return PlanStep("confirm", f"{text} Shall I proceed?")


def _trouble(draft: StoryDraft) -> Stage | None:
    """Mobile data does not work, for one to four reasons."""
    if draft.used:
        return None
    draft.used.add("trouble")
    faults = draft.rng.sample((*ON_PHONE, *ON_LINE), draft.rng.randint(1, 4))
    steps: list[PlanStep] = [*_verify(draft), _guide("look_at_status")]
    for fault in sorted(faults):
        steps += _phone_fault(draft, fault) if fault in ON_PHONE else _line_fault(draft, fault)
    assert not works(draft.db, draft.customer)
    say = draft.words(
        "My mobile data does not work.",
        "I have no internet on my phone.",
        "Nothing loads when I am not at home.",
    )
    return Stage(
        say,
        (*steps, tell("It is repaired. Please try it again.")),
        check="works",
        wants=("resume_line", "add_data", "set_roaming"),
    )


def _phone_fault(draft: StoryDraft, fault: str) -> list[PlanStep]:
    fields, deeds = ON_PHONE[fault]
    draft.override("phones", draft.customer, **fields)
    return [_guide(deed) for deed in deeds]


def _line_fault(draft: StoryDraft, fault: str) -> list[PlanStep]:
    line = _line(draft)
    if fault == "abroad":
        draft.override("lines", line.line_id, abroad=True, roaming=False)
        enable = call("set_roaming", line_id=line.line_id, enabled=True)
        return [_confirm("I will allow roaming on your line, at no cost."), enable, _guide("data_roaming_on")]
    if fault == "used_up":
        draft.override("lines", line.line_id, used=line.limit)
        gigabytes = draft.rng.randint(1, 6)
        draft.facts["gigabytes"] = f"I would like {gigabytes} more gigabytes."
        add = call("add_data", line_id=line.line_id, gigabytes=gigabytes)
        return [
            ask("How many gigabytes do you want?", "gigabytes"),
            _confirm(f"I will add {gigabytes} GB to your line for {dollars(gigabytes * GIGABYTE_PRICE)}."),
            add,
        ]
    draft.override("lines", line.line_id, status="suspended")
    resume = [_confirm("I will resume your line."), call("resume_line", line_id=line.line_id)]
    if draft.rng.random() < 0.6:
        bill: Bill = draft.rng.choice([b for b in draft.db.rows("bills") if b.customer_id == draft.customer])
        draft.override("bills", bill.bill_id, status="overdue")
        request = call("send_payment_request", bill_id=bill.bill_id)
        look = call("get_bills", customer_id=draft.customer)
        return [look, request, _guide("pay_bill"), *resume]
    return [call("get_bills", customer_id=draft.customer), *resume]


def _plan(draft: StoryDraft) -> Stage | None:
    """The cheapest plan with enough data; at times more than that after all."""
    line = _line(draft)
    if "plan" in draft.used or line.status != "active":
        return None
    draft.used.add("plan")
    plans: list[PhonePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [plan for plan in plans if plan.plan_id != line.plan_id and 1000 * plan.gigabytes > line.used]
    if len(able) < 2:
        return None
    twisted = draft.changes_mind
    first, last = able[0], able[-1]
    new = last if twisted else draft.rng.choice(able)
    first = first if twisted else new
    say = draft.words(
        f"I need a plan with {first.gigabytes} GB. Change mine, and tell me what it costs per month.",
        f"Please put me on the plan with {first.gigabytes} GB. What is the price per month?",
    )
    before = (
        (
            PlanStep(
                "propose",
                f"I will change your plan to {first.plan_id}, {dollars(first.price)} per month. Shall I proceed?",
            ),
        )
        if twisted
        else ()
    )
    plan = (
        *_verify(draft), call("list_plans"), *before,
        _confirm(f"I will change your plan to {new.plan_id}, {dollars(new.price)} per month."),
        call("change_plan", line_id=line.line_id, plan_id=new.plan_id), tell(f"Done, it costs {dollars(new.price)}."),
    )  # fmt: skip
    twist = f"Hm, no: the one with {new.gigabytes} GB, please." if twisted else ""
    fact = Fact("money", str(new.price))
    return Stage(say, plan, (fact,), again="What does my new plan cost per month?", twist=twist)


def _data(draft: StoryDraft) -> Stage | None:
    if "data" in draft.used or "trouble" in draft.used:
        return None
    draft.used.add("data")
    gigabytes, line = draft.rng.randint(1, 10), _line(draft)
    cost = gigabytes * GIGABYTE_PRICE
    say = draft.words(f"Add {gigabytes} GB to my line.", f"I want {gigabytes} more gigabytes this month.")
    plan = (
        *_verify(draft), _confirm(f"I will add {gigabytes} GB for {dollars(cost)}."),
        call("add_data", line_id=line.line_id, gigabytes=gigabytes), tell(f"Done, it costs {dollars(cost)}."),
    )  # fmt: skip
    return Stage(
        f"{say} What do I pay for that?", plan, (Fact("money", str(cost)),), again="What do I pay for that?"
    )


def _owed(draft: StoryDraft) -> Stage | None:
    if "owed" in draft.used or "trouble" in draft.used:
        return None
    draft.used.add("owed")
    own: list[Bill] = [b for b in draft.db.rows("bills") if b.customer_id == draft.customer]
    total = sum(bill.amount for bill in own if bill.status != "paid")
    say = draft.words("How much do I owe you in total?", "What is the sum of my unpaid bills?")
    plan = (
        *_verify(draft),
        call("get_bills", customer_id=draft.customer),
        tell(f"The total is {dollars(total)}."),
    )
    return Stage(say, plan, (Fact("money", str(total)),), again="How much do I owe in total?")


def _travel(draft: StoryDraft) -> Stage | None:
    line = _line(draft)
    if line.roaming or "travel" in draft.used or "trouble" in draft.used:
        return None
    draft.used.add("travel")
    say = draft.words(
        "I will travel abroad. Allow roaming on my line.", "Please switch roaming on for my trip abroad."
    )
    plan = (
        *_verify(draft), _confirm("I will allow roaming on your line, at no cost."),
        call("set_roaming", line_id=line.line_id, enabled=True), tell("Done, roaming is allowed."),
    )  # fmt: skip
    return Stage(say, plan)


def _refused(draft: StoryDraft, say: str, line_id: str, reason: str, *look: PlanStep) -> Stage:
    plan = (
        *_verify(draft), *look, call("record_refusal", line_id=line_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words("But I really need it. Do it anyway.", "Others do that for their customers.")
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.6 else "")


def _ended(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    line_id = _line(draft).line_id
    draft.override("lines", line_id, status="suspended", contract="ended")
    return _refused(draft, "My line was suspended. Resume it.", line_id, "contract_ended")


def _suspended(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    line = _line(draft)
    draft.override("lines", line.line_id, status="suspended")
    other = draft.rng.choice([plan for plan in draft.db.rows("plans") if plan.plan_id != line.plan_id])
    return _refused(draft, f"Change my plan to the one with {other.gigabytes} GB.", line.line_id, "suspended")


def _too_much(draft: StoryDraft) -> Stage | None:
    if "data" in draft.used:
        return None
    draft.used.add("data")
    return _refused(
        draft, f"Add {draft.rng.randint(11, 50)} GB to my line.", _line(draft).line_id, "data_limit"
    )


def _foreign(draft: StoryDraft) -> Stage | None:
    other = draft.free([c for c in draft.db.rows("customers") if c != _user(draft)], lambda c: c.customer_id)
    if other is None:
        return None
    say = f"Allow roaming on the line {other.line_id} too. It is my brother's, and he asked me to call you."
    return _refused(draft, say, other.line_id, "not_owner")


def _locked(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    draft.override("phones", draft.customer, sim="locked")
    plan = (*_verify(draft), _guide("look_at_status"), call("transfer_to_human", reason="sim_locked"))
    return Stage(draft.words("I have no internet on my phone.", "My mobile data does not work."), plan)


DOMAIN = Domain(
    name="telecom",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={"trouble": _trouble, "plan": _plan, "data": _data, "owed": _owed, "travel": _travel},
    traps={
        "ended": _ended,
        "suspended": _suspended,
        "data_limit": _too_much,
        "not_owner": _foreign,
        "locked": _locked,
    },
    enter=_enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    tells_cost=True,
    rules=rules,
    deeds=DEEDS,
    checks={"works": works},
)
