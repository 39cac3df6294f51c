"""Parts of the shop's stories: the customer, an order and how it is called, a thing in it, a payment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Called, ServiceDesk, called_by
from turnwise.envs.toolworld.retail.state import OrderLine, Payment, RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, call, verified

REASONS = {
    "no longer needed": "no longer needed", "ordered by mistake": "ordered by mistake", "": "no good reason",
}  # fmt: skip
"""Why somebody cancels → the phrases for it; the last is no reason for which that is allowed."""
PAYS_WITH = {
    "card": "Put it on my card.",
    "paypal": "Let it go through my PayPal account.",
    "gift": "Use my gift card for it.",
}


def enter(draft: StoryDraft) -> bool:
    user: User = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["zip"] = f"My zip code is {user.zip}."
    draft.facts["name"] = f"My name is {user.name}."
    if draft.rng.random() < 0.6:
        draft.facts["email"] = f"My e-mail is {user.email}."
    return True


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    if "email" in draft.facts:
        return verified(me(draft), "find_user_by_email", email="What is your e-mail address?")
    questions = {"name": "What is your full name, please?", "zip": "What is your zip code?"}
    return verified(me(draft), "find_user_by_name_zip", **questions)


DESK = ServiceDesk(
    _verify,
    lambda wish, rule: call("record_refusal", order_id=wish.subject, reason=rule),
    lambda wish: (call("get_order", order_id=wish.subject),) if "order_id" in wish.arguments else (),
)


def me(draft: StoryDraft) -> User:
    return draft.db.get("users", draft.customer)


def account(draft: StoryDraft) -> PlanStep:
    return call("get_user", user_id=draft.customer)


def mine(draft: StoryDraft) -> list[RetailOrder]:
    """All orders of the customer."""
    return [order for order in draft.db.rows("orders") if order.user_id == draft.customer]


def orders(*status: str) -> Callable[[StoryDraft, bool], list[RetailOrder]]:
    """The customer's orders, or those of others, with one of these statuses."""

    def found(draft: StoryDraft, own: bool) -> list[RetailOrder]:
        rows: Sequence[RetailOrder] = draft.db.rows("orders")
        return [o for o in rows if (o.user_id == draft.customer) is own and o.status in status]

    return found


def some_order(draft: StoryDraft, *status: str) -> RetailOrder | None:
    """One of the customer's orders that no request is about yet. It is not marked as used."""
    left = [order for order in orders(*status)(draft, True) if order.order_id not in draft.used]
    return draft.rng.choice(left) if left else None


def all_orders(draft: StoryDraft, *status: str) -> list[RetailOrder]:
    """All orders of the customer with one of these statuses; none where another request is about one of them."""
    found = orders(*status)(draft, True)
    return [] if any(order.order_id in draft.used for order in found) else found


def thing(draft: StoryDraft, item_id: str) -> str:
    item: RetailItem = draft.db.get("items", item_id)
    return f"{item.colour} {item.size} {item.product}"


def gift_of(draft: StoryDraft) -> Payment | None:
    return next((payment for payment in me(draft).payments if payment.kind == "gift"), None)


def variants(draft: StoryDraft, old: RetailItem) -> list[RetailItem]:
    """The other variants of a product."""
    return [item for item in draft.db.rows("items") if item.product == old.product and item != old]


def cheapest_of(items: Sequence[RetailItem]) -> dict[str, RetailItem]:
    """The cheapest item in stock of each colour, where there is one alone."""
    found: dict[str, RetailItem] = {}
    stock = [item for item in items if item.in_stock]
    for colour in sorted({item.colour for item in stock}):
        best, *others = sorted((item for item in stock if item.colour == colour), key=lambda item: item.price)
        if not others or others[0].price > best.price:
            found[colour] = best
    return found


def called(draft: StoryDraft, order: RetailOrder, about: Sequence[OrderLine] = ()) -> Called:
    """An order by its number, or by a thing in it, though by none that a wish is ``about``."""
    item = next((line.item_id for line in order.lines if line not in about), "")
    alone = sum(any(line.item_id == item for line in o.lines) for o in mine(draft)) == 1
    name = f"my order with the {thing(draft, item)}" if alone else ""
    whose = "whose order" if order.user_id != draft.customer else ""
    return called_by(draft, f"order {order.order_id}", name, account(draft), whose=whose)


def looked_at(draft: StoryDraft, order: RetailOrder, about: Sequence[OrderLine] = ()) -> Called:
    """An order as it is called, and all steps until it is read."""
    name = called(draft, order, about)
    return Called(name.it, (*DESK.verify(draft), *name.find, call("get_order", order_id=order.order_id)))


def look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every order in it."""
    reads = (call("get_order", order_id=order.order_id) for order in mine(draft))
    return (*DESK.verify(draft), account(draft), *reads)


def why(draft: StoryDraft) -> tuple[str, str]:
    """Why a customer cancels whatever they cancel in this story, and how they say it."""
    known = draft.facts.get("reason")
    if known is not None:
        return next(kind for kind, name in REASONS.items() if known in draft.ways(name)), known
    reason = draft.rng.choice(list(REASONS))
    return reason, draft.say(REASONS[reason])


def settles(draft: StoryDraft, amount: int) -> Payment | None:
    """A payment for a difference, the same in all requests of a story; None where it cannot pay so much."""
    known = draft.facts.get("payment")
    able = [
        payment for payment in me(draft).payments
        if (payment.kind != "gift" or payment.balance >= amount) and known in (None, PAYS_WITH[payment.kind])
    ]  # fmt: skip
    return draft.rng.choice(able) if able else None
