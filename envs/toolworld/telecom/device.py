"""Deeds that a customer can do with the phone when asked to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Deed, Written
from turnwise.envs.toolworld.speech.words import Concept
from turnwise.envs.toolworld.telecom.state import Phone, fast, rings, sends, works


def _look(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    apn = "settings were reset, a restart is needed" if phone.apn == "reset" else f"the APN is {phone.apn}"
    said = (
        f"My phone shows: airplane mode {_on(phone.airplane)}, mobile data {_on(phone.data)}, data roaming "
        f"{_on(phone.roaming)}, data saver {_on(phone.saver)}, SIM {phone.sim}, {apn}."
    )
    odd = [text for text, holds in _odd(phone) if holds]
    if odd:
        said += f" And it says: {', '.join(odd)}."
    return Written(db, said)


def _odd(phone: Phone) -> tuple[tuple[str, bool], ...]:
    """List what a phone shows only where it is not as usual."""
    return (
        ("the data limit of the phone is reached", phone.limit),
        ("network operator chosen by hand", phone.operator != "automatic"),
        ("connected to a Wi-Fi without internet", phone.wifi),
        ("call forwarding on", phone.forwarding),
        ("do not disturb on", phone.silent),
        ("numbers on the block list", phone.blocked),
        ("Wi-Fi calling on", phone.wifi_calling),
        ("the messaging app has no permission", not phone.messages),
        ("the address for picture messages is wrong", phone.mms != "right"),
        ("preferred network: 2G only", phone.network != "automatic"),
        ("VPN on", phone.vpn),
        ("power saving on", phone.power_saver),
        ("hotspot on", phone.hotspot),
    )


def _set(said: str, **fields: object) -> Callable[[Database, str], Written]:
    def does(db: Database, customer: str) -> Written:
        return Written(db.update("phones", customer, **fields), said)

    return does


def _reseat(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    if phone.sim == "locked":
        return Written(db, "I did. It still says that the SIM is locked and wants a PUK.")
    return Written(db.update("phones", customer, sim="ready"), "I took the SIM out and put it in again.")


def _apn(before: str, after: str, said: str) -> Callable[[Database, str], Written]:
    """Return the deed that makes APN settings which are one thing another."""

    def does(db: Database, customer: str) -> Written:
        phone: Phone = db.get("phones", customer)
        return Written(db.update("phones", customer, apn=after if phone.apn == before else phone.apn), said)

    return does


def _pay(db: Database, customer: str) -> Written:
    asked = [b for b in db.rows("bills") if b.customer_id == customer and b.status == "requested"]
    for bill in asked:
        db = db.update("bills", bill.bill_id, status="paid")
    return Written(db, "I have paid it." if asked else "I see no payment request.")


def _test(db: Database, customer: str) -> Written:
    if not works(db, customer):
        return Written(db, "The speed test says: no connection.")
    return Written(db, f"The speed test {'is fine' if fast(db, customer) else 'says that it is very slow'}.")


def _tells(holds: Callable[[Database, str], bool], yes: str, no: str) -> Callable[[Database, str], Written]:
    return lambda db, customer: Written(db, yes if holds(db, customer) else no)


def _on(value: bool) -> str:
    return "on" if value else "off"


class _DeedWords(NamedTuple):
    """A deed as deeds.yaml has it."""

    verbs: str
    nouns: str = ""
    things: str = ""  # nouns that are also written with a hyphen: "power saving", "power-saving"
    asked: str = ""
    said: str = ""
    sets: Mapping[str, bool | str] = {}

    @property
    def concept(self) -> Concept:
        ways = self.things.split("|")
        hyphened = (way.replace(" ", "-", 1) for way in ways if " " in way)
        return Concept(self.verbs, self.nouns or "|".join((*ways, *hyphened)))


_DOES: Mapping[str, Callable[[Database, str], Written]] = {
    "look_at_status": _look, "reseat_sim": _reseat, "pay_bill": _pay, "speed_test": _test,
    "reset_apn": _apn("wrong", "reset", "The APN settings are reset."), "restart": _apn("reset", "right", "The phone has restarted."),
    "test_call": _tells(rings, "It rings.", "My friend says that I cannot be reached."),
    "test_picture": _tells(sends, "The picture was sent.", "The picture was not sent."),
}  # fmt: skip
"""Deeds that do more than set something."""
DEEDS = tuple(
    Deed(name, told.concept, _DOES.get(name) or _set(told.said, **told.sets), told.asked)
    for name, told in data_file("turnwise.envs.toolworld.telecom", "deeds", dict[str, _DeedWords]).items()
)
