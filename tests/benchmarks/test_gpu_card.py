"""The prepared script for one GPU runs on a CPU, where it says nothing about GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from turnwise.agents.models.small import build_small_model
from turnwise.tools.processes import module_path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_card.py"


@pytest.mark.full
@pytest.mark.usefixtures("vllm")
@pytest.mark.timeout(600)
def test_all_that_a_cpu_can_run_of_it_runs_and_the_rest_is_named(tmp_path: Path):
    published = build_small_model(
        tmp_path / "published",
        ["buy the red cup for 5"] * 9,
        vocab_size=320,
        layers=2,
        width=64,
        heads=2,
        context=4096,
    )
    environment = {**os.environ, "PYTHONPATH": module_path(), "OMP_NUM_THREADS": "1"}
    asked = [sys.executable, str(SCRIPT), "--model", "tiny", "--out", str(tmp_path / "found.json")]
    asked += ["--published", str(published)]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads((tmp_path / "found.json").read_text())
    assert told["not run"] == ["sleep"]
    found = {name.removesuffix("/tiny"): row["value"] for name, row in told["figures"].items()}
    assert found["tree_gradient_gap"] < 1e-5
    assert found["tree_tokens_per_node"] > 4
    assert max(found["adapters_merged_canary_gap"], found["adapters_added_canary_gap"]) < 1e-3
    assert found["sharded_times_whole"] > 0
    assert ("published_times_trl" in found) == (find_spec("trl") is not None)
    assert found["published_share_of_lean"] > 0
