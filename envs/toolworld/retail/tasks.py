"""What the shop's customers want."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail import asking, conditions, language, pairs, questions, several, traps
from turnwise.envs.toolworld.retail.actions import ACTS, WRAP_PRICE
from turnwise.envs.toolworld.retail.parts import (
    ask_why,
    cheapest_of,
    enter,
    own_order,
    ref,
    settles,
    thing,
    total_of,
    variants,
    verify,
)
from turnwise.envs.toolworld.retail.policy import POLICY
from turnwise.envs.toolworld.retail.rules import rules
from turnwise.envs.toolworld.retail.state import RetailItem, User, build
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.vocabulary import address, listed


def _cancel(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    reason = asking.why(draft, "no longer needed", "ordered by mistake") if order else None
    if order is None or reason is None:
        return None
    which, look = ref(draft, order)
    total, told = dollars(total_of(order)), draft.rng.random() < 0.6
    question = asking.refund_question(draft)
    say = asking.cancel(draft, which, reason[1] if told else "", question)
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        *(() if told else (ask_why(),)),
        PlanStep("confirm", f"I will cancel order {order.order_id} and refund {total}. Shall I proceed?"),
        call("cancel_order", order_id=order.order_id, reason=reason[0]),
        tell(f"Order {order.order_id} is cancelled; {total} will be refunded."),
    )  # fmt: skip
    if question:
        return Stage(say, plan, (Fact("money", str(total_of(order))),), again="How much money do I get back?")
    return Stage(say, plan)


def _choices(draft: StoryDraft, old: RetailItem) -> list[tuple[RetailItem, str]]:
    """Two variants in stock; each with its colour, where he asks for the cheapest of a colour."""
    able = [item for item in variants(draft, old) if item.in_stock]
    if draft.rng.random() < 0.5:
        return [(item, "") for item in draft.rng.sample(able, 2)] if len(able) > 1 else []
    cheapest = cheapest_of(able)
    return (
        [(cheapest[colour], colour) for colour in draft.rng.sample(sorted(cheapest), 2)]
        if len(cheapest) > 1
        else []
    )


def _instead(draft: StoryDraft, wanted: RetailItem, colour: str) -> str:
    name = thing(draft, wanted.item_id)
    if not colour:
        return draft.words(
            f"Wait, actually I want the {name}.", f"Hm, rather the {name}.", f"I have thought again: the {name}, please.",
            f"No, make it the {name}.",
        )  # fmt: skip
    return draft.words(
        f"Wait, actually I want the cheapest {colour} one instead.", f"Hm, rather the cheapest {colour} one.",
        f"I have thought again: the cheapest {colour} one, please.", f"No, make it the cheapest {colour} one.",
    )  # fmt: skip


def _swap(draft: StoryDraft, status: str, tool: str, verb: str) -> Stage | None:
    """Another variant, or the cheapest in stock of a colour; at times he changes his mind about it."""
    order = own_order(draft, status)
    if order is None or order.changed:
        return None
    line = draft.rng.choice(order.lines)
    old: RetailItem = draft.db.get("items", line.item_id)
    choices = _choices(draft, old)
    if not choices:
        return None
    twisted = draft.changes_mind
    first, new = choices[0], choices[1 if twisted else 0][0]
    payment = settles(draft, new.price - line.price)
    if payment is None:
        return None
    which, look = ref(draft, order, (line,))
    said, name = payment[0] if payment[1] else "", thing(draft, old.item_id)
    if first[1]:
        say = asking.swap_cheapest(draft, verb, which, name, first[1], old.product, said)
    else:
        say = asking.swap(draft, verb, which, name, thing(draft, first[0].item_id), said)
    difference, wish = dollars(new.price - line.price), thing(draft, new.item_id)
    propose = PlanStep("propose", f"I will {verb} the item for {first[0].item_id}. Shall I proceed?")
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id), call("get_product", product=old.product),
        *(() if payment[1] else (ask("Which payment method shall the difference go to?", "payment"),)),
        *((propose,) if twisted else ()),
        PlanStep("confirm", f"I will {verb} it for the {wish} ({difference}). Shall I proceed?"),
        call(tool, order_id=order.order_id, item_id=line.item_id, new_item_id=new.item_id, payment_id=payment[0]),
        tell(f"Done, the price difference is {difference}."),
    )  # fmt: skip
    return Stage(say, plan, twist=_instead(draft, *choices[1]) if twisted else "")


def _return(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "delivered")
    if order is None:
        return None
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    user: User = draft.db.get("users", draft.customer)
    method = draft.rng.choice([order.payment, *(p.id for p in user.payments if p.kind == "gift")])
    things = listed([thing(draft, line.item_id) for line in lines])
    which, look = ref(draft, order, lines)
    total = sum(line.price for line in lines)
    question = asking.refund_question(draft)
    items = sorted(line.item_id for line in lines)
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will return the items {', '.join(items)}, refund to {method}. Shall I proceed?"),
        call("return_items", order_id=order.order_id, item_ids=items, refund_to=method),
        tell(f"Done. You will be refunded {dollars(total)}."),
    )  # fmt: skip
    say = asking.give_back(draft, which, things, method, question)
    if question:
        return Stage(say, plan, (Fact("money", str(total)),), again="How much will I get back?")
    return Stage(say, plan)


def _address(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None:
        return None
    first, second = address(draft.rng), address(draft.rng)
    twisted = draft.changes_mind
    new = second if twisted else first
    which, look = ref(draft, order)
    say = asking.send(draft, which, first)
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
        f"Could you count the {product} variants that are in stock for me?",
        f"In how many variants can I have the {product} at the moment?",
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
    total = total_of(order)
    user: User = draft.db.get("users", draft.customer)
    able = [p.id for p in user.payments if p.id != order.payment and (p.kind != "gift" or p.balance >= total)]
    if not able:
        return None
    new = draft.rng.choice(able)
    which, look = ref(draft, order)
    say = asking.pay(draft, which, new)
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
    which, look = ref(draft, order, (line,))
    name, question = thing(draft, line.item_id), asking.refund_question(draft)
    say = asking.remove(draft, which, name, question)
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will remove the {name} from order {order.order_id} and refund {dollars(line.price)}. Shall I proceed?"),
        call("remove_item", order_id=order.order_id, item_id=line.item_id), tell(f"Done, {dollars(line.price)} will be refunded."),
    )  # fmt: skip
    tells = (Fact("money", str(line.price)),) if question else ()
    return Stage(say, plan, tells, again="How much is refunded?" if question else "", wants=("remove_item",))


def _wrap(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None or order.wrapped:
        return None
    which, look = ref(draft, order)
    cost, question = WRAP_PRICE * len(order.lines), asking.price_question(draft)
    say = asking.wrap(draft, which, question)
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will wrap order {order.order_id} as a gift for {dollars(cost)}. Shall I proceed?"),
        call("wrap_order", order_id=order.order_id), tell(f"Done, it costs {dollars(cost)}."),
    )  # fmt: skip
    tells = (Fact("money", str(cost)),) if question else ()
    return Stage(
        say, plan, tells, again="What does the wrapping cost?" if question else "", wants=("wrap_order",)
    )


def _home(draft: StoryDraft) -> Stage | None:
    """The address of the account, not of an order."""
    if "home" in draft.used:
        return None
    draft.used.add("home")
    new = address(draft.rng)
    say = draft.words(
        f"Change the address of my account to {new}. Orders stay as they are.", f"Please save {new} as the address of my account, but not for my orders.",
        f"For future orders only: my address is {new} now.", f"I live at {new} now. Update my profile, and nothing about my orders.",
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
        "unsent_or_status": conditions.unsent_or_status,
        "unsent_or_return": conditions.unsent_or_return,
        "change_within": conditions.change_within,
        "exchange_within": conditions.exchange_within,
        "in_stock_or": conditions.in_stock_or,
        "gift_pays": conditions.gift_pays,
        "budget": conditions.budget,
        "one_of": several.one_of,
        "one_and_rest": several.one_and_rest,
        "all_unsent": several.all_unsent,
        "clear_all": several.clear_all,
        "moved_house": several.moved_house,
        "dearest_back": several.dearest_back,
        "bought_twice": several.bought_twice,
        "pay_like": several.pay_like,
        "send_like": several.send_like,
        "remove_and": pairs.remove_and,
        "change_and": pairs.change_and,
        "two_for_one": pairs.two_for_one,
        "two_unsent": pairs.two_unsent,
        "two_delivered": pairs.two_delivered,
        "old_and_new": pairs.old_and_new,
    },
    traps={
        "cancel_sent": traps.cancel_sent, "sent": traps.sent, "swap_sent": traps.swap_sent, "return_unsent": traps.return_unsent, "refund_method": traps.other_method,
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
