"""What breaks the operator's policy (policy.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.telecom.state import PhoneLine


def rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    """Which rules a call breaks, on the database before it."""
    line: PhoneLine | None = db.find("lines", arguments.get("line_id", ""))
    if line is None:
        return ()
    broken: list[str] = []
    if name == "resume_line":
        if line.contract == "ended":
            broken.append("contract_ended")
        own = [bill for bill in db.rows("bills") if bill.customer_id == line.customer_id]
        if any(bill.status in ("overdue", "requested") for bill in own):
            broken.append("unpaid")
    if name == "close_line" and line.contract == "running":
        broken.append("contract_running")
    if name == "add_data" and arguments["gigabytes"] > 10:
        broken.append("data_limit")
    if name == "change_plan" and line.status == "suspended":
        broken.append("suspended")
    return broken
