"""The operator's tables and the customers' phones, and worlds of them. Money in cents, data in MB."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.vocabulary import people


class TelecomCustomer(NamedTuple):
    customer_id: str
    name: str
    phone: str
    pin: str
    line_id: str
    billing: str = "email"  # email, paper


class PhonePlan(NamedTuple):
    plan_id: str
    gigabytes: int
    price: int  # per month


class PhoneLine(NamedTuple):
    line_id: str
    customer_id: str
    plan_id: str
    status: str  # active, suspended, closed
    contract: str  # running, ended
    used: int
    limit: int
    roaming: bool
    abroad: bool  # where the phone is, as the network sees it
    barred: bool = False  # incoming calls
    tethering: bool = True  # other devices may use its data
    premium: bool = True  # paid services and numbers


class Bill(NamedTuple):
    bill_id: str
    customer_id: str
    amount: int
    status: str  # open, overdue, requested, paid


class Phone(NamedTuple):
    airplane: bool = False
    data: bool = True
    roaming: bool = False
    sim: str = "ready"  # ready, missing, locked
    apn: str = "right"  # right, wrong, reset (right after a restart)
    saver: bool = False
    limit: bool = False  # a data limit of the phone's own is reached
    operator: str = "automatic"  # automatic, manual: another network was chosen by hand
    wifi: bool = False  # in a Wi-Fi network without internet
    forwarding: bool = False  # of calls
    silent: bool = False  # do not disturb
    blocked: bool = False  # callers are on the block list
    wifi_calling: bool = False
    messages: bool = True  # the messaging app may use storage and data
    mms: str = "right"  # the address for picture messages: right, wrong
    network: str = "automatic"  # automatic, 2G only
    vpn: bool = False
    power_saver: bool = False
    hotspot: bool = False


def works(db: Database, customer: str) -> bool:
    """Say whether the customer's phone has mobile data."""
    user: TelecomCustomer = db.get("customers", customer)
    line: PhoneLine = db.get("lines", user.line_id)
    phone: Phone = db.get("phones", customer)
    network = line.status == "active" and line.used < line.limit and (line.roaming or not line.abroad)
    device = phone.data and not phone.airplane and phone.sim == "ready" and phone.apn == "right"
    free = not (phone.saver or phone.limit or phone.wifi) and phone.operator == "automatic"
    return network and device and free and (phone.roaming or not line.abroad)


def rings(db: Database, customer: str) -> bool:
    """Say whether the customer can be called."""
    line, phone = _line_and_phone(db, customer)
    away = phone.airplane or phone.forwarding or phone.silent or phone.blocked
    return line.status == "active" and not line.barred and not away


def sends(db: Database, customer: str) -> bool:
    """Say whether the customer can send picture messages."""
    _, phone = _line_and_phone(db, customer)
    return works(db, customer) and phone.messages and not phone.wifi_calling and phone.mms == "right"


def fast(db: Database, customer: str) -> bool:
    """Say whether mobile data is as fast as it should be."""
    _, phone = _line_and_phone(db, customer)
    return works(db, customer) and phone.network == "automatic" and not (phone.vpn or phone.power_saver)


def shares(db: Database, customer: str) -> bool:
    """Say whether other devices can use the phone's data."""
    line, phone = _line_and_phone(db, customer)
    return works(db, customer) and line.tethering and phone.hotspot


def _line_and_phone(db: Database, customer: str) -> tuple[PhoneLine, Phone]:
    return db.get("lines", db.get("customers", customer).line_id), db.get("phones", customer)


def build(rng: Random, size: int) -> Database:
    """``size`` customers whose phones all work, each with a line and two bills."""
    plans: dict[str, PhonePlan] = {}
    price = 0
    for gigabytes in (2, 5, 10, 20, 40):
        price += rng.randrange(400, 1200, 50)
        plan = PhonePlan(f"{rng.choice(('Basic', 'Flex', 'Go', 'Max', 'Pro'))}-{gigabytes}", gigabytes, price)
        plans[plan.plan_id] = plan
    users: dict[str, TelecomCustomer] = {}
    lines: dict[str, PhoneLine] = {}
    bills: dict[str, Bill] = {}
    numbers = iter(rng.sample(range(1000, 10_000), 3 * size))
    for person in people(rng, size):
        key, line_id = f"C{next(numbers)}", f"L{next(numbers)}"
        phone = f"555-{rng.randint(100, 999)}-{rng.randint(1000, 9999)}"
        users[key] = TelecomCustomer(key, person.full, phone, str(rng.randint(1000, 9999)), line_id)
        plan = plans[rng.choice(sorted(plans))]
        used = rng.randint(100, plan.gigabytes * 1000 - 300)
        lines[line_id] = PhoneLine(
            line_id, key, plan.plan_id, "active", "running", used, plan.gigabytes * 1000,
            roaming=rng.random() < 0.3, abroad=False, tethering=rng.random() < 0.7, premium=rng.random() < 0.7,
        )  # fmt: skip
        number = next(numbers)
        for month, status in (("03", "paid"), ("04", rng.choice(("open", "paid")))):
            bill = Bill(f"B{number}-{month}", key, plan.price + rng.randrange(0, 900, 5), status)
            bills[bill.bill_id] = bill
    phones = {key: Phone() for key in users}
    return Database.of(
        {"customers": users, "plans": plans, "lines": lines, "bills": bills, "phones": phones, "notes": {}}
    )
