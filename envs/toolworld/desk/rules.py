"""The desk's policy: what the agent reads, and what breaks it."""

from __future__ import annotations

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.desk.state import order_of

POLICY = "desk : find[name ] price[order ] cancel[order ] paint[order , colour ] . sent : deny[order ] . ask name ? sure ?"


def rules(db: Database, name: str, arguments: object) -> tuple[str, ...]:
    """List the rules that a call breaks, on the database before it."""
    if not isinstance(arguments, dict) or name not in ("cancel", "paint", "deny"):
        return ()
    sent = order_of(db, arguments["order"]).state == "sent"
    return ("sent",) if sent and name != "deny" else ("not_sent",) if not sent and name == "deny" else ()
