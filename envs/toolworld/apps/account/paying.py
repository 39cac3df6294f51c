"""Requests about money: subscriptions, refunds, contested charges, gift codes, storage."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account.parts import (
    begun,
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
from turnwise.envs.toolworld.story import Stage, call, tell


def cancel(draft: StoryDraft) -> Stage | None:
    """To the end of its period, or at once with its price back: that is for the policy to say."""
    meant = subscription(draft, lambda s: s.status in ("active", "paused"))
    if meant is None:
        return None
    row, which, look = meant
    whole = refunds_whole(row)
    say = draft.words(
        f"Cancel {which}. Do I get anything back, and how much?", f"I want to end {which}. What do you refund?",
        f"Please stop {which} and tell me how much of the money returns to me.", f"I do not use it any more: terminate {which}. Is there money back, and what sum?",
        f"{begun(which)} can go. End it, please. How much will I be refunded?", f"Call off {which} for me. What amount comes back?",
    )  # fmt: skip
    back = row.price if whole else 0
    told = (
        f"{dollars(back)} will be refunded"
        if whole
        else f"it can be used until {row.renews}, and $0.00 is refunded"
    )
    plan = (
        *verify(draft), *look, confirm(f"I will cancel your {row.app} subscription: {told}."),
        call("cancel_subscription", subscription_id=row.subscription_id, refund=whole), tell(f"Done, {dollars(back)} is refunded."),
    )  # fmt: skip
    return Stage(
        say,
        plan,
        (Fact("money", str(back)),),
        again="How much do I get back?",
        wants=("cancel_subscription",),
    )


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
    say = draft.words(
        f"Change {which} to {first}. What does it cost then?", f"I would like to have {which} in {first}. What will the price be?",
        f"Move {which} to the {first} tier and tell me its new price.", f"Put {which} on {first}, please; what will I pay for a period of it?",
        f"Make {which} a {first} one. How much is that from then on?", f"From now on {which} shall be {first}. What would its price be?",
    )  # fmt: skip
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
        call("change_tier", subscription_id=row.subscription_id, tier=new), tell(f"Done, it costs {dollars(price)} now."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(price)),), again="What does it cost now?", twist=twist if twisted else "", wants=("change_tier",)
    )  # fmt: skip


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
    say = draft.words(
        f"I want to pay {which} {new} from now on. What is the price?", f"Switch {which} to {new} payment. How much is it then?",
        f"Please bill {which} {new} instead, and tell me what that costs.", f"Could you change {which} to {new} billing, and what would I pay?",
    )  # fmt: skip
    cost = f"{dollars(price)} is charged now" if new == "yearly" else f"then it costs {dollars(price)}"
    plan = (
        *verify(draft), *look, call("get_app", app=row.app), confirm(f"I will change your {row.app} subscription to {new} billing: {cost}."),
        call("change_period", subscription_id=row.subscription_id, period=new), tell(f"Done, it is {dollars(price)}."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(price)),), again="And what does it cost?", wants=("change_period",)
    )


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
    say = draft.words(
        f"Pause {which} for {_months(first)}.", f"I am away, so please put {which} on hold for {_months(first)}.",
        f"Freeze {which} for {_months(first)}, I will not need it.", f"Let {which} rest for {_months(first)}: pause it.",
    )  # fmt: skip
    twist = draft.words(
        f"No, {_months(second)} would be right.", f"Let me correct myself: {_months(second)}.", f"Rather {_months(second)}, please.",
        f"Oh, make that {_months(second)}.",
    )  # fmt: skip

    def offer(months: int) -> str:
        return f"I will pause your {row.app} subscription for {_months(months)}, at no cost."

    plan = (
        *verify(draft), *look, *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("pause_subscription", subscription_id=row.subscription_id, months=new), tell("Done, it is paused."),
    )  # fmt: skip
    return Stage(say, plan, twist=twist if twisted else "", wants=("pause_subscription",))


def _months(number: int) -> str:
    return f"{number} month{'s' * (number > 1)}"


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
        call("resume_subscription", subscription_id=row.subscription_id), tell(f"Done, {dollars(row.price)} is charged."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(row.price)),), again="What do I pay for that?", wants=("resume_subscription",)
    )  # fmt: skip


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
    say = draft.words(
        f"Subscribe me to {app.app} {level}, paid {how}. What does it cost?", f"I would like {app.app} in the {level} tier with {how} payment. How much is that?",
        f"Sign me up for {app.app}, {level}, {how}, and tell me the price.", f"Set up a {how} {level} subscription to {app.app} for me; what is charged?",
        f"Take out {app.app} for me, {level}, with {how} billing. What will I pay?", f"Could you get me {app.app} {level} on a {how} basis, and what would that be?",
    )  # fmt: skip
    plan = (
        *verify(draft), call("get_app", app=app.app), confirm(f"I will take out a {how} {level} subscription to {app.app} for {dollars(cost)}."),
        call("subscribe", account_id=draft.customer, app=app.app, tier=level, period=how), tell(f"Done, {dollars(cost)} was charged."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(cost)),), again="What was charged for it?", wants=("subscribe",)
    )


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
    where = {"credit": "as credit", "card": "to my card"}[asked]
    say = draft.words(
        f"Refund {which} {where}. How much is it?", f"I want my money back for {which}, {where}. What sum is that?",
        f"Please take back {which} and pay it back {where}; how much do I get?", f"{begun(which)} was a mistake. Give the price back {where}. What amount is it?",
        f"I regret {which}. Return the money {where} and tell me the amount.", f"Could I have a refund of {which} {where}, and what would it come to?",
    )  # fmt: skip
    twist = draft.words(
        "No, give it to me as credit instead.", "Hm, as credit, please, I will buy something else.", "I would rather have it as credit.",
        "Thinking about it, put it back as credit.",
    )  # fmt: skip

    def offer(target: str) -> str:
        return f"I will refund {dollars(row.price)} for the {row.kind} {row.title} {'as credit' if target == 'credit' else 'to your card'}."

    plan = (
        *verify(draft), *look, *proposed(offer(asked), twisted=twisted), confirm(offer(to)),
        call("refund_purchase", purchase_id=row.purchase_id, to=to), tell(f"Done, {dollars(row.price)} is refunded."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(row.price)),), again="How much do I get?", twist=twist if twisted else "", wants=("refund_purchase",)
    )  # fmt: skip


def child_refund(draft: StoryDraft) -> Stage | None:
    """What a child bought comes back for longer, opened or not."""
    family = led_family(draft)
    if family is None:
        return None
    children = [one for key in family.members if (one := draft.db.get("accounts", key)).age < CHILD]
    if not children:
        return None
    child = draft.rng.choice(children)
    bought = purchase(
        draft, lambda p: p.paid_with != "credit" and not refund_faults(draft.db, p), whose=child.account_id
    )
    if bought is None:
        return None
    row, which, look = bought
    first = child.name.split()[0]
    say = draft.words(
        f"My child {first} bought {which} without asking. Refund it to the card. How much is that?",
        f"{first} is a child and got {which} behind my back. I want the money on the card again; what sum is it?",
        f"Without my knowledge our {first} paid for {which}. Please return the price to the card, and say how much it is.",
        f"I never allowed {which}, which our child {first} has bought. Pay it back to the card. What do I get?",
    )  # fmt: skip
    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), *look,
        confirm(f"I will refund {dollars(row.price)} for the {row.kind} {row.title} to the card."),
        call("refund_purchase", purchase_id=row.purchase_id, to="card"), tell(f"Done, {dollars(row.price)} is refunded."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(row.price)),), again="How much is that?", wants=("refund_purchase",)
    )


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
    which = f"purchase {row.purchase_id}"
    if reason == "unknown_purchase":
        say = draft.words(
            f"I never made {which}. Contest the charge.", f"Nobody here has bought {which}. Please dispute it with the bank.",
            f"I do not recognise {which}; open a dispute about it.", f"{begun(which)} is not from us at all. Challenge that charge for me.",
        )  # fmt: skip
        look = (call("get_purchase", purchase_id=row.purchase_id),)
    else:
        say = draft.words(
            f"You charged me two times for the same with {which}. Contest one of the charges.", f"{begun(which)} was charged twice on one day. Dispute it.",
            f"I see the charge of {which} double. Open a dispute about that one.", f"For {which} I paid double on the same day, so challenge the charge.",
        )  # fmt: skip
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
    say = draft.words(
        f"Redeem the gift code {code.code}. What is my credit afterwards?", f"I got the code {code.code} as a present. Add it to my credit, and tell me the new sum.",
        f"Put {code.code}, a gift code, on my account. How much credit have I then?", f"Please cash in the voucher {code.code}; what does my credit come to with it?",
    )  # fmt: skip
    plan = (
        *verify(draft), call("check_code", code=code.code), confirm(f"I will redeem the code {code.code}, which adds {dollars(code.amount)} to your credit."),
        call("redeem_code", account_id=draft.customer, code=code.code), tell(f"Done, your credit is {dollars(after)}."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(after)),), again="What is my credit now?", wants=("redeem_code",)
    )


def gift(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None or not once(draft, "gift"):
        return None
    contact = draft.rng.choice(draft.db.rows("contacts"))
    first, second = draft.rng.sample(range(10, 210, 10), 2)
    twisted = draft.changes_mind
    worth = second if twisted else first
    say = draft.words(
        f"Buy a gift code of ${first} for {contact.email}.", f"I want to give ${first} to {contact.email} as a gift code.",
        f"Please send a gift code worth ${first} to {contact.email}.", f"A present for {contact.email}: a gift code over ${first}, please.",
    )  # fmt: skip
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
        call("buy_gift_code", account_id=draft.customer, email=contact.email, dollars_worth=worth), tell("Done, it is sent."),
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
    say = draft.words(
        "Put me on the cheapest storage plan that holds all I have. What does it cost a month?", "I pay too much for storage: change me to the cheapest plan that is large enough. What is its price?",
        "Which storage plan is the cheapest for what I keep? Switch me to it, and tell me the price.", "Give me the least expensive storage plan into which my data fit. What is its cost?",
    ) if by_price else draft.words(
        f"Change my storage to {first.gigabytes} GB. What does it cost a month?", f"I need a storage plan of {first.gigabytes} GB. How much is it?",
        f"Please switch me to {first.gigabytes} GB of storage and tell me the price.", f"My cloud storage shall have {first.gigabytes} GB. What will I pay?",
    )  # fmt: skip
    twist = draft.words(
        f"No, {second.gigabytes} GB, please.", f"Hm, then I prefer {second.gigabytes} GB.", f"Let me take {second.gigabytes} GB instead.",
        f"I would say {second.gigabytes} GB after all.",
    )  # fmt: skip

    def offer(to: StoragePlan) -> str:
        charged = to.price if to.price > old.price else 0
        return f"I will change your storage plan to {to.plan_id} with {to.gigabytes} GB for {dollars(to.price)} a month; {dollars(charged)} is charged now."

    plan = (
        *verify(draft), call("list_storage_plans"), *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("change_storage", account_id=draft.customer, plan_id=new.plan_id), tell(f"Done, it costs {dollars(new.price)} a month."),
    )  # fmt: skip
    return Stage(
        say, plan, (Fact("money", str(new.price)),), again="What does it cost a month?", twist=twist if twisted else "", wants=("change_storage",)
    )  # fmt: skip
