"""What the shop's customers want."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail import language, questions, traps
from turnwise.envs.toolworld.retail.actions import ACTS, WRAP_PRICE
from turnwise.envs.toolworld.retail.parts import enter, own_order, ref, thing, verify
from turnwise.envs.toolworld.retail.policy import POLICY
from turnwise.envs.toolworld.retail.rules import rules
from turnwise.envs.toolworld.retail.state import RetailItem, User, build
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.vocabulary import address


def _cancel(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None:
        return None
    reason = draft.rng.choice(("no longer needed", "ordered by mistake"))
    why = {
        "no longer needed": (
            "I no longer need it.",
            "I have no use for it any more.",
            "It is not needed any longer.",
            "I do not need it now.",
        ),
        "ordered by mistake": (
            "I ordered it by mistake.",
            "It was ordered by mistake.",
            "That order was a mistake.",
            "I pressed the wrong button, a mistake.",
        ),
    }[reason]
    why = draft.words(*why)
    which, look = ref(draft, order)
    total = dollars(sum(line.price for line in order.lines))
    wants_total = draft.rng.random() < 0.5
    say = draft.words(
        f"I want to cancel {which}. {why}",
        f"Please cancel {which}. {why}",
        f"Can you cancel {which}? {why}",
        f"{why} So cancel {which}, please.",
        f"Call {which} off. {why}",
        f"It is about {which}: cancel it. {why}",
    )
    fact = Fact("money", str(sum(line.price for line in order.lines)))
    done = tell(f"Order {order.order_id} is cancelled; {total} will be refunded.")
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will cancel order {order.order_id} and refund {total}. Shall I proceed?"),
        call("cancel_order", order_id=order.order_id, reason=reason), done,
    )  # fmt: skip
    again = draft.words(
        "How much do I get back?",
        "What will be refunded?",
        "What amount comes back to me?",
        "How much money will I see again?",
    )
    if wants_total:
        return Stage(f"{say} {again}", plan, (fact,), again="How much money do I get back?")
    return Stage(say, plan)


def _cheapest(items: list[RetailItem]) -> dict[str, RetailItem]:
    """The cheapest item of each colour, where there is one alone."""
    found: dict[str, RetailItem] = {}
    for colour in sorted({item.colour for item in items}):
        best, *others = sorted((item for item in items if item.colour == colour), key=lambda item: item.price)
        if not others or others[0].price > best.price:
            found[colour] = best
    return found


def _swap(draft: StoryDraft, status: str, tool: str, verb: str) -> Stage | None:
    """Another variant: the cheapest in stock of a colour; at times he changes his mind about the colour."""
    order = own_order(draft, status)
    if order is None or order.changed:
        return None
    line = draft.rng.choice(order.lines)
    old: RetailItem = draft.db.get("items", line.item_id)
    stock = [i for i in draft.db.rows("items") if i.product == old.product and i.in_stock and i != old]
    cheapest = _cheapest(stock)
    if len(cheapest) < 2:
        return None
    first, second = draft.rng.sample(sorted(cheapest), 2)
    twisted = draft.changes_mind
    colour = second if twisted else first
    user: User = draft.db.get("users", draft.customer)
    new = cheapest[colour]
    able = [p for p in user.payments if p.kind != "gift" or p.balance >= new.price - line.price]
    payment = draft.rng.choice(able)
    draft.facts[f"payment_{order.order_id}"] = f"Use {payment.id} for order {order.order_id}."
    which, look = ref(draft, order)
    say = (
        draft.words(
            f"In {which}, {verb} the {thing(draft, old.item_id)} for the cheapest {first} {old.product} that you have.",
            f"I would like the cheapest {first} {old.product} instead of the {thing(draft, old.item_id)} in {which}: {verb} it.",
            f"Please {verb} the {thing(draft, old.item_id)} of {which}: give me your cheapest {first} {old.product} for it.",
            f"The {thing(draft, old.item_id)} of {which} is not right. {verb.capitalize()} it for the {first} {old.product} that costs least.",
        )
        + " "
        + draft.words(
            f"Any price difference goes to {payment.id}.",
            f"Settle the difference with {payment.id}.",
            f"Use {payment.id} for what it costs more or less.",
            f"What differs in price is for {payment.id}.",
        )
    )
    difference = dollars(new.price - line.price)
    before = (
        (PlanStep("propose", f"I will {verb} the item for {cheapest[first].item_id}. Shall I proceed?"),)
        if twisted
        else ()
    )
    confirm = PlanStep(
        "confirm",
        f"I will {verb} it for the {new.colour} {new.size} {new.product} ({difference}). Shall I proceed?",
    )
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id), call("get_product", product=old.product),
        *before, confirm,
        call(tool, order_id=order.order_id, item_id=line.item_id, new_item_id=new.item_id, payment_id=payment.id),
        tell(f"Done, the price difference is {difference}."),
    )  # fmt: skip
    other = draft.words(
        f"Wait, actually I want the cheapest {second} one instead.", f"Hm, rather the cheapest {second} one.",
        f"I have thought again: the cheapest {second} one, please.", f"No, make it the cheapest {second} one.",
    )  # fmt: skip
    twist = other if twisted else ""
    return Stage(say, plan, twist=twist)


def _return(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "delivered")
    if order is None:
        return None
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    user: User = draft.db.get("users", draft.customer)
    method = draft.rng.choice([order.payment, *(p.id for p in user.payments if p.kind == "gift")])
    things = " and the ".join(thing(draft, line.item_id) for line in lines)
    which, look = ref(draft, order)
    total = sum(line.price for line in lines)
    say = draft.words(
        f"I want to return the {things} from {which}. Refund it to {method}. How much will I get?",
        f"Please take back the {things} from {which}, with the refund to {method}. What amount will that be?",
        f"The {things} from {which} shall go back, and the money to {method}. What do I get for it?",
        f"Register a return: the {things} from {which}, refunded to {method}. How high is the refund?",
    )
    items = sorted(line.item_id for line in lines)
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will return the items {', '.join(items)}, refund to {method}. Shall I proceed?"),
        call("return_items", order_id=order.order_id, item_ids=items, refund_to=method),
        tell(f"Done. You will be refunded {dollars(total)}."),
    )  # fmt: skip
    return Stage(say, plan, (Fact("money", str(total)),), again="How much will I get back?")


def _address(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None:
        return None
    first, second = address(draft.rng), address(draft.rng)
    twisted = draft.changes_mind
    new = second if twisted else first
    which, look = ref(draft, order)
    say = draft.words(
        f"Send {which} to {first}.",
        f"I have moved. Please ship {which} to {first}.",
        f"{which.capitalize()} must go to {first} now.",
        f"Change the address of {which} to {first}.",
        f"Please deliver {which} to {first}.",
        f"Redirect {which}: the new address is {first}.",
    )
    other = draft.words(
        f"No, sorry. Send it to {second}.", f"Wait, I was wrong: it is {second}.", f"Ah, better to {second}.", f"Actually, make that {second}.",
    )  # fmt: skip
    before = (
        (PlanStep("propose", f"I will send it to the address {first}. Shall I proceed?"),) if twisted else ()
    )
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id), *before,
        PlanStep("confirm", f"I will send it to the address {new}. Shall I proceed?"),
        call("change_address", order_id=order.order_id, address=new), tell("Done, the address is changed."),
    )  # fmt: skip
    return Stage(say, plan, twist=other if twisted else "")


def _count(draft: StoryDraft) -> Stage | None:
    product = draft.free(sorted({item.product for item in draft.db.rows("items")}), lambda name: name)
    if product is None:
        return None
    stock = sum(item.in_stock for item in draft.db.rows("items") if item.product == product)
    say = draft.words(
        f"How many variants of the {product} do you have in stock?",
        f"I wonder how many different {product} variants can be bought right now.",
        f"Count the {product} variants that are in stock for me.",
        f"In how many variants is the {product} available at the moment?",
        f"Of the {product}, how many kinds are there in stock?",
        f"How big is your choice of the {product}: how many variants are in stock?",
    )
    plan = (call("get_product", product=product), tell(f"There are {stock} variants in stock."))
    return Stage(
        say, plan, (Fact("count", str(stock)),), again=f"How many variants of the {product} are in stock?"
    )


def _payment(draft: StoryDraft) -> Stage | None:
    """Another payment method for a pending order."""
    order = own_order(draft, "pending")
    if order is None:
        return None
    total = sum(line.price for line in order.lines)
    user: User = draft.db.get("users", draft.customer)
    able = [p.id for p in user.payments if p.id != order.payment and (p.kind != "gift" or p.balance >= total)]
    if not able:
        return None
    new = draft.rng.choice(able)
    which, look = ref(draft, order)
    say = draft.words(
        f"I want to pay {which} with {new}.", f"Change the payment of {which} to {new}.", f"Please charge {which} to {new} instead.",
        f"Use {new} for {which}, not what I chose.",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will change the payment of order {order.order_id} to {new}. Shall I proceed?"),
        call("change_payment", order_id=order.order_id, payment_id=new), tell("Done, the payment is changed."),
    )  # fmt: skip
    return Stage(say, plan, wants=("change_payment",))


def _remove(draft: StoryDraft) -> Stage | None:
    """One thing is taken out of a pending order."""
    order = own_order(draft, "pending")
    if order is None or len(order.lines) < 2 or order.changed:
        return None
    line = draft.rng.choice(order.lines)
    which, look = ref(draft, order)
    name = thing(draft, line.item_id)
    say = draft.words(
        f"Take the {name} out of {which}. How much do I get back for it?", f"I do not want the {name} in {which}: remove it. What is refunded?",
        f"Please remove the {name} from {which}, and tell me the refund.", f"Leave the {name} out of {which}. What comes back to me?",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will remove the {name} from order {order.order_id} and refund {dollars(line.price)}. Shall I proceed?"),
        call("remove_item", order_id=order.order_id, item_id=line.item_id), tell(f"Done, {dollars(line.price)} will be refunded."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(line.price)),), again="How much is refunded?", wants=("remove_item",)
    )


def _wrap(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None or order.wrapped:
        return None
    which, look = ref(draft, order)
    cost = WRAP_PRICE * len(order.lines)
    say = draft.words(
        f"Wrap {which} as a gift. What does it cost?", f"Please have {which} gift-wrapped, and tell me the price.",
        f"I need gift wrapping for {which}. How much is that?", f"{which.capitalize()} is a present: wrap it. What do I pay for that?",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will wrap order {order.order_id} as a gift for {dollars(cost)}. Shall I proceed?"),
        call("wrap_order", order_id=order.order_id), tell(f"Done, it costs {dollars(cost)}."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(cost)),), again="What does the wrapping cost?", wants=("wrap_order",)
    )


def _home(draft: StoryDraft) -> Stage | None:
    """The address of the account, not of an order."""
    if "home" in draft.used:
        return None
    draft.used.add("home")
    new = address(draft.rng)
    say = draft.words(
        f"Change the address of my account to {new}. Orders stay as they are.", f"My account shall have the address {new}, my orders not.",
        f"For future orders only: my address is {new} now.", f"Update my profile: I live at {new}. Leave my orders alone.",
    )  # fmt: skip
    plan = (
        *verify(draft), PlanStep("confirm", f"I will change the address of your account to {new}. Shall I proceed?"),
        call("change_user_address", user_id=draft.customer, address=new), tell("Done, the address is changed."),
    )  # fmt: skip
    return Stage(say, plan, wants=("change_user_address",))


DOMAIN = Domain(
    name="retail",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={
        "cancel": _cancel,
        "change": lambda draft: _swap(draft, "pending", "change_item", "change"),
        "exchange": lambda draft: _swap(draft, "delivered", "exchange_item", "exchange"),
        "return": _return,
        "address": _address,
        "payment": _payment,
        "remove": _remove,
        "wrap": _wrap,
        "home": _home,
        "count": _count,
        "status": questions.status,
        "total": questions.total,
        "price": questions.price,
        "cheapest": questions.cheapest,
        "balance": questions.balance,
    },
    traps={
        "cancel_sent": traps.cancel_sent, "return_unsent": traps.return_unsent, "refund_method": traps.other_method,
        "other_product": traps.other_product, "not_owner": traps.not_mine, "changed_before": traps.changed_before,
        "out_of_stock": traps.out_of_stock, "cancel_reason": traps.other_reason, "address_sent": traps.address_sent,
        "no_discount": traps.cheaper_now, "transfer": traps.transfer,
    },
    enter=enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    rules=rules,
)  # fmt: skip
