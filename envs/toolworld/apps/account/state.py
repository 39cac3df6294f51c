"""The tables of accounts, and worlds of them. Money in cents; the day is ``TODAY``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.toolworld.vocabulary import PersonName, people

TODAY = "2026-06-18"
CHILD = 16
"""From this age on somebody decides alone."""
APPS = ("Verba", "Lumio", "Stridely", "Hearthcook", "Noctua", "Ledgerly", "Chordbook", "Tasklet", "Pixelforge", "Skywatch")  # fmt: skip
TIERS = ("basic", "standard", "premium")
RATINGS = (4, 9, 12, 16, 18)
DEVICES = ("phone", "tablet", "laptop", "watch", "television")
KINDS = ("app", "film", "book", "game item", "pre-order")
COUNTRIES = ("Norland", "Southmark", "Estria")
FIRST_WORDS = ("Silver", "Hidden", "Distant", "Golden", "Quiet", "Crimson", "Frozen", "Wandering")
LAST_WORDS = ("Harbour", "Orchard", "Lantern", "Meadow", "Compass", "Tower", "River", "Garden")
SEAT_PRICE, LATER_SEAT_PRICE, FULL_PRICE_SEATS = 800, 600, 10
"""A seat's price a month up to so many seats of a team, and beyond."""


class AppAccount(NamedTuple):
    account_id: str
    name: str
    email: str
    passcode: str
    age: int
    country: str
    card: str
    credit: int
    plan_id: str
    used_gigabytes: int
    family_id: str = ""
    age_limit: str = ""  # for children: what they may buy and see
    allowance: int = 0  # for children: cents a month
    status: str = "open"
    new_email: str = ""  # until the link that was sent to it is opened


class Purchase(NamedTuple):
    purchase_id: str
    account_id: str
    kind: str
    title: str
    price: int
    date: str
    paid_with: str  # a card, or "credit"
    device_id: str
    opened: bool = False
    status: str = "paid"  # paid, refunded, disputed


class AppSubscription(NamedTuple):
    subscription_id: str
    account_id: str
    app: str
    tier: str
    period: str  # monthly, yearly
    price: int  # of a period
    paid_on: str
    renews: str
    status: str = "active"  # active, paused, cancelled
    paused_before: bool = False  # in this calendar year
    shared: bool = False
    paused_months: int = 0


class AppDevice(NamedTuple):
    device_id: str
    account_id: str
    kind: str
    registered: str
    status: str = "active"  # active, lost


class StoragePlan(NamedTuple):
    plan_id: str
    gigabytes: int
    price: int


class GiftCode(NamedTuple):
    code: str
    amount: int
    country: str
    status: str = "unused"  # unused, redeemed, expired
    sent_to: str = ""


class AppFamily(NamedTuple):
    family_id: str
    organizer: str
    members: tuple[str, ...]


class SeatTeam(NamedTuple):
    team_id: str
    account_id: str  # its owner's
    domain: str
    seats: int
    members: tuple[str, ...]  # mail addresses


class StoreApp(NamedTuple):
    app: str
    rating: int  # from which age on
    basic: int  # a month
    standard: int
    premium: int


class DataExport(NamedTuple):
    export_id: str
    account_id: str
    app: str
    format: str
    date: str


class KeptData(NamedTuple):
    data_id: str
    account_id: str
    app: str
    megabytes: int


def price_of(app: StoreApp, tier: str, period: str) -> int:
    """Return the price of a period of a tier: ten months are paid for a year."""
    monthly: int = getattr(app, tier)
    return 10 * monthly if period == "yearly" else monthly


def days_since(day: str) -> int:
    return (date.fromisoformat(TODAY) - date.fromisoformat(day)).days


def days_ago(days: int) -> str:
    return (date.fromisoformat(TODAY) - timedelta(days)).isoformat()


def seats_price(seats: int, more: int) -> int:
    """Return the price per month of ``more`` seats in a team that has ``seats``."""
    full = max(0, min(more, FULL_PRICE_SEATS - seats))
    return full * SEAT_PRICE + (more - full) * LATER_SEAT_PRICE


def tables(rng: Random, size: int) -> dict[str, dict[str, Any]]:
    """The tables of some ``size`` accounts: families, people alone, and a team for each third adult."""
    store = [StoreApp(app, rng.choice(RATINGS), *_prices(rng)) for app in APPS]
    plans = [StoragePlan(f"cloud-{gb}", gb, price) for gb, price in _plans(rng)]
    numbers = iter(rng.sample(range(1000, 10_000), 40 * size))
    who = people(rng, size)
    accounts: list[AppAccount] = []
    families: list[AppFamily] = []
    while len(accounts) < size:
        grown = _people(rng, who, accounts, numbers, rng.choice((1, 1, 2, 3, 4, 6)), plans)
        if len(grown) > 1:
            family = AppFamily(f"F{next(numbers)}", grown[0].account_id, tuple(a.account_id for a in grown))
            families.append(family)
            grown = [a._replace(family_id=family.family_id) for a in grown]
        accounts += grown
    devices = [
        AppDevice(f"D{next(numbers)}", a.account_id, kind, days_ago(rng.randint(20, 900)))
        for a in accounts
        for kind in rng.sample(DEVICES, rng.randint(1, 4))
    ]
    subscriptions = [s for a in accounts if a.age >= CHILD for s in _subscriptions(rng, a, store, numbers)]
    purchases = [p for a in accounts for p in _purchases(rng, a, devices, numbers)]
    teams = [_team(rng, a, numbers) for a in accounts[::3] if a.age >= CHILD]
    codes = [
        GiftCode(f"G{next(numbers)}", rng.choice((1000, 2000, 2500, 5000)), country, status)
        for country in COUNTRIES
        for status in ("unused", "unused", "unused", "redeemed", "expired")
    ]
    data = [KeptData(f"K{next(numbers)}", a.account_id, app, rng.randint(5, 4000))
            for a in accounts for app in rng.sample(APPS, 4)]  # fmt: skip
    rows: Mapping[str, list[Any]] = {
        "accounts": accounts, "purchases": purchases, "subscriptions": subscriptions, "devices": devices, "plans": plans,
        "codes": codes, "families": families, "teams": teams, "store": store, "exports": list(_exports(rng, data, numbers)), "kept": data, "records": [],
    }  # fmt: skip
    return {table: {row[0]: row for row in made} for table, made in rows.items()}


def _prices(rng: Random) -> tuple[int, int, int]:
    basic = 100 * rng.randint(2, 6) - 1
    standard = basic + 100 * rng.randint(2, 4)
    return basic, standard, standard + 100 * rng.randint(2, 6)


def _plans(rng: Random) -> list[tuple[int, int]]:
    step = rng.randint(1, 3)
    return [(5, 0), (50, 99 * step), (200, 199 * step), (500, 399 * step), (2000, 799 * step)]


def _people(
    rng: Random, who: list[PersonName], before: list[AppAccount], numbers: Iterator[int], count: int, plans: list[StoragePlan]
) -> list[AppAccount]:  # fmt: skip
    """Some of a household: the first is of age."""
    found: list[AppAccount] = []
    country = rng.choice(COUNTRIES)
    for place, person in enumerate(who[len(before) : len(before) + count]):
        age = (rng.randint(25, 70) if place == 0 or rng.random() < 0.35 else rng.choice((8, 10, 11, 13, 14, 15)))  # fmt: skip
        plan = rng.choice(plans[:4])
        found.append(
            AppAccount(
                f"A{next(numbers)}", person.full, f"{person.handle}@example.net", f"{rng.randint(100000, 999999)}", age, country,
                f"card_{next(numbers)}", 0 if age < CHILD else rng.choice((0, 0, 500, 1500, 4200)), plan.plan_id,
                rng.randint(1, max(1, plan.gigabytes - 1)), age_limit="4+" if age < CHILD else "",
                allowance=1000 if age < CHILD else 0,
            )
        )  # fmt: skip
    return found


def _subscriptions(
    rng: Random, account: AppAccount, store: list[StoreApp], numbers: Iterator[int]
) -> Iterator[AppSubscription]:
    for app in rng.sample(store, rng.randint(2, 4)):
        tier, period = rng.choice(TIERS), rng.choice(("monthly", "monthly", "yearly"))
        past = (rng.randint(0, 27) if period == "monthly" else rng.choice((3, 9, 12, 40, 100, 200, 300, 340, 352)))  # fmt: skip
        renews = date.fromisoformat(days_ago(past)) + timedelta(30 if period == "monthly" else 365)
        yield AppSubscription(
            f"U{next(numbers)}", account.account_id, app.app, tier, period, price_of(app, tier, period), days_ago(past),
            renews.isoformat(), rng.choice(("active", "active", "active", "paused")) if period == "monthly" else "active",
            rng.random() < 0.3,
        )  # fmt: skip


def _purchases(
    rng: Random, account: AppAccount, devices: list[AppDevice], numbers: Iterator[int]
) -> Iterator[Purchase]:
    own = [device for device in devices if device.account_id == account.account_id]
    for _ in range(rng.randint(3, 6)):
        paid_with = "credit" if rng.random() < 0.25 else account.card
        made = Purchase(
            f"B{next(numbers)}", account.account_id, rng.choice(KINDS), f"{rng.choice(FIRST_WORDS)} {rng.choice(LAST_WORDS)}",
            rng.randrange(199, 4000, 100), days_ago(rng.choice((1, 3, 6, 10, 13, 16, 25, 45, 58, 70, 100, 119, 130, 200))), paid_with,
            rng.choice(own).device_id, rng.random() < 0.4,
        )  # fmt: skip
        made = made._replace(opened=made.opened and made.kind != "pre-order")
        yield made
        if rng.random() < 0.15:
            yield made._replace(purchase_id=f"B{next(numbers)}", opened=False)
        elif rng.random() < 0.15:
            yield made._replace(
                purchase_id=f"B{next(numbers)}", title=f"{rng.choice(FIRST_WORDS)} {rng.choice(LAST_WORDS)}",
                device_id=f"D{next(numbers)}", opened=made.kind != "pre-order",
            )  # fmt: skip  # on a device that nobody of the household has


def _exports(rng: Random, data: list[KeptData], numbers: Iterator[int]) -> Iterator[DataExport]:
    for row in rng.sample(data, len(data) // 5):
        form = rng.choice(("json", "csv", "html"))
        yield DataExport(f"X{next(numbers)}", row.account_id, row.app, form, days_ago(rng.choice((4, 12, 27, 45, 90))))  # fmt: skip


def _team(rng: Random, owner: AppAccount, numbers: Iterator[int]) -> SeatTeam:
    domain = f"{owner.name.split()[1].lower()}works.example"
    members = tuple(sorted(f"{p.handle}@{domain}" for p in people(rng, rng.randint(2, 6))))
    return SeatTeam(f"T{next(numbers)}", owner.account_id, domain, len(members) + rng.randint(0, 7), members)
