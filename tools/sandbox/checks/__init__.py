"""The conformance suite of sandbox back ends; importing it enters all checks."""

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
from turnwise.tools.sandbox.checks.core import CHECKS, Check, Lab, Outcome, laboratory, run_check

__all__ = ["CHECKS", "Check", "Lab", "Outcome", "laboratory", "run_check"]
