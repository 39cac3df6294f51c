"""Requests about money: subscriptions, refunds, contested charges, gift codes, storage."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account import wishes
from turnwise.envs.toolworld.apps.account.parts import (
    confirm,
    done,
    grown,
    led_family,
    once,
    proposed,
    purchase,
    subscription,
    verify,
)
from turnwise.envs.toolworld.apps.account.rules import (
    covered,
    dispute_faults,
    refund_faults,
    refunds_whole,
)
from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    TIERS,
    GiftCode,
    StoragePlan,
    StoreApp,
    days_since,
    price_of,
)
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell


def _told(say: str, plan: tuple[PlanStep, ...], cents: int | None, again: str, *wants: str) -> Stage:
    """A request for a change; ``cents`` must be told, where somebody asks for them."""
    if cents is None:
        return Stage(say, plan, wants=wants)
    return Stage(say, plan, (Fact("money", str(cents)),), again=again, wants=wants)


def cancel(draft: StoryDraft) -> Stage | None:
    """To the end of its period, or at once with its price back: that is for the policy to say."""
    meant = subscription(draft, lambda s: s.status in ("active", "paused"))
    if meant is None:
        return None
    row, which, look = meant
    whole = refunds_whole(row)
    asks = wishes.asks(draft)
    question = draft.words(*wishes.BACK) if asks else ""
    say = wishes.with_more(draft, wishes.cancel(draft, which), question=question)
    back = row.price if whole else 0
    told = (
        f"{dollars(back)} will be refunded"
        if whole
        else f"it can be used until {row.renews}, and $0.00 is refunded"
    )
    plan = (
        *verify(draft), *look, confirm(f"I will cancel your {row.app} subscription: {told}."),
        call("cancel_subscription", subscription_id=row.subscription_id, refund=whole), tell(f"Done, the subscription is cancelled, and {dollars(back)} is refunded."),
    )  # fmt: skip
    return _told(say, plan, back if asks else None, "How much do I get back?", "cancel_subscription")


def tier(draft: StoryDraft) -> Stage | None:
    """Another tier; at times another one than that after all."""
    meant = subscription(draft, lambda s: s.status == "active")
    if meant is None:
        return None
    row, which, look = meant
    app: StoreApp = draft.db.get("store", row.app)
    first, second = draft.rng.sample([name for name in TIERS if name != row.tier], 2)
    twisted = draft.changes_mind
    new = second if twisted else first
    asks = wishes.asks(draft)
    question = wishes.per(draft, row.period) if asks else ""
    say = wishes.with_more(draft, wishes.tier(draft, which, first), wishes.STAYS_PAUSED, question)
    twist = draft.words(
        f"Hm, no. Make it {second}.", f"On second thoughts I would rather have {second}.", f"Wait, {second} would be better.",
        f"Actually, let us take {second}.",
    )  # fmt: skip

    def offer(to: str) -> str:
        price = price_of(app, to, row.period)
        return f"I will change your {row.app} subscription to {to}: {dollars(max(0, price - row.price))} is charged now, and then it costs {dollars(price)}."

    price = price_of(app, new, row.period)
    plan = (
        *verify(draft), *look, call("get_app", app=row.app), *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("change_tier", subscription_id=row.subscription_id, tier=new), tell(f"Done, your {row.app} subscription is {new} now and costs {dollars(price)}."),
    )  # fmt: skip
    stage = _told(say, plan, price if asks else None, "What does it cost now?", "change_tier")
    return stage._replace(twist=twist if twisted else "")


def period(draft: StoryDraft) -> Stage | None:
    """Yearly instead of monthly; or the other way round, shortly before it renews."""
    meant = subscription(
        draft, lambda s: s.status == "active" and (s.period == "monthly" or days_since(s.renews) >= -30)
    )
    if meant is None:
        return None
    row, which, look = meant
    new = "yearly" if row.period == "monthly" else "monthly"
    price = price_of(draft.db.get("store", row.app), row.tier, new)
    asks = wishes.asks(draft)
    question = wishes.per(draft, new) if asks else ""
    say = wishes.with_more(draft, wishes.period(draft, which, new), question=question)
    cost = f"{dollars(price)} is charged now" if new == "yearly" else f"then it costs {dollars(price)}"
    plan = (
        *verify(draft), *look, call("get_app", app=row.app), confirm(f"I will change your {row.app} subscription to {new} billing: {cost}."),
        call("change_period", subscription_id=row.subscription_id, period=new), tell(f"Done, your {row.app} subscription is paid {new} now, and that is {dollars(price)}."),
    )  # fmt: skip
    return _told(say, plan, price if asks else None, "And what does it cost?", "change_period")


def pause(draft: StoryDraft) -> Stage | None:
    meant = subscription(
        draft, lambda s: s.status == "active" and s.period == "monthly" and not s.paused_before
    )
    if meant is None:
        return None
    row, which, look = meant
    first, second = draft.rng.sample((1, 2, 3), 2)
    twisted = draft.changes_mind
    new = second if twisted else first
    say = wishes.pause(draft, which, first)
    twist = draft.words(
        f"No, {wishes.months(second)} would be right.", f"Let me correct myself: {wishes.months(second)}.", f"Rather {wishes.months(second)}, please.",
        f"Oh, make that {wishes.months(second)}.",
    )  # fmt: skip

    def offer(months: int) -> str:
        return f"I will pause your {row.app} subscription for {wishes.months(months)}, at no cost."

    plan = (
        *verify(draft), *look, *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("pause_subscription", subscription_id=row.subscription_id, months=new), tell(f"Done, your {row.app} subscription is paused."),
    )  # fmt: skip
    return Stage(say, plan, twist=twist if twisted else "", wants=("pause_subscription",))


def resume(draft: StoryDraft) -> Stage | None:
    meant = subscription(draft, lambda s: s.status == "paused")
    if meant is None:
        return None
    row, which, look = meant
    say = draft.words(
        f"Resume {which}. What do you charge for that?", f"My break is over: end the pause of {which}. How much is it?",
        f"Please reactivate {which}, and tell me what I pay now.", f"I need {which} again, so lift its pause. What does it cost me?",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, confirm(f"I will resume your {row.app} subscription; {dollars(row.price)} is charged."),
        call("resume_subscription", subscription_id=row.subscription_id), tell(f"Done, your {row.app} subscription is active again, and {dollars(row.price)} was charged."),
    )  # fmt: skip
    return _told(say, plan, row.price, "What do I pay for that?", "resume_subscription")


def take_out(draft: StoryDraft) -> Stage | None:
    account = grown(draft)
    if account is None:
        return None
    free = [
        a for a in draft.db.rows("store") if account.age >= a.rating and not covered(draft.db, account, a.app)
    ]
    app: StoreApp | None = draft.free(free, lambda a: f"app {a.app}")
    if app is None:
        return None
    level, how = draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))
    cost = price_of(app, level, how)
    asks = wishes.asks(draft)
    wish, question = wishes.subscribe(draft, app.app, level, how), wishes.per(draft, how) if asks else ""
    say = wishes.with_more(draft, wish, wishes.NEW_TO_ME, question)
    plan = (
        *verify(draft), call("get_app", app=app.app), confirm(f"I will take out a {how} {level} subscription to {app.app} for {dollars(cost)}."),
        call("subscribe", account_id=draft.customer, app=app.app, tier=level, period=how), tell(f"Done, you have {app.app} {level} now, and {dollars(cost)} was charged."),
    )  # fmt: skip
    return _told(say, plan, cost if asks else None, "What was charged for it?", "subscribe")


def refund(draft: StoryDraft) -> Stage | None:
    """To where it was paid from; at times as credit, which he may only think of later."""
    bought = purchase(draft, lambda p: not refund_faults(draft.db, p))
    if bought is None:
        return None
    row, which, look = bought
    forced = row.paid_with == "credit"
    twisted = not forced and draft.changes_mind
    asked = "credit" if forced or (not twisted and draft.rng.random() < 0.4) else "card"
    to = "credit" if twisted else asked
    asks = wishes.asks(draft)
    question = draft.words(*wishes.REFUNDED) if asks else ""
    claims = draft.rng.choice((wishes.RECENT, wishes.UNOPENED))
    say = wishes.with_more(draft, wishes.refund(draft, which, asked), claims, question)
    twist = draft.words(
        "No, give it to me as credit instead.", "Hm, as credit, please, I will buy something else.", "I would rather have it as credit.",
        "Thinking about it, put it back as credit.",
    )  # fmt: skip

    def offer(target: str) -> str:
        return f"I will refund {dollars(row.price)} for the {row.kind} {row.title} {'as credit' if target == 'credit' else 'to your card'}."

    plan = (
        *verify(draft), *look, *proposed(offer(asked), twisted=twisted), confirm(offer(to)),
        call("refund_purchase", purchase_id=row.purchase_id, to=to), tell(f"Done, {dollars(row.price)} is refunded for the {row.kind} {row.title}."),
    )  # fmt: skip
    stage = _told(say, plan, row.price if asks else None, "How much do I get?", "refund_purchase")
    return stage._replace(twist=twist if twisted else "")


def child_refund(draft: StoryDraft) -> Stage | None:
    """What a child bought comes back for longer, opened or not."""
    family = led_family(draft)
    if family is None:
        return None
    children = [one for key in family.members if (one := draft.db.get("accounts", key)).age < CHILD]
    if not children:
        return None
    child = draft.rng.choice(children)
    bought = purchase(draft, lambda p: not refund_faults(draft.db, p), whose=child.account_id)
    if bought is None:
        return None
    row, which, look = bought
    first = child.name.split()[0]
    to = "credit" if row.paid_with == "credit" else "card"
    asks = wishes.asks(draft)
    question = draft.words(*wishes.REFUNDED) if asks else ""
    say = wishes.with_more(draft, wishes.child_refund(draft, which, first, to), question=question)
    where = {"credit": "as credit", "card": "to the card"}[to]
    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), *look,
        confirm(f"I will refund {dollars(row.price)} for the {row.kind} {row.title} {where}."),
        call("refund_purchase", purchase_id=row.purchase_id, to=to), tell(f"Done, {dollars(row.price)} is refunded for the {row.kind} {row.title}."),
    )  # fmt: skip
    return _told(say, plan, row.price if asks else None, "How much is that?", "refund_purchase")


def dispute(draft: StoryDraft) -> Stage | None:
    """A charge that is on no device of the household, or there twice."""
    reasons = ["unknown_purchase", "charged_twice"]
    draft.rng.shuffle(reasons)
    for reason in reasons:
        bought = purchase(draft, lambda p, why=reason: not dispute_faults(draft.db, p, why))
        if bought is not None:
            break
    else:
        return None
    row = bought.row
    say = wishes.with_more(draft, wishes.dispute(draft, row.purchase_id, reason), wishes.LATE)
    if reason == "unknown_purchase":
        look = (
            call("get_purchase", purchase_id=row.purchase_id),
            call("get_device", device_id=row.device_id),
        )
    else:
        twins = [
            p.purchase_id for p in draft.db.rows("purchases")
            if p.account_id == draft.customer and p.title == row.title and p.date == row.date
        ]  # fmt: skip
        look = tuple(call("get_purchase", purchase_id=key) for key in twins)
    plan = (
        *verify(draft), *look, confirm(f"I will open a dispute about purchase {row.purchase_id}, at no cost."),
        call("open_dispute", purchase_id=row.purchase_id, reason=reason), tell("Done, the dispute is open."),
    )  # fmt: skip
    return done(say, plan, "open_dispute")


def redeem(draft: StoryDraft) -> Stage | None:
    account = grown(draft)
    good = [
        c for c in draft.db.rows("codes") if account and c.status == "unused" and c.country == account.country
    ]
    code: GiftCode | None = draft.free(good, lambda c: c.code)
    if account is None or code is None:
        return None
    after = account.credit + code.amount
    asks = wishes.asks(draft)
    question = draft.words(*wishes.CREDIT_AFTER) if asks else ""
    say = wishes.with_more(draft, wishes.redeem(draft, code.code), wishes.GOOD_CODE, question)
    plan = (
        *verify(draft), call("check_code", code=code.code), confirm(f"I will redeem the code {code.code}, which adds {dollars(code.amount)} to your credit."),
        call("redeem_code", account_id=draft.customer, code=code.code), tell(f"Done, your credit is {dollars(after)}."),
    )  # fmt: skip
    return _told(say, plan, after if asks else None, "What is my credit now?", "redeem_code")


def gift(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None or not once(draft, "gift"):
        return None
    contact = draft.rng.choice(draft.db.rows("contacts"))
    first, second = draft.rng.sample(range(10, 210, 10), 2)
    twisted = draft.changes_mind
    worth = second if twisted else first
    say = wishes.gift(draft, first, contact.email)
    twist = draft.words(
        f"Let us say ${second} instead.",
        f"Make it ${second}, I think.",
        f"No, ${second} is nicer.",
        f"I have decided on ${second} now.",
    )

    def offer(amount: int) -> str:
        return f"I will buy a gift code for {dollars(100 * amount)} and send it to {contact.email}."

    plan = (
        *verify(draft), *proposed(offer(first), twisted=twisted), confirm(offer(worth)),
        call("buy_gift_code", account_id=draft.customer, email=contact.email, dollars_worth=worth), tell("Done, the gift code is sent."),
    )  # fmt: skip
    return Stage(say, plan, twist=twist if twisted else "", wants=("buy_gift_code",))


def card(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None or not once(draft, "card"):
        return None
    new = f"card_{draft.rng.randint(1000, 9999)}"
    say = draft.words(
        f"Charge my account to {new} from now on.", f"My old card has run out, use {new}.", f"Please replace my card by {new}.",
        f"The card of my account shall be {new}.",
    )  # fmt: skip
    plan = (
        *verify(draft), confirm(f"I will change the card of your account to {new}."),
        call("change_card", account_id=draft.customer, card=new), tell("Done, the card is changed."),
    )  # fmt: skip
    return done(say, plan, "change_card")


def storage(draft: StoryDraft) -> Stage | None:
    """A named plan, or the cheapest that is large enough."""
    account = grown(draft)
    if account is None or (account.family_id and led_family(draft) is None) or not once(draft, "storage"):
        return None
    plans: list[StoragePlan] = sorted(draft.db.rows("plans"), key=lambda plan: plan.price)
    able = [p for p in plans if p.gigabytes >= account.used_gigabytes and p.plan_id != account.plan_id]
    old: StoragePlan = draft.db.get("plans", account.plan_id)
    if len(able) < 2:
        return None
    cheapest = next(p for p in plans if p.gigabytes >= account.used_gigabytes)
    by_price = cheapest.plan_id != account.plan_id and draft.rng.random() < 0.5
    first, second = (cheapest, cheapest) if by_price else draft.rng.sample(able, 2)
    twisted = not by_price and draft.changes_mind
    new = second if twisted else first
    asks, family = wishes.asks(draft), bool(account.family_id)
    question = wishes.per(draft, "monthly") if asks else ""
    say = (
        wishes.with_more(draft, wishes.cheapest_storage(draft), question=question)
        if by_price
        else wishes.with_more(
            draft, wishes.storage(draft, first.gigabytes, family=family), wishes.LITTLE, question
        )
    )
    twist = draft.words(
        f"No, {second.gigabytes} GB, please.", f"Hm, then I prefer {second.gigabytes} GB.", f"Let me take {second.gigabytes} GB instead.",
        f"I would say {second.gigabytes} GB after all.",
    )  # fmt: skip

    def offer(to: StoragePlan) -> str:
        charged = to.price if to.price > old.price else 0
        return f"I will change your storage plan to {to.plan_id} with {to.gigabytes} GB for {dollars(to.price)} a month; {dollars(charged)} is charged now."

    plan = (
        *verify(draft), call("list_storage_plans"), *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("change_storage", account_id=draft.customer, plan_id=new.plan_id), tell(f"Done, your storage plan is {new.plan_id} now and costs {dollars(new.price)} a month."),
    )  # fmt: skip
    stage = _told(say, plan, new.price if asks else None, "What does it cost a month?", "change_storage")
    return stage._replace(twist=twist if twisted else "")
