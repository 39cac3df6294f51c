"""The record of a test run: its counts, and the processor time of each file, with that of the processes it started.

The hooks are those of tests/conftest.py. The row goes into the file that ``$TURNWISE_TESTS_RECORD`` names.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import choosing
import forked
import psutil
import pytest

from turnwise.machine import describe

COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
SHOWN = 25
STARTED = time.monotonic(), psutil.getloadavg()
RECORD = "TURNWISE_TESTS_RECORD"


class Meter:
    """Processor seconds of this process, of the children that it waited for, and of forked programs that ended."""

    def __init__(self) -> None:
        self._before = 0.0

    def since_last(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        now = time.process_time() + children.ru_utime + children.ru_stime + sum(forked.spent.values())
        self._before, spent = now, now - self._before
        return spent


_meter = Meter()
_by_file: Counter[str] = Counter()
_by_test: Counter[str] = Counter()
_collecting: list[float] = []


def pytest_collection_finish(session: pytest.Session) -> None:
    seconds = _meter.since_last()
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _collecting.append(seconds)
    else:
        output["collecting"] = seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.cpu_seconds = _meter.since_last()  # crosses from a worker with the report
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name, seconds = choosing.name_of(report.nodeid), getattr(report, "cpu_seconds", 0.0)
    _by_file[name.partition("::")[0]] += seconds
    _by_test[name] += seconds


def pytest_testnodedown(node: Any) -> None:
    if "collecting" in getattr(node, "workeroutput", {}):
        _collecting.append(node.workeroutput["collecting"])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which files spend the time."""
    if os.environ.get(RECORD):
        total = sum(_by_file.values()) + sum(_collecting)
        terminalreporter.section(f"{total:.0f} processor seconds, {sum(_collecting):.0f} of them collecting")
        for file, seconds in _by_file.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f}  {file}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the row, in the process that heard of all tests."""
    file = os.environ.get(RECORD)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not file or not reporter or "PYTEST_XDIST_WORKER" in os.environ:
        return
    head = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    failed = {report.nodeid for name in ("failed", "error") for report in reporter.stats.get(name, ())}
    counts = {name: len(found) for name, found in sorted(reporter.stats.items()) if name in COUNTED}
    row = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": head.stdout.strip(),
        "load_before": [round(load, 2) for load in STARTED[1]],
        "load_after": [round(load, 2) for load in psutil.getloadavg()],
        "name": f"pytest -m '{config.option.markexpr}' -n {config.option.numprocesses}",
        "machine": describe(),
        "failed_tests": sorted(failed),
        "figures": {
            **counts,
            "seconds": round(time.monotonic() - STARTED[0]),
            "cpu_seconds": round(sum(_by_file.values()) + sum(_collecting)),
            "collecting_cpu_seconds": [round(seconds, 1) for seconds in _collecting],
        },
        "cpu_seconds_by_file": {file: round(seconds, 1) for file, seconds in _by_file.most_common()},
        "cpu_seconds_by_test": {
            test: round(seconds, 1) for test, seconds in _by_test.most_common() if seconds >= choosing.DEAR
        },
    }
    Path(file).write_text(json.dumps(row, indent=2) + "\n")
    if Path(file).resolve().parent == choosing.COSTS.parent:
        known = costs_after(choosing.costs(), _by_test)
        choosing.COSTS.write_text(json.dumps(known._asdict(), indent=1, sort_keys=True) + "\n")


def costs_after(known: choosing.Costs, spent: Mapping[str, float]) -> choosing.Costs:
    """What tests cost after a run in which these ran; of the others what is known, where their file is there."""
    kept = {
        test: seconds
        for test, seconds in known.tests.items()
        if test not in spent and (choosing.ROOT / test.partition("::")[0]).exists()
    }
    dear = {test: round(seconds, 1) for test, seconds in spent.items() if seconds >= choosing.DEAR}
    cheap: dict[str, list[float]] = defaultdict(list)
    for test in spent.keys() - dear.keys():
        cheap[test.partition("::")[0]].append(spent[test])
    files = {file: round(fmean(seconds), 2) for file, seconds in cheap.items()}
    return choosing.Costs(kept | dear, {**known.files, **files})
