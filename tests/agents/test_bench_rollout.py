"""The rollout benchmark runs, and does the same work on both sides."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SMALL = """
import json
from turnwise.agents.bench.rollout import RolloutWorkload, bench_rollout
small = RolloutWorkload(tasks=2, group=2, concurrency=4, max_sequences=4, new_tokens=4)
print(json.dumps(bench_rollout(repeats=2, workload=small)))
"""


@pytest.mark.slow
@pytest.mark.full  # a benchmark, at its smallest
@pytest.mark.usefixtures("vllm")
def test_figures_are_of_the_same_tokens() -> None:
    """In a process of its own: the session's engine is the only one that this one can have."""
    done = subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == {"rollout", "raw", "share_of_raw"}
    assert all(value > 0 and spread >= 0 for value, _, spread in figures.values())
    assert figures["share_of_raw"][0] < 1.5  # episodes cannot be much faster than the bare engine
