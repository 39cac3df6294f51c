"""What can be wrong with a phone and its line: data, calls, picture messages, speed, sharing; one to four faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.telecom import wishes
from turnwise.envs.toolworld.telecom.actions import GIGABYTE_PRICE, TETHERING_PRICE
from turnwise.envs.toolworld.telecom.parts import confirm, guide, line, suspended, verify
from turnwise.envs.toolworld.telecom.state import fast, rings, sends, shares, works

Faults: TypeAlias = Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]]
"""Fault → (fields of the phone, deeds that repair it)."""
ON_PHONE: Faults = {
    "airplane": ({"airplane": True}, ("airplane_mode_off",)),
    "data": ({"data": False}, ("mobile_data_on",)),
    "saver": ({"saver": True}, ("data_saver_off",)),
    "sim": ({"sim": "missing"}, ("reseat_sim",)),
    "apn": ({"apn": "wrong"}, ("reset_apn", "restart")),
    "limit": ({"limit": True}, ("data_limit_off",)),
    "operator": ({"operator": "manual"}, ("operator_automatic",)),
    "wifi": ({"wifi": True}, ("wifi_off",)),
}
ON_LINE = ("suspended", "used_up", "abroad")
CALLS: Faults = {
    "forwarding": ({"forwarding": True}, ("call_forwarding_off",)),
    "silent": ({"silent": True}, ("do_not_disturb_off",)),
    "blocked": ({"blocked": True}, ("unblock_numbers",)),
    "airplane": ({"airplane": True}, ("airplane_mode_off",)),
}
MESSAGES: Faults = {
    "permission": ({"messages": False}, ("allow_messages",)),
    "wifi_calling": ({"wifi_calling": True}, ("wifi_calling_off",)),
    "address": ({"mms": "wrong"}, ("reset_message_address",)),
    "data": ({"data": False}, ("mobile_data_on",)),
    "apn": ({"apn": "wrong"}, ("reset_apn", "restart")),
}
SPEED: Faults = {
    "network": ({"network": "2G only"}, ("network_mode_automatic",)),
    "vpn": ({"vpn": True}, ("vpn_off",)),
    "power": ({"power_saver": True}, ("power_saving_off",)),
}
_STILL = {
    "works": ("It still does not load anything.", "No, still no internet.", "I tried, and nothing opens.", "No luck, the data is still dead."),
    "rings": ("No, people still cannot call me.", "It still does not ring when somebody calls.", "A friend has just tried, and could not reach me.", "No luck, no call comes through."),
    "sends": ("The picture is still not sent.", "No, it fails again.", "I tried, and the picture came back.", "No luck, no picture goes out."),
    "fast": ("It is as slow as before.", "No, it still crawls.", "I tried, and pages still take minutes.", "No luck, it is not any faster."),
    "shares": ("My laptop still gets no internet.", "No, the other device is still offline.", "I tried, and it cannot use the connection.", "No luck, sharing does not work yet."),
}  # fmt: skip
"""How somebody says that it is not repaired yet, by what he sees for himself."""


def data(draft: StoryDraft) -> Stage | None:
    """Mobile data does not work, for one to four reasons."""
    if draft.used:
        return None
    draft.used.add("trouble")
    faults = draft.rng.sample((*ON_PHONE, *ON_LINE), draft.rng.randint(1, 4))
    steps: list[PlanStep] = [*verify(draft), guide("look_at_status")]
    for fault in sorted(faults):
        steps += _phone_fault(draft, fault) if fault in ON_PHONE else _line_fault(draft, fault)
    assert not works(draft.db, draft.customer)
    return Stage(
        wishes.no_internet(draft),
        (*steps, tell("It is repaired. Please try it again.")),
        check="works",
        again=draft.words(*_STILL["works"]),
        wants=("resume_line", "add_data", "set_roaming"),
    )


def _phone_fault(draft: StoryDraft, fault: str) -> list[PlanStep]:
    fields, deeds = ON_PHONE[fault]
    draft.override("phones", draft.customer, **fields)
    return [guide(deed) for deed in deeds]


def _line_fault(draft: StoryDraft, fault: str) -> list[PlanStep]:
    own = line(draft)
    if fault == "abroad":
        draft.override("lines", own.line_id, abroad=True, roaming=False)
        draft.facts["abroad"] = "I am abroad at the moment."
        enable = call("set_roaming", line_id=own.line_id, enabled=True)
        return [confirm("I will allow roaming on your line, at no cost."), enable, guide("data_roaming_on")]
    if fault == "used_up":
        draft.override("lines", own.line_id, used=own.limit)
        gigabytes = draft.rng.randint(1, 6)
        draft.facts["gigabytes"] = f"I would like {gigabytes} more gigabytes."
        add = call("add_data", line_id=own.line_id, gigabytes=gigabytes)
        return [
            ask("How many gigabytes do you want?", "gigabytes"),
            confirm(f"I will add {gigabytes} GB to your line for {dollars(gigabytes * GIGABYTE_PRICE)}."),
            add,
        ]
    return suspended(draft, overdue=draft.rng.random() < 0.6)


def _repair(draft: StoryDraft, faults: Faults, most: int) -> list[PlanStep]:
    """Break the phone in some of these ways; the deeds that repair it."""
    steps: list[PlanStep] = []
    for fault in sorted(draft.rng.sample(sorted(faults), draft.rng.randint(1, most))):
        fields, deeds = faults[fault]
        draft.override("phones", draft.customer, **fields)
        steps += [guide(deed) for deed in deeds]
    return steps


def _start(draft: StoryDraft) -> list[PlanStep] | None:
    if draft.used:
        return None
    draft.used.add("phone")  # what is asked for next of the account has nothing to do with it
    return [*verify(draft), guide("look_at_status")]


def calls(draft: StoryDraft) -> Stage | None:
    """Nobody can call: the phone, or calls are barred on the line."""
    steps = _start(draft)
    if steps is None:
        return None
    if draft.rng.random() < 0.4:
        own = line(draft)
        draft.override("lines", own.line_id, barred=True)
        steps += [
            confirm("I will lift the call barring of your line, at no cost."),
            call("set_call_barring", line_id=own.line_id, barred=False),
        ]
    steps += _repair(draft, CALLS, 3)
    assert not rings(draft.db, draft.customer)
    say = draft.words(
        "Nobody can call me any more.", "My phone does not ring when people call.", "Friends say that they cannot reach me by phone.",
        "I do not get any calls.", "Whoever calls me gets no answer, the phone stays silent.", "Calls do not come through to me.",
    )  # fmt: skip
    done = tell("It is repaired. Please try it again.")
    return Stage(
        say, (*steps, done), check="rings", again=draft.words(*_STILL["rings"]), wants=("set_call_barring",)
    )


def messages(draft: StoryDraft) -> Stage | None:
    """Picture messages are not sent."""
    steps = _start(draft)
    if steps is None:
        return None
    steps += _repair(draft, MESSAGES, 3)
    assert not sends(draft.db, draft.customer)
    say = draft.words(
        "I cannot send pictures by MMS.", "My picture messages are not sent.", "Sending photos as messages fails.",
        "Each picture message that I send comes back as failed.", "No MMS leaves my phone.", "Photos in messages do not go out.",
    )  # fmt: skip
    return Stage(
        say,
        (*steps, tell("It is repaired. Please try it again.")),
        check="sends",
        again=draft.words(*_STILL["sends"]),
    )


def speed(draft: StoryDraft) -> Stage | None:
    """Mobile data is slow."""
    steps = _start(draft)
    if steps is None:
        return None
    steps += _repair(draft, SPEED, 3)
    assert not fast(draft.db, draft.customer)
    say = draft.words(
        "My mobile data is terribly slow.", "The internet on my phone crawls.", "Pages take minutes to load on my phone.",
        "Videos stutter, the connection of my phone is so slow.", "Everything on my phone loads at a snail's pace.",
        "My connection has become very slow.",
    )  # fmt: skip
    return Stage(
        say,
        (*steps, tell("It is repaired. Please try it again.")),
        check="fast",
        again=draft.words(*_STILL["fast"]),
    )


def sharing(draft: StoryDraft) -> Stage | None:
    """A laptop cannot use the phone's data: the hotspot is off, or the line does not allow it."""
    steps = _start(draft)
    if steps is None:
        return None
    if draft.rng.random() < 0.6:
        own = line(draft)
        draft.override("lines", own.line_id, tethering=False)
        steps += [
            confirm(f"I will allow tethering on your line for {dollars(TETHERING_PRICE)}."),
            call("set_tethering", line_id=own.line_id, enabled=True),
        ]
    steps += [guide("hotspot_on")]
    say = draft.words(
        "My laptop cannot use the internet of my phone.", "I want to share my phone's internet with my tablet, and it does not work.",
        "The hotspot of my phone does not work.", "My computer does not get online through my phone.",
        "Sharing the connection of my phone fails.", "No other device can use my phone's data.",
    )  # fmt: skip
    done = tell("It is repaired. Please try it again.")
    assert not shares(draft.db, draft.customer)
    return Stage(
        say, (*steps, done), check="shares", again=draft.words(*_STILL["shares"]), wants=("set_tethering",)
    )
