"""Changes of devices, data, the account itself, a family and a team, with the words that ask for, offer and
report each."""

from __future__ import annotations

from typing import Any

from turnwise.envs.toolworld.apps.account.parts import (
    DESK,
    called,
    children,
    family_of,
    leads,
    me,
    members,
    myself,
    things,
    wish,
)
from turnwise.envs.toolworld.apps.account.paying import MAY_I, PER
from turnwise.envs.toolworld.apps.account.rules import LEAST_SEATS, MAY, MOST_SEATS, running
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

WELCOME = ("Nothing speaks against it.", "We all agree.", "Everybody knows about it.", "Everyone here wants that.")  # fmt: skip
FIT = ("I have thought about it.", "I take the responsibility.", "That is all right with me.", "I know what I do.")  # fmt: skip
UNUSED = ("Nobody uses them.", "They are free.", "We want to save money.", "We have no use for them.")
MEGABYTES = (
    "How many megabytes is that?", "Tell me how many megabytes go.", "What is the size of it in megabytes?", "How many megabytes are there?",
)  # fmt: skip
CREDIT_LOST = (
    "How much credit do I lose?", "What credit is on it that goes with it?", "Tell me the credit that is lost.", "What is the amount of credit on it?",
)  # fmt: skip
FORMATS = ("json", "csv", "html")


# --- wishes ------------------------------------------------------------------------------------------


def _device(operation: Operation, draft: StoryDraft, row: AppDevice) -> WishedChange:
    others = [d for d in draft.db.rows("devices") if d.account_id == row.account_id and d != row]
    it = called(draft, row.account_id, f"my {row.kind}", f"{row.kind} {row.device_id}")
    reads = tuple(call("get_device", device_id=d.device_id) for d in others)
    return wish(operation, draft, row.device_id, {"device_id": row.device_id}, it, fill={"device": f"{row.kind} {row.device_id}"}, reads=reads)  # fmt: skip


def _of_account(operation: Operation, draft: StoryDraft, subject: str, given: dict[str, Json], **more: Any) -> WishedChange:  # fmt: skip
    """A wish about the account of whoever speaks."""
    account = me(draft)
    claims = MAY_I if account.age < CHILD else ()
    full = {"account_id": account.account_id, **given}
    return wish(operation, draft, subject, full, claims=claims, **{"about": account.account_id, **more})


def _export(operation: Operation, draft: StoryDraft, row: KeptData) -> WishedChange:
    look = (call("list_kept_data", account_id=draft.customer),)
    given: dict[str, Json] = {"app": row.app, "format": draft.rng.choice(FORMATS)}
    return _of_account(operation, draft, f"data {row.app}", given, reads=look)


def _erase(operation: Operation, draft: StoryDraft, row: KeptData) -> WishedChange:
    own = [s.subscription_id for s in running(draft.db, draft.customer, row.app)]
    look = [call("list_kept_data", account_id=draft.customer), *(call("get_subscription", subscription_id=key) for key in own)]  # fmt: skip
    return _of_account(
        operation, draft, f"data {row.app}", {"app": row.app}, amount=row.megabytes, reads=tuple(look), about=own[0] if own else draft.customer,
        fill={"size": f"{row.megabytes} megabytes"},
    )  # fmt: skip


def _close(operation: Operation, draft: StoryDraft, account: AppAccount) -> WishedChange:
    own = [s.subscription_id for s in running(draft.db, draft.customer)]
    look = [call("get_subscription", subscription_id=key) for key in own[:1]]
    family = [] if own or not leads(draft) else [call("get_family", family_id=account.family_id)]
    return _of_account(operation, draft, "close", {}, amount=account.credit, reads=(*look, *family))


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
    return _of_account(operation, draft, "email", {"email": new})


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
    return wish(operation, draft, f"member {one.account_id}", given, about=family.family_id, claims=WELCOME)


def _of_member(
    operation: Operation, draft: StoryDraft, one: AppAccount, given: dict[str, Json], **more: Any
) -> WishedChange:
    """A wish about somebody of a family; it is the family's whoever leads it alone may have."""
    about = one.account_id if leads(draft) else one.family_id
    look = (call("get_family", family_id=one.family_id),)
    full = {"account_id": one.account_id, **given}
    fill = {"who": one.name.split()[0], "name": one.name}
    return wish(operation, draft, f"member {one.account_id}", full, about=about, fill=fill, **more)._replace(find=look)  # fmt: skip


def _expel(operation: Operation, draft: StoryDraft, one: AppAccount) -> WishedChange:
    return _of_member(operation, draft, one, {"family_id": one.family_id})


def _limit(operation: Operation, draft: StoryDraft, one: AppAccount) -> WishedChange:
    limit = draft.rng.choice([f"{rating}+" for rating in RATINGS if f"{rating}+" != one.age_limit])
    return _of_member(operation, draft, one, {"limit": limit}, claims=FIT)


def _allow(operation: Operation, draft: StoryDraft, one: AppAccount) -> WishedChange:
    much = draft.rng.choice((draft.rng.randrange(5, 105, 5), draft.rng.randrange(5, 305, 5)))
    return _of_member(operation, draft, one, {"allowance_dollars": much}, claims=FIT)


def _allow_other(draft: StoryDraft, old: WishedChange) -> WishedChange:
    return _allow(old.operation, draft, draft.db.get("accounts", str(old.arguments["account_id"])))


def _of_team(operation: Operation, draft: StoryDraft, team: SeatTeam, given: dict[str, Json], **more: Any) -> WishedChange:  # fmt: skip
    it = called(draft, team.account_id, draft.words("my team", "my business team", "our team"), f"team {team.team_id}")  # fmt: skip
    return wish(operation, draft, team.team_id, {"team_id": team.team_id, **given}, it, **more)


def _enlarge(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    more = draft.rng.choice((*range(2, 13), *range(MOST_SEATS + 1 - team.seats, 61, 4)))
    return _of_team(operation, draft, team, {"seats": more}, amount=seats_price(team.seats, more), fill={"unit": "month"})  # fmt: skip


def _enlarge_other(draft: StoryDraft, old: WishedChange) -> WishedChange:
    return _enlarge(old.operation, draft, draft.db.get("teams", old.subject))


def _shrink(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    free = max(2, team.seats - max(len(team.members), LEAST_SEATS))
    less = draft.rng.choice((draft.rng.randint(2, free), draft.rng.randint(2, team.seats)))
    return _of_team(operation, draft, team, {"seats": less}, claims=UNUSED)


def _assign(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    who = f"{draft.rng.choice(('kai', 'lou', 'mika', 'noa', 'sasha'))}{draft.rng.randint(2, 9)}"
    domain = team.domain if draft.rng.random() < 0.7 else "freelance.example"
    return _of_team(operation, draft, team, {"email": f"{who}@{domain}"})


def _free(operation: Operation, draft: StoryDraft, team: SeatTeam) -> WishedChange:
    return _of_team(operation, draft, team, {"email": draft.rng.choice(team.members)})


def _full(draft: StoryDraft, team: SeatTeam) -> list[Patch]:
    return [("teams", team.team_id, {"seats": max(LEAST_SEATS, len(team.members))})] if len(team.members) >= LEAST_SEATS else []  # fmt: skip


DEVICES, TEAMS, KEPT = things("devices"), things("teams"), things("kept")

# --- the changes -------------------------------------------------------------------------------------

REMOVE = Operation(
    "device", "remove_device",
    ("remove {it} from my account", "sign {it} out of my account", "take {it} off my account", "unlink {it} from my account", "deregister {it}, since I gave it away", "delete {it} from my account"),
    "remove your {device} from your account", "your {device} is removed from your account.",
    MAY["remove_device"], DEVICES, _device, DESK, read_for=("last_device",),
    prepare={"lost_device": lambda draft, row: [("devices", row.device_id, {"status": "lost"})]},
)  # fmt: skip
LOCK = Operation(
    "lost", "lock_device",
    ("lock {it}, since I lost it", "block {it}, as somebody has stolen it", "put {it} into lost mode", "secure {it} from afar by locking it", "mark {it} as lost and lock it", "lock {it}, as I cannot find it"),
    "lock your {device} as lost, at no cost", "your {device} is locked.",
    MAY["lock_device"], things("devices", lambda device: device.status == "active"), _device, DESK,
)  # fmt: skip
EXPORT = Operation(
    "export", "export_data",
    ("send me a copy of my {app} data as {format}", "export what {app} has stored about me as {format}", "get me all that {app} keeps about me, as {format}",
     "prepare my data from {app} in the format {format}", "give me a {format} copy of what {app} knows about me", "let me have my {app} data in {format}"),
    "export your {app} data as {format} and send you the copy, at no cost", "the copy of your {app} data is on its way.",
    MAY["export_data"], KEPT, _export, DESK, read_for=("export_period",), matches=("format",),
    second=("Could it be {format} instead? Yes, {format}, please.", "Hm, I need {format} rather.", "No: {format}.", "I just see that it must be {format}."),
    rethink=lambda draft, old: old.given(format=draft.rng.choice([form for form in FORMATS if form != old.arguments["format"]])),
)  # fmt: skip
ERASE = Operation(
    "erase", "delete_app_data",
    ("delete everything that {app} keeps about me", "erase my {app} data for good", "wipe what {app} has about me", "delete all my data at {app}", "destroy whatever {app} has stored about me",
     "clear all data that {app} has of me"),
    "delete all your {app} data, {size}, which cannot be undone", "your {app} data are deleted: {size}.",
    MAY["delete_app_data"], KEPT, _erase, DESK, MEGABYTES, "How many megabytes was that?", counts="count", read_for=("active_subscription",),
)  # fmt: skip
CLOSE = Operation(
    "close", "delete_account",
    ("close my account for good", "delete my account", "shut down my account", "terminate my account, since I am done with you", "remove my whole account", "deactivate my account for ever"),
    "delete your account; {money} of credit goes with it", "your account is deleted, and with it {money} of credit.",
    MAY["delete_account"], myself, _close, DESK, CREDIT_LOST, "How much credit is lost?", read_for=("active_subscription", "family_members"),
    prepare={"": _ended, "family_members": _ended, "open_dispute": _contested},
)  # fmt: skip
EMAIL = Operation(
    "email", "change_email",
    ("change the address of my account to {email}", "set the e-mail address of my account to {email}", "update my mail address to {email}", "put my new address, {email}, into my account",
     "replace the mail address of my account by {email}", "use {email} as the address of my account from now on"),
    "change the e-mail address of your account to {email}", "the address is changed.", MAY["change_email"], myself, _email, DESK,
)  # fmt: skip
ADD_MEMBER = Operation(
    "add_member", "add_family_member",
    ("add {email} to my family", "take {email} into our family group", "make {email} a member of my family", "include {email} in my family", "bring {email} into my family", "let {email} join my family"),
    "add {email} to your family", "{email} is a member of the family now.",
    MAY["add_family_member"], _families, _add, DESK,
)  # fmt: skip
REMOVE_MEMBER = Operation(
    "remove_member", "remove_family_member",
    ("take {name} out of my family", "remove the account of {name} from my family", "remove {name} from our family group", "take the account of {name} off my family",
     "drop {name}, who lives somewhere else now, from my family", "exclude {name} from the family"),
    "remove {name} from your family", "{name} is no member of your family any more.",
    MAY["remove_family_member"], lambda draft, own: members(draft, lambda one: True) if own else [], _expel, DESK,
)  # fmt: skip
AGE_LIMIT = Operation(
    "age_limit", "set_age_limit",
    ("let {who} buy and see things up to {limit}", "set the age limit of my child {who} to {limit}", "change the age limit of {who} to {limit}", "put the age limit of our child {who} at {limit}",
     "change what {who} may see: the age limit is to be {limit}", "make {limit} the age limit of {who}"),
    "set the age limit of {who} to {limit}", "the age limit of {who} is {limit} now.",
    MAY["set_age_limit"], children, _limit, DESK,
)  # fmt: skip
ALLOWANCE = Operation(
    "allowance", "set_allowance",
    ("give {who} an allowance of ${allowance_dollars} a month", "let {who} spend ${allowance_dollars} a month from now on", "set the allowance of my child {who} to ${allowance_dollars} a month",
     "put the pocket money of {who} in the store at ${allowance_dollars} a month", "allow {who} to spend ${allowance_dollars} a month", "change the allowance of {who} to ${allowance_dollars} a month"),
    "set the allowance of {who} to ${allowance_dollars} a month", "the allowance of {who} is ${allowance_dollars} a month now.",
    MAY["set_allowance"], children, _allow, DESK, rethink=_allow_other,
    second=("No, ${allowance_dollars} a month will do.", "Let me think: ${allowance_dollars} a month.", "Rather ${allowance_dollars} a month.", "My partner says ${allowance_dollars} a month, so that."),
)  # fmt: skip
MORE_SEATS = Operation(
    "more_seats", "add_seats",
    ("add {seats} seats to {it}", "book {seats} more seats for {it}", "get {seats} additional seats for {it}", "order {seats} extra seats for {it}", "buy {seats} further seats for {it}",
     "expand {it} by {seats} seats"),
    "add {seats} seats to your team for {money}", "your team has {seats} more seats, and they cost {money} a month.",
    MAY["add_seats"], TEAMS, _enlarge, DESK, PER, "What do the seats cost a month?", rethink=_enlarge_other,
    second=("Make that {seats} seats.", "I have counted again: {seats} seats.", "No, {seats} seats, somebody is leaving.", "We talked about it; it is {seats} seats now."),
)  # fmt: skip
FEWER_SEATS = Operation(
    "fewer_seats", "remove_seats",
    ("give {seats} seats of {it} back", "remove {seats} seats from {it}", "take {seats} seats off {it}", "drop {seats} seats of {it}", "reduce {it} by {seats} seats", "return {seats} seats of {it}"),
    "remove {seats} seats from your team; nothing is refunded", "the {seats} seats are given back.",
    MAY["remove_seats"], TEAMS, _shrink, DESK,
)  # fmt: skip
ASSIGN = Operation(
    "assign", "assign_seat",
    ("assign a seat of {it} to {email}", "give {email} a seat of {it}", "let {email}, a new colleague, have a seat of {it}", "hand a seat of {it} to {email}", "set {email} up with a seat of {it}",
     "put {email} on a seat of {it}"),
    "assign a seat of your team to {email}", "the seat is assigned to {email}.",
    MAY["assign_seat"], TEAMS, _assign, DESK, prepare={"no_free_seat": _full},
)  # fmt: skip
FREE = Operation(
    "free", "free_seat",
    ("free the seat of {email} in {it}", "take the seat that {email} has in {it} away", "withdraw the seat of {email} in {it}", "release the seat of {email} in {it}",
     "revoke the seat of {email}, who does not work here any longer, in {it}", "clear the seat of {email} in {it}"),
    "free the seat of {email} in your team", "the seat of {email} is free.",
    MAY["free_seat"], TEAMS, _free, DESK,
)  # fmt: skip
KEEPING = (
    REMOVE, LOCK, EXPORT, ERASE, CLOSE, EMAIL, ADD_MEMBER, REMOVE_MEMBER, AGE_LIMIT, ALLOWANCE, MORE_SEATS, FEWER_SEATS, ASSIGN, FREE,
)  # fmt: skip
