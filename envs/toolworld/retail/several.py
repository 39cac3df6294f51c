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
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.operations import Operation, WishedChange, accept, sentence, wish_for
from turnwise.envs.toolworld.retail.operations import (
    ADDRESS,
    ANY,
    CANCEL,
    CHANGE,
    EXCHANGE,
    HOME,
    PAYMENT,
    REMOVE,
    RETURN,
    WRAP,
    cheapest_swap,
    giving_back,
    removal,
)
from turnwise.envs.toolworld.retail.parts import DESK, all_orders, called, me, orders, some_order, total_of
from turnwise.envs.toolworld.retail.state import OrderLine, RetailOrder
from turnwise.envs.toolworld.story import PlanStep, Stage, call, once
from turnwise.envs.toolworld.vocabulary import address

UNSENT = (
    "my orders that have not been sent yet", "the orders of mine that are still unsent", "my orders which you have not sent off so far",
    "my orders that are still with you", "my orders that are not on their way yet", "my orders which have not left you yet",
)  # fmt: skip
MOST = 3  # orders that one request changes
MEASURES = (
    ("costs most in all", total_of, True),
    ("costs least in all", total_of, False),
    ("has most things in it", lambda order: len(order.lines), True),
)
WHOLE = (WRAP, ADDRESS, PAYMENT)  # changes of an order as a whole, which stays
OF_STATUS = {"pending": (CANCEL, CHANGE, REMOVE, *WHOLE), "delivered": (RETURN, EXCHANGE)}


def _look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every order in it."""
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    reads = (call("get_order", order_id=order.order_id) for order in own)
    return (*DESK.verify(draft), call("get_user", user_id=draft.customer), *reads)


def unsent(draft: StoryDraft) -> SeveralSubjects:
    found = all_orders(draft, "pending")
    return SeveralSubjects(found if len(found) <= MOST else (), UNSENT, MEASURES, _look_at_all(draft))


def _is_touched(draft: StoryDraft) -> bool:
    """Say whether a request was about one of the customer's orders, so that "all that was delivered" is not
    plain any more."""
    return any(o.order_id in draft.used for o in draft.db.rows("orders") if o.user_id == draft.customer)


def clear_all(draft: StoryDraft) -> Stage | None:
    """Draw the wish to cancel all that was not sent and to return all that was delivered."""
    came, unsent = all_orders(draft, "delivered"), all_orders(draft, "pending")
    if _is_touched(draft) or not came or not unsent or len(came) + len(unsent) > MOST:
        return None
    cancels = each(draft, CANCEL, unsent)
    backs = [giving_back(RETURN, draft, order, order.lines, order.payment) for order in came]
    if not cancels or not all(accept(draft, back) for back in backs):
        return None
    first = part(draft, cancels[0].named(it="whatever orders of mine have not been sent yet"), *cancels[1:])
    second = draft.words(
        "take back everything from the orders that I have received, each refunded to what it was paid with",
        "return all that was delivered to me in any order, and refund each order to its own payment method",
        "register a return of all items in my delivered orders, with each refund to that order's payment method",
        "let me send back the whole contents of each order that has arrived, each refunded as it was paid",
        "accept back all things from my delivered orders and refund every order the way it was paid",
        "process returns of everything in my delivered orders, each with a refund to that order's own payment",
    )
    steps = tuple(step for back in backs for step in part(draft, back).steps)
    return joined(
        draft, _look_at_all(draft), first, WishPart(second, steps, " ".join(back.report for back in backs))
    )


def moved_house(draft: StoryDraft) -> Stage | None:
    """A new address for the account and for what is not sent yet."""
    orders = all_orders(draft, "pending")
    home = wish_for(draft, HOME) if 0 < len(orders) <= MOST else None
    wishes = each(draft, ADDRESS, orders) if home else ()
    if home is None or not wishes:
        return None
    new = home.fill["address"]
    same = [wish.given(address=new) for wish in wishes]
    say = draft.words(
        f"I have moved to {new}. Put this into my account, and have every order that was not sent yet go there as well.",
        f"My new home is {new}: save it as the address of my account, and send my unsent orders to it too.",
        f"From now on I live at {new}. Update my account, and redirect all orders of mine which are still with you.",
        f"We live at {new} now. Both my account and all my orders that have not left you yet should have this address.",
        f"Please note my move to {new}. It is the address for my account and for whichever orders have not been sent so far.",
        f"I moved; the address is {new}. Change it in my account and in all orders that you have not sent off yet.",
    )
    return joined(draft, _look_at_all(draft), part(draft, home), part(draft, *same), say)


def dearest_back(draft: StoryDraft) -> Stage | None:
    """The dearest thing that was delivered, in whichever order it came."""
    came = [] if _is_touched(draft) else all_orders(draft, "delivered")
    bought = sorted(((line.price, o.order_id, line) for o in came for line in o.lines), reverse=True)
    if len(came) < 2 or bought[0][0] == bought[1][0]:
        return None
    price, key, line = bought[0]
    order: RetailOrder = draft.db.get("orders", key)
    wish = giving_back(RETURN, draft, order, [line], order.payment)
    if not accept(draft, wish):
        return None
    what = "the thing for which I paid most of all that was ever delivered to me"
    made = part(draft, wish.named(what=what, refund_to="the payment method of its order"))
    say = draft.words(
        f"Please {made.say}. How much do I get for it?", f"Look through my orders and {made.say}. What is the refund?",
        f"I must save money, so {made.say}. What will I be refunded?", f"You will have to search my orders for this: {made.say}. What comes back to me?",
        f"I want you to {made.say}. How high is the refund then?", f"Check all my orders, and {made.say}. Tell me what I get.",
    )  # fmt: skip
    asked = made._replace(tells=(Fact("money", str(price)),), again="How much will be refunded?")
    return one(say, _look_at_all(draft), asked)


def _twice(draft: StoryDraft) -> tuple[RetailOrder, OrderLine] | None:
    """Of the one product that stands in two orders, the dearer one, with its order."""
    own: list[RetailOrder] = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    found: dict[str, list[tuple[RetailOrder, OrderLine]]] = {}
    for order in own:
        for line in order.lines:
            found.setdefault(draft.db.get("items", line.item_id).product, []).append((order, line))
    twice = [bought for bought in found.values() if len(bought) > 1]
    if len(twice) != 1 or len(twice[0]) != 2:
        return None
    less, more = sorted(twice[0], key=lambda pair: pair[1].price)
    free = all(order.order_id not in draft.used for order, _ in twice[0])
    return more if free and less[1].price < more[1].price else None


def bought_twice(draft: StoryDraft) -> Stage | None:
    """Of a kind of thing that two orders have, the dearer one goes back, or out of its order."""
    found = _twice(draft)
    if found is None:
        return None
    order, line = found
    name = "the dearer one of the two"
    if order.status == "delivered":
        wish = giving_back(RETURN, draft, order, [line], order.payment).named(
            what=name, refund_to="the payment of its order"
        )
    elif len(order.lines) > 1:
        wish = removal(REMOVE, draft, order, line).named(things=name, it="its order")
    else:
        drawn = wish_for(draft, CANCEL, among=[order])
        if drawn is None:
            return None
        wish = drawn.named(it="the order with the one of them that cost more")
    if not accept(draft, wish):
        return None
    # what is offered and reported names the thing, though the wish does not
    made = part(draft, wish)
    say = draft.words(
        f"There is one kind of product that I have in two of my orders. Please {made.say}.",
        f"By mistake two orders of mine have the same kind of product in them. I ask you to {made.say}.",
        f"I bought something twice, in two different orders: find out what it is, and {made.say}.",
        f"Two of my orders have a product in common, though maybe not in the same variant. So {made.say}.",
        f"One product stands in two of my orders, whatever its colour. Do this for me: {made.say}.",
        f"I have ordered one sort of article in two orders; see which it is and {made.say}.",
    )
    return one(say, _look_at_all(draft), made)


# --- like another order ------------------------------------------------------------------------------


def pay_like(draft: StoryDraft) -> Stage | None:
    """An order is paid with what another one was paid with."""
    order = some_order(draft, "pending")
    others = [other for other in orders(*ANY)(draft, True) if order and other.payment != order.payment]
    if order is None or not others:
        return None
    model = draft.rng.choice(others)
    wish = WishedChange(
        PAYMENT, order.order_id, {"order_id": order.order_id, "payment_id": model.payment}, {}
    )
    return _like(
        draft,
        wish,
        order,
        model,
        "payment_id",
        "the payment method of {like}",
        "whatever {like} is paid with",
    )


def send_like(draft: StoryDraft) -> Stage | None:
    """An order goes where another one goes, or where the account's owner lives."""
    fresh, order, model = not draft.used, some_order(draft, "pending"), some_order(draft, *ANY)
    if not fresh or order is None or model is None or order == model:
        return None
    new, home = address(draft.rng), draft.rng.random() < 0.5
    draft.override("orders", order.order_id if home else model.order_id, address=new)
    where = me(draft).address if home else new
    wish = WishedChange(ADDRESS, order.order_id, {"order_id": order.order_id, "address": where}, {})
    if not home:
        return _like(
            draft, wish, order, model, "address", "the address of {like}", "the same address as {like}"
        )
    return _like(
        draft,
        wish,
        order,
        None,
        "address",
        "the address that stands in my account",
        "the address of my account",
    )


def _like(
    draft: StoryDraft,
    wish: WishedChange,
    order: RetailOrder,
    model: RetailOrder | None,
    name: str,
    *ways: str,
) -> Stage | None:
    """A wish whose value is named by where it stands: in another order, or in the account."""
    key = order.order_id
    wish = wish._replace(
        fill={"it": f"order {key}", "order": f"order {key}", name: str(wish.arguments[name])}
    )
    if not accept(draft, wish):
        return None
    like = called(draft, model) if model else None
    value = draft.rng.choice(ways).format(like=like.it if like else "")
    made = part(draft, wish.named(**{name: value}))
    read = call("get_order", order_id=model.order_id) if model else call("get_user", user_id=draft.customer)
    plan = once(
        (*DESK.verify(draft), *(like.find if like else ()), read, call("get_order", order_id=order.order_id))
    )
    if model:
        draft.used.add(model.order_id)
    return one(sentence(draft, made.say), plan, made)


# --- two things --------------------------------------------------------------------------------------


def same_order(draft: StoryDraft, operations: Sequence[Operation], it: str) -> Stage | None:
    """One of some changes, and another of the order as a whole, which leaves what the first is about alone."""
    order = some_order(draft, "pending")
    operation = draft.rng.choice(operations)
    first = wish_for(draft, operation, among=[order]) if order else None
    if order is None or first is None:
        return None
    other = draft.rng.choice([one for one in WHOLE if one is not operation])
    second = then(draft, first, other, [draft.after(first.call).get("orders", order.order_id)])
    return both(draft, DESK.verify(draft), first, second, it) if second else None


def two_orders(draft: StoryDraft, status: tuple[str, str]) -> Stage | None:
    """Something for one order, and something for another."""
    first_status, second_status = draft.rng.sample(status, 2)
    order = some_order(draft, first_status)
    first = _of_one(draft, order) if order else None
    other = some_order(draft, second_status) if first else None
    if first is None or other is None:
        return None
    before, draft.db = draft.db, draft.after(first.call)
    second = _of_one(draft, other)
    draft.db = before
    if second is None:
        return None
    # what is taken out is said first, so that nothing after it seems to be about that
    return both(
        draft, DESK.verify(draft), *((second, first) if second.operation is REMOVE else (first, second))
    )


def _of_one(draft: StoryDraft, order: RetailOrder) -> WishedChange | None:
    """Something for an order that is called by its number, about one thing in it at most.

    So nothing that is said of it can be taken for what is said of another.
    """
    operation, it = draft.rng.choice(OF_STATUS[order.status]), f"order {order.order_id}"
    line = draft.rng.choice(order.lines)
    if operation is RETURN:
        drawn = giving_back(RETURN, draft, order, [line], order.payment)
    elif operation in (CHANGE, EXCHANGE):
        drawn = cheapest_swap(operation, draft, order, line)
    else:
        drawn = wish_for(draft, operation, among=[order])
    if drawn is None or not accept(draft, drawn):
        return None
    return drawn.named(it=it, what=f"{drawn.fill['things']} in {it}")._replace(find=())
