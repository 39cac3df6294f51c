"""What CI runs again is what failed, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "second_try.py"
TESTS = """
import pytest
from pathlib import Path

@pytest.mark.xdist_group("tests/some.py")
@pytest.mark.parametrize("name", ["a@b", "é × 2", "plain"])
def test_flaky(name):
    ran = Path(f"ran-{name}")
    ran.write_text(ran.read_text() + "again" if ran.exists() else "once")
    assert name == "plain" or ran.read_text() != "once"

@pytest.mark.xdist_group("docker")
@pytest.mark.parametrize("n", range(HOW_MANY))
def test_fails(n):
    assert False
"""


def again(folder: Path, how_many: int) -> subprocess.CompletedProcess[str]:
    """A run in workers that hear of groups, and then the second try."""
    (folder / "test_some.py").write_text(TESTS.replace("HOW_MANY", str(how_many)), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n")
    env = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # each process would load all that is installed
    pytest = [sys.executable, "-m", "pytest", "-p", "xdist", "-q"]
    run = [*pytest, "-n", "1", "--dist", "loadgroup"]
    assert subprocess.run(run, cwd=folder, env=env, capture_output=True, check=False).returncode == 1
    tried = [sys.executable, str(SCRIPT), *pytest]
    return subprocess.run(tried, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_failed_is_run_again_by_itself(tmp_path: Path) -> None:
    done = again(tmp_path, 0)
    assert "2 passed" in done.stdout, done.stdout
    assert done.returncode == 0
    assert {path.name: path.read_text() for path in tmp_path.glob("ran-*")} == {
        "ran-a@b": "onceagain",
        "ran-é × 2": "onceagain",
        "ran-plain": "once",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how_many", "said"), [(1, "1 failed, 2 passed"), (4, "no second try: 6 tests failed")]
)
def test_what_fails_twice_is_a_failure_and_many_are_not_tried_again(
    tmp_path: Path, how_many: int, said: str
) -> None:
    done = again(tmp_path, how_many)
    assert said in done.stdout + done.stderr
    assert done.returncode == 1
