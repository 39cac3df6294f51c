"""What the operator's customers want of their account."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.telecom import language, traps, troubles, wishes
from turnwise.envs.toolworld.telecom.actions import ACTS, GIGABYTE_PRICE, PAPER_PRICE
from turnwise.envs.toolworld.telecom.device import DEEDS
from turnwise.envs.toolworld.telecom.hearing import PhoneDomain
from turnwise.envs.toolworld.telecom.parts import confirm, enter, guide, line, suspended, user, verify
from turnwise.envs.toolworld.telecom.policy import POLICY
from turnwise.envs.toolworld.telecom.rules import rules
from turnwise.envs.toolworld.telecom.state import Bill, PhonePlan, build, fast, rings, sends, shares, works


def _plan(draft: StoryDraft) -> Stage | None:
    """The cheapest plan with enough data; at times more than that after all."""
    own = line(draft)
    if draft.used & {"plan", "data"} or own.status != "active":
        return None
    draft.used.add("plan")
    plans: list[PhonePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [plan for plan in plans if plan.plan_id != own.plan_id and 1000 * plan.gigabytes > own.used]
    if len(able) < 2:
        return None
    twisted = draft.changes_mind
    first, last = able[0], able[-1]
    new = last if twisted else draft.rng.choice(able)
    first = first if twisted else new
    asks = wishes.asks_price(draft)
    say = wishes.plan(draft, first.gigabytes, asks=asks)
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
        *verify(draft), call("list_plans"), *before,
        confirm(f"I will change your plan to {new.plan_id}, {dollars(new.price)} per month."),
        call("change_plan", line_id=own.line_id, plan_id=new.plan_id), tell(f"Done, your plan is changed to {new.plan_id} for {dollars(new.price)} per month."),
    )  # fmt: skip
    other = draft.words(
        f"Hm, no: the one with {new.gigabytes} GB, please.", f"I have thought again: make it {new.gigabytes} GB.",
        f"Wait, rather the plan with {new.gigabytes} GB.", f"Actually, {new.gigabytes} GB would suit me better.",
    )  # fmt: skip
    twist = other if twisted else ""
    fact = Fact("money", str(new.price))
    tells, again = ((fact,), "What does my new plan cost per month?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, twist=twist, wants=("change_plan",))


def _data(draft: StoryDraft) -> Stage | None:
    if draft.used & {
        "data",
        "plan",
        "trouble",
    }:  # the order of a plan and of more data would decide what is left
        return None
    draft.used.add("data")
    gigabytes, own = draft.rng.randint(1, 10), line(draft)
    cost = gigabytes * GIGABYTE_PRICE
    asks = wishes.asks_price(draft)
    say = wishes.data(draft, gigabytes, asks=asks)
    plan = (
        *verify(draft), confirm(f"I will add {gigabytes} GB for {dollars(cost)}."),
        call("add_data", line_id=own.line_id, gigabytes=gigabytes), tell(f"Done, {gigabytes} GB are added to your line for {dollars(cost)}."),
    )  # fmt: skip
    tells, again = ((Fact("money", str(cost)),), "What do I pay for that?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, wants=("add_data",))


def _owed(draft: StoryDraft) -> Stage | None:
    if "owed" in draft.used or "trouble" in draft.used:
        return None
    draft.used.add("owed")
    own: list[Bill] = [b for b in draft.db.rows("bills") if b.customer_id == draft.customer]
    total = sum(bill.amount for bill in own if bill.status != "paid")
    say = draft.words(
        "How much do I owe you in total?",
        "What is the sum of my unpaid bills?",
        "What do all my open bills come to?",
        "I want to know the total that I still have to pay you.",
        "Add up what is unpaid on my account, please.",
        "How much money is outstanding on my account altogether?",
    )
    plan = (
        *verify(draft),
        call("get_bills", customer_id=draft.customer),
        tell(f"You owe {dollars(total)} in total."),
    )
    return Stage(say, plan, (Fact("money", str(total)),), again="How much do I owe in total?")


def _roaming(draft: StoryDraft) -> Stage | None:
    """It is allowed before a journey, or forbidden after it."""
    own = line(draft)
    if draft.used & {"travel", "trouble"}:
        return None
    draft.used.add("travel")
    enabled = not own.roaming
    which = draft.rng.choice(("my line", f"the line {user(draft).phone}"))
    offer = "allow roaming on" if enabled else "switch roaming off on"
    plan = (
        *verify(draft), confirm(f"I will {offer} your line, at no cost."),
        call("set_roaming", line_id=own.line_id, enabled=enabled), tell(f"Done, roaming is {'allowed' if enabled else 'off'} on your line."),
    )  # fmt: skip
    return Stage(wishes.roaming(draft, which, enabled=enabled), plan, wants=("set_roaming",))


def _resume(draft: StoryDraft) -> Stage | None:
    """A suspended line is resumed, after an overdue bill is paid where there is one."""
    if draft.used:
        return None
    draft.used.add("trouble")
    pays = draft.rng.random() < 0.6
    steps = suspended(draft, overdue=pays and draft.rng.random() < 0.6)
    plan = (*verify(draft), *steps, tell("Done, your line is active again."))
    return Stage(wishes.resume(draft, pays=pays), plan, wants=("resume_line",))


def _close(draft: StoryDraft) -> Stage | None:
    """A contract that has ended anyway lets its customer go."""
    if draft.used:
        return None
    draft.used |= {
        "contract",
        "plan",
        "data",
        "travel",
        "left",
        "premium",
        "discount",
    }  # all that needs a line
    own = line(draft)
    status = draft.rng.choice(("active", "suspended"))
    draft.override("lines", own.line_id, status=status, contract="ended")
    plan = (
        *verify(draft), confirm("Your contract has ended, so I will close your line for good, at no cost."),
        call("close_line", line_id=own.line_id), tell("Done, your line is closed."),
    )  # fmt: skip
    return Stage(wishes.end_of_contract(draft), plan, wants=("close_line",))


def _left(draft: StoryDraft) -> Stage | None:
    own = line(draft)
    if draft.used & {"left", "trouble", "data", "plan"} or own.used >= own.limit:
        return None
    draft.used.add("left")
    left = own.limit - own.used
    say = draft.words(
        "How many megabytes do I have left this month?", "What is left of my data this month, in megabytes?",
        "Tell me how much data remains for me, in MB.", "How many MB can I still use?", "My remaining data, in megabytes, please?",
        "I wonder how many megabytes there are left for me.",
    )  # fmt: skip
    plan = (*verify(draft), tell(f"You have {left} megabytes left."))
    return Stage(say, plan, (Fact("count", str(left)),), again="How many megabytes are left?")


def _cheaper(draft: StoryDraft) -> Stage | None:
    """The cheapest plan that is enough for what was used."""
    own = line(draft)
    if draft.used & {"plan", "trouble", "data"} or own.status != "active":
        return None
    able = [plan for plan in draft.db.rows("plans") if 1000 * plan.gigabytes > own.used]
    best: PhonePlan = min(able, key=lambda plan: plan.price)
    if best.plan_id == own.plan_id or sum(plan.price == best.price for plan in able) > 1:
        return None
    draft.used.add("plan")
    asks = wishes.asks_price(draft)
    say = wishes.cheapest_plan(draft, asks=asks)
    plan = (
        *verify(draft), call("list_plans"),
        confirm(f"I will change your plan to {best.plan_id}, {dollars(best.price)} per month."),
        call("change_plan", line_id=own.line_id, plan_id=best.plan_id), tell(f"Done, your plan is changed to {best.plan_id} for {dollars(best.price)} per month."),
    )  # fmt: skip
    fact = Fact("money", str(best.price))
    tells, again = ((fact,), "What does the new plan cost per month?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, wants=("change_plan",))


def _bill(draft: StoryDraft) -> Stage | None:
    if draft.used & {"bill", "trouble"}:
        return None
    draft.used.add("bill")
    month, name = draft.rng.choice((("03", "March"), ("04", "April")))
    found: Bill = next(
        b
        for b in draft.db.rows("bills")
        if b.customer_id == draft.customer and b.bill_id.endswith(f"-{month}")
    )
    say = draft.words(
        f"How high was my bill of {name}?", f"What was the amount of the {name} bill?", f"Look my bill of {name} up: how much was it?",
        f"I cannot find my {name} bill. What did it come to?", f"What did you charge me for {name}?", f"Tell me the sum on the bill for {name}.",
    )  # fmt: skip
    look = call("get_bills", customer_id=draft.customer)
    plan = (*verify(draft), look, tell(f"Your {name} bill was {dollars(found.amount)}."))
    return Stage(say, plan, (Fact("money", str(found.amount)),), again=f"How much was the bill of {name}?")


def _pay(draft: StoryDraft) -> Stage | None:
    """An open bill is paid: the agent asks for it, the customer pays on the phone."""
    own: list[Bill] = [
        b for b in draft.db.rows("bills") if b.customer_id == draft.customer and b.status == "open"
    ]
    if len(own) != 1 or draft.used:
        return None
    draft.used.add("trouble")
    say = draft.words(
        "I want to pay my open bill. How much is it?", "Let me settle what is open on my account. What is the amount?",
        "Please let me pay the bill that is still open, and tell me its sum.", "I would like to get my unpaid bill out of the way. How much?",
    )  # fmt: skip
    plan = (
        *verify(draft), call("get_bills", customer_id=draft.customer), call("send_payment_request", bill_id=own[0].bill_id),
        guide("pay_bill"), tell(f"Done, the bill of {dollars(own[0].amount)} is paid."),
    )  # fmt: skip
    return Stage(say, plan, (Fact("money", str(own[0].amount)),), again="How much was the bill?")


def _premium(draft: StoryDraft) -> Stage | None:
    own = line(draft)
    if not own.premium or "premium" in draft.used:
        return None
    draft.used.add("premium")
    say = draft.words(
        "Block paid services on my line, please.", "My child calls paid numbers. Bar premium services on my line.",
        "I do not want any premium services on my line, block them.", "Stop all paid services for my line.",
    )  # fmt: skip
    plan = (
        *verify(draft), confirm("I will block premium services on your line, at no cost."),
        call("set_premium_block", line_id=own.line_id, blocked=True), tell("Done, paid services are blocked on your line."),
    )  # fmt: skip
    return Stage(say, plan, wants=("set_premium_block",))


def _paper(draft: StoryDraft) -> Stage | None:
    if user(draft).billing != "email" or "paper" in draft.used:
        return None
    draft.used.add("paper")
    asks = wishes.asks_price(draft)
    wish = draft.words(
        "Send me my bills on paper.", "I want paper bills from now on.", "Please switch my bills to paper.",
        "I'd like to get my bills by post from now on.",
    )  # fmt: skip
    say = f"{wish} {draft.words(*wishes.PER_MONTH)}" if asks else wish
    plan = (
        *verify(draft), confirm(f"I will switch your bills to paper, {dollars(PAPER_PRICE)} per month."),
        call("set_billing", customer_id=draft.customer, mode="paper"), tell(f"Done, your bills are switched to paper for {dollars(PAPER_PRICE)} per month."),
    )  # fmt: skip
    fact = Fact("money", str(PAPER_PRICE))
    tells, again = ((fact,), "What do paper bills cost per month?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, wants=("set_billing",))


DOMAIN = PhoneDomain(
    name="telecom",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={
        "trouble": troubles.data, "calls": troubles.calls, "messages": troubles.messages, "speed": troubles.speed,
        "sharing": troubles.sharing, "plan": _plan, "data": _data, "owed": _owed, "roaming": _roaming,
        "resume": _resume, "close": _close, "left": _left, "cheaper": _cheaper, "bill": _bill, "pay": _pay, "premium": _premium, "paper": _paper,
    },
    traps={
        "ended": traps.ended, "suspended": traps.suspended, "data_limit": traps.too_much, "not_owner": traps.foreign,
        "locked": traps.locked, "unpaid": traps.unpaid, "ends_contract": traps.ends_contract, "discount": traps.discount,
        "stolen": traps.stolen,
    },
    enter=enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    tells_cost=True,
    rules=rules,
    deeds=DEEDS,
    checks={"works": works, "rings": rings, "sends": sends, "fast": fast, "shares": shares},
)  # fmt: skip
