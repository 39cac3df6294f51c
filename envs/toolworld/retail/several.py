"""What the shop's customers want of several orders: of one that must be found among them, of all, of two."""

from __future__ import annotations

from turnwise.envs.toolworld.alternatives import WishPart, joined
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail import wishes
from turnwise.envs.toolworld.retail.parts import (
    all_of,
    look_at_all,
    own_order,
    ref,
    total_of,
    verify,
)
from turnwise.envs.toolworld.retail.state import RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.vocabulary import address

_UNSENT = (
    "my orders that have not been sent yet", "the orders of mine that are still unsent", "my orders which you have not sent off so far",
    "my orders that are still with you", "my orders that are not on their way yet", "my orders which have not left you yet",
)  # fmt: skip
_MOST = 3  # orders that one request changes


def _pick(draft: StoryDraft, orders: list[RetailOrder]) -> tuple[str, RetailOrder] | None:
    """One of the orders by how it compares with the others, where no other is like it."""
    ways = [
        ("costs most in all", sorted(orders, key=lambda order: -total_of(order))),
        ("costs least in all", sorted(orders, key=total_of)),
        ("has most things in it", sorted(orders, key=lambda order: -len(order.lines))),
    ]
    name, ranked = draft.rng.choice(ways)
    measure = total_of if "costs" in name else lambda order: len(order.lines)
    return None if measure(ranked[0]) == measure(ranked[1]) else (name, ranked[0])


def one_of(draft: StoryDraft) -> Stage | None:
    """The dearest, cheapest or fullest of the unsent orders is changed."""
    orders = all_of(draft, "pending")
    picked = _pick(draft, orders) if len(orders) > 1 else None
    if picked is None or picked[1].wrapped:
        return None
    name, order = picked
    the = draft.words(
        f"the one that {name}", f"only the one which {name}", f"that one which {name}",
        f"just the one that {name}", f"whichever {name}", f"the single one that {name}",
    )  # fmt: skip
    part = draft.rng.choice((
        lambda: wishes.cancel(draft, the, order),
        lambda: wishes.wrap(draft, the, order),
        lambda: wishes.send(draft, the, address(draft.rng), order),
    ))()  # fmt: skip
    among = draft.words(*_UNSENT)
    say = draft.words(
        f"Look at {among} and {part.say}.",
        f"This is about {among}: {part.say}.",
        f"Among {among}, {part.say}.",
        f"Please compare {among}, and {part.say}.",
        f"Of {among}, please {part.say}.",
        f"Go through {among}; then {part.say}.",
    )
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))


def one_and_rest(draft: StoryDraft) -> Stage | None:
    """One of the unsent orders is cancelled, and the others stay and are changed."""
    orders = all_of(draft, "pending")
    picked = _pick(draft, orders) if 1 < len(orders) <= _MOST else None
    if picked is None or any(order.wrapped for order in orders):
        return None
    name, order = picked
    rest = [other for other in orders if other != order]
    first = wishes.cancel(draft, f"the one that {name}", order)
    others = "what remains of them"
    second = draft.rng.choice((
        lambda: wishes.wrap(draft, others, *rest),
        lambda: wishes.send(draft, others, address(draft.rng), *rest),
    ))()  # fmt: skip
    among = draft.words(*_UNSENT)
    say = draft.words(
        f"Take {among}: {first.say}, and {second.say}.",
        f"It is about {among}. From these, {first.say}; {second.say}.",
        f"I have thought about {among}: please {first.say}, and {second.say}.",
        f"Regarding {among}, {first.say}, and also {second.say}.",
        f"With {among}, please do this: {first.say}; {second.say}.",
        f"See {among}: {first.say} and, that done, {second.say}.",
    )
    return joined(draft, (*verify(draft), *look_at_all(draft)), first, second, say)


def all_unsent(draft: StoryDraft) -> Stage | None:
    """All orders that were not sent are cancelled, wrapped or sent elsewhere."""
    orders = all_of(draft, "pending")
    if not 1 < len(orders) <= _MOST or any(order.wrapped for order in orders):
        return None
    among = f"all {draft.words(*_UNSENT)}"
    part = draft.rng.choice((
        lambda: wishes.cancel(draft, among, *orders),
        lambda: wishes.wrap(draft, among, *orders),
        lambda: wishes.send(draft, among, address(draft.rng), *orders),
    ))()  # fmt: skip
    say = draft.words(
        f"Please {part.say}.", f"I would like you to {part.say}.", f"Do me a favour: {part.say}.",
        f"My wish is simple: {part.say}.", f"Would you {part.say}, please?", f"I ask you to {part.say}.",
    )  # fmt: skip
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))


def _is_touched(draft: StoryDraft) -> bool:
    """Whether a request was about one of the customer's orders, so that "all that was delivered" is not plain any more."""
    return any(o.order_id in draft.used for o in draft.db.rows("orders") if o.user_id == draft.customer)


def clear_all(draft: StoryDraft) -> Stage | None:
    """What was not sent is cancelled, what was delivered goes back."""
    orders = [] if _is_touched(draft) else all_of(draft, "pending", "delivered")
    unsent = [order for order in orders if order.status == "pending"]
    came = [order for order in orders if order.status == "delivered"]
    if not unsent or not came or len(orders) > _MOST:
        return None
    first = wishes.cancel(draft, "whatever orders of mine have not been sent yet", *unsent)
    backs = [wishes.give_back(draft, "all of it", o.payment, o, o.lines, o.payment) for o in came]
    steps = tuple(step for back in backs for step in back.steps)
    second = draft.words(
        "take back everything from the orders that I have received, each refunded to what it was paid with",
        "return all that was delivered to me in any order, and refund each order to its own payment method",
        "register a return of all items in my delivered orders, with each refund to that order's payment method",
        "let me send back the whole contents of each order that has arrived, each refunded as it was paid",
        "accept back all things from my delivered orders and refund every order the way it was paid",
        "process returns of everything in my delivered orders, each with a refund to that order's own payment",
    )
    report = f"The returns are registered: {', '.join(order.order_id for order in came)}."
    look = (*verify(draft), *look_at_all(draft))
    return joined(draft, look, first, WishPart(second, steps, report))


def moved_house(draft: StoryDraft) -> Stage | None:
    """A new address for the account and for what is not sent yet."""
    orders = all_of(draft, "pending")
    if not 0 < len(orders) <= _MOST or "home" in draft.used:
        return None
    draft.used.add("home")
    new = address(draft.rng)
    say = draft.words(
        f"I have moved to {new}. Put this into my account, and have every order that was not sent yet go there as well.",
        f"My new home is {new}: save it as the address of my account, and send my unsent orders to it too.",
        f"From now on I live at {new}. Update my account, and redirect all orders of mine which are still with you.",
        f"We live at {new} now. Both my account and all my orders that have not left you yet should have this address.",
        f"Please note my move to {new}. It is the address for my account and for whichever orders have not been sent so far.",
        f"I moved; the address is {new}. Change it in my account and in all orders that you have not sent off yet.",
    )
    write = call("change_user_address", user_id=draft.customer, address=new)
    account = (
        PlanStep("confirm", f"I will change the address of your account to {new}. Shall I proceed?"), write,
    )  # fmt: skip
    plan = (
        *verify(draft), *look_at_all(draft), *account, *wishes.sending(new, *orders),
        tell("Done, the account and the orders have the new address."),
    )  # fmt: skip
    return Stage(say, plan)


def dearest_back(draft: StoryDraft) -> Stage | None:
    """The dearest thing that was delivered, in whichever order it came."""
    orders = [] if _is_touched(draft) else all_of(draft, "delivered")
    bought = sorted(
        ((line.price, order.order_id, line) for order in orders for line in order.lines), reverse=True
    )
    if len(orders) < 2 or bought[0][0] == bought[1][0]:
        return None
    price, key, line = bought[0]
    order: RetailOrder = draft.db.get("orders", key)
    what = "the thing for which I paid most of all that was ever delivered to me"
    part = wishes.give_back(draft, what, "the payment method of its order", order, [line], order.payment)
    say = draft.words(
        f"Please {part.say}. How much do I get for it?", f"Look through my orders and {part.say}. What is the refund?",
        f"I must save money, so {part.say}. What will I be refunded?", f"You will have to search my orders for this: {part.say}. What comes back to me?",
        f"I want you to {part.say}. How high is the refund then?", f"Check all my orders, and {part.say}. Tell me what I get.",
    )  # fmt: skip
    report = f"{part.report} You will be refunded {dollars(price)}."
    plan = (*verify(draft), *look_at_all(draft), *part.steps, tell(report))
    return Stage(say, plan, (Fact("money", str(price)),), again="How much will be refunded?")


def bought_twice(draft: StoryDraft) -> Stage | None:
    """Of a kind of thing that two delivered orders have, the dearer one goes back; of two unsent ones, it is taken out."""
    own: list[RetailOrder] = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    found: dict[str, list[RetailOrder]] = {}
    for order in own:
        for line in order.lines:
            found.setdefault(draft.db.get("items", line.item_id).product, []).append(order)
    twice = [(product, orders) for product, orders in found.items() if len(orders) > 1]
    if len(twice) != 1 or len(twice[0][1]) != 2 or any(order.order_id in draft.used for order in twice[0][1]):
        return None
    product, orders = twice[0]
    lines = [(line.price, o.order_id, line) for o in orders for line in o.lines
             if draft.db.get("items", line.item_id).product == product]  # fmt: skip
    (least, _, _), (most, key, line) = sorted(lines)
    order = draft.db.get("orders", key)
    if least == most or order.status not in ("pending", "delivered") or order.changed:
        return None
    draft.used.update(o.order_id for o in orders)
    name = "the dearer one of the two"
    if order.status == "delivered":
        part = wishes.give_back(draft, name, "the payment of its order", order, [line], order.payment)
    elif len(order.lines) > 1:
        part = wishes.remove(draft, name, "its order", order, line)
    else:
        part = wishes.cancel(draft, "the order with the one of them that cost more", order)
    say = draft.words(
        f"There is one kind of product that I have in two of my orders. Please {part.say}.",
        f"By mistake two orders of mine have the same kind of product in them. I ask you to {part.say}.",
        f"I bought something twice, in two different orders: find out what it is, and {part.say}.",
        f"Two of my orders have a product in common, though maybe not in the same variant. So {part.say}.",
        f"One product stands in two of my orders, whatever its colour. Do this for me: {part.say}.",
        f"I have ordered one sort of article in two orders; see which it is and {part.say}.",
    )
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))


def _alike(
    draft: StoryDraft, order: RetailOrder, model: RetailOrder
) -> tuple[str, str, tuple[PlanStep, ...]]:
    """How an order, and another one that it shall be like, are named, and how the other is found."""
    like, look = ref(draft, model)
    return f"order {order.order_id}", like, look


def pay_like(draft: StoryDraft) -> Stage | None:
    """An order is paid with what another one was paid with."""
    order, model = own_order(draft, "pending"), own_order(draft, "pending", "processed", "delivered")
    user: User = draft.db.get("users", draft.customer)
    if order is None or model is None or order.payment == model.payment:
        return None
    payment = next(p for p in user.payments if p.id == model.payment)
    if payment.kind == "gift" and payment.balance < total_of(order):
        return None
    which, like, look = _alike(draft, order, model)
    say = draft.words(
        f"Pay {which} with the same payment method as {like}.",
        f"The way {like} is paid, I want {which} to be paid too: change its payment.",
        f"Change the payment of {which} to whatever I used for {like}.",
        f"Please charge {which} to the method with which {like} was paid.",
        f"For {which}, use the payment method of {like}.",
        f"Switch {which} to what {like} was charged to.",
    )
    plan = (
        *verify(draft), *look, call("get_order", order_id=model.order_id), call("get_order", order_id=order.order_id),
        *wishes.paying(payment.id, order), tell(f"Done, it is paid with {payment.id} now."),
    )  # fmt: skip
    return Stage(say, plan)


def send_like(draft: StoryDraft) -> Stage | None:
    """An order goes where another one goes, or where the account's owner lives."""
    fresh = not draft.used
    order, model = own_order(draft, "pending"), own_order(draft, "pending", "processed", "delivered")
    if not fresh or order is None or model is None:
        return None
    which, like, look = _alike(draft, order, model)
    new, home = address(draft.rng), draft.rng.random() < 0.5
    user: User = draft.db.get("users", draft.customer)
    draft.override("orders", order.order_id if home else model.order_id, address=new)
    say = draft.words(
        f"The address of {which} is wrong: send it to the one that stands in my account.",
        f"Please send {which} to my own address, which you find in my account.",
        f"Let {which} be delivered to the address of my account.",
        f"What my account has for an address is where {which} should be delivered.",
        f"Change the address of {which} to that of my account.",
        f"Redirect {which} to the address that my account shows.",
    ) if home else draft.words(
        f"Send {which} to the same address as {like}.",
        f"Please let {which} go to the place to which {like} is sent.",
        f"Deliver {which} to the address of {like}.",
        f"The address of {like} is right for {which} as well: change it.",
        f"Change where {which} is sent: it must have the address of {like}.",
        f"Where {like} is delivered, there {which} should be sent as well.",
    )  # fmt: skip
    read = call("get_user", user_id=draft.customer) if home else call("get_order", order_id=model.order_id)
    where = user.address if home else new
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id), *((read,) if read not in look else ()),
        *wishes.sending(where, order), tell("Done, the address is changed."),
    )  # fmt: skip
    return Stage(say, plan)
