"""What is only asked about an account: nothing changes, the right answer counts."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account.parts import grown, me, once, purchase, subscription, verify
from turnwise.envs.toolworld.apps.account.rules import running
from turnwise.envs.toolworld.apps.account.state import TIERS, GiftCode, StoreApp, price_of
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import Stage, call, tell


def renewal(draft: StoryDraft) -> Stage | None:
    meant = subscription(draft, lambda s: s.status == "active")
    if meant is None:
        return None
    row, which, look = meant
    say = draft.words(
        f"When does {which} renew?", f"On what date will {which} be charged next?", f"Please tell me the day on which {which} renews.",
        f"What is the renewal date of {which}?",
    )  # fmt: skip
    plan = (*verify(draft), *look, tell(f"It renews on {row.renews}."))
    return Stage(say, plan, (Fact("date", row.renews),), again="On which date does it renew?")


def monthly_sum(draft: StoryDraft) -> Stage | None:
    """What all monthly subscriptions in use come to: paused and yearly ones do not count."""
    if grown(draft) is None or not once(draft, "monthly sum"):
        return None
    own = running(draft.db, draft.customer)
    total = sum(s.price for s in own if s.period == "monthly" and s.status == "active")
    if not total:
        return None
    say = draft.words(
        "What do my active monthly subscriptions cost altogether?", "Add up my monthly subscriptions that are active. What is the sum?",
        "How much do I pay a month for subscriptions that are active and billed monthly, in all?", "Of my subscriptions that are active and paid monthly, what is the total price?",
    )  # fmt: skip
    look = tuple(call("get_subscription", subscription_id=s.subscription_id) for s in own)
    plan = (*verify(draft), *look, tell(f"The total is {dollars(total)}."))
    return Stage(say, plan, (Fact("money", str(total)),), again="What is the total?")


def bought_at(draft: StoryDraft) -> Stage | None:
    bought = purchase(draft, lambda p: True)
    if bought is None:
        return None
    row, which, look = bought
    say = draft.words(
        f"What did I pay for {which}?", f"How much was {which}?", f"Tell me the price of {which}, please.", f"I forgot what {which} has cost me. What was it?",
    )  # fmt: skip
    plan = (*verify(draft), *look, tell(f"It was {dollars(row.price)}."))
    return Stage(say, plan, (Fact("money", str(row.price)),), again="How much was it?")


def credit(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None or not once(draft, "credit"):
        return None
    amount = me(draft).credit
    say = draft.words(
        "How much credit is on my account?", "What is the credit of my account?", "Tell me how much credit I have left, please.", "I have some credit, I think. How much?",
    )  # fmt: skip
    plan = (*verify(draft), tell(f"It is {dollars(amount)}."))
    return Stage(say, plan, (Fact("money", str(amount)),), again="How much credit is it?")


def app_price(draft: StoryDraft) -> Stage | None:
    """The price of a period, which the store tells for a month; nobody has to be verified."""
    app: StoreApp | None = draft.free(draft.db.rows("store"), lambda a: f"price {a.app}")
    if app is None:
        return None
    level, how = draft.rng.choice(TIERS), draft.rng.choice(("monthly", "yearly"))
    price = price_of(app, level, how)
    say = draft.words(
        f"What is the price of {app.app} {level} with {how} billing?", f"How much is {app.app} in the {level} tier, paid {how}?",
        f"I only want to know what {app.app} {level} costs {how}.", f"Tell me the {how} price of {app.app} {level}, please.",
    )  # fmt: skip
    plan = (call("get_app", app=app.app), tell(f"It is {dollars(price)}."))
    return Stage(say, plan, (Fact("money", str(price)),), again="What is its price?")


def code_worth(draft: StoryDraft) -> Stage | None:
    code: GiftCode | None = draft.free(draft.db.rows("codes"), lambda c: c.code)
    if code is None:
        return None
    say = draft.words(
        f"What is the gift code {code.code} worth?", f"I found a gift code, {code.code}. What amount is it for?", f"Can you see how much the gift code {code.code} is for?",
        f"How much money does the gift code {code.code} stand for?",
    )  # fmt: skip
    plan = (call("check_code", code=code.code), tell(f"It is for {dollars(code.amount)}."))
    return Stage(say, plan, (Fact("money", str(code.amount)),), again="What is it worth?")
