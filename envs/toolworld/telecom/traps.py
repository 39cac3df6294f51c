"""Requests that the operator's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.telecom import wishes
from turnwise.envs.toolworld.telecom.parts import guide, line, overdue_bill, refused, user, verify


def ended(draft: StoryDraft) -> Stage | None:
    """A suspended line whose contract has ended, whether or not a bill is overdue."""
    if draft.used:
        return None
    draft.used.add("trouble")
    line_id = line(draft).line_id
    draft.override("lines", line_id, status="suspended", contract="ended")
    if draft.rng.random() < 0.5:
        overdue_bill(draft)
    say = wishes.resume(draft, pays=draft.rng.random() < 0.6)
    return refused(draft, say, line_id, "contract_ended", wants=("resume_line",))


def suspended(draft: StoryDraft) -> Stage | None:
    """Another plan for a suspended line."""
    if draft.used:
        return None
    draft.used.add("trouble")
    own = line(draft)
    draft.override("lines", own.line_id, status="suspended")
    other = draft.rng.choice([plan for plan in draft.db.rows("plans") if plan.plan_id != own.plan_id])
    asks = wishes.asks_price(draft)
    say = (
        wishes.cheapest_plan(draft, asks=asks)
        if draft.rng.random() < 0.3
        else wishes.plan(draft, other.gigabytes, asks=asks)
    )
    return refused(draft, say, own.line_id, "suspended", wants=("change_plan",))


def too_much(draft: StoryDraft) -> Stage | None:
    if draft.used & {"data", "plan"}:
        return None
    draft.used.add("data")
    say = wishes.data(draft, draft.rng.randint(11, 50), asks=wishes.asks_price(draft))
    return refused(draft, say, line(draft).line_id, "data_limit", wants=("add_data",))


def foreign(draft: StoryDraft) -> Stage | None:
    """A line that is not the customer's own: he says so, or it must be seen."""
    other = draft.free([c for c in draft.db.rows("customers") if c != user(draft)], lambda c: c.customer_id)
    if other is None:
        return None
    if draft.rng.random() < 0.4:
        say = draft.words(
            f"Allow roaming on the line {other.phone}. It is my brother's, and he asked me to call you.",
            f"My mother's line {other.phone} needs roaming, please allow it for her.",
            f"I call for my wife: enable roaming on her line, {other.phone}.",
            f"The line {other.phone} belongs to my son. Switch roaming on for him.",
        )
    else:
        enabled = not draft.db.get("lines", other.line_id).roaming
        say = wishes.roaming(draft, f"the line {other.phone}", enabled=enabled)
    look = call("get_line", line_id=other.phone)
    return refused(draft, say, other.line_id, "not_owner", look, wants=("set_roaming",))


def locked(draft: StoryDraft) -> Stage | None:
    """A SIM that wants a PUK, of which the customer may not speak."""
    if draft.used:
        return None
    draft.used.add("trouble")
    draft.override("phones", draft.customer, sim="locked")
    plan = (*verify(draft), guide("look_at_status"), call("transfer_to_human", reason="sim_locked"))
    told = (
        "My phone asks for a PUK and has no internet.", "I have no internet, and the phone wants some PUK.",
        "There is a message about a PUK, and nothing loads.",
    )  # fmt: skip
    say = draft.words(*told) if draft.rng.random() < 0.3 else wishes.no_internet(draft)
    return Stage(say, plan, check="works")


def unpaid(draft: StoryDraft) -> Stage | None:
    """A suspended line with an overdue bill that the customer will not pay."""
    if draft.used:
        return None
    draft.used.add("trouble")
    own = line(draft)
    draft.override("lines", own.line_id, status="suspended")
    overdue_bill(draft)
    look = call("get_bills", customer_id=draft.customer)
    say = wishes.resume(draft, pays=False)
    return refused(draft, say, own.line_id, "unpaid", look, wants=("resume_line",))


def ends_contract(draft: StoryDraft) -> Stage | None:
    """Contracts run to their end."""
    if "contract" in draft.used:
        return None
    draft.used.add("contract")
    say = wishes.end_of_contract(draft)
    return refused(draft, say, line(draft).line_id, "contract_running", wants=("close_line",))


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
