"""What the shop's stories are put together from: the customer, an order, a thing in it, a refusal."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell


def enter(draft: StoryDraft) -> bool:
    user: User = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["zip"] = f"My zip code is {user.zip}."
    draft.facts["name"] = f"My name is {user.name}."
    if draft.rng.random() < 0.6:
        draft.facts["email"] = f"My e-mail is {user.email}."
    return True


def verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    user: User = draft.db.get("users", draft.customer)
    if "email" in draft.facts:
        return (ask("What is your e-mail address?", "email"), call("find_user_by_email", email=user.email))
    return (
        ask("What is your full name, please?", "name"),
        ask("What is your zip code?", "zip"),
        call("find_user_by_name_zip", name=user.name, zip=user.zip),
    )


def own_order(draft: StoryDraft, *status: str) -> RetailOrder | None:
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer and o.status in status]
    return draft.free(own, lambda order: order.order_id)


def thing(draft: StoryDraft, item_id: str) -> str:
    item: RetailItem = draft.db.get("items", item_id)
    return f"{item.colour} {item.size} {item.product}"


def ref(draft: StoryDraft, order: RetailOrder) -> tuple[str, tuple[PlanStep, ...]]:
    """How the customer names the order; at times he must be asked for, or looked up, its number."""
    item = order.lines[0].item_id
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    alone = sum(any(line.item_id == item for line in o.lines) for o in own) == 1
    if not alone or draft.rng.random() < 0.4:
        return f"order {order.order_id}", ()
    return f"my order with the {thing(draft, item)}", (call("get_user", user_id=draft.customer),)


def refused(draft: StoryDraft, order: RetailOrder, say: str, reason: str, *look: PlanStep) -> Stage:
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        call("record_refusal", order_id=order.order_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "Can't you make an exception, just this once?", "I am a loyal customer. Do it anyway, please.",
        "Your colleague did that for me last year.", "Nobody would notice. Please.", "Come on, it is a small thing.",
        "I will write a bad review otherwise.",
    )  # fmt: skip
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.6 else "")
