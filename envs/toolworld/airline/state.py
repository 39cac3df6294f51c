"""The airline's tables, and worlds of them. Prices in cents; the day of the conversation is ``TODAY``."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.vocabulary import people

TODAY = "2026-05-15"
DAYS = tuple(f"2026-05-{day:02}" for day in range(10, 27))
AIRPORTS = ("ARD", "BEL", "COR", "DUN", "EAS")
CABINS = ("basic", "economy", "business")
FREE_BAGS = {"regular": (0, 1, 2), "silver": (1, 2, 3), "gold": (2, 3, 4)}
"""Free bags per passenger by membership, one number per cabin."""
BAG_PRICE = 5000


class AirlineCustomer(NamedTuple):
    user_id: str
    name: str
    birthday: str
    membership: str
    card: str
    credit: int = 0  # of certificates


class Flight(NamedTuple):
    flight_id: str  # number and date
    origin: str
    destination: str
    date: str
    departs: str
    status: str  # scheduled, flown, delayed, cancelled
    prices: tuple[int, int, int]  # per cabin
    seats: tuple[int, int, int]

    @property
    def route(self) -> tuple[str, str]:
        return self.origin, self.destination


class Reservation(NamedTuple):
    reservation_id: str
    user_id: str
    flight_id: str
    cabin: str
    passengers: tuple[str, ...]
    bags: int
    insured: bool
    booked: str  # date
    price: int  # per passenger
    status: str = "active"
    charged: int = 0  # of all changes, on the card
    refunded: int = 0
    meal: str = ""  # vegetarian, vegan, kosher, halal

    @property
    def meal_price(self) -> int:
        return 0 if self.cabin == "business" else 1200 * len(self.passengers)

    @property
    def insurance_price(self) -> int:
        return 3000 * len(self.passengers)


def build(rng: Random, size: int) -> Database:
    """``size`` customers with two or three reservations each; three flights a day on each of eight routes."""
    pairs = [(a, b) for a in AIRPORTS for b in AIRPORTS if a != b]
    flights: dict[str, Flight] = {}
    for origin, destination in sorted(rng.sample(pairs, 8)):
        base = rng.randrange(6000, 30_000, 100)
        for number in rng.sample(range(100, 1000), 3):
            departs = f"{rng.randint(5, 22):02}:{rng.randrange(0, 60, 5):02}"
            for day in DAYS:
                flight = _flight(rng, f"TW{number}{origin[0]}", origin, destination, day, departs, base)
                flights[flight.flight_id] = flight
    users: dict[str, AirlineCustomer] = {}
    found: dict[str, Reservation] = {}
    order = sorted(flights)
    for person in people(rng, size):
        user = AirlineCustomer(
            f"{person.handle}_{rng.randint(1000, 9999)}",
            person.full,
            f"{rng.randint(1950, 2004)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
            rng.choice(("regular", "regular", "silver", "gold")),
            f"card_{rng.randint(1000, 9999)}",
        )
        users[user.user_id] = user
        for _ in range(rng.randint(2, 3)):
            made = _reservation(rng, user, person.last, flights[rng.choice(order)])
            found[made.reservation_id] = made
    return Database.of({"users": users, "flights": flights, "reservations": found, "notes": {}})


def _flight(
    rng: Random, number: str, origin: str, destination: str, day: str, departs: str, base: int
) -> Flight:
    economy = base + rng.randrange(-2000, 8000, 100)
    status = "flown" if day < TODAY else rng.choice(("scheduled",) * 6 + ("delayed", "cancelled"))
    seats = (rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 5))
    prices = (economy * 7 // 10, economy, economy * 5 // 2)
    return Flight(f"{number}-{day}", origin, destination, day, departs, status, prices, seats)


def _reservation(rng: Random, user: AirlineCustomer, last: str, flight: Flight) -> Reservation:
    cabin = rng.randrange(3)
    others = [f"{name} {last}" for name in rng.sample(("Alex", "Robin", "Sam", "Chris"), rng.randint(0, 2))]
    early = rng.choice(DAYS[:4]) if flight.date > TODAY else DAYS[0]
    booked = TODAY if flight.date > TODAY and rng.random() < 0.3 else early
    return Reservation(
        "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(4)) + str(rng.randint(10, 99)),
        user.user_id,
        flight.flight_id,
        CABINS[cabin],
        (user.name, *others),
        rng.randint(0, 1),
        rng.random() < 0.3,
        booked,
        flight.prices[cabin],
    )
