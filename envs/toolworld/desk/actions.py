"""Calls that an agent of the desk can make, and the policy: what the agent reads, and what breaks it."""

from __future__ import annotations

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.desk.state import COLOURS, DeskNote, line_of, order_of, orders_of
from turnwise.envs.toolworld.domain import Written, act
from turnwise.tools.core import ToolError


def find(db: Database, name: str) -> Written:
    """The customer's orders."""
    lines = [line_of(tree, order) for tree, order in orders_of(db, name)]
    if not lines:
        raise ToolError("no such name .")
    return Written(db, " , ".join(lines) + " .", name)


def price(db: Database, order: str) -> str:
    """What an order costs."""
    return f"{order_of(db, order).price} ."


def cancel(db: Database, order: str) -> Written:
    """Cancel an order."""
    order_of(db, order)
    return Written(db.update("orders", order, state="cancelled"), "ok .")


def paint(db: Database, order: str, colour: str) -> Written:
    """Change an order's colour."""
    order_of(db, order)
    if colour not in COLOURS:
        raise ToolError("no such colour .")
    return Written(db.update("orders", order, colour=colour), "ok .")


def deny(db: Database, order: str) -> Written:
    """Put on record that an order was sent and stays as it is."""
    order_of(db, order)
    return Written(db.put("denials", order, DeskNote(order)), "ok .")


def _owner(db: Database, order: str, **_: str) -> str | None:
    found = db.find("orders", order)
    return found.name if found else None


ACTS = (
    act(find, "identify"),
    act(price),
    act(cancel, "write", _owner),
    act(paint, "write", _owner),
    act(deny, "note", _owner),
)
POLICY = "desk : find[name ] price[order ] cancel[order ] paint[order , colour ] . sent : deny[order ] . ask name ? sure ?"


def rules(db: Database, name: str, arguments: object) -> tuple[str, ...]:
    """List the rules that a call breaks, on the database before it."""
    if not isinstance(arguments, dict) or name not in ("cancel", "paint", "deny"):
        return ()
    sent = order_of(db, arguments["order"]).state == "sent"
    return ("sent",) if sent and name != "deny" else ("not_sent",) if not sent and name == "deny" else ()
