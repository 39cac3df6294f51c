"""Changes of devices, data, the account itself, a family and a team (operations.yaml has the words)."""

from __future__ import annotations

from typing import Any

from turnwise.envs.toolworld.apps.account.parts import (
    TABLE,
    called,
    children,
    family_of,
    leads,
    members,
    myself,
    of_account,
    redrawn,
    things,
    wish,
)
from turnwise.envs.toolworld.apps.account.rules import LEAST_SEATS, MOST_SEATS, running
from turnwise.envs.toolworld.apps.account.state import (
    CHILD,
    RATINGS,
    AppAccount,
    AppDevice,
    AppFamily,
    KeptData,
    SeatTeam,
    seats_price,
)
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Operation, Patch, WishedChange
from turnwise.envs.toolworld.story import call
from turnwise.tasks.core import Json

FORMATS = ("json", "csv", "html")


# --- wishes ------------------------------------------------------------------------------------------


def _device(operation: Operation, draft: StoryDraft, row: AppDevice) -> WishedChange:
    others = [d for d in draft.db.rows("devices") if d.account_id == row.account_id and d != row]
    it = called(draft, row.account_id, f"my {row.kind}", f"{row.kind} {row.device_id}")
    reads = tuple(call("get_device", device_id=d.device_id) for d in others)
    return wish(operation, draft, row.device_id, {"device_id": row.device_id}, it, fill={"device": f"{row.kind} {row.device_id}"}, reads=reads)  # fmt: skip


def _export(operation: Operation, draft: StoryDraft, row: KeptData) -> WishedChange:
    look = (call("list_kept_data", account_id=draft.customer),)
    given: dict[str, Json] = {"app": row.app, "format": draft.rng.choice(FORMATS)}
    return of_account(operation, draft, f"data {row.app}", given, reads=look)


def _other_format(draft: StoryDraft, old: WishedChange) -> WishedChange:
    return old.given(format=draft.rng.choice([form for form in FORMATS if form != old.arguments["format"]]))


def _erase(operation: Operation, draft: StoryDraft, row: KeptData) -> WishedChange:
    own = [s.subscription_id for s in running(draft.db, draft.customer, row.app)]
    look = [call("list_kept_data", account_id=draft.customer), *(call("get_subscription", subscription_id=key) for key in own)]  # fmt: skip
    return of_account(
        operation, draft, f"data {row.app}", {"app": row.app}, amount=row.megabytes, reads=tuple(look), about=own[0] if own else draft.customer,
        fill={"size": f"{row.megabytes} megabytes"},
    )  # fmt: skip


def _close(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    own = [s.subscription_id for s in running(draft.db, draft.customer)]
    look = [call("get_subscription", subscription_id=key) for key in own[:1]]
    family = [] if own or not leads(draft) else [call("get_family", family_id=account.family_id)]
    return of_account(operation, draft, "close", {}, amount=account.credit, reads=(*look, *family))


def _ended(draft: StoryDraft, account: AppAccount) -> list[Patch]:
    """No subscription runs any more."""
    own = running(draft.db, draft.customer)
    return [("subscriptions", row.subscription_id, {"status": "cancelled"}) for row in own]


def _contested(draft: StoryDraft, account: AppAccount) -> list[Patch]:
    own = [p.purchase_id for p in draft.db.rows("purchases") if p.account_id == draft.customer]
    status = {"status": "disputed: unknown_purchase"}
    return [*_ended(draft, account), ("purchases", draft.rng.choice(own), status)]


def _email(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    new = f"{account.name.split()[0].lower()}{draft.rng.randint(10, 99)}@mailbox.example"
    return of_account(operation, draft, "email", {"email": new})


def _families(draft: StoryDraft, own: bool) -> list[AppFamily]:
    family = family_of(draft)
    return [family] if family and own else []


def _add(operation: Operation, draft: StoryDraft, family: AppFamily) -> WishedChange | None:
    """Somebody who is in no family, or in another one."""
    others: list[AppAccount] = [a for a in draft.db.rows("accounts") if a.family_id != family.family_id]
    alone = draft.rng.random() < 0.6
    able = [a for a in others if a.age >= CHILD and alone is (not a.family_id)]
    if not able:
        return None
    one = draft.rng.choice(able)
    given: dict[str, Json] = {"family_id": family.family_id, "email": one.email}
    return wish(operation, draft, f"member {one.account_id}", given, about=family.family_id, claims="welcome")


def _of_member(
    operation: Operation, draft: StoryDraft, one: AppAccount, given: dict[str, Json], **more: Any
) -> WishedChange:
    """A wish about somebody of a family; it is the family's whoever leads it alone may have."""
    about = one.account_id if leads(draft) else one.family_id
    look = (call("get_family", family_id=one.family_id),)
    full = {"account_id": one.account_id, **given}
    fill = {"who": one.name.split()[0], "name": one.name}
    return wish(operation, draft, f"member {one.account_id}", full, about=about, fill=fill, **more)._replace(find=look)  # fmt: skip


def _limit(operation: Operation, draft: StoryDraft, one: AppAccount) -> WishedChange:
    limit = draft.rng.choice([f"{rating}+" for rating in RATINGS if f"{rating}+" != one.age_limit])
    return _of_member(operation, draft, one, {"limit": limit}, claims="fit")


def _allow(operation: Operation, draft: StoryDraft, one: AppAccount) -> WishedChange:
    much = draft.rng.choice((draft.rng.randrange(5, 105, 5), draft.rng.randrange(5, 305, 5)))
    return _of_member(operation, draft, one, {"allowance_dollars": much}, claims="fit")


def _of_team(operation: Operation, draft: StoryDraft, team: SeatTeam, given: dict[str, Json], **more: Any) -> WishedChange:  # fmt: skip
    it = called(draft, team.account_id, draft.say("my team"), f"team {team.team_id}")  # fmt: skip
    return wish(operation, draft, team.team_id, {"team_id": team.team_id, **given}, it, **more)


def _enlarge(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    more = draft.rng.choice((*range(2, 13), *range(MOST_SEATS + 1 - team.seats, 61, 4)))
    return _of_team(operation, draft, team, {"seats": more}, amount=seats_price(team.seats, more), fill={"unit": "month"})  # fmt: skip


def _shrink(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    free = max(2, team.seats - max(len(team.members), LEAST_SEATS))
    less = draft.rng.choice((draft.rng.randint(2, free), draft.rng.randint(2, team.seats)))
    return _of_team(operation, draft, team, {"seats": less}, claims="unused")


def _assign(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    who = f"{draft.rng.choice(('kai', 'lou', 'mika', 'noa', 'sasha'))}{draft.rng.randint(2, 9)}"
    domain = team.domain if draft.rng.random() < 0.7 else "freelance.example"
    return _of_team(operation, draft, team, {"email": f"{who}@{domain}"})


def _full(draft: StoryDraft, team: SeatTeam) -> list[Patch]:
    return [("teams", team.team_id, {"seats": max(LEAST_SEATS, len(team.members))})] if len(team.members) >= LEAST_SEATS else []  # fmt: skip


DEVICES, TEAMS, KEPT = things("devices"), things("teams"), things("kept")

# --- the changes -------------------------------------------------------------------------------------

KEEPING = (
    TABLE.operation(
        "device", "remove_device", DEVICES, _device,
        read_for=("last_device",), prepare={"lost_device": lambda draft, row: [("devices", row.device_id, {"status": "lost"})]},
    ),
    TABLE.operation("lost", "lock_device", things("devices", lambda device: device.status == "active"), _device),
    TABLE.operation("export", "export_data", KEPT, _export, read_for=("export_period",), matches=("format",), rethink=_other_format),
    TABLE.operation("erase", "delete_app_data", KEPT, _erase, counts="count", read_for=("active_subscription",)),
    TABLE.operation(
        "close", "delete_account", myself, _close,
        read_for=("active_subscription", "family_members"), prepare={"": _ended, "family_members": _ended, "open_dispute": _contested},
    ),
    TABLE.operation("email", "change_email", myself, _email),
    TABLE.operation("add_member", "add_family_member", _families, _add),
    TABLE.operation(
        "remove_member", "remove_family_member", lambda draft, own: members(draft, lambda one: True) if own else [],
        lambda operation, draft, one: _of_member(operation, draft, one, {"family_id": one.family_id}),
    ),
    TABLE.operation("age_limit", "set_age_limit", children, _limit),
    TABLE.operation("allowance", "set_allowance", children, _allow, rethink=redrawn("accounts", "account_id")),
    TABLE.operation("more_seats", "add_seats", TEAMS, _enlarge, rethink=redrawn("teams", "team_id")),
    TABLE.operation("fewer_seats", "remove_seats", TEAMS, _shrink),
    TABLE.operation("assign", "assign_seat", TEAMS, _assign, prepare={"no_free_seat": _full}),
    TABLE.operation("free", "free_seat", TEAMS, lambda operation, draft, team: _of_team(operation, draft, team, {"email": draft.rng.choice(team.members)})),
)  # fmt: skip
