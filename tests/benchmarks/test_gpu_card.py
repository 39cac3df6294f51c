"""The prepared script for one GPU runs on a CPU, where it says nothing about GPUs."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from turnwise.agents.models.small import build_small_model
from turnwise.tools.processes import module_path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_card.py"


def test_the_script_goes_through_its_parts_and_names_those_that_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The dry run of `make test`: what takes neither vLLM nor a second process. All of it is in `make test-full`."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    card: Any = importlib.import_module("gpu_card")
    out = tmp_path / "found.json"
    parts = ["trees", "sleep", "trl"]
    monkeypatch.setattr(sys, "argv", ["gpu_card.py", *parts, "--model", "tiny", "--out", str(out)])
    card.main()
    told = json.loads(out.read_text())
    assert told["not run"] == ["sleep", "trl"]
    found = {name.removesuffix("/tiny"): row["value"] for name, row in told["figures"].items()}
    assert found["tree_tokens_per_node"] == pytest.approx(8 * 46 / (40 + 8 * 6))
    assert found["tree_gradient_gap"] < 1e-5
    assert found["tree_times_rows"] > 0
    assert found["tree_mfu_by_rows"] == pytest.approx(
        found["tree_mfu_by_nodes"] * found["tree_tokens_per_node"]
    )
    said = capsys.readouterr().out
    assert "sleep: not run, since vLLM sleeps on a GPU only" in said
    monkeypatch.setattr(sys, "argv", ["gpu_card.py", "--model", "tiny", "--seconds", "-1", "--out", str(out)])
    card.main()
    assert json.loads(out.read_text())["not run"] == [*card.PARTS], "its time was over"


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
