"""Requests about those with whom an account is shared: a family, its children, a business team."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account import wishes
from turnwise.envs.toolworld.apps.account.parts import (
    child,
    confirm,
    done,
    grown,
    led_family,
    once,
    proposed,
    subscription,
    verify,
)
from turnwise.envs.toolworld.apps.account.rules import MOST_MEMBERS, MOST_SEATS
from turnwise.envs.toolworld.apps.account.state import CHILD, RATINGS, AppAccount, SeatTeam, seats_price
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import Stage, call, tell


def share(draft: StoryDraft) -> Stage | None:
    account = grown(draft)
    if account is None or not account.family_id:
        return None
    meant = subscription(draft, lambda s: s.status == "active" and (s.shared or s.tier == "premium"))
    if meant is None:
        return None
    row, which, look = meant
    if row.shared:
        say = draft.words(
            f"Stop sharing {which} with my family.", f"My family should not use {which} any longer: end the sharing.",
            f"Please keep {which} for myself, nobody else in the family should have it.", f"I no longer want {which} to be shared with the family.",
        )  # fmt: skip
        offer, report = (
            f"I will stop sharing your {row.app} subscription with your family, at no cost.",
            "Done, it is yours alone.",
        )
    else:
        say = wishes.share(draft, which)
        offer, report = (
            f"I will share your {row.app} subscription with your family, at no cost.",
            "Done, it is shared.",
        )
    plan = (
        *verify(draft), *look, confirm(offer),
        call("share_subscription", subscription_id=row.subscription_id, shared=not row.shared), tell(report),
    )  # fmt: skip
    return done(say, plan, "share_subscription")


def add_member(draft: StoryDraft) -> Stage | None:
    family = led_family(draft)
    if family is None or len(family.members) >= MOST_MEMBERS:
        return None
    alone = [a for a in draft.db.rows("accounts") if not a.family_id and a.age >= CHILD]
    one: AppAccount | None = draft.free(alone, lambda a: f"member {a.account_id}")
    if one is None:
        return None
    say = wishes.with_more(draft, wishes.add_member(draft, one.email), wishes.WELCOME)
    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), confirm(f"I will add {one.email} to your family."),
        call("add_family_member", family_id=family.family_id, email=one.email), tell("Done, the family has a new member."),
    )  # fmt: skip
    return done(say, plan, "add_family_member")


def remove_member(draft: StoryDraft) -> Stage | None:
    family = led_family(draft)
    if family is None:
        return None
    members: list[AppAccount] = [
        draft.db.get("accounts", key) for key in family.members if key != draft.customer
    ]
    one = draft.free([a for a in members if a.age >= CHILD], lambda a: f"member {a.account_id}")
    if one is None:
        return None
    say = wishes.remove_member(draft, one.name)
    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), confirm(f"I will remove {one.name} from your family."),
        call("remove_family_member", family_id=family.family_id, account_id=one.account_id), tell(f"Done, {one.name} is no member of your family any more."),
    )  # fmt: skip
    return done(say, plan, "remove_family_member")


def age_limit(draft: StoryDraft) -> Stage | None:
    found = child(draft)
    if found is None:
        return None
    family, one = found
    fit = [f"{rating}+" for rating in RATINGS if rating <= one.age and f"{rating}+" != one.age_limit]
    if not fit:
        return None
    new, first = draft.rng.choice(fit), one.name.split()[0]
    say = wishes.with_more(draft, wishes.age_limit(draft, first, new), wishes.FIT)
    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), confirm(f"I will set the age limit of {first} to {new}."),
        call("set_age_limit", account_id=one.account_id, limit=new), tell(f"Done, the age limit of {first} is {new} now."),
    )  # fmt: skip
    return done(say, plan, "set_age_limit")


def allowance(draft: StoryDraft) -> Stage | None:
    found = child(draft)
    if found is None:
        return None
    family, one = found
    first, second = draft.rng.sample([n for n in range(5, 105, 5) if 100 * n != one.allowance], 2)
    twisted = draft.changes_mind
    new, name = second if twisted else first, one.name.split()[0]
    say = wishes.with_more(draft, wishes.allowance(draft, name, first), wishes.FIT)
    twist = draft.words(
        f"No, ${second} a month will do.",
        f"Let me think: ${second} a month.",
        f"Rather ${second} a month.",
        f"My partner says ${second} a month, so that.",
    )

    def offer(amount: int) -> str:
        return f"I will set the allowance of {name} to ${amount} a month."

    plan = (
        *verify(draft), call("get_family", family_id=family.family_id), *proposed(offer(first), twisted=twisted), confirm(offer(new)),
        call("set_allowance", account_id=one.account_id, allowance_dollars=new), tell(f"Done, the allowance of {name} is ${new} a month now."),
    )  # fmt: skip
    return Stage(say, plan, twist=twist if twisted else "", wants=("set_allowance",))


def own_team(draft: StoryDraft) -> SeatTeam | None:
    """His business team, about which nothing was asked yet."""
    if grown(draft) is None:
        return None
    return draft.free([t for t in draft.db.rows("teams") if t.owner == draft.customer], lambda t: t.team_id)


def more_seats(draft: StoryDraft) -> Stage | None:
    team = own_team(draft)
    if team is None:
        return None
    first, second = draft.rng.sample(range(2, 13), 2)
    twisted = draft.changes_mind
    more = second if twisted else first
    if team.seats + max(first, second) > MOST_SEATS:
        return None
    cost = seats_price(team.seats, more)
    asks = wishes.asks(draft)
    question = wishes.per(draft, "monthly") if asks else ""
    say = wishes.with_more(draft, wishes.more_seats(draft, first), question=question)
    twist = draft.words(
        f"Make that {second} seats.",
        f"I have counted again: {second} seats.",
        f"No, {second} seats, somebody is leaving.",
        f"We talked about it; it is {second} seats now.",
    )

    def offer(seats: int) -> str:
        return f"I will add {seats} seats to your team for {dollars(seats_price(team.seats, seats))}."

    plan = (
        *verify(draft), call("get_team", team_id=team.team_id), *proposed(offer(first), twisted=twisted), confirm(offer(more)),
        call("add_seats", team_id=team.team_id, seats=more), tell(f"Done, your team has {more} more seats, and they cost {dollars(cost)} a month."),
    )  # fmt: skip
    tells, again = ((Fact("money", str(cost)),), "What do the seats cost a month?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, twist=twist if twisted else "", wants=("add_seats",))


def fewer_seats(draft: StoryDraft) -> Stage | None:
    team = own_team(draft)
    if team is None:
        return None
    free = team.seats - max(len(team.members), 3)
    if free < 2:
        return None
    less = draft.rng.randint(2, free)
    say = wishes.with_more(draft, wishes.fewer_seats(draft, less), wishes.UNUSED)
    plan = (
        *verify(draft), call("get_team", team_id=team.team_id), confirm(f"I will remove {less} seats from your team; nothing is refunded."),
        call("remove_seats", team_id=team.team_id, seats=less), tell("Done, the seats are given back."),
    )  # fmt: skip
    return done(say, plan, "remove_seats")


def assign(draft: StoryDraft) -> Stage | None:
    """Somebody gets a seat; where none is free, that of somebody who leaves."""
    team = own_team(draft)
    if team is None:
        return None
    new = f"{draft.rng.choice(('kai', 'lou', 'mika', 'noa', 'sasha'))}{draft.rng.randint(2, 9)}@{team.domain}"
    look = (*verify(draft), call("get_team", team_id=team.team_id))
    given = call("assign_seat", team_id=team.team_id, email=new)
    if team.seats > len(team.members) and draft.rng.random() < 0.5:
        say = wishes.assign(draft, new)
        plan = (
            *look,
            confirm(f"I will assign a seat of your team to {new}."),
            given,
            tell("Done, the seat is assigned."),
        )
        return done(say, plan, "assign_seat")
    old = draft.rng.choice(team.members)
    say = draft.words(
f"Free the seat of {old}, who leaves us. Then assign a seat to {new}.", f"Take the seat of {old} away; a new one, {new}, gets it.",
        f"In my team free the seat of {old}. After that assign one to {new}.", f"Please release the seat of {old}; instead of them {new} is to have one, so assign it.",
    )  # fmt: skip
    plan = (
        *look, confirm(f"I will free the seat of {old} in your team."), call("free_seat", team_id=team.team_id, email=old),
        confirm(f"And I will assign a seat of your team to {new}."), given, tell("Done, both is changed."),
    )  # fmt: skip
    return done(say, plan, "assign_seat", "free_seat")


def free(draft: StoryDraft) -> Stage | None:
    team = own_team(draft)
    if team is None:
        return None
    old = draft.rng.choice(team.members)
    say = draft.words(
        f"Take the seat of {old} away.", f"{old} does not work here any longer. Free the seat.", f"Please withdraw the seat that {old} has in my team.",
        f"Release the seat of {old} in my business team.",
    )  # fmt: skip
    plan = (
        *verify(draft), call("get_team", team_id=team.team_id), confirm(f"I will free the seat of {old} in your team."),
        call("free_seat", team_id=team.team_id, email=old), tell("Done, the seat is free."),
    )  # fmt: skip
    return done(say, plan, "free_seat")


def unassigned(draft: StoryDraft) -> Stage | None:
    """A question: how many seats nobody has."""
    team = own_team(draft)
    if team is None:
        return None
    count = team.seats - len(team.members)
    say = draft.words(
        "How many seats of my team are free?", "In my business team, how many seats has nobody?", "What number of seats could I still assign in my team?",
        "Tell me how many of my team's seats are not taken.",
    )  # fmt: skip
    plan = (*verify(draft), call("get_team", team_id=team.team_id), tell(f"There are {count}."))
    return Stage(say, plan, (Fact("count", str(count)),), again="How many seats are free?")


def allowed(draft: StoryDraft) -> Stage | None:
    """A question: what all children together may spend."""
    family = led_family(draft)
    if family is None or not once(draft, "allowed"):
        return None
    children = [one for key in family.members if (one := draft.db.get("accounts", key)).age < CHILD]
    total = sum(one.allowance for one in children)
    if not total:
        return None
    say = draft.words(
        "How much may my children spend a month in all?", "What do the allowances of my children come to a month?", "Add up what all children of my family may spend in a month.",
        "What is the sum of the children's allowances in my family?",
    )  # fmt: skip
    plan = (*verify(draft), call("get_family", family_id=family.family_id), tell(f"It is {dollars(total)}."))
    return Stage(say, plan, (Fact("money", str(total)),), again="How much may they spend in all?")
