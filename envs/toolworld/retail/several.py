"""Wishes of the shop's customers for several orders, or for one in two ways: for one that must be found, for
all, for both."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.toolworld.alternatives import (
    SeveralSubjects,
    WishPart,
    both,
    each,
    joined,
    one,
    part,
    then,
)
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.granting import sentence
from turnwise.envs.toolworld.operations import Called, Operation, WishedChange, accepted, wanted, wish_for
from turnwise.envs.toolworld.retail import operations as changes
from turnwise.envs.toolworld.retail import parts
from turnwise.envs.toolworld.retail.state import OrderLine, RetailOrder
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.vocabulary import address

MOST = 3  # orders that one request changes
MEASURES = (
    ("costs most in all", lambda order: order.total, True),
    ("costs least in all", lambda order: order.total, False),
    ("has most things in it", lambda order: len(order.lines), True),
)
WHOLE = (changes.WRAP, changes.ADDRESS, changes.PAYMENT)  # changes of an order as a whole, which stays
OF_STATUS = {
    "pending": (changes.CANCEL, changes.CHANGE, changes.REMOVE, *WHOLE),
    "delivered": (changes.RETURN, changes.EXCHANGE),
}


def unsent(draft: StoryDraft) -> SeveralSubjects:
    found = parts.all_orders(draft, "pending")
    return SeveralSubjects(
        found if len(found) <= MOST else (), draft.ways("unsent orders"), MEASURES, parts.look_at_all(draft)
    )


def _is_touched(draft: StoryDraft) -> bool:
    """Say whether a request was about one of the customer's orders, so that "all that was delivered" is not
    plain any more."""
    return any(order.order_id in draft.used for order in parts.mine(draft))


def clear_all(draft: StoryDraft) -> Stage:
    """Draw the wish to cancel all that was not sent and to return all that was delivered."""
    came, unsent = parts.all_orders(draft, "delivered"), parts.all_orders(draft, "pending")
    fitting(came and unsent and len(came) + len(unsent) <= MOST and not _is_touched(draft))
    cancels = each(draft, changes.CANCEL, unsent)
    backs = [changes.giving_back(changes.RETURN, draft, order, order.lines, order.payment) for order in came]
    fitting(cancels)
    backs = [accepted(draft, back) for back in backs]
    first = part(draft, cancels[0].named(it="whatever orders of mine have not been sent yet"), *cancels[1:])
    second = draft.say("take all back")
    steps = tuple(step for back in backs for step in part(draft, back).steps)
    other = WishPart(second, steps, " ".join(back.report for back in backs))
    return joined(draft, parts.look_at_all(draft), first, other)


def moved_house(draft: StoryDraft) -> Stage:
    """A new address for the account and for what is not sent yet."""
    orders = parts.all_orders(draft, "pending")
    fitting(0 < len(orders) <= MOST)
    home = fitting(wish_for(draft, changes.HOME))
    wishes = fitting(each(draft, changes.ADDRESS, orders))
    new = home.fill["address"]
    same = [wish.given(address=new) for wish in wishes]
    say = draft.say("moved house", new=new)
    return joined(draft, parts.look_at_all(draft), part(draft, home), part(draft, *same), say)


def dearest_back(draft: StoryDraft) -> Stage:
    """The dearest thing that was delivered, in whichever order it came."""
    came = [] if _is_touched(draft) else parts.all_orders(draft, "delivered")
    bought = sorted(((line.price, o.order_id, line) for o in came for line in o.lines), reverse=True)
    fitting(len(came) > 1 and bought[0][0] > bought[1][0])
    price, key, line = bought[0]
    order: RetailOrder = draft.db.get("orders", key)
    wish = accepted(draft, changes.giving_back(changes.RETURN, draft, order, [line], order.payment))
    what = "the thing for which I paid most of all that was ever delivered to me"
    made = part(draft, wish.named(what=what, refund_to="the payment method of its order"))
    asked = made._replace(tells=(Fact("money", str(price)),), again="How much will be refunded?")
    return one(draft.say("dearest back", do=made.say), parts.look_at_all(draft), asked)


def _twice(draft: StoryDraft) -> tuple[RetailOrder, OrderLine]:
    """Of the one product that stands in two orders, the dearer one, with its order."""
    found: dict[str, list[tuple[RetailOrder, OrderLine]]] = {}
    for order in parts.mine(draft):
        for line in order.lines:
            found.setdefault(draft.db.get("items", line.item_id).product, []).append((order, line))
    twice = [bought for bought in found.values() if len(bought) > 1]
    fitting(len(twice) == 1 and len(twice[0]) == 2)
    less, more = sorted(twice[0], key=lambda pair: pair[1].price)
    fitting(less[1].price < more[1].price and not {less[0].order_id, more[0].order_id} & draft.used)
    return more


def bought_twice(draft: StoryDraft) -> Stage:
    """Of a kind of thing that two orders have, the dearer one goes back, or out of its order."""
    order, line = _twice(draft)
    name = "the dearer one of the two"
    if order.status == "delivered":
        back = changes.giving_back(changes.RETURN, draft, order, [line], order.payment)
        wish = back.named(what=name, refund_to="the payment of its order")
    elif len(order.lines) > 1:
        wish = changes.removal(changes.REMOVE, draft, order, line).named(things=name, it="its order")
    else:
        wish = wanted(draft, changes.CANCEL, order).named(it="the order with the one of them that cost more")
    # what is offered and reported names the thing, though the wish does not
    made = part(draft, accepted(draft, wish))
    return one(draft.say("bought twice", do=made.say), parts.look_at_all(draft), made)


# --- like another order ------------------------------------------------------------------------------


def pay_like(draft: StoryDraft) -> Stage:
    """An order is paid with what another one was paid with."""
    order = fitting(parts.some_order(draft, "pending"))
    others = [other for other in changes.orders(*changes.ANY)(draft, True) if other.payment != order.payment]
    model = draft.rng.choice(fitting(others))
    wish = changes.plain(changes.PAYMENT, order, payment_id=model.payment)
    return _like(draft, wish, ("the payment method of {}", "whatever {} is paid with"), model)


def send_like(draft: StoryDraft) -> Stage:
    """An order goes where another one goes, or where the account's owner lives."""
    fresh, found, model = (
        not draft.used,
        parts.some_order(draft, "pending"),
        fitting(parts.some_order(draft, *changes.ANY)),
    )
    order = fitting(found)
    fitting(fresh and order != model)
    new, home = address(draft.rng), draft.rng.random() < 0.5
    draft.override("orders", order.order_id if home else model.order_id, address=new)
    if home:
        wish = changes.plain(changes.ADDRESS, order, address=parts.me(draft).address)
        return _like(draft, wish, ("the address that stands in my account", "the address of my account"))
    wish = changes.plain(changes.ADDRESS, order, address=new)
    return _like(draft, wish, ("the address of {}", "the same address as {}"), model)


def _like(
    draft: StoryDraft, wish: WishedChange, ways: Sequence[str], model: RetailOrder | None = None
) -> Stage:
    """A wish whose value is named by where it stands: in another order, or in the account."""
    wish = accepted(draft, wish)
    like = (
        parts.looked_at(draft, model)
        if model
        else Called("", (*parts.DESK.verify(draft), parts.account(draft)))
    )
    (name,) = wish.arguments.keys() - {"order_id"}
    made = part(draft, wish.named(**{name: draft.rng.choice(ways).format(like.it)}))
    if model:
        draft.used.add(model.order_id)
    return one(sentence(draft, made.say), (*like.find, call("get_order", order_id=wish.subject)), made)


# --- two things --------------------------------------------------------------------------------------


def same_order(draft: StoryDraft, operations: Sequence[Operation], it: str) -> Stage:
    """One of some changes, and another of the order as a whole, which leaves what the first is about alone."""
    found, operation = parts.some_order(draft, "pending"), draft.rng.choice(operations)
    order = fitting(found)
    first = wanted(draft, operation, order)
    other = draft.rng.choice([one for one in WHOLE if one is not operation])
    second = then(draft, first, other, [draft.after(first.call).get("orders", order.order_id)])
    return both(draft, parts.DESK.verify(draft), first, fitting(second), it)


def two_orders(draft: StoryDraft, status: tuple[str, str]) -> Stage:
    """Something for one order, and something for another."""
    first_status, second_status = draft.rng.sample(status, 2)
    first = _of_one(draft, fitting(parts.some_order(draft, first_status)))
    other = fitting(parts.some_order(draft, second_status))
    with draft.granting(first.call):
        second = _of_one(draft, other)
    # what is taken out is said first, so that nothing after it seems to be about that
    wishes = (second, first) if second.operation is changes.REMOVE else (first, second)
    return both(draft, parts.DESK.verify(draft), *wishes)


def _of_one(draft: StoryDraft, order: RetailOrder) -> WishedChange:
    """Something for an order that is called by its number, about one thing in it at most.

    So nothing that is said of it can be taken for what is said of another.
    """
    operation, it = draft.rng.choice(OF_STATUS[order.status]), f"order {order.order_id}"
    line = draft.rng.choice(order.lines)
    if operation is changes.RETURN:
        drawn = changes.giving_back(changes.RETURN, draft, order, [line], order.payment)
    elif operation in (changes.CHANGE, changes.EXCHANGE):
        drawn = changes.cheapest_swap(operation, draft, order, line)
    else:
        drawn = wish_for(draft, operation, among=[order])
    drawn = accepted(draft, drawn)
    return drawn.named(it=it, what=f"{drawn.fill['things']} in {it}")._replace(find=())
