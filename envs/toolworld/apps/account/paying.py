"""Changes of money: subscriptions, purchases, gift codes, cards, storage, with the words that ask for, offer
and report each."""

from __future__ import annotations

from typing import Any

from turnwise.envs.toolworld.apps.account.parts import (
    DESK,
    called,
    children,
    family_of,
    leads,
    me,
    myself,
    things,
    wish,
)
from turnwise.envs.toolworld.apps.account.rules import MAY, refunds_whole, running, twins
from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    TIERS,
    AppAccount,
    AppSubscription,
    GiftCode,
    Purchase,
    StoragePlan,
    price_of,
)
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import Operation, Patch, WishedChange, never
from turnwise.envs.toolworld.story import call
from turnwise.envs.toolworld.vocabulary import counted
from turnwise.tasks.core import Json

STAYS_PAUSED = (
    "If it is paused, leave it paused.", "Should it be paused, it stays so.", "Do not end a pause for that.", "A pause must not end by that.",
)  # fmt: skip
NEW_TO_ME = ("I do not have it yet.", "It is new to me.", "So far I have none.", "I am without it so far.")
MAY_I = ("My mum said yes.", "My parents allow it.", "Dad is fine with it.", "I have asked at home.")
RECENT = (
    "I bought it only last week.", "It is brand new.", "It cannot be two weeks old.", "I got it just a few days ago.", "I never opened it.",
    "It is untouched.", "Nobody has looked into it.", "It was not even opened.",
)  # fmt: skip
LATE = ("I only see it now.", "I have just found it.", "It was among older bills.", "Until today I had not noticed it.")  # fmt: skip
GOOD_CODE = ("It is certainly good.", "I was given it yesterday.", "It has not been used.", "It's a fresh one.")  # fmt: skip
LITTLE = ("I hardly use any.", "That is enough for me.", "More I do not need.", "I have little that is stored.")  # fmt: skip
BACK = (
    "Do I get anything back, and how much?", "What do you refund?", "Tell me how much of the money returns to me.",
    "Is there money back, and what sum?", "How much will I be refunded?", "What amount comes back?",
)  # fmt: skip
REFUNDED = ("How much is it?", "What sum do I get?", "Tell me the amount.", "What does the refund come to?")
CREDIT_AFTER = (
    "What is my credit afterwards?", "Tell me the new sum of my credit.", "How much credit have I then?", "What does my credit come to with it?",
)  # fmt: skip
PER = (
    "What does it cost a {unit} then?", "How much is that a {unit}?", "Tell me what I pay a {unit} for it.", "What is the price per {unit}?",
    "What will I pay per {unit}?", "And what would that be a {unit}?",
)  # fmt: skip
UNITS = {"monthly": "month", "yearly": "year"}
_WHERE = {"credit": "as credit", "card": "to my card"}
_SOLD = "the {kind} {title}"


# --- wishes ------------------------------------------------------------------------------------------


def _of(operation: Operation, draft: StoryDraft, row: AppSubscription, given: dict[str, Json], **more: Any) -> WishedChange:  # fmt: skip
    """A wish about a subscription, which is named by its app or by its number."""
    name = f"{row.app} subscription"
    it = called(draft, row.account_id, f"my {name}", f"{name} {row.subscription_id}")
    fill = {"app": row.app, "unit": UNITS[row.period], **more.pop("fill", {})}
    return wish(operation, draft, row.subscription_id, {"subscription_id": row.subscription_id, **given}, it, fill=fill, **more)  # fmt: skip


def _cancel(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    whole = refunds_whole(row)
    told = (f"{dollars(row.price)} will be refunded" if whole else f"it can be used until {row.renews}, and $0.00 is refunded")  # fmt: skip
    return _of(operation, draft, row, {"refund": whole}, fill={"told": told}, amount=row.price if whole else 0)  # fmt: skip


def _tier(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    new = draft.rng.choice([name for name in TIERS if name != row.tier])
    price = price_of(draft.db.get("store", row.app), new, row.period)
    return _of(
        operation, draft, row, {"tier": new}, fill={"charged": dollars(max(0, price - row.price))}, amount=price,
        reads=(call("get_app", app=row.app),), claims=STAYS_PAUSED, share=1,
    )  # fmt: skip


def _period(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    new = "yearly" if row.period == "monthly" else "monthly"
    price = price_of(draft.db.get("store", row.app), row.tier, new)
    cost = f"{dollars(price)} now" if new == "yearly" else f"{dollars(price)} from then on"
    return _of(
        operation, draft, row, {"period": new}, fill={"cost": cost, "unit": UNITS[new]}, amount=price,
        reads=(call("get_app", app=row.app),), claims=STAYS_PAUSED, share=1,
    )  # fmt: skip


def _pause(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    months = draft.rng.choice((1, 2, 3, 1, 2, 3, 4, 6))
    return _of(operation, draft, row, {"months": months}, fill={"many": counted(months, "month")})


def _resume(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    return _of(operation, draft, row, {}, amount=row.price)


def _share(operation: Operation, draft: StoryDraft, row: AppSubscription) -> WishedChange:
    return _of(operation, draft, row, {"shared": operation is SHARE})


def _subscribe(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    app = draft.rng.choice(draft.db.rows("store"))
    tier, period = draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))
    own = running(draft.db, draft.customer, app.app)
    seen = [call("get_subscription", subscription_id=s.subscription_id) for s in own]
    family = [call("get_family", family_id=account.family_id)] if account.family_id and not own else []
    given: dict[str, Json] = {"account_id": account.account_id, "app": app.app, "tier": tier, "period": period}  # fmt: skip
    return wish(
        operation, draft, f"app {app.app}", given, about=account.account_id, fill={"unit": UNITS[period]}, amount=price_of(app, tier, period),
        reads=(call("get_app", app=app.app), *seen, *family), claims=MAY_I if account.age < CHILD else NEW_TO_ME,
    )  # fmt: skip


def _refund(operation: Operation, draft: StoryDraft, row: Purchase) -> WishedChange:
    return refunding(operation, draft, row, draft.rng.choice(("card", "card", "credit")))


def refunding(operation: Operation, draft: StoryDraft, row: Purchase, to: str) -> WishedChange:
    """A refund of what somebody bought, or a child of theirs."""
    own = [p for p in draft.db.rows("purchases") if p.account_id == row.account_id]
    alone = sum(p.title == row.title for p in own) == 1
    sold = _SOLD.format(kind=row.kind, title=row.title)
    it = called(draft, row.account_id, sold if alone else "", f"purchase {row.purchase_id}")
    child: AppAccount = draft.db.get("accounts", row.account_id)
    is_childs = row.account_id != draft.customer and operation is CHILD_REFUND
    find = ((call("get_family", family_id=child.family_id), call("get_account", account_id=child.account_id)) if is_childs else ())  # fmt: skip
    return wish(
        operation, draft, row.purchase_id, {"purchase_id": row.purchase_id, "to": to}, it, amount=row.price,
        fill={"sold": sold, "where": _WHERE[to], "who": child.name.split()[0]}, claims=() if is_childs else RECENT,
    )._replace(find=find)  # fmt: skip


def _as_credit(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    row: Purchase = draft.db.get("purchases", old.subject)
    wanted = old.arguments["to"] == "card"
    return refunding(old.operation, draft, row, "credit") if wanted else None


def _childs(draft: StoryDraft, own: bool) -> list[Purchase]:
    """List the paid purchases of the children in the family that the speaker leads."""
    keys = {one.account_id for one in children(draft, own)} if leads(draft) else set[str]()
    return [p for p in draft.db.rows("purchases") if p.account_id in keys and p.status == "paid"]


def _dispute(operation: Operation, draft: StoryDraft, row: Purchase) -> WishedChange:
    twice = operation is TWICE
    alike = [p.purchase_id for p in twins(draft.db, row)] if twice else []
    reads = [call("get_purchase", purchase_id=key) for key in alike] if twice else [call("get_device", device_id=row.device_id)]  # fmt: skip
    given: dict[str, Json] = {"purchase_id": row.purchase_id, "reason": "charged_twice" if twice else "unknown_purchase"}  # fmt: skip
    it = called(draft, row.account_id, "", f"purchase {row.purchase_id}")
    return wish(operation, draft, row.purchase_id, given, it, reads=tuple(reads), claims=LATE)


def _redeem(operation: Operation, draft: StoryDraft, code: GiftCode) -> WishedChange:
    given: dict[str, Json] = {"account_id": draft.customer, "code": code.code}
    after = me(draft).credit + code.amount
    return wish(operation, draft, code.code, given, fill={"worth": dollars(code.amount)}, amount=after, claims=GOOD_CODE)  # fmt: skip


def _gift(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    worth = draft.rng.choice((draft.rng.randrange(10, 210, 10), draft.rng.randrange(5, 400, 5)))
    given: dict[str, Json] = {
        "account_id": account.account_id,
        "email": draft.rng.choice(draft.db.rows("contacts")).email,
        "dollars_worth": worth,
    }
    return wish(operation, draft, "gift", given, about=account.account_id, amount=100 * worth)


def _other_worth(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    worth = draft.rng.randrange(10, 210, 10)
    given = {**old.arguments, "dollars_worth": worth}
    fill = {**old.fill, "dollars_worth": str(worth), "money": dollars(100 * worth)}
    return None if given == old.arguments else old._replace(arguments=given, fill=fill, amount=100 * worth)


def _card(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    new = f"card_{draft.rng.randint(1000, 9999)}"
    return wish(
        operation,
        draft,
        "card",
        {"account_id": account.account_id, "card": new},
        about=account.account_id,
        claims=MAY_I if account.age < CHILD else (),
    )


def _store(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    """A named plan, or the cheapest that is large enough."""
    plans: list[StoragePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [p for p in plans if p.gigabytes >= account.used_gigabytes]
    if draft.rng.random() < 0.3:
        return storing(operation, draft, account, able[0], "the cheapest plan that holds all of it")
    return storing(operation, draft, account, draft.rng.choice(plans))


def storing(
    operation: Operation, draft: StoryDraft, account: AppAccount, plan: StoragePlan, name: str = ""
) -> WishedChange:
    old: StoragePlan = draft.db.get("plans", account.plan_id)
    family = family_of(draft)
    mine = draft.words("my storage", "my cloud storage", "the storage that I have", "the cloud storage of mine")  # fmt: skip
    ours = draft.words("our family's storage", "the storage of our family", "our family storage", "the cloud storage of the family")  # fmt: skip
    charged = plan.price if plan.price > old.price else 0
    return wish(
        operation, draft, "storage", {"account_id": account.account_id, "plan_id": plan.plan_id}, ours if family and draft.rng.random() < 0.5 else mine,
        about=family.family_id if family and not leads(draft) else account.account_id, amount=plan.price,
        fill={"new": name or f"{plan.gigabytes} GB", "gigabytes": str(plan.gigabytes), "charged": dollars(charged), "unit": "month"},
        reads=(call("list_storage_plans"),), claims=() if name else LITTLE,
    )  # fmt: skip


def _other_plan(draft: StoryDraft, old: WishedChange) -> WishedChange | None:
    """Another plan, where one was named."""
    others = [plan for plan in draft.db.rows("plans") if plan.plan_id != old.arguments["plan_id"]]
    named = old.fill["new"].endswith("GB")
    return storing(old.operation, draft, me(draft), draft.rng.choice(others)) if named else None


def _credit(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    return wish(operation, draft, "credit", {"account_id": account.account_id}, about=account.account_id)


def _seventeen(draft: StoryDraft, account: AppAccount) -> list[Patch]:
    return [("accounts", account.account_id, {"age": CHILD + 1})]


def _codes(draft: StoryDraft, own: bool) -> list[GiftCode]:
    return draft.db.rows("codes") if myself(draft, own) else []


def _in_a_family(draft: StoryDraft, own: bool) -> list[AppSubscription]:
    found = things("subscriptions", lambda s: s.status == "active")(draft, own)
    return found if me(draft).family_id else []


SUBSCRIPTIONS, PURCHASES = things("subscriptions"), things("purchases", lambda p: p.status == "paid")

# --- the changes -------------------------------------------------------------------------------------

CANCEL = Operation(
    "cancel", "cancel_subscription",
    ("cancel {it}", "end {it}", "stop {it}", "terminate {it}", "call off {it}", "discontinue {it}", "let {it} come to an end", "quit {it} for me"),
    "cancel your {app} subscription: {told}", "your {app} subscription is cancelled: {told}.",
    MAY["cancel_subscription"], SUBSCRIPTIONS, _cancel, DESK, BACK, "How much do I get back?",
)  # fmt: skip
TIER = Operation(
    "tier", "change_tier",
    ("change {it} to {tier}", "move {it} to the {tier} tier", "put {it} on {tier}", "bring {it} to the {tier} tier", "switch {it} over to {tier}", "let me have {it} in {tier}"),
    "change your {app} subscription to {tier} for {charged} now, and for {money} from then on",
    "your {app} subscription is {tier} now and costs {money}.",
    MAY["change_tier"], SUBSCRIPTIONS, _tier, DESK, PER, "What does it cost now?",
    second=("Hm, no. Make it {tier}.", "On second thoughts I would rather have {tier}.", "Wait, {tier} would be better.", "Actually, let us take {tier}."),
    rethink=lambda draft, old: _tier(old.operation, draft, draft.db.get("subscriptions", old.subject)),
)  # fmt: skip
PERIOD = Operation(
    "period", "change_period",
    ("let me pay {it} {period} from now on", "switch {it} to {period} payment", "bill {it} {period}", "change {it} to {period} billing",
     "convert {it} to {period} payment", "set {it} to {period} billing"),
    "change your {app} subscription to {period} billing for {cost}", "your {app} subscription is paid {period} now, and that is {money}.",
    MAY["change_period"], SUBSCRIPTIONS, _period, DESK, PER, "And what does it cost?",
)  # fmt: skip
PAUSE = Operation(
    "pause", "pause_subscription",
    ("pause {it} for {many}", "put {it} on hold for {many}", "freeze {it} for {many}", "suspend {it} for {many}", "give me a break of {many} from {it} by pausing it",
     "halt {it} for {many}"),
    "pause your {app} subscription for {many}, at no cost", "your {app} subscription is paused.",
    MAY["pause_subscription"], SUBSCRIPTIONS, _pause, DESK,
    second=("No, {many} would be right.", "Let me correct myself: {many}.", "Rather {many}, please.", "Oh, make that {many}."), matches=("months",),
    rethink=lambda draft, old: _pause(old.operation, draft, draft.db.get("subscriptions", old.subject)),
)  # fmt: skip
RESUME = Operation(
    "resume", "resume_subscription",
    ("resume {it}", "end the pause of {it}", "reactivate {it}", "lift the pause of {it}", "restart {it}", "continue {it} by ending its pause"),
    "resume your {app} subscription for {money}", "your {app} subscription is active again, for {money}.",
    MAY["resume_subscription"], SUBSCRIPTIONS, _resume, DESK,
    ("What do you charge for that?", "How much is it?", "Tell me what I pay now.", "What does it cost me?"), "What do I pay for that?",
)  # fmt: skip
SUBSCRIBE = Operation(
    "subscribe", "subscribe",
    ("subscribe me to {app} {tier}, paid {period}", "get me {app} in the {tier} tier with {period} payment", "sign me up for {app}, {tier}, {period}",
     "set up a {period} {tier} subscription to {app} for me", "take out {app} for me, {tier}, with {period} billing", "order {app} {tier} on a {period} basis"),
    "take out a {period} {tier} subscription to {app} for {money}", "you have {app} {tier} now, for {money}.",
    MAY["subscribe"], myself, _subscribe, DESK, PER, "What was charged for it?", read_for=("age_rating", "already_covered"), prepare={"age_rating": _seventeen},
)  # fmt: skip
SHARE = Operation(
    "share_subscription", "share_subscription",
    ("share {it} with my family", "let everybody in my family use {it}", "make {it} available to my whole family", "extend {it} to my family",
     "open {it} for all of my family", "allow my family to use {it} by sharing it"),
    "share your {app} subscription with your family, at no cost", "your {app} subscription is shared.",
    MAY["share_subscription"], _in_a_family, _share, DESK,
)  # fmt: skip
UNSHARE = Operation(
    "unshare", "share_subscription",
    ("stop sharing {it} with my family", "end the sharing of {it}", "put an end to the sharing of {it} with my family", "take {it} away from my family by ending its sharing",
     "let nobody but me use {it}, so end its sharing", "stop the sharing of {it} with the family"),
    "stop sharing your {app} subscription with your family, at no cost", "your {app} subscription is yours alone.",
    {"not_owner": MAY["share_subscription"]["not_owner"]}, _in_a_family, _share, DESK,
    prepare={"": lambda draft, row: [("subscriptions", row.subscription_id, {"shared": True})] if row.tier == "premium" else []},
)  # fmt: skip
REFUND = Operation(
    "refund", "refund_purchase",
    ("refund {it} {where}", "pay {it} back {where}", "give me the price of {it} back {where}", "return the money for {it} {where}", "take back {it} and refund it {where}",
     "reimburse me {where} for {it}"),
    "refund {money} for {sold} {where}", "{money} is refunded for {sold}.",
    MAY["refund_purchase"], PURCHASES, _refund, DESK, REFUNDED, "How much do I get?", matches=("to",), rethink=_as_credit,
    second=("No, give it to me as credit instead.", "Hm, as credit, please, I will buy something else.", "I would rather have it as credit.",
            "Thinking about it, put it back as credit."),
)  # fmt: skip
CHILD_REFUND = Operation(
    "child_refund", "refund_purchase",
    ("refund {it}, which my child {who} bought without asking, {where}", "return the price of {it}, for which our child {who} paid without my knowledge, {where}",
     "pay back {it}, which my child {who} got behind my back, {where}", "reimburse {it}, which our child {who} has bought and I never allowed, {where}",
     "take back {it} from my child {who}, who bought it secretly, and refund it {where}", "give the money for {it} back {where}, since my child {who} was not allowed to buy it"),
    "refund {money} for {sold} {where}", "{money} is refunded for {sold}.",
    {rule: MAY["refund_purchase"][rule] for rule in ("refund_period", "refund_to")}, _childs, _refund, DESK, REFUNDED, "How much is that?",
)  # fmt: skip
UNKNOWN = Operation(
    "dispute_unknown", "open_dispute",
    ("contest the charge of {it}, since I never made it", "dispute {it} with the bank, since nobody here has bought it", "challenge the charge of {it}, as we know nothing of it",
     "open a dispute about {it}, since I do not recognise it", "file a dispute about {it}, as it was not made by me or my family", "contest {it}, as it is not from us at all"),
    "open a dispute about purchase {purchase_id}, at no cost", "the dispute about purchase {purchase_id} is open.",
    {rule: MAY["open_dispute"][rule] for rule in ("not_owner", "dispute_period", "known_device")}, PURCHASES, _dispute, DESK, read_for=("known_device",),
)  # fmt: skip
TWICE = Operation(
    "dispute_twice", "open_dispute",
    ("contest the charge of {it}, since it came two times", "dispute {it}, as it was charged twice on one day", "open a dispute about {it}, since its charge is there double",
     "challenge the charge of {it}, since I paid it double on the same day", "file a dispute about {it}, as you have charged it two times", "contest {it}, as there is a double of it on that day"),
    "open a dispute about purchase {purchase_id}, at no cost", "the dispute about purchase {purchase_id} is open.",
    {rule: MAY["open_dispute"][rule] for rule in ("not_owner", "dispute_period", "no_duplicate")}, PURCHASES, _dispute, DESK,
)  # fmt: skip
REDEEM = Operation(
    "redeem", "redeem_code",
    ("redeem the gift code {code}", "add the gift code {code} to my credit", "put {code}, a gift code, on my account", "cash in the voucher {code}", "apply the gift code {code} to my account",
     "load {code}, my gift code, onto my account"),
    "redeem the code {code}, which adds {worth} to your credit", "your credit is {money}.",
    MAY["redeem_code"], _codes, _redeem, DESK, CREDIT_AFTER, "What is my credit now?",
)  # fmt: skip
GIFT = Operation(
    "gift", "buy_gift_code",
    ("buy a gift code of ${dollars_worth} for {email}", "send {email} a gift code worth ${dollars_worth}", "get {email} a gift code over ${dollars_worth}",
     "order a gift code of ${dollars_worth} and send it to {email}", "make {email} a present of a gift code for ${dollars_worth}", "purchase a ${dollars_worth} gift code for {email}"),
    "buy a gift code for {money} and send it to {email}", "the gift code is sent.",
    MAY["buy_gift_code"], myself, _gift, DESK, rethink=_other_worth,
    second=("Let us say ${dollars_worth} instead.", "Make it ${dollars_worth}, I think.", "No, ${dollars_worth} is nicer.", "I have decided on ${dollars_worth} now."),
)  # fmt: skip
CARD = Operation(
    "card", "change_card",
    ("charge my account to {card} from now on", "use {card} as the card of my account", "replace my card by {card}", "register {card} as the card of my account",
     "make {card} the card of my account", "update the card of my account to {card}"),
    "change the card of your account to {card}", "the card is changed.", MAY["change_card"], myself, _card, DESK,
    second=("Wait, it is {card}.", "No, take {card}.", "Hm, better {card}.", "I misread it: {card}."), rethink=lambda draft, old: _card(old.operation, draft, me(draft)),
)  # fmt: skip
STORAGE = Operation(
    "storage", "change_storage",
    ("change {it} to {new}", "switch {it} over to {new}", "move {it} to {new}", "put {it} on {new}", "set {it} to {new}", "let {it} have {new}"),
    "change the storage plan to {plan_id} with {gigabytes} GB at a price of {money}, for {charged} now", "the storage plan is {plan_id} now and costs {money}.",
    MAY["change_storage"], myself, _store, DESK, PER, "What does it cost a month?", read_for=("storage_full",), rethink=_other_plan,
    second=("No, {gigabytes} GB, please.", "Hm, then I prefer {gigabytes} GB.", "Let me take {gigabytes} GB instead.", "I would say {gigabytes} GB after all."),
)  # fmt: skip
PAY_OUT = Operation(
    "pay_out", "",
    ("pay my credit out to my card", "transfer the credit of my account to my bank, in money", "give me cash for the credit that is on my account",
     "move my credit over to my sister's account", "turn my credit into money and send it to my card", "let me have my credit as money on my card"),
    "", "", {"no_cash": never}, myself, _credit, DESK,
)  # fmt: skip
PAYING = (
    CANCEL, TIER, PERIOD, PAUSE, RESUME, SUBSCRIBE, SHARE, UNSHARE, REFUND, CHILD_REFUND, UNKNOWN, TWICE, REDEEM, GIFT, CARD, STORAGE, PAY_OUT,
)  # fmt: skip
