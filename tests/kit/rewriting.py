"""Assertions of test files are rewritten once: each worker does its share before all of them collect everything.

Else each worker of a fresh clone rewrites every file, at the same time as the others: 15 seconds of processor time in each.
The hook is one of tests/conftest.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
)

TESTS = Path(__file__).parents[1]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Do this worker's share, where everything is collected."""
    worker, count = (
        os.environ.get("PYTEST_XDIST_WORKER", ""),
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )
    if worker and not sys.dont_write_bytecode:
        rewrite(
            session.config, sorted(TESTS.rglob("test_*.py"))[int(worker.removeprefix("gw")) % count :: count]
        )


def rewrite(config: pytest.Config, files: list[Path]) -> None:
    """Write the bytecode of those whose bytecode is missing or old, where pytest looks for it."""
    for file in files:
        target = get_cache_dir(file) / (file.name.removesuffix(".py") + PYC_TAIL)
        if _read_pyc(file, target) is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            stat, code = _rewrite_test(file, config)
            _write_pyc(config.stash[assertstate_key], code, stat, target)
