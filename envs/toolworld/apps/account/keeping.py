"""Requests about devices, data, and the account itself."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account import wishes
from turnwise.envs.toolworld.apps.account.parts import (
    confirm,
    device,
    done,
    grown,
    led_family,
    once,
    own_devices,
    proposed,
    verify,
)
from turnwise.envs.toolworld.apps.account.rules import CHECKS, running
from turnwise.envs.toolworld.apps.account.state import KeptData
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import Stage, call, tell


def remove(draft: StoryDraft) -> Stage | None:
    owned = device(draft)
    if owned is None:
        return None
    row, which, look = owned
    say = wishes.remove_device(draft, which)
    plan = (
        *verify(draft), *look, confirm(f"I will remove your {row.kind} {row.device_id} from your account."),
        call("remove_device", device_id=row.device_id), tell(f"Done, your {row.kind} is removed from your account."),
    )  # fmt: skip
    return done(say, plan, "remove_device")


def lock(draft: StoryDraft) -> Stage | None:
    owned = device(draft) or device(draft, last=True)
    if owned is None:
        return None
    row, which, look = owned
    say = draft.words(
        f"I lost {which}. Lock it.", f"Somebody has stolen {which}; block it, please.", f"Please put {which} into lost mode, I left it on a train.",
        f"I cannot find {which} anywhere. Secure it from afar by locking it.",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, confirm(f"I will lock your {row.kind} {row.device_id} as lost, at no cost."),
        call("lock_device", device_id=row.device_id), tell(f"Done, your {row.kind} is locked."),
    )  # fmt: skip
    return done(say, plan, "lock_device")


def _kept(draft: StoryDraft) -> list[KeptData]:
    return [row for row in draft.db.rows("kept") if row.account_id == draft.customer]


def export(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None:
        return None
    row = draft.free(
        [k for k in _kept(draft) if not CHECKS["export_data"](draft.db, {"account_id": draft.customer, "app": k.app})],
        lambda k: f"data {k.app}",
    )  # fmt: skip
    if row is None:
        return None
    first, second = draft.rng.sample(("json", "csv", "html"), 2)
    twisted = draft.changes_mind
    form = second if twisted else first
    say = wishes.export(draft, row.app, first)
    twist = draft.words(
        f"Could it be {second} instead? Yes, {second}, please.",
        f"Hm, I need {second} rather.",
        f"No: {second}.",
        f"I just see that it must be {second}.",
    )

    def offer(of: str) -> str:
        return f"I will export your {row.app} data as {of} and send you the copy, at no cost."

    plan = (
        *verify(draft), call("list_kept_data", account_id=draft.customer), *proposed(offer(first), twisted=twisted), confirm(offer(form)),
        call("export_data", account_id=draft.customer, app=row.app, format=form), tell(f"Done, the copy of your {row.app} data is on its way."),
    )  # fmt: skip
    return Stage(say, plan, twist=twist if twisted else "", wants=("export_data",))


def erase(draft: StoryDraft) -> Stage | None:
    if grown(draft) is None:
        return None
    row = draft.free(
        [k for k in _kept(draft) if not running(draft.db, draft.customer, k.app)], lambda k: f"data {k.app}"
    )
    if row is None:
        return None
    asks = wishes.asks(draft)
    question = draft.words(*wishes.MEGABYTES) if asks else ""
    say = wishes.with_more(draft, wishes.erase(draft, row.app), question=question)
    plan = (
        *verify(draft), call("list_kept_data", account_id=draft.customer),
        confirm(f"I will delete all your {row.app} data, {row.megabytes} megabytes, which cannot be undone."),
        call("delete_app_data", account_id=draft.customer, app=row.app), tell(f"Done, your {row.app} data are deleted: {row.megabytes} megabytes."),
    )  # fmt: skip
    tells, again = (
        ((Fact("count", str(row.megabytes)),), "How many megabytes was that?") if asks else ((), "")
    )
    return Stage(say, plan, tells, again=again, wants=("delete_app_data",))


def close(draft: StoryDraft) -> Stage | None:
    """The whole account; only as the first thing that is asked for, in a world in which no subscription runs."""
    account = grown(draft)
    if account is None or draft.used or led_family(draft) or not once(draft, "close"):
        return None
    for row in running(draft.db, draft.customer):
        draft.override("subscriptions", row.subscription_id, status="cancelled")
    asks = wishes.asks(draft)
    question = draft.words(*wishes.CREDIT_LOST) if asks else ""
    say = wishes.with_more(draft, wishes.close(draft), question=question)
    plan = (
        *verify(draft), confirm(f"I will delete your account; {dollars(account.credit)} of credit goes with it."),
        call("delete_account", account_id=draft.customer), tell(f"Done, your account is deleted, and with it {dollars(account.credit)} of credit."),
    )  # fmt: skip
    tells, again = ((Fact("money", str(account.credit)),), "How much credit is lost?") if asks else ((), "")
    return Stage(say, plan, tells, again=again, wants=("delete_account",))


def email(draft: StoryDraft) -> Stage | None:
    account = grown(draft)
    if account is None or not once(draft, "email"):
        return None
    new = f"{account.name.split()[0].lower()}{draft.rng.randint(10, 99)}@mailbox.example"
    say = draft.words(
        f"Change the address of my account to {new}.", f"From now on my account's e-mail address is {new}.", f"Please update my mail address to {new}.",
        f"I have a new address, {new}; put it into my account.",
    )  # fmt: skip
    plan = (
        *verify(draft), confirm(f"I will change the e-mail address of your account to {new}."),
        call("change_email", account_id=draft.customer, email=new), tell("Done, the address is changed."),
    )  # fmt: skip
    return done(say, plan, "change_email")


def devices_known(draft: StoryDraft) -> Stage | None:
    """A question: how many devices there are."""
    if grown(draft) is None or not once(draft, "devices known"):
        return None
    count = sum(d.status == "active" for d in own_devices(draft))
    say = draft.words(
        "How many devices of mine are in use on my account?", "On how many devices am I signed in?", "What is the number of devices that my account is used on?",
        "Count the devices that are signed in with my account.",
    )  # fmt: skip
    look = tuple(call("get_device", device_id=d.device_id) for d in own_devices(draft))
    plan = (*verify(draft), *look, tell(f"There are {count}."))
    return Stage(say, plan, (Fact("count", str(count)),), again="How many devices are there?")
