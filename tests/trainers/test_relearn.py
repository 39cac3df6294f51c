"""A run's weights come out of its log again, bit for bit; what cannot be learned again is refused with the reason."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from turnwise.agents.core import Reply
from turnwise.agents.log.episode_log import EpisodeLog, LogReader, keep_records
from turnwise.agents.log.records import Record
from turnwise.cli.app import run as run_verb
from turnwise.cli.forms import FORMS
from turnwise.errors import TurnwiseError
from turnwise.trainers.run.checkpoint import file_hashes
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn, weight_files

pytestmark = pytest.mark.slow

CASES: dict[str, dict[str, Any]] = {
    "in turns": {},
    "ahead": {"scale": {"staleness": 2}},
    "keep": {"scale": {"staleness": 1, "kv": "keep"}, "optimizer": {"learning_rate": 0.01, "epochs": 2}},
    "heads": {"scale": {"staleness": 1}, "credit": "gae", "filter": "any"},
    "sources": {
        "source": [{"name": "demonstrations", "episodes": 2}],
        "guide": ["hint"],
    },
    "memory": {"rollout": {"groups": 2, "group_size": 4, "sampler": "pool"}},
    "schedule": {
        "schedule": {"optimizer.learning_rate": {"name": "towards", "metric": "entropy", "target": 5}}
    },
    "adapters": {"model": {"lora": {"rank": 2}}},
    "trees": {"optimizer": {"share": "tree", "epochs": 2, "minibatches": 2}},
}


def made(folder: Path, recipe: dict[str, Any], changes: dict[str, Any]) -> Path:
    data = recipe | {
        "updates": 3,
        "checkpoint": {"every": 1, "keep": 9},
        "evaluate": {"every": 3, "dev": 2, "test": 2},
    }
    for key, value in changes.items():
        data[key] = {**data[key], **value} if key in ("model", "optimizer", "rollout") else value
    train(data, out=folder, preflight=False, log=lambda line: None)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_come_out_again(tmp_path: Path, letters: dict[str, Any], case: str) -> None:
    run = made(tmp_path / "run", letters, CASES[case])
    found = relearn(run, out=tmp_path / "again")
    assert (found.updates, found.equal) == (3, (0, 1, 2, 3))
    assert found.advantages > 0
    last = "checkpoints/step-000003"
    ours, theirs = file_hashes(tmp_path / "again" / last), file_hashes(run / last)
    names = weight_files(ours)
    assert names == weight_files(theirs) == ["model/model.safetensors", "trainer.safetensors"]
    assert [ours[name] for name in names] == [theirs[name] for name in names]
    assert found.sha256 == ours[names[0]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is copied for each test."""
    return tmp_path_factory.mktemp("trained") / "run"


@pytest.fixture
def run(tmp_path: Path, letters: dict[str, Any], trained: Path) -> Path:
    if not trained.exists():
        made(trained, letters, {"scale": {"staleness": 1}})
    return shutil.copytree(trained, tmp_path / "run", symlinks=True)


def test_what_was_changed_in_the_log_is_found(run: Path) -> None:
    records = list(LogReader(run / "episodes.jsonl.zst"))

    def tampered(record: Record) -> Record:
        """A reward of its first turn that was never paid."""
        one = record.episode.trajectory
        first = dataclasses.replace(one.turns[0], reward=one.turns[0].reward + 0.5)
        changed = dataclasses.replace(one, turns=(first, *one.turns[1:]))
        return dataclasses.replace(
            record, episode=dataclasses.replace(record.episode, trajectories={one.agent: changed})
        )

    at = next(i for i, record in enumerate(records) if record.update == 2)
    records[at] = tampered(records[at])
    rewrite(run, records)
    with pytest.raises(TurnwiseError, match=r"Update 2 of .* gives other advantages than its log has"):
        relearn(run)


def test_a_log_probability_that_was_changed_gives_other_weights(run: Path) -> None:
    records = list(LogReader(run / "episodes.jsonl.zst"))

    def quieter(reply: Reply) -> Reply:
        return reply._replace(logprobs=tuple(x - 0.5 for x in reply.logprobs))

    for i, record in enumerate(records):
        if record.update == 3:
            one = record.episode.trajectory
            turns = tuple(dataclasses.replace(turn, reply=quieter(turn.reply)) for turn in one.turns)
            episode = dataclasses.replace(
                record.episode, trajectories={one.agent: dataclasses.replace(one, turns=turns)}
            )
            records[i] = dataclasses.replace(record, episode=episode)
    rewrite(run, records)
    with pytest.raises(TurnwiseError, match=r"After update 3 .* came out otherwise"):
        relearn(run)


def test_a_run_from_before_a_setting_is_told_of_it(tmp_path: Path, letters: dict[str, Any]) -> None:
    run = made(tmp_path / "run", letters, {"optimizer": {"share": "rows"}})
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    del recipe["optimizer"]["share"]  # as it was before trees: rows were read, and nothing said so
    (run / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    with pytest.raises(TurnwiseError, match=r"does not say: optimizer\.share \(auto now\)\."):
        relearn(run)


def test_what_is_gone_is_named(run: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(run, whole, symlinks=True)
    keep_records(run / "episodes.jsonl.zst", lambda record: record.update != 2)
    with pytest.raises(TurnwiseError, match="no episode of update 2"):
        relearn(run)
    recipe = yaml.safe_load((whole / "recipe.yaml").read_text())
    recipe["model"] = {"path": str(tmp_path / "nowhere")}
    (whole / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    with pytest.raises(TurnwiseError, match="nowhere"):
        relearn(whole)
    with pytest.raises(TurnwiseError, match="no run in"):
        relearn(tmp_path)


def test_a_teacher_that_is_gone_is_named(run: Path, tmp_path: Path, letters: dict[str, Any]) -> None:
    teacher = tmp_path / "the-teacher"
    shutil.copytree(run / "checkpoints/step-000003/model", teacher)
    loss = ["clip", "distill"]
    taught = made(
        tmp_path / "taught",
        letters,
        {"loss": loss, "teacher": {"name": "model", "path": str(teacher), "top": 2}},
    )
    assert relearn(taught).equal == (0, 1, 2, 3)
    shutil.rmtree(teacher)
    with pytest.raises(TurnwiseError, match="the-teacher"):
        relearn(taught)


def test_the_command_says_what_is_equal(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_verb(["relearn", str(run), "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert (said["updates"], said["equal"]) == (3, [0, 1, 2, 3])
    assert tuple(said) == FORMS["relearn"].keys


def test_training_prints_the_form_of_the_reference(
    tmp_path: Path, letters: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    changes = {"updates": 1, "evaluate": {"every": 1, "dev": 2, "test": 2}, "warm_start": None}
    (tmp_path / "letters.yaml").write_text(yaml.safe_dump(letters | changes))
    asked = [
        "train",
        str(tmp_path / "letters.yaml"),
        "--out",
        str(tmp_path / "run"),
        "--no-preflight",
        "--json",
    ]
    assert run_verb(asked) == 0
    said = json.loads(capfd.readouterr().out)
    assert tuple(said) == FORMS["train"].keys
    assert (said["run"], said["interrupted"], said["best_update"]) == (str(tmp_path / "run"), False, 1)
    assert [(row["name"], row["mode"]) for row in said["evaluations"]] == [
        (name, mode) for name in ("before", "after RL") for mode in ("sampled", "greedy")
    ]


def test_the_commands_show_what_a_run_did(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """``turnwise top``, from the events of the run."""
    kinds = [json.loads(line)["kind"] for line in (run / "events.jsonl").read_text().splitlines()]
    assert kinds.count("admitted") == kinds.count("played") == kinds.count("published") == 3
    assert (
        kinds.index("admitted") < kinds.index("played") < kinds.index("learning") < kinds.index("published")
    )
    assert (kinds[0], kinds[-1]) == ("state", "end")  # what is done before the first update is told, too
    assert "start" in kinds
    assert run_verb(["top", str(run), "--once"]) == 0
    said = capfd.readouterr().out
    assert "update 3/3" in said
    assert "staleness 1" in said
    assert "lag" in said
    assert run_verb(["top", str(run), "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    assert value["ended"] == "done"
    assert value["state"]["tokens"] > 0
    assert [event["update"] for event in value["updates"]] == [1, 2, 3]


def rewrite(run: Path, records: list[Record]) -> None:
    path = run / "episodes.jsonl.zst"
    path.unlink()
    with EpisodeLog(path, policy=str(run)) as log:
        for record in records:
            log.append(record.episode, update=record.update, group=record.group, advantages=record.advantages)
