"""A plugin of pytest that counts outcomes, for whoever judges a judge."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

from __future__ import annotations

import collections
from typing import Any

import sitecustomize as spy

COUNTS = collections.Counter()


def pytest_runtest_logreport(report: Any) -> None:
    """Count an outcome: of the call, or of what broke off before or after it."""
    if report.when == "call" or report.outcome != "passed":
        kind = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
        COUNTS["xfailed" if hasattr(report, "wasxfail") and kind == "skipped" else kind] += 1


def pytest_collectreport(report: Any) -> None:
    """Count modules that could not be collected, and those that skip themselves."""
    if report.outcome != "passed":
        COUNTS["error" if report.outcome == "failed" else "skipped"] += 1


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Write the counts down."""
    spy.note(tests=dict(COUNTS), exit=int(exitstatus))
