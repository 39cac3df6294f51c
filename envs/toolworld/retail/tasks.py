"""What the shop's customers want."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail import language
from turnwise.envs.toolworld.retail.actions import ACTS
from turnwise.envs.toolworld.retail.rules import POLICY, rules
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder, User, build
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell


def _enter(draft: StoryDraft) -> bool:
    user: User = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["zip"] = f"My zip code is {user.zip}."
    draft.facts["name"] = f"My name is {user.name}."
    if draft.rng.random() < 0.6:
        draft.facts["email"] = f"My e-mail is {user.email}."
    return True


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    user: User = draft.db.get("users", draft.customer)
    if "email" in draft.facts:
        return (ask("What is your e-mail address?", "email"), call("find_user_by_email", email=user.email))
    return (
        ask("What is your full name, please?", "name"),
        ask("What is your zip code?", "zip"),
        call("find_user_by_name_zip", name=user.name, zip=user.zip),
    )


def _order(draft: StoryDraft, *status: str) -> RetailOrder | None:
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer and o.status in status]
    return draft.free(own, lambda order: order.order_id)


def _thing(draft: StoryDraft, item_id: str) -> str:
    item: RetailItem = draft.db.get("items", item_id)
    return f"{item.colour} {item.size} {item.product}"


def _ref(draft: StoryDraft, order: RetailOrder) -> tuple[str, tuple[PlanStep, ...]]:
    """How the customer names the order; at times he must be asked for, or looked up, its number."""
    item = order.lines[0].item_id
    own = [o for o in draft.db.rows("orders") if o.user_id == draft.customer]
    alone = sum(any(line.item_id == item for line in o.lines) for o in own) == 1
    if not alone or draft.rng.random() < 0.4:
        return f"order {order.order_id}", ()
    return f"my order with the {_thing(draft, item)}", (call("get_user", user_id=draft.customer),)


def _cancel(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "pending")
    if order is None:
        return None
    reason = draft.rng.choice(("no longer needed", "ordered by mistake"))
    why = {"no longer needed": "I no longer need it.", "ordered by mistake": "I ordered it by mistake."}[
        reason
    ]
    which, look = _ref(draft, order)
    total = dollars(sum(line.price for line in order.lines))
    wants_total = draft.rng.random() < 0.5
    say = draft.words(
        f"I want to cancel {which}. {why}", f"Please cancel {which}. {why}", f"Can you cancel {which}? {why}"
    )
    fact = Fact("money", str(sum(line.price for line in order.lines)))
    done = tell(f"Order {order.order_id} is cancelled; {total} will be refunded.")
    plan = (
        *_verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will cancel order {order.order_id} and refund {total}. Shall I proceed?"),
        call("cancel_order", order_id=order.order_id, reason=reason), done,
    )  # fmt: skip
    if wants_total:
        return Stage(f"{say} How much do I get back?", plan, (fact,), again="How much money do I get back?")
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
    order = _order(draft, status)
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
    which, look = _ref(draft, order)
    say = (
        draft.words(
            f"In {which}, {verb} the {_thing(draft, old.item_id)} for the cheapest {first} {old.product} that you have.",
            f"I would like the cheapest {first} {old.product} instead of the {_thing(draft, old.item_id)} in {which}: {verb} it.",
        )
        + f" Any price difference goes to {payment.id}."
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
        *_verify(draft), *look, call("get_order", order_id=order.order_id), call("get_product", product=old.product),
        *before, confirm,
        call(tool, order_id=order.order_id, item_id=line.item_id, new_item_id=new.item_id, payment_id=payment.id),
        tell(f"Done, the price difference is {difference}."),
    )  # fmt: skip
    twist = f"Wait, actually I want the cheapest {second} one instead." if twisted else ""
    return Stage(say, plan, twist=twist)


def _return(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "delivered")
    if order is None:
        return None
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    user: User = draft.db.get("users", draft.customer)
    method = draft.rng.choice([order.payment, *(p.id for p in user.payments if p.kind == "gift")])
    things = " and the ".join(_thing(draft, line.item_id) for line in lines)
    which, look = _ref(draft, order)
    total = sum(line.price for line in lines)
    say = draft.words(
        f"I want to return the {things} from {which}. Refund it to {method}. How much will I get?",
        f"Please take back the {things} from {which}, with the refund to {method}. What amount will that be?",
    )
    items = sorted(line.item_id for line in lines)
    plan = (
        *_verify(draft), *look, call("get_order", order_id=order.order_id),
        PlanStep("confirm", f"I will return the items {', '.join(items)}, refund to {method}. Shall I proceed?"),
        call("return_items", order_id=order.order_id, item_ids=items, refund_to=method),
        tell(f"Done. You will be refunded {dollars(total)}."),
    )  # fmt: skip
    return Stage(say, plan, (Fact("money", str(total)),), again="How much will I get back?")


def _address(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "pending")
    if order is None:
        return None
    from turnwise.envs.toolworld.vocabulary import address

    first, second = address(draft.rng), address(draft.rng)
    twisted = draft.changes_mind
    new = second if twisted else first
    which, look = _ref(draft, order)
    say = draft.words(f"Send {which} to {first}.", f"I have moved. Please ship {which} to {first}.")
    before = (
        (PlanStep("propose", f"I will send it to the address {first}. Shall I proceed?"),) if twisted else ()
    )
    plan = (
        *_verify(draft), *look, call("get_order", order_id=order.order_id), *before,
        PlanStep("confirm", f"I will send it to the address {new}. Shall I proceed?"),
        call("change_address", order_id=order.order_id, address=new), tell("Done, the address is changed."),
    )  # fmt: skip
    return Stage(say, plan, twist=f"No, sorry. Send it to {second}." if twisted else "")


def _count(draft: StoryDraft) -> Stage | None:
    product = draft.free(sorted({item.product for item in draft.db.rows("items")}), lambda name: name)
    if product is None:
        return None
    stock = sum(item.in_stock for item in draft.db.rows("items") if item.product == product)
    say = draft.words(
        f"How many variants of the {product} do you have in stock?",
        f"I wonder how many different {product} variants can be bought right now.",
    )
    plan = (call("get_product", product=product), tell(f"There are {stock} variants in stock."))
    return Stage(
        say, plan, (Fact("count", str(stock)),), again=f"How many variants of the {product} are in stock?"
    )


def _refused(draft: StoryDraft, order: RetailOrder, say: str, reason: str, *look: PlanStep) -> Stage:
    plan = (
        *_verify(draft), *look, call("get_order", order_id=order.order_id),
        call("record_refusal", order_id=order.order_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "Can't you make an exception, just this once?", "I am a loyal customer. Do it anyway, please."
    )
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.6 else "")


def _cancel_sent(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "processed", "delivered")
    if order is None:
        return None
    which, look = _ref(draft, order)
    return _refused(draft, order, f"Please cancel {which}, I no longer need it.", "status", *look)


def _return_unsent(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "processed")
    if order is None:
        return None
    thing = _thing(draft, order.lines[0].item_id)
    say = f"I want to return the {thing} of order {order.order_id}, refund to {order.payment}."
    return _refused(draft, order, say, "status")


def _other_method(draft: StoryDraft) -> Stage | None:
    user: User = draft.db.get("users", draft.customer)
    order = _order(draft, "delivered")
    other = [p.id for p in user.payments if order and p.kind != "gift" and p.id != order.payment]
    if order is None or not other:
        return None
    thing = _thing(draft, order.lines[0].item_id)
    say = (
        f"I want to return the {thing} of order {order.order_id}. Put the refund on {other[0]}, nowhere else."
    )
    return _refused(draft, order, say, "refund_method")


def _other_product(draft: StoryDraft) -> Stage | None:
    order = _order(draft, "pending")
    if order is None:
        return None
    old: RetailItem = draft.db.get("items", order.lines[0].item_id)
    other = draft.rng.choice(sorted({i.product for i in draft.db.rows("items")} - {old.product}))
    say = f"In order {order.order_id}, replace the {_thing(draft, old.item_id)} by a {other}."
    return _refused(draft, order, say, "other_product")


def _not_mine(draft: StoryDraft) -> Stage | None:
    foreign = [o for o in draft.db.rows("orders") if o.user_id != draft.customer and o.status == "pending"]
    order = draft.free(foreign, lambda order: order.order_id)
    if order is None:
        return None
    say = f"Cancel order {order.order_id}. It is my partner's, who no longer needs it."
    return _refused(draft, order, say, "not_owner")


def _lost(draft: StoryDraft) -> Stage | None:
    reason, say = draft.rng.choice(
        (
            ("lost_package", "My package was said to be delivered, but it never came."),
            ("damaged", "What you sent me arrived broken into pieces."),
            ("legal", "My lawyer wants to talk to you about your terms."),
            ("technical", "Your web site crashes when I log in."),
        )
    )
    order = draft.rng.choice([o for o in draft.db.rows("orders") if o.user_id == draft.customer])
    return Stage(f"{say} It is about order {order.order_id}.", (call("transfer_to_human", reason=reason),))


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
        "count": _count,
    },
    traps={
        "cancel_sent": _cancel_sent,
        "return_unsent": _return_unsent,
        "refund_method": _other_method,
        "other_product": _other_product,
        "not_owner": _not_mine,
        "transfer": _lost,
    },
    enter=_enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    rules=rules,
)
