"""Runs that learn from stored episodes: alone, beside what is played, and by losses of whole minibatches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from safetensors.torch import load_file
from transformers import AutoTokenizer

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.errors import RecipeError
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train

pytestmark = pytest.mark.slow


class Stored:
    """A run whose episodes are stored, and others that read them."""

    def __init__(self, folder: Path, recipe: dict[str, Any]) -> None:
        self.folder, self.recipe = folder, recipe
        self.log = folder / "played" / "episodes.jsonl.zst"
        self.said: list[str] = []
        if not self.log.exists():
            self.run("played")

    def run(self, out: str, **changes: Any) -> list[dict[str, Any]]:
        file = self.folder / "recipe.yaml"
        file.write_text(yaml.safe_dump(self.recipe))
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        train(file, out=self.folder / out, preflight=False, log=self.said.append, **dotted)
        rows = map(json.loads, (self.folder / out / "metrics.jsonl").read_text().splitlines())
        return [row for row in rows if row["phase"] == "rl"]

    def weights(self, out: str, step: int) -> dict[str, Any]:
        return load_file(self.folder / out / f"checkpoints/step-{step:06d}/model/model.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stored")


@pytest.fixture
def stored(folder: Path, letters: dict[str, Any]) -> Stored:
    letters |= {"updates": 1, "checkpoint": {"every": 1, "keep": 9}, "filter": "any"}
    return Stored(folder, {**letters, "evaluate": {"every": 1, "dev": 4, "test": 4}})


@pytest.mark.parametrize("loss", ["cpl", "awr", "dpo"])
def test_a_run_learns_from_stored_episodes_alone(stored: Stored, loss: str) -> None:
    source = [{"name": "stored", "path": str(stored.log), "groups": 4, "solved": False, "join": True}]
    (row,) = stored.run(loss, rollout__groups=0, source=source, loss=[loss], correction="none")
    assert "success" not in row
    assert row["tokens"] == 0
    assert row["grad_norm"] > 0
    said = [line for line in stored.said if "update" in line][-1]
    assert "success" not in said
    assert (stored.folder / loss / "report.html").exists()
    before, after = stored.weights(loss, 0), stored.weights(loss, 1)
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_what_a_source_shows_is_learned_by_a_loss_of_the_whole(stored: Stored) -> None:
    (row,) = stored.run("shown", source=[{"name": "demonstrations", "episodes": 3, "loss": ["ift"]}])
    assert row["source/demonstrations/nll"] > 0


def test_a_policy_is_taught_and_asked_for_returns_in_the_same_words(stored: Stored) -> None:
    """Episodes are told what they earned; the policy plays, in training and afterwards, under the return that it is asked for."""
    source = [{"name": "conditioned", "path": str(stored.log), "chances": 2, "loss": ["nll"]}]
    (row,) = stored.run("asked", source=source, sampling__instruction="Return: 0.9")
    assert row["source/conditioned/nll"] > 0
    tokenizer = AutoTokenizer.from_pretrained(stored.folder / "asked/best/model")
    for record in LogReader(stored.folder / "asked" / "episodes.jsonl.zst"):
        told = str(tokenizer.decode(record.episode.trajectory.turns[0].reply.prompt_ids))
        assert told.count("\n\nReturn: ") == 1
        assert ("Return: 0.9" in told) or record.episode.trajectory.turns[
            0
        ].reply.source == "source/conditioned"
    policy = make_policy(f"torch:{stored.folder / 'asked'}")
    assert isinstance(policy, ModelPolicy)
    assert policy.renderer.instruction == "Return: 0.9"
    policy.close()


def test_nothing_to_learn_from_is_refused(stored: Stored) -> None:
    with pytest.raises(RecipeError, match="plays nothing"):
        check_recipe({**stored.recipe, "rollout": {**stored.recipe["rollout"], "groups": 0}})
    # A warm start alone plays nothing and is something to learn from.
    check_recipe({**stored.recipe, "rollout": {**stored.recipe["rollout"], "groups": 0}, "updates": 0})


def test_what_joins_is_not_a_minibatch_of_its_own(stored: Stored) -> None:
    source = [{"name": "stored", "path": str(stored.log), "solved": False, "join": True, "loss": ["ift"]}]
    with pytest.raises(RecipeError, match="joins what was played"):
        stored.run("joined", source=source)


def test_where_nothing_was_played_groups_are_still_numbers() -> None:
    import torch

    from turnwise.trainers.learn.collate import collate_turns

    none = collate_turns([])
    assert (none.group_B.dtype, none.truncated_B.dtype, len(none.group_B)) == (torch.long, torch.bool, 0)
