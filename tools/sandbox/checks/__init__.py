"""The conformance suite of sandbox backends; importing it registers all checks."""

from __future__ import annotations

from turnwise.tools.sandbox.checks import (  # noqa: F401
    escape,
    files,
    kill,
    limits,
    network,
    programs,
    secrets,
    state,
)
from turnwise.tools.sandbox.checks.core import CHECKS, Check, CheckOutcome, Lab, laboratory, run_check

__all__ = ["CHECKS", "Check", "CheckOutcome", "Lab", "laboratory", "run_check"]
