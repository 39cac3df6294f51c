"""The shop's tables, and worlds of them."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.vocabulary import address, people

KINDS = (
    "desk lamp", "water bottle", "hiking boots", "office chair", "backpack", "teapot", "wool blanket", "bicycle helmet",
    "wrist watch", "bluetooth speaker", "picture frame", "yoga mat",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "black", "white", "silver")
SIZES = ("small", "medium", "large")


class Payment(NamedTuple):
    id: str
    kind: str  # card, gift, paypal
    balance: int = 0  # cents on a gift card


class User(NamedTuple):
    user_id: str
    name: str
    email: str
    zip: str
    address: str
    payments: tuple[Payment, ...]


class RetailItem(NamedTuple):
    """A variant of a product. ``price`` in cents."""

    item_id: str
    product: str
    colour: str
    size: str
    price: int
    in_stock: bool


class OrderLine(NamedTuple):
    item_id: str
    price: int


class RetailOrder(NamedTuple):
    order_id: str
    user_id: str
    status: str  # pending, processed, delivered, cancelled, return requested, exchange requested
    address: str
    payment: str
    lines: tuple[OrderLine, ...]
    refund_to: str = ""
    refund: int = 0
    reason: str = ""
    changed: bool = False  # items were changed once, which is the most
    wrapped: bool = False

    @property
    def total(self) -> int:
        return sum(line.price for line in self.lines)


def build(rng: Random, size: int) -> Database:
    """``size`` customers with two to four orders each, and a catalogue of variants."""
    items = _items(rng)
    users: dict[str, User] = {}
    orders: dict[str, RetailOrder] = {}
    numbers = iter(rng.sample(range(10_000, 100_000), 5 * size))
    kinds = sorted({item.product for item in items.values()})
    by_kind = {kind: [item for item in items.values() if item.product == kind] for kind in kinds}
    for person in people(rng, size):
        number = rng.randint(1000, 9999)
        payments = [Payment(f"card_{rng.randint(1000, 9999)}", "card")]
        if rng.random() < 0.7:
            payments.append(
                Payment(f"gift_{rng.randint(1000, 9999)}", "gift", rng.randrange(500, 15_000, 50))
            )
        if rng.random() < 0.3:
            payments.append(Payment(f"paypal_{rng.randint(1000, 9999)}", "paypal"))
        user = User(
            f"{person.handle}_{number}",
            person.full,
            f"{person.handle}{number % 100}@example.com",
            str(rng.randint(10_000, 99_999)),
            address(rng),
            tuple(payments),
        )
        users[user.user_id] = user
        for _ in range(rng.randint(2, 4)):
            chosen = [rng.choice(by_kind[kind]) for kind in rng.sample(kinds, rng.randint(1, 3))]
            order = RetailOrder(
                f"W{next(numbers)}",
                user.user_id,
                rng.choice(("pending", "pending", "processed", "delivered", "delivered")),
                user.address,
                rng.choice([p.id for p in payments if p.kind != "gift"]),
                tuple(OrderLine(item.item_id, item.price) for item in chosen),
            )
            orders[order.order_id] = order
    return Database.of({"users": users, "orders": orders, "items": items, "notes": {}})


def _items(rng: Random) -> dict[str, RetailItem]:
    numbers = iter(rng.sample(range(100_000, 1_000_000), len(KINDS) * len(COLOURS) * len(SIZES)))
    found: dict[str, RetailItem] = {}
    for kind in KINDS:
        base = rng.randrange(1500, 12_000, 100)
        pairs = [(colour, size) for colour in COLOURS for size in SIZES]
        for colour, size in sorted(rng.sample(pairs, 8)):
            price = base + rng.randrange(-800, 2400, 25)
            item = RetailItem(f"I{next(numbers)}", kind, colour, size, max(price, 499), rng.random() < 0.75)
            found[item.item_id] = item
    return found
