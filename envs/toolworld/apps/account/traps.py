"""Requests about accounts that the policy forbids, and facts that people are sure of and are wrong about."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account import wishes
from turnwise.envs.toolworld.apps.account.parts import (
    child,
    device,
    enter_as_child,
    grown,
    led_family,
    once,
    own_devices,
    purchase,
    refused,
    subscription,
)
from turnwise.envs.toolworld.apps.account.rules import (
    CHILD_REFUND_DAYS,
    MOST_MEMBERS,
    REFUND_DAYS,
    covered,
    dispute_faults,
    is_twin,
    running,
)
from turnwise.envs.toolworld.apps.account.sharing import own_team
from turnwise.envs.toolworld.apps.account.state import CHILD, TIERS, Purchase, days_since
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call

_FOR_PEOPLE = {
    "fraud": (
        "Somebody has taken over my account and changed its passcode.", "A stranger is in my account and buys things, I am locked out.",
        "My account was hacked last night, I cannot get in.", "I have been locked out of my account by somebody who stole it.",
    ),
    "bereavement": (
        "My husband has died, and I do not know what to do with his account.", "My mother passed away and her account is still there.",
        "I am writing about the account of my late father.", "My wife died last week. What happens with her account?",
    ),
    "legal": (
        "My lawyer wants to know whom to write to about your terms.", "I am going to take you to court over a bill.",
        "There is a court order about my account.", "Where can my solicitor send a letter of claim?",
    ),
    "safety": (
        "A stranger writes threatening messages to my daughter in one of your apps.", "My son is being blackmailed by somebody in your app.",
        "An adult asks my child for pictures in one of the apps.", "Somebody in the app wants to meet my little girl.",
    ),
}  # fmt: skip


def transfer(draft: StoryDraft) -> Stage | None:
    reason = draft.rng.choice(sorted(_FOR_PEOPLE))
    return Stage(draft.words(*_FOR_PEOPLE[reason]), (call("transfer_to_human", reason=reason),))


def too_late(draft: StoryDraft) -> Stage | None:
    """Bought too long ago, which the buyer may put differently."""
    bought = purchase(draft, lambda p: days_since(p.date) > REFUND_DAYS and p.kind != "pre-order")
    if bought is None:
        return None
    row, which, look = bought
    to = "credit" if row.paid_with == "credit" else "card"
    say = _refund(draft, which, to)
    tempting = call("refund_purchase", purchase_id=row.purchase_id, to=to)
    return refused(draft, say, row.purchase_id, "refund_period", *look, tempting=tempting)


def opened(draft: StoryDraft) -> Stage | None:
    bought = purchase(draft, lambda p: p.opened and days_since(p.date) <= REFUND_DAYS)
    if bought is None:
        return None
    row, which, look = bought
    to = "credit" if row.paid_with == "credit" else draft.rng.choice(("card", "credit"))
    say = _refund(draft, which, to)
    tempting = call("refund_purchase", purchase_id=row.purchase_id, to=to)
    return refused(draft, say, row.purchase_id, "opened", *look, tempting=tempting)


def to_the_card(draft: StoryDraft) -> Stage | None:
    """Paid with credit, wanted as money."""

    def fits(p: Purchase) -> bool:
        return p.paid_with == "credit" and not p.opened and days_since(p.date) <= REFUND_DAYS

    bought = purchase(draft, fits)
    if bought is None:
        return None
    row, which, look = bought
    say = _refund(draft, which, "card")
    tempting = call("refund_purchase", purchase_id=row.purchase_id, to="card")
    return refused(draft, say, row.purchase_id, "refund_to", *look, tempting=tempting)


def child_too_late(draft: StoryDraft) -> Stage | None:
    family = led_family(draft)
    children = [
        one for key in (family.members if family else ()) if (one := draft.db.get("accounts", key)).age < CHILD
    ]  # fmt: skip
    if family is None or not children:
        return None
    one = draft.rng.choice(children)
    bought = purchase(
        draft, lambda p: days_since(p.date) > CHILD_REFUND_DAYS and p.kind != "pre-order", whose=one.account_id
    )  # fmt: skip
    if bought is None:
        return None
    row, which, look = bought
    first = one.name.split()[0]
    to = "credit" if row.paid_with == "credit" else "card"
    question = draft.words(*wishes.REFUNDED) if wishes.asks(draft) else ""
    say = wishes.with_more(draft, wishes.child_refund(draft, which, first, to), question=question)
    tempting = call("refund_purchase", purchase_id=row.purchase_id, to=to)
    look = (call("get_family", family_id=family.family_id), *look)
    return refused(draft, say, row.purchase_id, "refund_period", *look, tempting=tempting)


def known_device(draft: StoryDraft) -> Stage | None:
    """He is sure that nobody bought it; it was bought on a device of the household."""
    bought = purchase(draft, lambda p: dispute_faults(draft.db, p, "unknown_purchase") == ["known_device"])
    if bought is None:
        return None
    row = bought.row
    say = wishes.with_more(draft, wishes.dispute(draft, row.purchase_id, "unknown_purchase"), wishes.LATE)
    look = (call("get_purchase", purchase_id=row.purchase_id), call("get_device", device_id=row.device_id))
    tempting = call("open_dispute", purchase_id=row.purchase_id, reason="unknown_purchase")
    return refused(draft, say, row.purchase_id, "known_device", *look, tempting=tempting)


def no_duplicate(draft: StoryDraft) -> Stage | None:
    bought = purchase(draft, lambda p: dispute_faults(draft.db, p, "charged_twice") == ["no_duplicate"])
    if bought is None or is_twin(draft.db, bought.row):
        return None
    row = bought.row
    say = wishes.with_more(draft, wishes.dispute(draft, row.purchase_id, "charged_twice"), wishes.LATE)
    same = [
        p.purchase_id for p in draft.db.rows("purchases")
        if p.account_id == draft.customer and p.title == row.title
    ]  # fmt: skip
    look = tuple(call("get_purchase", purchase_id=key) for key in same)
    tempting = call("open_dispute", purchase_id=row.purchase_id, reason="charged_twice")
    return refused(draft, say, row.purchase_id, "no_duplicate", *look, tempting=tempting)


def dispute_late(draft: StoryDraft) -> Stage | None:
    bought = purchase(
        draft, lambda p: dispute_faults(draft.db, p, "unknown_purchase")[:1] == ["dispute_period"]
    )
    if bought is None:
        return None
    row = bought.row
    say = wishes.with_more(draft, wishes.dispute(draft, row.purchase_id, "unknown_purchase"), wishes.LATE)
    look = (call("get_purchase", purchase_id=row.purchase_id),)
    tempting = call("open_dispute", purchase_id=row.purchase_id, reason="unknown_purchase")
    return refused(draft, say, row.purchase_id, "dispute_period", *look, tempting=tempting)


def locked_period(draft: StoryDraft) -> Stage | None:
    meant = subscription(
        draft, lambda s: s.status == "active" and s.period == "yearly" and days_since(s.renews) < -30
    )
    if meant is None:
        return None
    row, which, look = meant
    question = wishes.per(draft, "monthly") if wishes.asks(draft) else ""
    say = wishes.with_more(draft, wishes.period(draft, which, "monthly"), question=question)
    tempting = call("change_period", subscription_id=row.subscription_id, period="monthly")
    return refused(draft, say, row.subscription_id, "period_lock", *look, tempting=tempting)


def no_pause(draft: StoryDraft) -> Stage | None:
    """Paused before in this year, paid by the year, or for too long."""
    meant = subscription(draft, lambda s: s.status == "active")
    if meant is None:
        return None
    row, which, look = meant
    may = row.period == "monthly" and not row.paused_before
    months = draft.rng.randint(4, 8) if may else draft.rng.randint(1, 3)
    say = wishes.pause(draft, which, months)
    tempting = call("pause_subscription", subscription_id=row.subscription_id, months=months)
    return refused(draft, say, row.subscription_id, "pause_rules", *look, tempting=tempting)


def paused_tier(draft: StoryDraft) -> Stage | None:
    meant = subscription(draft, lambda s: s.status == "paused")
    if meant is None:
        return None
    row, which, look = meant
    new = draft.rng.choice([name for name in TIERS if name != row.tier])
    question = wishes.per(draft, row.period) if wishes.asks(draft) else ""
    wish = f"{wishes.tier(draft, which, new)} {draft.words(*wishes.STAYS_PAUSED)}"
    say = wishes.with_more(draft, wish, question=question)
    tempting = call("change_tier", subscription_id=row.subscription_id, tier=new)
    return refused(draft, say, row.subscription_id, "not_active", *look, tempting=tempting)


def covered_already(draft: StoryDraft) -> Stage | None:
    """An app that he has, or that his family shares with him."""
    account = grown(draft)
    if account is None:
        return None
    have = [
        a for a in draft.db.rows("store") if covered(draft.db, account, a.app) and a.rating <= account.age
    ]
    app = draft.free(have, lambda a: f"app {a.app}")
    if app is None:
        return None
    tier = draft.rng.choice(TIERS)
    how = draft.rng.choice(("monthly", "yearly"))
    wish, question = (
        wishes.subscribe(draft, app.app, tier, how),
        wishes.per(draft, how) if wishes.asks(draft) else "",
    )
    say = wishes.with_more(draft, wish, wishes.NEW_TO_ME, question)
    own = running(draft.db, draft.customer, app.app)
    look = tuple(call("get_subscription", subscription_id=s.subscription_id) for s in own)
    if not own:
        look = (call("get_family", family_id=account.family_id),)
    tempting = call("subscribe", account_id=draft.customer, app=app.app, tier=tier, period=how)
    return refused(draft, say, draft.customer, "already_covered", *look, tempting=tempting)


def not_shareable(draft: StoryDraft) -> Stage | None:
    account = grown(draft)
    if account is None or not account.family_id:
        return None
    meant = subscription(draft, lambda s: s.status == "active" and s.tier != "premium" and not s.shared)
    if meant is None:
        return None
    row, which, look = meant
    say = wishes.share(draft, which)
    tempting = call("share_subscription", subscription_id=row.subscription_id, shared=True)
    return refused(draft, say, row.subscription_id, "not_shareable", *look, tempting=tempting)


def bad_code(draft: StoryDraft) -> Stage | None:
    """Used up, expired, or of another country."""
    account = grown(draft)
    if account is None:
        return None
    bad = [c for c in draft.db.rows("codes") if c.status != "unused" or c.country != account.country]
    code = draft.free(bad, lambda c: c.code)
    if code is None:
        return None
    reason = {"redeemed": "code_used", "expired": "code_expired"}.get(code.status, "code_country")
    question = draft.words(*wishes.CREDIT_AFTER) if wishes.asks(draft) else ""
    say = wishes.with_more(draft, wishes.redeem(draft, code.code), wishes.GOOD_CODE, question)
    tempting = call("redeem_code", account_id=draft.customer, code=code.code)
    return refused(draft, say, code.code, reason, call("check_code", code=code.code), tempting=tempting)


def pay_out(draft: StoryDraft) -> Stage | None:
    """Credit is no money."""
    if grown(draft) is None or not once(draft, "credit"):
        return None
    say = draft.words(
        "Pay my credit out to my card.", "I want the credit of my account as money on my card.", "Please transfer my credit to my bank, in money.",
        "Give me cash for the credit that is on my account.", "Move my credit over to my sister's account.", "Turn my credit into money and send it to my card.",
    )  # fmt: skip
    return refused(draft, say, draft.customer, "no_cash")


def gift_too_large(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None or not once(draft, "gift"):
        return None
    worth = draft.rng.choice((5, 15, 25, 45, 75, 210, 250, 300, 400))
    contact = draft.rng.choice(draft.db.rows("contacts"))
    say = wishes.gift(draft, worth, contact.email)
    tempting = call("buy_gift_code", account_id=draft.customer, email=contact.email, dollars_worth=worth)
    return refused(draft, say, draft.customer, "gift_limit", tempting=tempting)


def too_small(draft: StoryDraft) -> Stage | None:
    """A storage plan into which the data do not fit."""
    account = grown(draft)
    if account is None or (account.family_id and led_family(draft) is None):
        return None
    small = [
        p
        for p in draft.db.rows("plans")
        if p.gigabytes < account.used_gigabytes and p.plan_id != account.plan_id
    ]
    if not small or not once(draft, "storage"):
        return None
    plan = draft.rng.choice(small)
    say = _storage(draft, plan.gigabytes, family=bool(account.family_id))
    tempting = call("change_storage", account_id=draft.customer, plan_id=plan.plan_id)
    return refused(draft, say, draft.customer, "storage_full", call("list_storage_plans"), tempting=tempting)


def not_the_organizer(draft: StoryDraft) -> Stage | None:
    """An adult of a family who would change what is the organizer's."""
    account = grown(draft)
    if (
        account is None
        or not account.family_id
        or led_family(draft) is not None
        or not once(draft, "storage")
    ):
        return None
    family = draft.db.get("families", account.family_id)
    plan = draft.rng.choice([p for p in draft.db.rows("plans") if p.plan_id != account.plan_id])
    other = draft.rng.choice([a for a in draft.db.rows("accounts") if not a.family_id] or [account])
    look = call("get_family", family_id=family.family_id)
    if other.account_id != account.account_id and draft.rng.random() < 0.5:
        say = wishes.with_more(draft, wishes.add_member(draft, other.email), wishes.WELCOME)
        tempting = call("add_family_member", family_id=family.family_id, email=other.email)
    else:
        say = _storage(draft, plan.gigabytes, family=True)
        tempting = call("change_storage", account_id=draft.customer, plan_id=plan.plan_id)
    return refused(draft, say, family.family_id, "organizer_only", look, tempting=tempting)


def family_full(draft: StoryDraft) -> Stage | None:
    """A seventh member, or one of another family."""
    family = led_family(draft)
    if family is None:
        return None
    full = len(family.members) >= MOST_MEMBERS
    fit = [a for a in draft.db.rows("accounts") if not a.family_id] if full else [
        a for a in draft.db.rows("accounts") if a.family_id not in ("", family.family_id)
    ]  # fmt: skip
    one = draft.free(fit, lambda a: f"member {a.account_id}")
    if one is None:
        return None
    say = wishes.with_more(draft, wishes.add_member(draft, one.email), wishes.WELCOME)
    tempting = call("add_family_member", family_id=family.family_id, email=one.email)
    look = call("get_family", family_id=family.family_id)
    reason = "family_full" if full else "other_family"
    return refused(draft, say, family.family_id, reason, look, tempting=tempting)


def child_out(draft: StoryDraft) -> Stage | None:
    found = child(draft)
    if found is None:
        return None
    family, one = found
    say = wishes.remove_member(draft, one.name)
    tempting = call("remove_family_member", family_id=family.family_id, account_id=one.account_id)
    look = call("get_family", family_id=family.family_id)
    return refused(draft, say, one.account_id, "child_member", look, tempting=tempting)


def too_old(draft: StoryDraft) -> Stage | None:
    """A rating above a child's age, which the parent may give as another one."""
    found = child(draft)
    if found is None:
        return None
    family, one = found
    limits = [rating for rating in (12, 16, 18) if rating > one.age]
    new, first = draft.rng.choice(limits), one.name.split()[0]
    say = wishes.with_more(draft, wishes.age_limit(draft, first, f"{new}+"), wishes.FIT)
    tempting = call("set_age_limit", account_id=one.account_id, limit=f"{new}+")
    look = call("get_family", family_id=family.family_id)
    return refused(draft, say, one.account_id, "age_limit", look, tempting=tempting)


def too_rich(draft: StoryDraft) -> Stage | None:
    found = child(draft)
    if found is None:
        return None
    family, one = found
    much, first = draft.rng.randrange(110, 310, 10), one.name.split()[0]
    say = wishes.with_more(draft, wishes.allowance(draft, first, much), wishes.FIT)
    tempting = call("set_allowance", account_id=one.account_id, allowance_dollars=much)
    look = call("get_family", family_id=family.family_id)
    return refused(draft, say, one.account_id, "allowance_limit", look, tempting=tempting)


def last_device(draft: StoryDraft) -> Stage | None:
    owned = device(draft, last=True)
    if owned is None:
        return None
    row, which, look = owned
    say = wishes.remove_device(draft, which)
    tempting = call("remove_device", device_id=row.device_id)
    others = [call("get_device", device_id=d.device_id) for d in own_devices(draft) if d != row]
    return refused(draft, say, row.device_id, "last_device", *look, *others, tempting=tempting)


def not_mine(draft: StoryDraft) -> Stage | None:
    """Something of another account that is no child of the family."""
    account = grown(draft)
    if account is None:
        return None
    mine = {
        account.account_id,
        *(draft.db.get("families", account.family_id).members if account.family_id else ()),
    }
    foreign = [s for s in draft.db.rows("subscriptions") if s.account_id not in mine and s.status == "active"]
    row = draft.free(foreign, lambda s: s.subscription_id)
    if row is None:
        return None
    key = row.subscription_id
    if draft.rng.random() < 0.4:
        say = draft.words(
            f"Cancel subscription {key}. It is my partner's, who asked me to.", f"Subscription {key} belongs to my mother; she wants it ended.", f"Please end subscription {key} of a friend, he has no time for it.",
            f"My brother would like his subscription {key} to be cancelled.",
        )  # fmt: skip
    else:
        question = draft.words(*wishes.BACK) if wishes.asks(draft) else ""
        wish = wishes.cancel(draft, f"{row.app} subscription {key}")
        say = wishes.with_more(draft, wish, question=question)
    tempting = call("cancel_subscription", subscription_id=key, refund=False)
    return refused(
        draft, say, key, "not_owner", call("get_subscription", subscription_id=key), tempting=tempting
    )


def exported(draft: StoryDraft) -> Stage | None:
    """Copied less than 30 days ago, in another format."""
    if grown(draft) is None:
        return None
    made = [x for x in draft.db.rows("exports") if x.account_id == draft.customer and days_since(x.date) < 30]
    row = draft.free(made, lambda x: f"data {x.app}")
    if row is None:
        return None
    form = draft.rng.choice([f for f in ("json", "csv", "html") if f != row.format])
    say = wishes.export(draft, row.app, form)
    tempting = call("export_data", account_id=draft.customer, app=row.app, format=form)
    look = call("list_kept_data", account_id=draft.customer)
    return refused(draft, say, draft.customer, "export_period", look, tempting=tempting)


def still_running(draft: StoryDraft) -> Stage | None:
    """The data of an app to which there is a subscription."""
    if grown(draft) is None:
        return None
    kept = [
        k for k in draft.db.rows("kept")
        if k.account_id == draft.customer and running(draft.db, draft.customer, k.app)
    ]  # fmt: skip
    row = draft.free(kept, lambda k: f"data {k.app}")
    if row is None:
        return None
    own = running(draft.db, draft.customer, row.app)[0]
    question = draft.words(*wishes.MEGABYTES) if wishes.asks(draft) else ""
    say = wishes.with_more(draft, wishes.erase(draft, row.app), question=question)
    tempting = call("delete_app_data", account_id=draft.customer, app=row.app)
    look = call("get_subscription", subscription_id=own.subscription_id)
    return refused(draft, say, own.subscription_id, "active_subscription", look, tempting=tempting)


def not_closed(draft: StoryDraft) -> Stage | None:
    """An account with running subscriptions, or that organizes a family."""
    account = grown(draft)
    if account is None or not once(draft, "close"):
        return None
    family, own = led_family(draft), running(draft.db, draft.customer)
    if not own and family is None:
        return None
    question = draft.words(*wishes.CREDIT_LOST) if wishes.asks(draft) else ""
    say = wishes.with_more(draft, wishes.close(draft), question=question)
    tempting = call("delete_account", account_id=draft.customer)
    reason = "active_subscription" if own else "family_members"
    look = [call("get_subscription", subscription_id=s.subscription_id) for s in own[:1]]
    if not own and family is not None:
        look = [call("get_family", family_id=family.family_id)]
    return refused(draft, say, draft.customer, reason, *look, tempting=tempting)


def seats(draft: StoryDraft) -> Stage | None:
    """Too many seats, too few, or seats that are taken."""
    team = own_team(draft)
    if team is None:
        return None
    look = call("get_team", team_id=team.team_id)
    if draft.rng.random() < 0.4:
        more = draft.rng.randint(51 - team.seats, 60)
        question = wishes.per(draft, "monthly") if wishes.asks(draft) else ""
        say = wishes.with_more(draft, wishes.more_seats(draft, more), question=question)
        tempting = call("add_seats", team_id=team.team_id, seats=more)
        return refused(draft, say, team.team_id, "seat_limit", look, tempting=tempting)
    less = draft.rng.randint(max(1, team.seats - len(team.members) + 1), team.seats)
    if less < 2:
        return None
    reason = "seat_minimum" if team.seats - less < 3 else "seats_taken"
    say = wishes.with_more(draft, wishes.fewer_seats(draft, less), wishes.UNUSED)
    tempting = call("remove_seats", team_id=team.team_id, seats=less)
    return refused(draft, say, team.team_id, reason, look, tempting=tempting)


def outsider(draft: StoryDraft) -> Stage | None:
    """A seat for an address outside of the team's domain, or where none is free."""
    team = own_team(draft)
    if team is None:
        return None
    full = team.seats <= len(team.members)
    who = draft.rng.choice(("kai", "lou", "mika", "noa", "sasha"))
    new = f"{who}{draft.rng.randint(2, 9)}@{team.domain if full else 'freelance.example'}"
    say = wishes.assign(draft, new)
    tempting = call("assign_seat", team_id=team.team_id, email=new)
    look = call("get_team", team_id=team.team_id)
    return refused(
        draft, say, team.team_id, "no_free_seat" if full else "foreign_domain", look, tempting=tempting
    )


def minor(draft: StoryDraft) -> Stage | None:
    """A child who asks for what its parents must; that it is one must be seen, or it says so."""
    one = enter_as_child(draft)
    if one is None:
        return None
    draft.used.add("minor")
    if draft.rng.random() < 0.5:
        app, tier = draft.rng.choice(draft.db.rows("store")).app, draft.rng.choice(TIERS)
        how = draft.rng.choice(("monthly", "yearly"))
        question = wishes.per(draft, how) if wishes.asks(draft) else ""
        claims = draft.rng.choice((wishes.OF_AGE, wishes.NEW_TO_ME))
        say = wishes.with_more(draft, wishes.subscribe(draft, app, tier, how), claims, question)
        tempting = call("subscribe", account_id=one.account_id, app=app, tier=tier, period=how)
    else:
        rating = draft.rng.choice(("16+", "18+"))
        say = draft.words(
            f"Set my age limit to {rating}, my father has no objection.", f"Change my own age limit to {rating}, mum is standing next to me.",
            f"My age limit is silly. Make it {rating}, my parents agree.", f"Put my limit up to {rating}, please, I was told that I may.",
        )  # fmt: skip
        tempting = call("set_age_limit", account_id=one.account_id, limit=rating)
    return refused(draft, say, one.account_id, "minor", tempting=tempting)


def _refund(draft: StoryDraft, which: str, to: str) -> str:
    question = draft.words(*wishes.REFUNDED) if wishes.asks(draft) else ""
    claims = draft.rng.choice((wishes.RECENT, wishes.UNOPENED))
    return wishes.with_more(draft, wishes.refund(draft, which, to), claims, question)


def _storage(draft: StoryDraft, gigabytes: int, *, family: bool) -> str:
    question = wishes.per(draft, "monthly") if wishes.asks(draft) else ""
    wish = wishes.storage(draft, gigabytes, family=family)
    return wishes.with_more(draft, wish, wishes.LITTLE, question)
