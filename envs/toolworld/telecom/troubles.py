"""Troubles with a phone and its line: data, calls, picture messages, speed, sharing; one to four faults at
once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.operations import WishedChange
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, confirmed, tell
from turnwise.envs.toolworld.telecom.operations import (
    DATA,
    RESUME,
    ROAMING,
    TETHER,
    UNBAR,
    adding,
    resuming,
    suspended,
)
from turnwise.envs.toolworld.telecom.parts import DESK, guide, my_line
from turnwise.envs.toolworld.telecom.state import fast, rings, sends, shares, works


class PhoneFault(NamedTuple):
    """Something amiss with a phone: what it sets, and the deeds that repair it."""

    sets: Mapping[str, bool | str]
    deeds: tuple[str, ...]


class Trouble(NamedTuple):
    """A complaint: the faults that may be behind it, on the phone and on the line."""

    phone: tuple[str, ...]
    most: int  # faults at once
    line: tuple[str, ...] = ()
    always: tuple[str, ...] = ()  # deeds that are needed in any case


class _Table(NamedTuple):
    faults: Mapping[str, PhoneFault]
    troubles: Mapping[str, Trouble]


FAULTS, TROUBLES = data_file("turnwise.envs.toolworld.telecom", "troubles", _Table)
CHECKS: Mapping[str, Callable[[Database, str], bool]] = {
    "works": works, "rings": rings, "sends": sends, "fast": fast, "shares": shares,
}  # fmt: skip
"""Complaint → what users check themselves until it holds."""
_REMEDIES = {"suspended": RESUME, "used_up": DATA, "abroad": ROAMING, "barred": UNBAR, "tethering": TETHER}


def trouble(draft: StoryDraft, kind: str) -> Stage:
    """Something does not work, for one reason or several."""
    made = TROUBLES[kind]
    fitting(not draft.used)
    remedies = [_REMEDIES[fault] for fault in made.line]
    draft.used |= {"trouble", *(topic for one in remedies for topic in one.topics)}
    faults = draft.rng.sample((*made.phone, *made.line), draft.rng.randint(1, made.most))
    if "tethering" in made.line and not my_line(draft).tethering and "tethering" not in faults:
        faults.append("tethering")
    steps = [*DESK.verify(draft), guide("look_at_status")]
    for fault in sorted(faults):
        steps += _on_phone(draft, FAULTS[fault]) if fault in made.phone else _on_line(draft, fault)
    steps += map(guide, made.always)
    assert not CHECKS[kind](draft.db, draft.customer)
    return Stage(
        draft.say(f"trouble {kind}"), (*steps, tell("It is repaired. Please try it again.")),
        check=kind, again=draft.say(f"still {kind}"), wants=tuple(one.tool for one in remedies),
    )  # fmt: skip


def _on_phone(draft: StoryDraft, fault: PhoneFault) -> list[PlanStep]:
    draft.override("phones", draft.customer, **fault.sets)
    return [guide(deed) for deed in fault.deeds]


def _on_line(draft: StoryDraft, fault: str) -> list[PlanStep]:
    own = my_line(draft)
    if fault == "suspended":
        for table, key, fields in suspended(draft, own):
            draft.override(table, key, **fields)
        return _made(resuming(RESUME, draft, own))
    if fault == "used_up":
        draft.override("lines", own.line_id, used=own.limit)
        wish = adding(DATA, draft, own, draft.rng.randint(1, 6))
        draft.facts["gigabytes"] = f"I would like {wish.arguments['gigabytes']} more gigabytes."
        return [ask("How many gigabytes do you want?", "gigabytes"), *_made(wish)]
    change = {"line_id": own.line_id}
    if fault == "abroad":
        draft.override("lines", own.line_id, abroad=True, roaming=False)
        draft.facts["abroad"] = "I am abroad at the moment."
        allow = WishedChange(ROAMING, own.line_id, {**change, "enabled": True}, {"does": "allow"})
        return [*_made(allow), guide("data_roaming_on")]
    name, value = {"barred": ("barred", True), "tethering": ("tethering", False)}[fault]
    draft.override("lines", own.line_id, **{name: value})
    wish = _REMEDIES[fault].draw(_REMEDIES[fault], draft, own)
    return _made(wish) if wish else []


def _made(wish: WishedChange) -> list[PlanStep]:
    """A remedy on the line, after a yes to it."""
    return [*wish.reads, *wish.before, *confirmed(wish.offer, wish.call)]


def locked(draft: StoryDraft) -> Stage:
    """A SIM that wants a PUK, of which the customer may not speak."""
    fitting(not draft.used)
    draft.used.add("trouble")
    draft.override("phones", draft.customer, sim="locked")
    plan = (*DESK.verify(draft), guide("look_at_status"), call("transfer_to_human", reason="sim_locked"))
    told = "wants PUK" if draft.rng.random() < 0.3 else "trouble works"
    return Stage(draft.say(told), plan, check="works")
