"""A tiny service desk for models that learn within minutes: three words per order, eight turns, one policy.

The policy: what was sent can be neither cancelled nor changed; deny it. Orders are named by trees, so that every
name is one token, and each customer has orders that differ in one word.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain, Written, act
from turnwise.envs.toolworld.drafts import Draft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.tools.core import ToolError

if TYPE_CHECKING:
    from turnwise.envs.toolworld.moments import ToolState

NAMES = [
    "anna",
    "ben",
    "carl",
    "dora",
    "emil",
    "fay",
    "gus",
    "hana",
    "ida",
    "jon",
    "kim",
    "leo",
    "mia",
    "nora",
    "otto",
    "pia",
]
TREES = [
    "oak",
    "elm",
    "ash",
    "fir",
    "yew",
    "box",
    "fig",
    "bay",
    "may",
    "gum",
    "plum",
    "pear",
    "lime",
    "palm",
    "pine",
    "beech",
    "birch",
    "cedar",
    "maple",
    "alder",
    "hazel",
    "holly",
    "rowan",
    "larch",
    "aspen",
    "linden",
    "willow",
    "walnut",
    "cherry",
    "laurel",
    "olive",
    "poplar",
]
THINGS = ["lamp", "mug", "scarf", "chair", "tent", "bowl", "rug", "desk"]
COLOURS = ["red", "blue", "green", "black", "white", "pink", "brown", "gray"]
_ORDERS = 4
_KEEPS = 0.35  # how often the hasty clerk denies, whatever he reads


class Order(NamedTuple):
    name: str
    colour: str
    thing: str
    state: str  # open, sent, cancelled
    price: int


class Note(NamedTuple):
    order: str


def build(rng: Random, size: int) -> Database:
    """``size`` customers (at most eight), each with four orders."""
    orders: dict[str, Order] = {}
    size = min(size, len(TREES) // _ORDERS)
    trees = iter(rng.sample(TREES, size * _ORDERS))
    for name in rng.sample(NAMES, size):
        things, colours = rng.sample(THINGS, 2), rng.sample(COLOURS, 2)
        pairs = [(colour, thing) for colour in colours for thing in things]
        rng.shuffle(pairs)
        states = ["open", "open", "sent", rng.choice(("open", "sent"))]
        rng.shuffle(states)
        for (colour, thing), state in zip(pairs, states, strict=True):
            orders[next(trees)] = Order(name, colour, thing, state, rng.randint(10, 29))
    return Database.of({"orders": orders, "denials": {}})


def find(db: Database, name: str) -> Written:
    """The customer's orders."""
    lines = [_line(tree, order) for tree, order in _of(db, name)]
    if not lines:
        raise ToolError("no such name .")
    return Written(db, " , ".join(lines) + " .", name)


def _line(tree: str, order: Order) -> str:
    return f"{order.colour} {order.thing} {tree} {order.state}"


def price(db: Database, order: str) -> str:
    """What an order costs."""
    return f"{_order(db, order).price} ."


def cancel(db: Database, order: str) -> Written:
    """Cancel an order."""
    _order(db, order)
    return Written(db.update("orders", order, state="cancelled"), "ok .")


def paint(db: Database, order: str, colour: str) -> Written:
    """Change an order's colour."""
    _order(db, order)
    if colour not in COLOURS:
        raise ToolError("no such colour .")
    return Written(db.update("orders", order, colour=colour), "ok .")


def deny(db: Database, order: str) -> Written:
    """Put on record that an order was sent and stays as it is."""
    _order(db, order)
    return Written(db.put("denials", order, Note(order)), "ok .")


def _of(db: Database, name: str) -> list[tuple[str, Order]]:
    return [(tree, order) for tree in db.keys("orders") if (order := db.get("orders", tree)).name == name]


def _order(db: Database, order: str) -> Order:
    found = db.find("orders", order)
    if found is None:
        raise ToolError("no such order .")
    return found


def _owner(db: Database, order: str, **_: str) -> str | None:
    found = db.find("orders", order)
    return found.name if found else None


def _rules(db: Database, name: str, arguments: object) -> tuple[str, ...]:
    if not isinstance(arguments, dict) or name not in ("cancel", "paint", "deny"):
        return ()
    sent = _order(db, arguments["order"]).state == "sent"
    return ("sent",) if sent and name != "deny" else ("not_sent",) if not sent and name == "deny" else ()


def _enter(draft: Draft) -> bool:
    draft.customer = draft.rng.choice(sorted({order.name for order in draft.db.rows("orders")}))
    draft.facts["name"] = f"{draft.customer} ."
    return True


def _begun(draft: Draft) -> tuple[PlanStep, PlanStep]:
    return ask("name ?", "name"), call("find", name=draft.customer)


def _target(draft: Draft, state: str) -> tuple[str, Order] | None:
    fit = [pair for pair in _of(draft.db, draft.customer) if not state or pair[1].state == state]
    return draft.free(fit, lambda pair: pair[0])


def _change(draft: Draft, state: str) -> Stage | None:
    """A request to cancel or paint an order that is open or sent; at times he then names another open one."""
    found = _target(draft, state)
    if found is None:
        return None
    tree, order = found
    colour = draft.rng.choice([c for c in COLOURS if c != order.colour]) if draft.rng.random() < 0.5 else ""
    say = f"{'paint' if colour else 'cancel'} {order.colour} {order.thing}{f' {colour}' if colour else ''} ."
    if state == "sent":
        return Stage(say, (*_begun(draft), call("deny", order=tree), tell("sorry .")))
    twist, before = "", ()
    other = _target(draft, "open") if draft.changes_mind else None
    if other is not None:
        tree = other[0]
        if colour == other[1].colour:
            return None
        twist = f"no , {other[1].colour} {other[1].thing} ."
        before = (PlanStep("propose", "sure ?"),)
    done = call("paint", order=tree, colour=colour) if colour else call("cancel", order=tree)
    return Stage(
        say, (*_begun(draft), *before, PlanStep("confirm", "sure ?"), done, tell("done .")), twist=twist
    )


def _price(draft: Draft) -> Stage | None:
    found = _target(draft, "")
    if found is None:
        return None
    tree, order = found
    say = f"price of {order.colour} {order.thing} ?"
    plan = (*_begun(draft), call("price", order=tree), tell(f"it is {order.price} ."))
    return Stage(say, plan, (Fact("count", str(order.price)),), again=say)


def _hasty(state: ToolState, step: PlanStep, rng: Random) -> PlanStep | None:
    """Takes any order that shares a word with the one that was meant, and quotes it; denies at whim."""
    stage, db = state.case.story.stages[state.user.stage], state.db
    read = [json.loads(arguments)["order"] for name, arguments in sorted(state.done) if name == "price"]
    if step.kind == "tell" and read:
        return tell(f"it is {_order(db, read[-1]).price} .")
    if step.kind != "call" or step.name == "find":
        return None
    meant = _order(db, str(step.arguments["order"]))
    like = [
        (tree, order)
        for tree, order in _of(db, meant.name)
        if order.colour == meant.colour or order.thing == meant.thing
    ]
    (tree, order), asked = rng.choice(like), stage.say.split()
    if step.name == "price":
        done = call("price", order=tree)
    elif rng.random() < _KEEPS:
        done = call("deny", order=tree)
    elif asked[0] == "paint":
        done = call("paint", order=tree, colour=asked[-2])
    else:
        done = call("cancel", order=tree)
    return done._replace(text=_line(tree, order))


DOMAIN = Domain(
    name="desk",
    policy="desk : find[name ] price[order ] cancel[order ] paint[order , colour ] . sent : deny[order ] . ask name ? sure ?",
    build=build,
    acts=(
        act(find, "identify"),
        act(price),
        act(cancel, "write", _owner),
        act(paint, "write", _owner),
        act(deny, "note", _owner),
    ),
    requests={"change": lambda draft: _change(draft, "open"), "price": _price},
    traps={"sent": lambda draft: _change(draft, "sent")},
    enter=_enter,
    slots={"name": ("name",)},
    rules=_rules,
    compact=True,
    confuse=_hasty,
)
