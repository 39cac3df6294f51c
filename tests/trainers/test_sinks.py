"""Sinks of others: what they have written is read with their own libraries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turnwise.registry import get_component


def play(name: str, folder: Path, *updates: int, **options: object) -> None:
    sink = get_component("sink", name).build(options)(folder, updates[0] - 1)
    for update in updates:
        sink.write(update, {"reward": update / 10, "interval": [0.1, 0.9], "vacuous": "alike"})
    sink.close()


@pytest.mark.slow
def test_mlflow_has_every_update_of_a_resumed_run_in_one_run(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    folder = tmp_path / "my-run"
    folder.mkdir()
    play("mlflow", folder, 1, 2)
    play("mlflow", folder, 3)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("turnwise").experiment_id])
    history = client.get_metric_history(run.info.run_id, "reward")
    assert [(point.step, point.value) for point in history] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert set(run.data.metrics) == {"reward"}


@pytest.mark.slow
def test_mlflow_tells_its_makers_nothing(tmp_path: Path) -> None:
    """In a process that is not seen to be a test, where MLflow would be silent anyway."""
    pytest.importorskip("mlflow")
    program = (
        "import sys, pathlib\nfrom turnwise.registry import get_component\n"
        "get_component('sink', 'mlflow').build({})(pathlib.Path(sys.argv[1]), 0).close()\n"
        "from mlflow.telemetry.utils import is_telemetry_disabled\nprint(is_telemetry_disabled())"
    )
    quiet = {"PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS"}
    env = {name: value for name, value in os.environ.items() if name not in quiet}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stdout + done.stderr


@pytest.mark.slow
def test_wandb_keeps_a_run_in_its_folder_and_sends_nothing(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    folder = tmp_path / "my-run"
    folder.mkdir()
    play("wandb", folder, 1, 2)
    (kept,) = folder.glob("wandb/offline-run-*/*.wandb")
    until = time.monotonic() + 60  # wandb's own process may still write when its `finish` has returned
    while b"reward" not in kept.read_bytes() and time.monotonic() < until:
        time.sleep(0.05)
    assert b"reward" in kept.read_bytes()
