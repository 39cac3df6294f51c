"""Deeds that a customer can do with the phone when asked to."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Deed, Written
from turnwise.envs.toolworld.telecom import language
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
    if not works(db, customer):
        return Written(db, "The speed test says: no connection.")
    return Written(
        db, "The speed test is fine." if fast(db, customer) else "The speed test says that it is very slow."
    )


def _call(db: Database, customer: str) -> Written:
    return Written(db, "It rings." if rings(db, customer) else "My friend says that I cannot be reached.")


def _picture(db: Database, customer: str) -> Written:
    return Written(db, "The picture was sent." if sends(db, customer) else "The picture was not sent.")


def _on(value: bool) -> str:
    return "on" if value else "off"


DEEDS = (
    Deed("look_at_status", language.STATUS, _look, "Please look at the status of your phone: what does it show?"),
    Deed("airplane_mode_off", language.AIRPLANE, _set("Airplane mode is off now.", airplane=False), "Please turn airplane mode off."),
    Deed("mobile_data_on", language.DATA, _set("Mobile data is on now.", data=True), "Please turn mobile data on."),
    Deed("mobile_data_off", language.DATA_OFF, _set("Mobile data is off now.", data=False)),
    Deed("data_roaming_on", language.ROAMING, _set("Data roaming is on now.", roaming=True), "Please turn data roaming on."),
    Deed("data_roaming_off", language.ROAMING_OFF, _set("Data roaming is off now.", roaming=False)),
    Deed("data_saver_off", language.SAVER, _set("The data saver is off now.", saver=False), "Please turn the data saver off."),
    Deed("reseat_sim", language.SIM, _reseat, "Please take the SIM card out and put it in again."),
    Deed("reset_apn", language.APN, _reset, "Please reset the APN settings."),
    Deed("restart", language.RESTART, _restart, "Please restart the phone."),
    Deed("pay_bill", language.PAY, _pay, "I have sent you a payment request. Please pay the bill now."),
    Deed("speed_test", language.SPEED, _test),
    Deed("data_limit_off", language.LIMIT, _set("The data limit is removed.", limit=False), "Please remove the data limit in the settings of the phone."),
    Deed("operator_automatic", language.OPERATOR, _set("The operator is chosen automatically now.", operator="automatic"), "Please set the network operator to automatic."),
    Deed("wifi_off", language.WIFI, _set("Wi-Fi is off now.", wifi=False), "Please turn Wi-Fi off."),
    Deed("call_forwarding_off", language.FORWARDING, _set("Call forwarding is off now.", forwarding=False), "Please turn call forwarding off."),
    Deed("do_not_disturb_off", language.SILENT, _set("Do not disturb is off now.", silent=False), "Please turn do not disturb off."),
    Deed("unblock_numbers", language.BLOCKED, _set("The block list is empty now.", blocked=False), "Please clear the block list."),
    Deed("wifi_calling_off", language.WIFI_CALLING, _set("Wi-Fi calling is off now.", wifi_calling=False), "Please turn Wi-Fi calling off."),
    Deed("allow_messages", language.MESSAGES, _set("The messaging app has its permission.", messages=True), "Please give the messaging app its permission."),
    Deed("reset_message_address", language.MMS, _set("The address for picture messages is reset.", mms="right"), "Please reset the MMS settings."),
    Deed("network_mode_automatic", language.NETWORK, _set("The preferred network is automatic now.", network="automatic"), "Please set the preferred network to automatic."),
    Deed("vpn_off", language.VPN, _set("The VPN is off now.", vpn=False), "Please turn the VPN off."),
    Deed("power_saving_off", language.POWER, _set("Power saving is off now.", power_saver=False), "Please turn power saving off."),
    Deed("hotspot_on", language.HOTSPOT, _set("The hotspot is on now.", hotspot=True), "Please turn the hotspot on."),
    Deed("hotspot_off", language.HOTSPOT_OFF, _set("The hotspot is off now.", hotspot=False)),
    Deed("test_call", language.TEST_CALL, _call),
    Deed("test_picture", language.TEST_PICTURE, _picture),
)  # fmt: skip
