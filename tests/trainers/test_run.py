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

from turnwise import evaluate
from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import EpisodeLog, LogReader, cut_log
from turnwise.agents.log.repair import repair
from turnwise.envs.registry import get_suite
from turnwise.errors import RunError, TurnwiseError
from turnwise.tasks.core import Task
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run import door
from turnwise.trainers.run.circumstances import note_start
from turnwise.trainers.run.directory import RunDirectory, open_run
from turnwise.trainers.run.disk import disk_error
from turnwise.trainers.run.judging import AFTER, MODES, Judging
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.sampler.mixture import Mixture


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
        run.log_metrics(1, "rl", {"x": 1})
        run.checkpoint(0).mkdir(parents=True)
    with pytest.raises(RunError, match=r"holds a run already(.|\n)*--resume"), opened(tmp_path):
        pass
    with (
        pytest.raises(RunError, match=r"in credit, optimizer\.learning_rate, updates"),
        opened(tmp_path, True, credit="rloo", optimizer__learning_rate=0.1, updates=20),
    ):
        pass
    with opened(tmp_path, resume=True):
        assert "learning_rate: 0.0005" in (tmp_path / "recipe.yaml").read_text()
    for damage in (b"\xff\x00", b"", b"- x"):
        (tmp_path / "recipe.yaml").write_bytes(damage)
        with (
            pytest.raises(RunError, match=r"recipe\.yaml is damaged(.|\n)*remove it"),
            opened(tmp_path, True),
        ):
            pass
    (tmp_path / "recipe.yaml").unlink()
    with opened(tmp_path, resume=True):
        assert "learning_rate: 0.0005" in (tmp_path / "recipe.yaml").read_text()


def test_keys_that_are_newer_than_a_run_have_their_defaults(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        run.checkpoint(0).mkdir(parents=True)
    frozen = tmp_path / "recipe.yaml"
    frozen.write_text(frozen.read_text().replace("  max_vacuous: 5\n", ""))
    with opened(tmp_path, resume=True):
        assert "max_vacuous: 5" in frozen.read_text()
    frozen.write_text(frozen.read_text().replace("  max_vacuous: 5\n", "  max_vacuous: 6\n"))
    with pytest.raises(RunError, match=r"in rollout\.max_vacuous"), opened(tmp_path, resume=True):
        pass


def test_a_start_that_failed_at_once_does_not_stand_in_the_way(tmp_path: Path) -> None:
    with opened(tmp_path, seed=1):
        pass
    with opened(tmp_path, seed=2) as run:
        assert "seed: 2" in (tmp_path / "recipe.yaml").read_text()
        run.log_metrics(1, "warm_start", {"x": 1})  # it died in its warm start, before a checkpoint
    with opened(tmp_path, seed=3):
        assert "seed: 3" in (tmp_path / "recipe.yaml").read_text()


@pytest.mark.parametrize("left", ["evaluations.jsonl", "episodes.jsonl.zst", "metrics.jsonl"])
def test_records_are_never_wiped_out_by_a_new_start(tmp_path: Path, left: str) -> None:
    filled(tmp_path)
    for path in tmp_path.iterdir():
        if path.name != left:
            path.unlink()
    with pytest.raises(RunError, match="holds a run already"), opened(tmp_path):
        pass
    with pytest.raises(RunError, match="no checkpoint to go on from"), opened(tmp_path, resume=True):
        pass
    assert (tmp_path / left).exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be written(.|\n)*path"), opened(tmp_path / "file"):
        pass
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        assert "Make room" in disk_error(tmp_path, OSError(number, os.strerror(number))).remedy


def filled(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    for step in range(1, 4):
        run.log_metrics(step, "warm_start", {"nll": step})
    run.log_evaluation(0, "warm start", "sampled", {"success": 0.5})
    with EpisodeLog(run.episodes) as log:
        for update in range(1, 6):
            for i in range(3):
                log.append(played(i), update=update, group=0)
            if update != 3:  # two updates in one frame
                log.flush()
            run.log_metrics(update, "rl", {"reward": float("nan")})
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
    assert [record.update for record in reader] == [u for u in range(1, update + 1) for _ in range(3)]
    assert reader.dropped == 0
    with EpisodeLog(run.episodes) as log:
        log.append(played(9), update=update + 1)
    assert [record.update for record in LogReader(run.episodes)][-1] == update + 1


def test_an_attempt_without_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    run = filled(tmp_path)
    run.start.mkdir()
    (run.path / "model").mkdir()
    run.clear()
    assert list(tmp_path.iterdir()) == [], "another recipe may make another model"
    run.clear()


def test_records_damaged_in_the_middle_are_named(tmp_path: Path) -> None:
    run = filled(tmp_path)
    text = (tmp_path / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join([text[0], "{", *text[1:]]) + "\n")
    with pytest.raises(TurnwiseError, match=r"metrics\.jsonl is damaged at line 2(.|\n)*turnwise repair"):
        run.forget_after(1)


@pytest.mark.parametrize("damage", [b"{", b'{"name": "\xff"}', b"[1]", b"null"])
def test_damaged_lines_are_refused_until_they_are_cut_out(tmp_path: Path, damage: bytes) -> None:
    run = filled(tmp_path)
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    first, rest = whole.split(b"\n", 1)
    path.write_bytes(b"\n".join([first, damage, rest]))
    with pytest.raises(TurnwiseError, match=r"damaged at line 2(.|\n)*turnwise repair"):
        run.forget_after(5)
    repair(tmp_path)
    assert path.read_bytes() == whole
    assert damage in (tmp_path / "metrics.jsonl.damaged").read_bytes()
    assert run.forget_after(5) == []


def test_a_damaged_episode_log_is_set_aside(tmp_path: Path) -> None:
    run = filled(tmp_path)
    data = bytearray(run.episodes.read_bytes())
    data[30] ^= 1
    for number in (1, 2):
        run.episodes.write_bytes(data)
        (note,) = run.forget_after(2)
        assert "damaged" in note
        assert f"turnwise repair {tmp_path}" in note
        assert (tmp_path / f"episodes-damaged-{number}.jsonl.zst").read_bytes() == data
        assert not run.episodes.exists()


def test_what_is_written_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file and link of a run is synced before its name is, and its folder after."""
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    home = tmp_path.name
    with opened(tmp_path) as run:
        assert synced[:2] == ["recipe.yaml.new", home]
        synced.clear()
        run.log_metrics(1, "rl", {})
        run.log_metrics(2, "rl", {})
        run.log_evaluation(1, "before", "sampled", {})
        run.point_best(1)
    assert synced == ["metrics.jsonl", home, "metrics.jsonl", "evaluations.jsonl", home, home]


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
    run = RunDirectory(tmp_path)
    run.point_best(3)
    run.point_best(12)
    assert os.readlink(run.best) == "checkpoints/step-000012"


def test_a_resumed_run_says_what_differs(tmp_path: Path) -> None:
    recipe = load_recipe("shop-quick")
    assert note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device) == ""
    assert note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device) == ""
    started = tmp_path / "started.json"
    starts = json.loads(started.read_text())
    assert len(starts) == 2
    now = dict(starts[1])
    starts.append({**now, "threads": 77, "torch": "1.0", "vllm": None, "processor": "Z80", "commit": "abc"})
    started.write_text(json.dumps(starts))
    said = note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device)
    assert "no longer those of an uninterrupted one" in said
    assert f"threads of torch 77, now {now['threads']}" in said
    assert f"torch 1.0, now {now['torch']}" in said
    assert "processor Z80, now" in said
    assert "git commit of the working folder abc" in said
    assert note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device) == "", "it is said once"

    starts.append({**now, "environment": {**now["environment"], "source": "0123"}})
    started.write_text(json.dumps(starts))
    with pytest.raises(
        RunError, match=r"source of the environment \(.*ShopEnv\) has changed(.|\n)*--allow-changed-env"
    ):
        note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device)
    assert json.loads(started.read_text()) == starts, "what is refused is no start"
    assert "the environment's source" in note_start(
        tmp_path, [get_suite(str(recipe.suite)).env], recipe.device, allow_changed_env=True
    )
    for damage in ("", "{", "[1]"):
        started.write_text(damage)
        with pytest.raises(RunError, match=r"started\.json is damaged(.|\n)*remove it"):
            note_start(tmp_path, [get_suite(str(recipe.suite)).env], recipe.device)


def test_a_run_on_a_file_is_complete_when_everything_was_evaluated(tmp_path: Path) -> None:
    """A suite that is given by its file has another name than that; runs on one were told to go on for ever."""
    file = Path(__file__).parents[2] / "examples" / "own_environment.py"
    recipe = load_recipe("shop-quick", {"suite": str(file)})
    mixture = Mixture(recipe.suites, seed=0)
    judging = Judging(door.opened(recipe).judge, RunDirectory(tmp_path), mixture, Stop(print), print)
    assert not judging.complete
    ((suite, _),) = mixture.shares
    assert suite.name not in recipe.suites
    row = evaluate(suite, "scripted:gold", episodes=2).to_json()
    for name in ("warm start", AFTER):
        for mode in MODES:
            judging.run.log_evaluation(0, name, mode, row)
    judging.remember()
    assert judging.complete
