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
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import IMPOSSIBLE, wish_for
from turnwise.envs.toolworld.story import Stage, call, once, tell
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
    own = my_line(draft)
    what = (
        "the number of megabytes that I have left this month", "the rest of my data in megabytes", "the number of MB that remain for me",
        "the data that is left on my line, in MB", "my remaining data in megabytes", "the number of megabytes that I can still use",
    )  # fmt: skip
    return Lookup(
        what, "count", own.limit - own.used, "You have {} megabytes left.", topics=frozenset((ALLOWANCE,))
    )


def _used(draft: StoryDraft) -> Lookup:
    what = (
        "the number of megabytes that I have used this month", "my use of data this month, in MB", "the data that I used this month, in megabytes",
        "the number of MB that my line has used", "my consumption of this month in megabytes", "the number of megabytes that are used up on my line",
    )  # fmt: skip
    return Lookup(
        what, "count", my_line(draft).used, "You have used {} megabytes.", topics=frozenset((ALLOWANCE,))
    )


def _owed(draft: StoryDraft) -> Lookup:
    what = (
        "the sum of my unpaid bills", "the total that I owe you", "the sum of all that is open on my account",
        "the amount that is outstanding on my account altogether", "the total of what I still have to pay you", "the sum that I owe you in all",
    )  # fmt: skip
    total = sum(bill.amount for bill in my_bills(draft, "open", "overdue", "requested"))
    return Lookup(
        what, "money", total, "You owe {} in total.", (look_at_bills(draft),), frozenset((CHARGES,))
    )


def _bill(draft: StoryDraft) -> Lookup:
    month = draft.rng.choice(sorted(MONTHS))
    found = next(
        bill for bill in my_bills(draft, "open", "paid", "overdue") if bill.bill_id.endswith(f"-{month}")
    )
    name = MONTHS[month]
    what = (
        f"the amount of my {name} bill", f"the sum on my bill of {name}", f"the amount that you charged me for {name}", f"the total of the bill for {name}",
        f"my bill of {name}, as an amount", f"the price on the {name} bill",
    )  # fmt: skip
    report = f"Your {name} bill was {{}}."
    return Lookup(what, "money", found.amount, report, (look_at_bills(draft),), frozenset(("bill",)))


_QUANTITIES = {"left": _left, "used": _used, "owed": _owed, "bill": _bill}


def asked(draft: StoryDraft, kind: str) -> Stage | None:
    """A question for a number."""
    known = _QUANTITIES[kind](draft)
    if known.topics & draft.used or int(known.value) < 0:
        return None
    return question(draft, known, DESK.verify(draft))


def pay(draft: StoryDraft) -> Stage | None:
    """An open bill is paid: the agent asks for it, the customer pays on the phone."""
    own = my_bills(draft, "open", "overdue", "requested")
    if len(own) != 1 or draft.used & {CHARGES, "bill"}:
        return None
    draft.used |= {CHARGES, "bill"}
    amount = own[0].amount
    known = Lookup(("",), "money", amount, "Done, the bill of {} is paid.")
    say = draft.words(
        "I want to pay my open bill. How much is it?", "Let me settle what is open on my account. What is the amount?",
        "Please let me pay the bill that is still open, and tell me its sum.", "I would like to get my unpaid bill out of the way. How much?",
    )  # fmt: skip
    look = (look_at_bills(draft), call("send_payment_request", bill_id=own[0].bill_id), guide("pay_bill"))
    plan = (*DESK.verify(draft), *look, tell(known.told))
    return Stage(say, plan, (known.fact,), again="How much was the bill?")


# --- one thing or another, and two -------------------------------------------------------------------


def _extra(draft: StoryDraft) -> WishPart | None:
    """Something that can be done with the line."""
    wish = wish_for(draft, draft.rng.choice(EXTRAS))
    return part(draft, wish) if wish else None


def measured(draft: StoryDraft) -> Stage | None:
    """Something where a number is large or small enough, else something else, or the number."""
    known = _QUANTITIES[draft.rng.choice(sorted(_QUANTITIES))](draft)
    if known.topics & draft.used or int(known.value) < 300:
        return None
    condition, first = compared(draft, known), _extra(draft)
    other = (_extra(draft) if draft.rng.random() < 0.5 else None) or left_alone(draft, known)
    draft.used |= known.topics
    if first is None:
        return None
    look = once((*DESK.verify(draft), *known.look))
    return decided(draft, look, condition.say, (first, other), holds=condition.holds)


def plan_within(draft: StoryDraft) -> Stage | None:
    """Another plan, if it is cheap enough."""
    wish = wish_for(draft, PLAN)
    if wish is None:
        return None
    name = wish.fill["plan"]
    what = (
        f"the monthly price of {name}", f"the price per month of {name}", f"the cost per month of {name}", f"the amount to be paid each month for {name}",
        f"the monthly fee for {name}", f"the sum that I pay per month for {name}",
    )  # fmt: skip
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
    "allow": (
        ROAMING, "roaming is not allowed on my line yet", "my line has no roaming so far", "roaming is still off on my line", "my line offers no roaming at present",
        "there is no roaming on my line as yet", "my line does not have roaming",
    ),
    "forbid": (
        ROAMING, "roaming is allowed on my line", "my line has roaming", "roaming is on for my line", "my line comes with roaming at present",
        "there is roaming on my line", "my line is one with roaming",
    ),
    "premium": (
        BLOCK, "paid services are still allowed on my line", "my line lets paid services through", "there is no block on paid services on my line",
        "paid services work on my line", "premium services are open on my line", "my line is not blocked for premium services",
    ),
    "tethering": (
        TETHER, "tethering is not allowed on my line", "my line does not permit tethering so far", "my line has no tethering", "tethering is off on my line",
        "there is no tethering on my line yet", "my line offers no tethering",
    ),
    "resume": (
        RESUME, "my line is suspended", "you have suspended my line", "there is a suspension on my line", "my line has been put out of service by you",
        "my line was suspended by you", "a suspension keeps my line off",
    ),
    "close": (
        CLOSE, "my contract has ended", "my contract is over", "the contract of my line has run out", "my contract ran to its end", "my contract is no longer running",
        "the contract for my line is at its end",
    ),
}  # fmt: skip
"""State of a line → the change that is wanted in it, and ways to speak of the state."""


def state(draft: StoryDraft) -> Stage | None:
    """Something where a line is in a certain state, else something else, or a number."""
    kind, holds = draft.rng.choice(sorted(_STATES)), draft.rng.random() < 0.5
    operation, *ways = _STATES[kind]
    wish = wish_for(
        draft, operation, "" if holds else "contract_running" if operation is CLOSE else IMPOSSIBLE
    )
    if wish is None or (operation is ROAMING and wish.fill["does"] != kind):
        return None
    known = _QUANTITIES[draft.rng.choice(("left", "used", "bill"))](draft)
    told = None if known.topics & draft.used else left_alone(draft, known)
    other = (_extra(draft) if draft.rng.random() < 0.7 else None) or told
    if other is None:
        return None
    draft.used |= known.topics
    first = part(draft, wish._replace(said=wish.said if operation is RESUME else ""))
    look = once((*DESK.verify(draft), *wish.reads, *known.look))
    return decided(draft, look, draft.words(*ways), (first, other), holds=holds)


def two(draft: StoryDraft) -> Stage | None:
    """Two things for one line."""
    first = wish_for(draft, draft.rng.choice((*EXTRAS, RESUME)))
    second = wish_for(draft, draft.rng.choice(EXTRAS)) if first else None
    return both(draft, DESK.verify(draft), first, second, "the same line") if first and second else None
