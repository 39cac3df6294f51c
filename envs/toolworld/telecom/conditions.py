"""Questions of the operator's customers, and what they want done by what is found out, or two things at once."""

from __future__ import annotations

from turnwise.envs.toolworld.alternatives import (
    Lookup,
    WishPart,
    both,
    compared,
    decided,
    left_alone,
    part,
    question,
)
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.operations import IMPOSSIBLE, wish_for
from turnwise.envs.toolworld.story import Stage, call, tell
from turnwise.envs.toolworld.telecom.operations import (
    ALLOWANCE,
    BLOCK,
    CHARGES,
    CLOSE,
    DATA,
    PAPER,
    PLAN,
    RESUME,
    ROAMING,
    TETHER,
)
from turnwise.envs.toolworld.telecom.parts import DESK, guide, look_at_bills, my_bills, my_line

EXTRAS = (PLAN, DATA, ROAMING, BLOCK, TETHER, PAPER)
MONTHS = {"03": "March", "04": "April"}


def _left(draft: StoryDraft) -> Lookup:
    own, topics = my_line(draft), frozenset((ALLOWANCE,))
    return Lookup(
        draft.ways("left"), "count", own.limit - own.used, "You have {} megabytes left.", topics=topics
    )


def _used(draft: StoryDraft) -> Lookup:
    used, topics = my_line(draft).used, frozenset((ALLOWANCE,))
    return Lookup(draft.ways("used"), "count", used, "You have used {} megabytes.", topics=topics)


def _owed(draft: StoryDraft) -> Lookup:
    due, look = my_bills(draft, "open", "overdue", "requested"), (look_at_bills(draft),)
    total = sum(bill.amount for bill in due)
    return Lookup(draft.ways("owed"), "money", total, "You owe {} in total.", look, frozenset((CHARGES,)))


def _bill(draft: StoryDraft) -> Lookup:
    month = draft.rng.choice(sorted(MONTHS))
    own, name = my_bills(draft, "open", "paid", "overdue"), MONTHS[month]
    amount = next(bill.amount for bill in own if bill.bill_id.endswith(f"-{month}"))
    report = f"Your {name} bill was {{}}."
    return Lookup(
        draft.ways("bill", name=name), "money", amount, report, (look_at_bills(draft),), frozenset(("bill",))
    )


_QUANTITIES = {"left": _left, "used": _used, "owed": _owed, "bill": _bill}


def asked(draft: StoryDraft, kind: str) -> Stage:
    """A question for a number."""
    known = _QUANTITIES[kind](draft)
    fitting(not known.topics & draft.used and int(known.value) >= 0)
    return question(draft, known, DESK.verify(draft))


def pay(draft: StoryDraft) -> Stage:
    """An open bill is paid: the agent asks for it, the customer pays on the phone."""
    own = my_bills(draft, "open", "overdue", "requested")
    fitting(len(own) == 1 and not draft.used & {CHARGES, "bill"})
    draft.used |= {CHARGES, "bill"}
    amount = own[0].amount
    known = Lookup(("",), "money", amount, "Done, the bill of {} is paid.")
    look = (look_at_bills(draft), call("send_payment_request", bill_id=own[0].bill_id), guide("pay_bill"))
    plan = (*DESK.verify(draft), *look, tell(known.told))
    return Stage(draft.say("pay"), plan, (known.fact,), again="How much was the bill?")


# --- one thing or another, and two -------------------------------------------------------------------


def _extra(draft: StoryDraft) -> WishPart | None:
    """Something that can be done with the line."""
    wish = wish_for(draft, draft.rng.choice(EXTRAS))
    return part(draft, wish) if wish else None


def measured(draft: StoryDraft) -> Stage:
    """Something where a number is large or small enough, else something else, or the number."""
    known = _QUANTITIES[draft.rng.choice(sorted(_QUANTITIES))](draft)
    fitting(not known.topics & draft.used and int(known.value) >= 300)
    condition, first = compared(draft, known), _extra(draft)
    other = (_extra(draft) if draft.rng.random() < 0.5 else None) or left_alone(draft, known)
    draft.used |= known.topics
    look = (*DESK.verify(draft), *known.look)
    return decided(draft, look, condition.say, (fitting(first), other), holds=condition.holds)


def plan_within(draft: StoryDraft) -> Stage:
    """Another plan, if it is cheap enough."""
    wish = fitting(wish_for(draft, PLAN))
    what = draft.ways("price of plan", name=wish.fill["plan"])
    known = Lookup(what, "money", wish.amount, "It costs {} per month.", wish.reads)
    condition = compared(draft, known)
    other = (_extra(draft) if draft.rng.random() < 0.6 else None) or left_alone(
        draft, known, "its price per month"
    )
    first = part(draft, wish.named(plan="it"))
    return decided(
        draft, (*DESK.verify(draft), *wish.reads), condition.say, (first, other), holds=condition.holds
    )


_STATES = {
    "allow": ROAMING, "forbid": ROAMING, "premium": BLOCK, "tethering": TETHER, "resume": RESUME, "close": CLOSE,
}  # fmt: skip
"""State of a line (phrases.yaml has the words for it) → the change that is wanted in it."""


def state(draft: StoryDraft) -> Stage:
    """Something where a line is in a certain state, else something else, or a number."""
    kind, holds = draft.rng.choice(sorted(_STATES)), draft.rng.random() < 0.5
    operation = _STATES[kind]
    fails = "contract_running" if operation is CLOSE else IMPOSSIBLE
    wish = fitting(wish_for(draft, operation, "" if holds else fails))
    fitting(operation is not ROAMING or wish.fill["does"] == kind)
    known = _QUANTITIES[draft.rng.choice(("left", "used", "bill"))](draft)
    told = None if known.topics & draft.used else left_alone(draft, known)
    other = fitting((_extra(draft) if draft.rng.random() < 0.7 else None) or told)
    draft.used |= known.topics
    first = part(draft, wish._replace(said=wish.said if operation is RESUME else ""))
    look = (*DESK.verify(draft), *wish.reads, *known.look)
    return decided(draft, look, draft.say(f"state {kind}"), (first, other), holds=holds)


def two(draft: StoryDraft) -> Stage:
    """Two things for one line."""
    first = fitting(wish_for(draft, draft.rng.choice((*EXTRAS, RESUME))))
    second = fitting(wish_for(draft, draft.rng.choice(EXTRAS)))
    return both(draft, DESK.verify(draft), first, second, "the same line")
