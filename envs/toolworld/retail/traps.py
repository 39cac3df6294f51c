"""Requests that the shop's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail import asking
from turnwise.envs.toolworld.retail.parts import ask_why, own_order, ref, refused, settles, thing, variants
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, Stage, call
from turnwise.envs.toolworld.vocabulary import address, begun, listed, with_article

_FOR_PEOPLE = {
    "lost_package": (
        "My package was said to be delivered, but it never came.", "The parcel never reached me, though you say that it did.",
        "Your mail says delivered, and there is nothing at my door.", "What I ordered got lost on the way.",
    ),
    "damaged": (
        "What you sent me arrived broken into pieces.", "The parcel came soaked, and everything in it is ruined.",
        "It was smashed when I opened the box.", "I unpacked nothing but shards.",
    ),
    "legal": (
        "My lawyer wants to talk to you about your terms.", "I shall take you to court.", "You will hear from my solicitor.",
        "I want to know whom my lawyer can write to.",
    ),
    "technical": (
        "Your web site crashes when I log in.", "Your app shows nothing but an error.", "I cannot log in, the page stays white.",
        "Each time I open your shop in my browser it freezes.",
    ),
}  # fmt: skip


def cancel_sent(draft: StoryDraft) -> Stage | None:
    """Too late, whatever the reason is."""
    order = own_order(draft, "processed", "delivered")
    reason = asking.why(draft, *asking.REASONS) if order else None
    if order is None or reason is None:
        return None
    which, look = ref(draft, order)
    said = reason[1] if draft.rng.random() < 0.6 else ""
    say = asking.cancel(draft, which, said, asking.refund_question(draft))
    return refused(draft, order, say, "status", *look)


def sent(draft: StoryDraft) -> Stage | None:
    """What could be changed as long as it was not sent."""
    order = own_order(draft, "processed")
    if order is None:
        return None
    user: User = draft.db.get("users", draft.customer)
    others = [p.id for p in user.payments if p.id != order.payment]
    line = draft.rng.choice(order.lines)
    kinds = ["wrap", *(["pay"] if others else ()), *(["remove"] if len(order.lines) > 1 else ())]
    kind = draft.rng.choice(kinds)
    which, look = ref(draft, order, (line,) if kind == "remove" else ())
    if kind == "pay":
        say = asking.pay(draft, which, draft.rng.choice(others))
    elif kind == "remove":
        say = asking.remove(draft, which, thing(draft, line.item_id), asking.refund_question(draft))
    else:
        say = asking.wrap(draft, which, asking.price_question(draft))
    return refused(draft, order, say, "status", *look)


def return_unsent(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending", "processed")
    if order is None:
        return None
    user: User = draft.db.get("users", draft.customer)
    method = draft.rng.choice([order.payment, *(p.id for p in user.payments if p.kind == "gift")])
    say, look = _returned(draft, order, method)
    return refused(draft, order, say, "status", *look)


def _returned(draft: StoryDraft, order: RetailOrder, method: str) -> tuple[str, tuple[PlanStep, ...]]:
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    which, look = ref(draft, order, lines)
    things = listed([thing(draft, line.item_id) for line in lines])
    return asking.give_back(draft, which, things, method, asking.refund_question(draft)), look


def other_method(draft: StoryDraft) -> Stage | None:
    user: User = draft.db.get("users", draft.customer)
    order = own_order(draft, "delivered")
    other = [p.id for p in user.payments if order and p.kind != "gift" and p.id != order.payment]
    if order is None or not other:
        return None
    say, look = _returned(draft, order, other[0])
    return refused(draft, order, say, "refund_method", *look)


def other_product(draft: StoryDraft) -> Stage | None:
    """Never possible; of an order that was sent for another reason, though."""
    order = own_order(draft, "pending", "pending", "processed")
    if order is None:
        return None
    old: RetailItem = draft.db.get("items", order.lines[0].item_id)
    other = draft.rng.choice(sorted({i.product for i in draft.db.rows("items")} - {old.product}))
    old_name, other = thing(draft, old.item_id), with_article(other)
    say = draft.words(
        f"In order {order.order_id}, replace the {old_name} by {other}.", f"Put {other} into order {order.order_id} instead of the {old_name}.",
        f"I would rather have {other} than the {old_name} in order {order.order_id}. Change it.",
        f"Swap the {old_name} of order {order.order_id} for {other}.",
    )  # fmt: skip
    return refused(draft, order, say, "other_product" if order.status == "pending" else "status")


def not_mine(draft: StoryDraft) -> Stage | None:
    """An order of somebody else: the customer says so, or it must be seen."""
    foreign = [o for o in draft.db.rows("orders") if o.user_id != draft.customer and o.status == "pending"]
    order = draft.free(foreign, lambda order: order.order_id)
    if order is None:
        return None
    which = f"order {order.order_id}"
    if draft.rng.random() < 0.4:
        say = draft.words(
            f"Cancel {which}. It is my partner's, who no longer needs it.",
            f"My brother asks me to cancel his {which}, it is no longer needed.",
            f"{begun(which)} is my neighbour's, and he ordered it by mistake. Cancel it for him.",
            f"Please cancel my daughter's {which}, she does not need it.",
        )
        return refused(draft, order, say, "not_owner")
    kind = draft.rng.choice(("cancel", "send", "wrap"))
    reason = asking.why(draft, *asking.REASONS) if kind == "cancel" else None
    if kind == "send":
        say = asking.send(draft, which, address(draft.rng))
    elif reason is None:
        say = asking.wrap(draft, which, asking.price_question(draft))
    else:
        said = reason[1] if draft.rng.random() < 0.6 else ""
        say = asking.cancel(draft, which, said, asking.refund_question(draft))
    return refused(draft, order, say, "not_owner")


def transfer(draft: StoryDraft) -> Stage | None:
    reason = draft.rng.choice(sorted(_FOR_PEOPLE))
    say = draft.words(*_FOR_PEOPLE[reason])
    order = draft.rng.choice([o for o in draft.db.rows("orders") if o.user_id == draft.customer])
    key = order.order_id
    about = draft.words(
        f"It is about order {key}.", f"I mean order {key}.", f"Look at order {key}.", f"The order was {key}."
    )
    return Stage(f"{say} {about}", (call("transfer_to_human", reason=reason),))


def _other(
    draft: StoryDraft, order: RetailOrder, verb: str, *, stock: bool | None = True
) -> tuple[str, tuple[PlanStep, ...], str] | None:
    """A wish for another variant, what must be read, and the product; ``stock``: in stock, out of it, or whichever."""
    line = draft.rng.choice(order.lines)
    old: RetailItem = draft.db.get("items", line.item_id)
    able = [i for i in variants(draft, old) if stock is None or i.in_stock is stock]
    if not able:
        return None
    new = draft.rng.choice(able)
    payment = settles(draft, new.price - line.price)
    if payment is None:
        return None
    which, look = ref(draft, order, (line,))
    said, name = payment[0] if payment[1] else "", thing(draft, old.item_id)
    if stock is False or draft.rng.random() < 0.5:
        return asking.swap(draft, verb, which, name, thing(draft, new.item_id), said), look, old.product
    return asking.swap_cheapest(draft, verb, which, name, new.colour, old.product, said), look, old.product


def changed_before(draft: StoryDraft) -> Stage | None:
    """Items of an order can be changed or removed once."""
    order = None if draft.used else own_order(draft, "pending")
    if order is None:
        return None
    draft.override("orders", order.order_id, changed=True)
    if len(order.lines) > 1 and draft.rng.random() < 0.4:
        line = draft.rng.choice(order.lines)
        which, look = ref(draft, order, (line,))
        say = asking.remove(draft, which, thing(draft, line.item_id), asking.refund_question(draft))
        return refused(draft, order, say, "changed_before", *look)
    wish = _other(draft, order, "change", stock=None)
    return refused(draft, order, wish[0], "changed_before", *wish[1]) if wish else None


def swap_sent(draft: StoryDraft) -> Stage | None:
    """Another variant in an order that is on its way."""
    order = own_order(draft, "processed")
    wish = _other(draft, order, draft.rng.choice(("change", "exchange")), stock=None) if order else None
    return refused(draft, order, wish[0], "status", *wish[1]) if order and wish else None


def out_of_stock(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending", "delivered")
    if order is None or order.changed:
        return None
    verb = "change" if order.status == "pending" else "exchange"
    wish = _other(draft, order, verb, stock=False)
    if wish is None:
        return None
    return refused(draft, order, wish[0], "out_of_stock", *wish[1], call("get_product", product=wish[2]))


def other_reason(draft: StoryDraft) -> Stage | None:
    """A pending order is cancelled for two reasons only."""
    order = own_order(draft, "pending")
    reason = asking.why(draft, "") if order else None
    if order is None or reason is None:
        return None
    which, look = ref(draft, order)
    told = draft.rng.random() < 0.6
    say = asking.cancel(draft, which, reason[1] if told else "", asking.refund_question(draft))
    return refused(draft, order, say, "cancel_reason", *look, *(() if told else (ask_why(),)))


def address_sent(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "processed")
    if order is None:
        return None
    which, look = ref(draft, order)
    return refused(draft, order, asking.send(draft, which, address(draft.rng)), "status", *look)


def cheaper_now(draft: StoryDraft) -> Stage | None:
    """There are no discounts and no refunds of price differences."""
    order = own_order(draft, "pending", "processed", "delivered")
    if order is None:
        return None
    share = draft.rng.choice((5, 10, 15, 20, 30))
    say = draft.words(
        f"Give me {share} percent off order {order.order_id}.", f"I want a discount of {share} percent on order {order.order_id}.",
        f"A friend got {share} percent off. Do the same for my order {order.order_id}.",
        f"Order {order.order_id} was too dear: refund me {share} percent of it.",
    )  # fmt: skip
    return refused(draft, order, say, "no_discount")
