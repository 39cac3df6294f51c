"""Many episodes leave no process, container or folder behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("sandboxed")
def test_a_thousand_episodes_leave_nothing_behind():
    command = [sys.executable, str(SOAK), "turnwise/SWE-v0", "bubblewrap"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)["figures"]
    assert figures["left_behind"] == []
    assert sum(figures["ends"].values()) == 1000
