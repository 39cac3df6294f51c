"""Parts of stories about accounts: the owner, verification, a thing of theirs, a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from turnwise.envs.toolworld.apps.account.changes import in_charge
from turnwise.envs.toolworld.apps.account.rules import MAY
from turnwise.envs.toolworld.apps.account.state import CHILD, AppAccount, AppFamily, AppSubscription, Purchase
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import (
    Called,
    ChangeTable,
    Operation,
    ServiceDesk,
    WishedChange,
    wished,
)
from turnwise.envs.toolworld.story import PlanStep, call, verified
from turnwise.tasks.core import Json

_READS = {
    "subscription_id": "get_subscription", "purchase_id": "get_purchase", "device_id": "get_device", "team_id": "get_team",
    "family_id": "get_family", "code": "check_code",
}  # fmt: skip
"""Argument of a change → what reads the thing that it names."""


def enter(draft: StoryDraft) -> bool:
    """Choose whose account it is: somebody who is of age."""
    _speak_for(draft, draft.rng.choice([a for a in draft.db.rows("accounts") if a.age >= CHILD]))
    return True


def enter_as_child(draft: StoryDraft) -> bool:
    """Let a child speak instead, where nothing was asked for yet."""
    children = [a for a in draft.db.rows("accounts") if a.age < CHILD]
    if draft.used or not children:
        return False
    _speak_for(draft, draft.rng.choice(children))
    return True


def _speak_for(draft: StoryDraft, account: AppAccount) -> None:
    draft.customer = account.account_id
    draft.facts["email"] = f"My account is {account.email}."
    draft.facts["passcode"] = f"My passcode is {account.passcode}."


def me(draft: StoryDraft) -> AppAccount:
    return draft.db.get("accounts", draft.customer)


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    questions = {"email": "What is the e-mail address of your account, please?", "passcode": "And what is your passcode?"}  # fmt: skip
    return (*verified(me(draft), "sign_in", **questions), call("get_account", account_id=draft.customer))


def _refuse(wish: WishedChange, rule: str) -> PlanStep:
    about = wish.arguments["account_id"] if rule == "minor" else wish.fill["about"]
    return call("record_refusal", about=about, reason=rule)


def _reading(wish: WishedChange) -> tuple[PlanStep, ...]:
    given = wish.arguments
    return tuple(call(tool, **{name: given[name]}) for name, tool in _READS.items() if name in given)


DESK = ServiceDesk(_verify, _refuse, _reading)
TABLE = ChangeTable("turnwise.envs.toolworld.apps", DESK, MAY)


def wish(
    operation: Operation, draft: StoryDraft, subject: str, given: Mapping[str, Json], it: str = "", *,
    about: str = "", fill: Mapping[str, str] = {}, claims: str = "", share: float = 0.5, **more: Any,
) -> WishedChange:  # fmt: skip
    """A wish about something; at times with one of the claims (a name in phrases.yaml) that its owner makes for it, true or not."""
    said = draft.say(claims) if claims and draft.rng.random() < share else ""
    words = {"about": about or subject, **fill}
    return wished(operation, subject, given, Called(it), fill=words, said=said, **more)


def of_account(
    operation: Operation, draft: StoryDraft, subject: str, given: Mapping[str, Json], *, claims: str = "", **more: Any
) -> WishedChange:  # fmt: skip
    """A wish about the account of whoever speaks; a child's claim is that it may."""
    account = me(draft)
    claims = "may i" if account.age < CHILD else claims
    full = {"account_id": account.account_id, **given}
    return wish(operation, draft, subject, full, claims=claims, **{"about": account.account_id, **more})


def redrawn(table: str, argument: str) -> Callable[[StoryDraft, WishedChange], WishedChange | None]:
    """A change of mind: the wish about the same row of a table, which an argument names, is drawn once more."""
    return lambda draft, old: old.operation.draw(old.operation, draft, draft.db.get(table, str(old.arguments[argument])))  # fmt: skip


# --- what can be meant -------------------------------------------------------------------------------


def myself(draft: StoryDraft, own: bool) -> list[AppAccount]:
    """The account of whoever speaks, while it is open."""
    return [me(draft)] if own and me(draft).status == "open" else []


def things(
    table: str, fits: Callable[[Any], bool] = lambda row: True
) -> Callable[[StoryDraft, bool], list[Any]]:
    """The rows of a table that are somebody's own, or those about which they do not decide."""

    def found(draft: StoryDraft, own: bool) -> list[Any]:
        def is_meant(account_id: str) -> bool:
            return account_id == draft.customer if own else in_charge(draft.db, account_id) != draft.customer

        rows = draft.db.rows(table) if me(draft).status == "open" else []
        return [row for row in rows if fits(row) and is_meant(row.account_id)]

    return found


def family_of(draft: StoryDraft) -> AppFamily | None:
    """The family to which an adult belongs who speaks."""
    account = me(draft)
    is_free = account.age >= CHILD and account.status == "open"
    return draft.db.find("families", account.family_id) if is_free else None


def members(draft: StoryDraft, fits: Callable[[AppAccount], bool]) -> list[AppAccount]:
    """Those of the family of whoever speaks that fit; neither themselves nor the organizer."""
    family = family_of(draft)
    found: list[AppAccount] = [draft.db.get("accounts", key) for key in (family.members if family else ())]
    return [
        one for one in found
        if fits(one) and family and one.account_id not in (draft.customer, family.organizer)
    ]  # fmt: skip


def children(draft: StoryDraft, own: bool) -> list[AppAccount]:
    """The children of the family of whoever speaks."""
    return members(draft, lambda one: one.age < CHILD) if own else []


def leads(draft: StoryDraft) -> bool:
    """Say whether the one who speaks organizes the family to which they belong."""
    family = family_of(draft)
    return family is not None and family.organizer == draft.customer


def called(draft: StoryDraft, account_id: str, short: str, long: str) -> str:
    """A thing by its name, or by its number; one of somebody else by its number."""
    if in_charge(draft.db, account_id) != draft.customer:
        whose = draft.say("whose")
        return f"{whose if draft.rng.random() < 0.4 else ''}{long}"
    return long if not short or draft.rng.random() < 0.4 else short


def subscription_called(draft: StoryDraft, row: AppSubscription) -> str:
    """A subscription by its app, or by its number."""
    return called(draft, row.account_id, f"my {row.app} subscription", f"{row.app} subscription {row.subscription_id}")  # fmt: skip


def purchase_called(draft: StoryDraft, row: Purchase) -> str:
    """A purchase by what it was, where nothing else was called so, or by its number."""
    alone = (
        sum(p.title == row.title for p in draft.db.rows("purchases") if p.account_id == row.account_id) == 1
    )
    return called(draft, row.account_id, f"the {row.kind} {row.title}" if alone else "", f"purchase {row.purchase_id}")  # fmt: skip
