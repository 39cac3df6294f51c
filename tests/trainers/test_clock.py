"""The clock of chat templates is the run's first day: resumes, checkpoints and evaluations that go on keep it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.evaluation import folder as evaluation_folder
from turnwise.agents.evaluation.folder import clock_of, open_folder
from turnwise.trainers.run import circumstances
from turnwise.trainers.run.circumstances import note_start, run_clock


def at(monkeypatch: pytest.MonkeyPatch, module: Any, day: int) -> str:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2026, 1, day, 12)

    monkeypatch.setattr(module, "datetime", Clock)
    return f"2026-01-0{day}T12:00:00"


def test_a_run_keeps_the_clock_of_its_first_start_and_no_difference_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = ["turnwise/Shop-v0"]
    first = at(monkeypatch, circumstances, 1)
    note_start(tmp_path, envs, "cpu")
    at(monkeypatch, circumstances, 2)
    assert note_start(tmp_path, envs, "cpu") == ""
    starts = json.loads((tmp_path / "started.json").read_text())
    assert [start["clock"] for start in starts] == [first, first]
    assert run_clock(tmp_path) == first
    assert run_clock(tmp_path / "none") == "2026-01-02T12:00:00"


def test_an_evaluation_that_goes_on_keeps_its_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = at(monkeypatch, evaluation_folder, 1)
    with open_folder(tmp_path / "a", {"clock": evaluation_folder.now()}, resume=False):
        pass
    later = at(monkeypatch, evaluation_folder, 2)
    assert clock_of(tmp_path / "a") == first
    assert clock_of(tmp_path / "b") == later
