"""Troubles with a phone and its line: data, calls, picture messages, speed, sharing; one to four faults at
once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
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

Faults: TypeAlias = Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]]
"""Fault → (fields of the phone, deeds that repair it)."""


class Trouble(NamedTuple):
    """A complaint: what may be behind it, and when it is repaired."""

    phone: Faults
    line: tuple[str, ...]
    most: int  # faults at once
    works: Callable[[Database, str], bool]
    always: tuple[str, ...] = ()  # deeds that are needed in any case


_OFF_LINE: Faults = {
    "airplane": ({"airplane": True}, ("airplane_mode_off",)),
    "data": ({"data": False}, ("mobile_data_on",)),
    "apn": ({"apn": "wrong"}, ("reset_apn", "restart")),
}
TROUBLES: Mapping[str, Trouble] = {
    "works": Trouble(
        {
            **_OFF_LINE,
            "saver": ({"saver": True}, ("data_saver_off",)),
            "sim": ({"sim": "missing"}, ("reseat_sim",)),
            "limit": ({"limit": True}, ("data_limit_off",)),
            "operator": ({"operator": "manual"}, ("operator_automatic",)),
            "wifi": ({"wifi": True}, ("wifi_off",)),
        },
        ("suspended", "used_up", "abroad"), 4, works,
    ),
    "rings": Trouble(
        {
            "airplane": _OFF_LINE["airplane"],
            "forwarding": ({"forwarding": True}, ("call_forwarding_off",)),
            "silent": ({"silent": True}, ("do_not_disturb_off",)),
            "blocked": ({"blocked": True}, ("unblock_numbers",)),
        },
        ("barred",), 4, rings,
    ),
    "sends": Trouble(
        {
            **_OFF_LINE,
            "permission": ({"messages": False}, ("allow_messages",)),
            "wifi_calling": ({"wifi_calling": True}, ("wifi_calling_off",)),
            "address": ({"mms": "wrong"}, ("reset_message_address",)),
        },
        (), 3, sends,
    ),
    "fast": Trouble(
        {
            "network": ({"network": "2G only"}, ("network_mode_automatic",)),
            "vpn": ({"vpn": True}, ("vpn_off",)),
            "power": ({"power_saver": True}, ("power_saving_off",)),
        },
        (), 3, fast,
    ),
    "shares": Trouble({name: _OFF_LINE[name] for name in ("data", "apn")}, ("tethering",), 2, shares, ("hotspot_on",)),
}  # fmt: skip
"""Check that users make themselves until it works → the complaint."""
_REMEDIES = {"suspended": RESUME, "used_up": DATA, "abroad": ROAMING, "barred": UNBAR, "tethering": TETHER}


def trouble(draft: StoryDraft, kind: str) -> Stage | None:
    """Something does not work, for one reason or several."""
    made = TROUBLES[kind]
    if draft.used:
        return None
    remedies = [_REMEDIES[fault] for fault in made.line]
    draft.used |= {"trouble", *(topic for one in remedies for topic in one.topics)}
    faults = draft.rng.sample((*made.phone, *made.line), draft.rng.randint(1, made.most))
    if "tethering" in made.line and not my_line(draft).tethering and "tethering" not in faults:
        faults.append("tethering")
    steps = [*DESK.verify(draft), guide("look_at_status")]
    for fault in sorted(faults):
        steps += _on_phone(draft, *made.phone[fault]) if fault in made.phone else _on_line(draft, fault)
    steps += map(guide, made.always)
    assert not made.works(draft.db, draft.customer)
    return Stage(
        draft.say(f"trouble {kind}"), (*steps, tell("It is repaired. Please try it again.")),
        check=kind, again=draft.say(f"still {kind}"), wants=tuple(one.tool for one in remedies),
    )  # fmt: skip


def _on_phone(draft: StoryDraft, fields: Mapping[str, Any], deeds: tuple[str, ...]) -> list[PlanStep]:
    draft.override("phones", draft.customer, **fields)
    return [guide(deed) for deed in deeds]


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


def locked(draft: StoryDraft) -> Stage | None:
    """A SIM that wants a PUK, of which the customer may not speak."""
    if draft.used:
        return None
    draft.used.add("trouble")
    draft.override("phones", draft.customer, sim="locked")
    plan = (*DESK.verify(draft), guide("look_at_status"), call("transfer_to_human", reason="sim_locked"))
    told = "wants PUK" if draft.rng.random() < 0.3 else "trouble works"
    return Stage(draft.say(told), plan, check="works")
