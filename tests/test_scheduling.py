"""A run of tests ends and has run all of them, whichever of its workers end before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import os, sys
sys.path.insert(0, KIT)
from scheduling import GroupScheduling

def pytest_xdist_make_scheduler(config, log):
    return GroupScheduling(config, log)
"""
TESTS = """
import os
import pytest

def ran(name):
    with open("ran", "a") as file:
        file.write(name + "\\n")

@pytest.mark.parametrize("n", range(12))
def test_alone(n):  # each a group of its own
    ran(f"alone {n}")
    if n in ENDS:
        os._exit(70)

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("n", range(5))
def test_together(n):
    ran(f"together {n}")
    if n == 2 and ENDS:
        os._exit(70)
"""


ENDS = [(), (0,), (3, 4), (11,), (8, 9, 10)]
IN_TEST = list(zip(ENDS, (2, 1, 2, 1, 2), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "workers"),
    [
        pytest.param(ends, workers, marks=() if (ends, workers) in IN_TEST else pytest.mark.full)
        for ends in ENDS
        for workers in (1, 2)
    ],
)
def test_all_tests_run_once_and_the_run_ends(tmp_path: Path, ends: tuple[int, ...], workers: int) -> None:
    kit = Path(__file__).parent / "kit"
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("KIT", repr(str(kit))), "utf-8")
    (tmp_path / "test_some.py").write_text(TESTS.replace("ENDS", repr(ends)), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plugins = [
        "-p",
        "xdist",
        "-p",
        "no:cacheprovider",
    ]  # and no other: each process would load all that is installed
    options = ["-q", "-n", str(workers), "--dist", "loadgroup", "--no-loadscope-reorder"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    failed = len(ends) + bool(ends)
    assert f"{17 - failed} passed" in done.stdout, done.stdout
    assert failed == 0 or f"{failed} failed" in done.stdout, done.stdout
    every = [f"alone {n}" for n in range(12)] + [f"together {n}" for n in range(5)]
    assert sorted((tmp_path / "ran").read_text("utf-8").splitlines()) == sorted(every)
