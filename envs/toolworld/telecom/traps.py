"""Requests that the operator's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.telecom.parts import guide, line, refused, user, verify
from turnwise.envs.toolworld.telecom.state import Bill


def ended(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    line_id = line(draft).line_id
    draft.override("lines", line_id, status="suspended", contract="ended")
    say = draft.words(
        "My line was suspended. Resume it.", "Please resume my line, it is suspended.", "My line is off. Switch it on again.",
        "You have suspended my line. I want it resumed.", "Take the suspension off my line, please.", "Reactivate my line.",
    )  # fmt: skip
    return refused(draft, say, line_id, "contract_ended")


def suspended(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    own = line(draft)
    draft.override("lines", own.line_id, status="suspended")
    other = draft.rng.choice([plan for plan in draft.db.rows("plans") if plan.plan_id != own.plan_id])
    return refused(
        draft,
        draft.words(
            f"Change my plan to the one with {other.gigabytes} GB.",
            f"I want the plan with {other.gigabytes} GB from now on.",
            f"Please move me to the {other.gigabytes} GB plan.",
            f"My plan shall be the one with {other.gigabytes} GB.",
        ),
        own.line_id,
        "suspended",
    )


def too_much(draft: StoryDraft) -> Stage | None:
    if "data" in draft.used:
        return None
    draft.used.add("data")
    much = draft.rng.randint(11, 50)
    say = draft.words(
        f"Add {much} GB to my line.", f"I need {much} GB more on my line.", f"Put {much} extra gigabytes on my line.",
        f"My line needs {much} more GB, please add them.",
    )  # fmt: skip
    return refused(draft, say, line(draft).line_id, "data_limit")


def foreign(draft: StoryDraft) -> Stage | None:
    other = draft.free([c for c in draft.db.rows("customers") if c != user(draft)], lambda c: c.customer_id)
    if other is None:
        return None
    say = draft.words(
        f"Allow roaming on the line {other.line_id}. It is my brother's, and he asked me to call you.",
        f"My mother's line {other.line_id} needs roaming, please allow it for her.",
        f"I call for my wife: enable roaming on her line, {other.line_id}.",
        f"Line {other.line_id} belongs to my son. Switch roaming on for him.",
    )
    return refused(draft, say, other.line_id, "not_owner")


def locked(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("trouble")
    draft.override("phones", draft.customer, sim="locked")
    plan = (*verify(draft), guide("look_at_status"), call("transfer_to_human", reason="sim_locked"))
    return Stage(
        draft.words(
            "My phone asks for a PUK and has no internet.",
            "Since I put in a wrong PIN for the SIM my mobile data does not work.",
            "I have no internet, and the phone wants some PUK.",
            "There is a message about a PUK, and nothing loads.",
        ),
        plan,
    )


def unpaid(draft: StoryDraft) -> Stage | None:
    """A suspended line with an overdue bill that the customer will not pay."""
    if draft.used:
        return None
    draft.used.add("trouble")
    own = line(draft)
    draft.override("lines", own.line_id, status="suspended")
    bills: list[Bill] = [b for b in draft.db.rows("bills") if b.customer_id == draft.customer]
    draft.override("bills", draft.rng.choice(bills).bill_id, status="overdue")
    say = draft.words(
        "Resume my line. I will not pay that bill, so do not ask me to.", "My line shall be resumed, and I do not pay the bill for it.",
        "I refuse to pay your last bill. Resume my line all the same.", "Reactivate my line, but no money for that bill, never.",
    )  # fmt: skip
    return refused(draft, say, own.line_id, "unpaid", call("get_bills", customer_id=draft.customer))


def ends_contract(draft: StoryDraft) -> Stage | None:
    """Contracts run to their end."""
    if "contract" in draft.used:
        return None
    draft.used.add("contract")
    say = draft.words(
        "I want to end my contract today.", "Terminate my contract with immediate effect.", "Let me out of my contract now.",
        "Close my line and my contract this week.", "My contract shall end right now.", "I quit. End the contract at once.",
    )  # fmt: skip
    return refused(draft, say, line(draft).line_id, "contract_running")


def discount(draft: StoryDraft) -> Stage | None:
    if "discount" in draft.used:
        return None
    draft.used.add("discount")
    share = draft.rng.choice((10, 15, 20, 25, 30, 50))
    say = draft.words(
        f"Your competitor is cheaper. Give me {share} percent off my plan.", f"I want a discount of {share} percent on my plan.",
        f"Take {share} percent off my monthly price.", f"Make my plan {share} percent cheaper, or I leave.",
    )  # fmt: skip
    return refused(draft, say, line(draft).line_id, "no_discount")


def stolen(draft: StoryDraft) -> Stage | None:
    """For people, at once."""
    if draft.used:
        return None
    draft.used.add("trouble")
    say = draft.words(
        "My phone was stolen!", "Somebody has taken my phone.", "A thief got my phone on the train.", "My phone was snatched from my hand.",
    )  # fmt: skip
    phone = user(draft).phone
    number = draft.words(
        f"My number is {phone}.",
        f"It has the number {phone}.",
        f"The number was {phone}.",
        f"You find me under {phone}.",
    )
    return Stage(f"{say} {number}", (call("transfer_to_human", reason="stolen_phone"),))
