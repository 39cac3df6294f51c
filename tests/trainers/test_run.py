"""A run's directory: one writer, records that can be wound back, messages that help."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.core import Episode
from turnwise.agents.log import EpisodeLog, LogReader, cut_log
from turnwise.errors import RunError, TurnwiseError
from turnwise.tasks.core import Task
from turnwise.trainers.by_hand import episode
from turnwise.trainers.recipe import load_recipe
from turnwise.trainers.run import Run, disk_error, open_run


def played(score: float) -> Episode:
    return dataclasses.replace(episode([score]), task=Task("turnwise/Shop-v0", "?"))


def opened(path: Path, resume: bool = False, **changes: Any) -> Any:
    recipe = load_recipe("shop-quick", {key.replace("__", "."): value for key, value in changes.items()})
    return open_run(path, recipe, "objective\n", resume=resume)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(RunError, match="Another process"), opened(tmp_path, resume=True):
        pass
    with opened(tmp_path):
        pass


def test_a_run_is_not_overwritten_and_its_recipe_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        run.log_metrics(1, "warm_start", {"x": 1})
    with pytest.raises(RunError, match=r"holds a run already(.|\n)*--resume"), opened(tmp_path):
        pass
    with (
        pytest.raises(RunError, match=r"in credit, optimizer\.learning_rate, updates"),
        opened(tmp_path, True, credit="rloo", optimizer__learning_rate=0.1, updates=20),
    ):
        pass
    with opened(tmp_path, resume=True):
        assert "learning_rate: 0.0005" in (tmp_path / "recipe.yaml").read_text()
    (tmp_path / "recipe.yaml").write_bytes(b"\xff\x00")
    with pytest.raises(RunError, match=r"recipe\.yaml, which cannot be read"), opened(tmp_path, resume=True):
        pass


def test_a_start_that_failed_at_once_does_not_stand_in_the_way(tmp_path: Path) -> None:
    with opened(tmp_path, seed=1):
        pass
    with opened(tmp_path, seed=2):
        assert "seed: 2" in (tmp_path / "recipe.yaml").read_text()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be written(.|\n)*path"), opened(tmp_path / "file"):
        pass
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        assert "Make room" in disk_error(tmp_path, OSError(number, os.strerror(number))).remedy


def filled(path: Path) -> Run:
    run = Run(path)
    for step in range(1, 4):
        run.log_metrics(step, "warm_start", {"nll": step})
    run.log_evaluation(0, "warm start", "sampled", {"success": 0.5})
    with EpisodeLog(run.episodes) as log:
        for update in range(5):
            for i in range(3):
                log.append(played(i), update=update, group=0)
            if update != 2:  # two updates in one frame
                log.flush()
            run.log_metrics(update + 1, "rl", {"reward": float("nan")})
    run.log_evaluation(5, "after RL", "sampled", {"success": 0.7})
    return run


@pytest.mark.parametrize("update", [0, 2, 3, 5])
@pytest.mark.parametrize("torn", [False, True])
def test_records_are_wound_back_together(tmp_path: Path, update: int, torn: bool) -> None:
    run = filled(tmp_path)
    if torn:
        for name in ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl.zst"):
            with (tmp_path / name).open("ab") as file:
                file.write(b'{"upd' if name.endswith("l") else b"\x28\xb5\x2f\xfd\x00")
    run.forget_after(update)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows if row["phase"] == "warm_start"] == [1, 2, 3]
    assert [row["update"] for row in rows if row["phase"] == "rl"] == list(range(1, update + 1))
    assert [row["name"] for row in run.evaluations()] == ["warm start"] + ["after RL"] * (update == 5)
    reader = LogReader(run.episodes)
    assert [record.update for record in reader] == [u for u in range(update) for _ in range(3)]
    assert reader.dropped == 0
    with EpisodeLog(run.episodes) as log:
        log.append(played(9), update=update)
    assert [record.update for record in LogReader(run.episodes)][-1] == update


def test_an_attempt_without_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    run = filled(tmp_path)
    run.start.mkdir()
    (run.path / "model").mkdir()
    run.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    run.clear()


def test_records_damaged_in_the_middle_are_named(tmp_path: Path) -> None:
    run = filled(tmp_path)
    text = (tmp_path / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join([text[0], "{", *text[1:]]) + "\n")
    with pytest.raises(TurnwiseError, match=r"metrics\.jsonl is damaged at line 2"):
        run.forget_after(1)


def test_cutting_a_plain_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert cut_log(path, lambda record: True) == 0
    with EpisodeLog(path) as log:
        for update in range(4):
            log.append(played(update), update=update)
    whole = path.read_bytes()
    assert cut_log(path, lambda record: True) == 4
    assert path.read_bytes() == whole
    assert cut_log(path, lambda record: record.update != 2) == 2
    assert [record.update for record in LogReader(path)] == [0, 1]


def test_best_leads_to_a_checkpoint(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.point_best(3)
    run.point_best(12)
    assert os.readlink(run.best) == "checkpoints/step-000012"
