"""What the shop's stories are put together from: the customer, an order, a thing in it, a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail.state import OrderLine, Payment, RetailItem, RetailOrder, User
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


def all_of(draft: StoryDraft, *status: str) -> list[RetailOrder]:
    """All orders of the customer with this status, marked as used; none where another request is about one of them."""
    found = [o for o in draft.db.rows("orders") if o.user_id == draft.customer and o.status in status]
    if any(order.order_id in draft.used for order in found):
        return []
    draft.used.update(order.order_id for order in found)
    return found


def look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every order in it."""
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    return (
        call("get_user", user_id=draft.customer),
        *(call("get_order", order_id=order.order_id) for order in own),
    )


def total_of(order: RetailOrder) -> int:
    return sum(line.price for line in order.lines)


def gift_of(draft: StoryDraft) -> Payment | None:
    user: User = draft.db.get("users", draft.customer)
    return next((payment for payment in user.payments if payment.kind == "gift"), None)


def variants(draft: StoryDraft, old: RetailItem) -> list[RetailItem]:
    """The other variants of a product."""
    return [item for item in draft.db.rows("items") if item.product == old.product and item != old]


def cheapest_of(items: list[RetailItem]) -> dict[str, RetailItem]:
    """The cheapest item of each colour, where there is one alone."""
    found: dict[str, RetailItem] = {}
    for colour in sorted({item.colour for item in items}):
        best, *others = sorted((item for item in items if item.colour == colour), key=lambda item: item.price)
        if not others or others[0].price > best.price:
            found[colour] = best
    return found


def ref(
    draft: StoryDraft, order: RetailOrder, about: Sequence[OrderLine] = ()
) -> tuple[str, tuple[PlanStep, ...]]:
    """How the customer names the order: by its number, or by a thing in it, though by none that the wish is ``about``."""
    item = next((line.item_id for line in order.lines if line not in about), "")
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    alone = sum(any(line.item_id == item for line in o.lines) for o in own) == 1
    if not alone or draft.rng.random() < 0.4:
        return f"order {order.order_id}", ()
    return f"my order with the {thing(draft, item)}", (call("get_user", user_id=draft.customer),)


def refused(draft: StoryDraft, order: RetailOrder, say: str, reason: str, *look: PlanStep) -> Stage:
    """A request that is refused; ``look`` is what must be read beside the order, or be asked for."""
    asks = tuple(step for step in look if step.kind == "ask")
    reads = tuple(step for step in look if step.kind != "ask")
    plan = (
        *verify(draft), *reads, call("get_order", order_id=order.order_id), *asks,
        call("record_refusal", order_id=order.order_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "Can't you make an exception, just this once?", "I am a loyal customer. Do it anyway, please.",
        "Your colleague did that for me last year.", "Nobody would notice. Please.", "Come on, it is a small thing.",
        "I will write a bad review otherwise.",
    )  # fmt: skip
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.6 else "")


def line_of(draft: StoryDraft, order: RetailOrder, which: str) -> OrderLine | None:
    """A thing in an order other than what the order is named by."""
    others = [line for line in order.lines if thing(draft, line.item_id) not in which]
    return draft.rng.choice(others) if others else None


def other_colour(draft: StoryDraft, line: OrderLine, *, least: int) -> RetailItem | None:
    """The cheapest variant of another colour that is in stock, where it costs so much more."""
    old: RetailItem = draft.db.get("items", line.item_id)
    able = cheapest_of([item for item in variants(draft, old) if item.in_stock])
    found = [i for colour, i in able.items() if colour != old.colour and i.price >= line.price + least]
    return draft.rng.choice(found) if found else None


def payer(draft: StoryDraft, amount: int) -> str:
    """A payment method of the customer that can pay so much."""
    user: User = draft.db.get("users", draft.customer)
    return draft.rng.choice([p.id for p in user.payments if p.kind != "gift" or p.balance >= amount])


def ask_why() -> PlanStep:
    return ask("Why do you want to cancel it?", "reason")


_PAYS_WITH = {
    "card": "Put it on my card.",
    "paypal": "Let it go through my PayPal account.",
    "gift": "Use my gift card for it.",
}


def settles(draft: StoryDraft, amount: int) -> tuple[str, bool] | None:
    """What the customer pays a difference with, the same in all his requests, and whether he says so before he is asked.

    None where that cannot pay so much. What he does not name of his own accord is no gift card: an offer to use his card, to
    which he says yes, is right as well then.
    """
    user: User = draft.db.get("users", draft.customer)
    known = draft.facts.get("payment")
    able = [
        p
        for p in user.payments
        if (p.kind != "gift" or p.balance >= amount) and known in (None, _PAYS_WITH[p.kind])
    ]
    if not able:
        return None
    payment = draft.rng.choice(able)
    draft.facts["payment"] = _PAYS_WITH[payment.kind]
    return payment.id, payment.kind == "gift" or draft.rng.random() < 0.6
