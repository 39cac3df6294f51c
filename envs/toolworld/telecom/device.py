"""What a customer can do with the phone when asked to."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Deed, Written
from turnwise.envs.toolworld.telecom import language
from turnwise.envs.toolworld.telecom.state import Phone, works


def _look(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    apn = "settings were reset, a restart is needed" if phone.apn == "reset" else f"the APN is {phone.apn}"
    said = (
        f"My phone shows: airplane mode {_on(phone.airplane)}, mobile data {_on(phone.data)}, data roaming "
        f"{_on(phone.roaming)}, data saver {_on(phone.saver)}, SIM {phone.sim}, {apn}."
    )
    return Written(db, said)


def _set(said: str, **fields: object) -> Callable[[Database, str], Written]:
    def does(db: Database, customer: str) -> Written:
        return Written(db.update("phones", customer, **fields), said)

    return does


def _reseat(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    if phone.sim == "locked":
        return Written(db, "I did. It still says that the SIM is locked and wants a PUK.")
    return Written(db.update("phones", customer, sim="ready"), "I took the SIM out and put it in again.")


def _reset(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    apn = "reset" if phone.apn == "wrong" else phone.apn
    return Written(db.update("phones", customer, apn=apn), "The APN settings are reset.")


def _restart(db: Database, customer: str) -> Written:
    phone: Phone = db.get("phones", customer)
    apn = "right" if phone.apn == "reset" else phone.apn
    return Written(db.update("phones", customer, apn=apn), "The phone has restarted.")


def _pay(db: Database, customer: str) -> Written:
    asked = [b for b in db.rows("bills") if b.customer_id == customer and b.status == "requested"]
    for bill in asked:
        db = db.update("bills", bill.bill_id, status="paid")
    return Written(db, "I have paid it." if asked else "I see no payment request.")


def _test(db: Database, customer: str) -> Written:
    return Written(
        db, "The speed test is fine." if works(db, customer) else "The speed test says: no connection."
    )


def _on(value: bool) -> str:
    return "on" if value else "off"


DEEDS = (
    Deed("look_at_status", language.STATUS, _look),
    Deed(
        "airplane_mode_off",
        language.AIRPLANE,
        _set("Airplane mode is off now.", airplane=False),
    ),
    Deed("mobile_data_on", language.DATA, _set("Mobile data is on now.", data=True)),
    Deed("data_roaming_on", language.ROAMING, _set("Data roaming is on now.", roaming=True)),
    Deed("data_saver_off", language.SAVER, _set("The data saver is off now.", saver=False)),
    Deed("reseat_sim", language.SIM, _reseat),
    Deed("reset_apn", language.APN, _reset),
    Deed("restart", language.RESTART, _restart),
    Deed("pay_bill", language.PAY, _pay),
    Deed("speed_test", language.SPEED, _test),
)
