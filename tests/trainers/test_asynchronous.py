"""Asynchronous runs: played ahead under changing weights, bounded, resumed, and learned again from their logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

from turnwise.agents.evaluation.evaluate import evaluate_async
from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import RecipeError
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train

AHEAD = {"scale": {"staleness": 2}}


class Runs:
    """Trains the letters recipe in a folder and reads what came of it."""

    def __init__(self, folder: Path, recipe: dict[str, Any]) -> None:
        self.folder, self.recipe, self.said = folder, recipe, list[str]()

    def __call__(self, out: str = "run", *, resume: bool = False, **changes: Any) -> Any:
        file = self.folder / "letters.yaml"
        file.write_text(yaml.safe_dump(self.recipe))
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        return train(
            file, out=self.folder / out, resume=resume, preflight=False, log=self.said.append, **dotted
        )

    def rows(self, out: str = "run") -> list[dict[str, Any]]:
        lines = (self.folder / out / "metrics.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["phase"] == "rl"]

    def weights(self, step: int, out: str = "run") -> dict[str, Any]:
        return load_file(self.folder / out / f"checkpoints/step-{step:06d}/model/model.safetensors")

    def tokens(self, out: str = "run") -> Iterator[tuple[int, int]]:
        """(updates made before it, version) of every token that was trained on, from the episode log."""
        for record in LogReader(self.folder / out / "episodes.jsonl.zst"):
            for name, given in record.advantages.items():
                for turn, _ in zip(record.episode.trajectories[name].turns, given, strict=True):
                    ends = [*(span.start for span in turn.reply.versions[1:]), len(turn.reply.action_ids)]
                    for span, end in zip(turn.reply.versions, ends, strict=True):
                        yield from [((record.update or 1) - 1, span.version)] * (end - span.start)


@pytest.fixture
def runs(tmp_path: Path, letters: dict[str, Any]) -> Runs:
    letters |= {
        "updates": 4,
        "checkpoint": {"every": 1, "keep": 9},
        "evaluate": {"every": 2, "dev": 6, "test": 6},
    }
    return Runs(tmp_path, letters)


@pytest.mark.slow
@pytest.mark.parametrize("kv", ["recompute", "keep"])
def test_every_trained_token_is_at_most_as_stale_as_the_recipe_says(runs: Runs, kv: str) -> None:
    result = runs(updates=6, scale={"staleness": 2, "kv": kv})
    assert result.learned == 6
    lags = Counter(update - version for update, version in runs.tokens())
    assert min(lags) >= 0
    assert max(lags) == 2, "something was played ahead"
    rows = runs.rows()
    assert [row["update"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert max(row["lag_most"] for row in rows) == 2
    assert all(row["drift"] == 1 and row["waited_seconds"] >= 0 for row in rows)
    assert [row["update"] for row in rows if "dev_success" in row] == [2, 4, 6]
    records = list(LogReader(runs.folder / "run/episodes.jsonl.zst"))
    played = [(record.update, record.group, record.episode.seed) for record in records]
    assert len(set(played)) == len(played) == 6 * 3 * 4, "nothing is lost and nothing is there twice"
    assert [record.update for record in records] == sorted(record.update or 0 for record in records)


@pytest.mark.slow
def test_log_probabilities_under_way_are_those_of_the_versions_that_they_name(runs: Runs) -> None:
    """Of every token in the log of a run with `recompute`, also where the weights changed inside an answer."""
    runs(scale=AHEAD["scale"], sampling__temperature=1.0)
    weights = {
        step: load_model(str(runs.folder / f"run/checkpoints/step-{step:06d}/model"), torch.device("cpu"))
        for step in range(5)
    }
    largest, mixed = 0.0, 0
    for record in LogReader(runs.folder / "run/episodes.jsonl.zst"):
        before: list[int] = []
        for k, turn in enumerate(record.episode.trajectory.turns):
            reply = turn.reply
            goes_on = reply.parent.turn(k) is not None
            before = [*before, *reply.prompt_ids] if goes_on else [*reply.prompt_ids]
            ends = [*(span.start for span in reply.versions[1:]), len(reply.action_ids)]
            mixed += len(reply.versions) > 1
            for span, end in zip(reply.versions, ends, strict=True):
                ids = torch.tensor([[*before, *reply.action_ids]])
                with torch.no_grad():
                    logp = weights[span.version](ids).logits[0].log_softmax(-1)
                for i in range(span.start, end):
                    expected = logp[len(before) + i - 1, reply.action_ids[i]].item()
                    largest = max(largest, abs(expected - reply.logprobs[i]))
            before += reply.action_ids
    assert largest < 1e-4


@pytest.mark.slow
def test_staleness_0_is_the_plain_run(runs: Runs) -> None:
    runs("plain")
    runs("zero", scale={"staleness": 0, "kv": "keep"})
    for step in range(5):
        plain, zero = runs.weights(step, "plain"), runs.weights(step, "zero")
        assert all(torch.equal(plain[name], zero[name]) for name in plain)
    assert "lag" not in runs.rows("zero")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        {"credit": "gae", "filter": "any"},
        {"guide": ["hint"]},
        {"source": [{"name": "demonstrations", "episodes": 2}]},
        {"schedule": {"optimizer.learning_rate": {"name": "linear", "to": 0.001}}},
        {"loss": ["clip", "distill"], "teacher": {"name": "told", "top": 3}},
    ],
    ids=["head", "guide", "source", "schedule", "teacher"],
)
def test_what_learns_or_helps_works_while_others_are_played(runs: Runs, parts: dict[str, Any]) -> None:
    result = runs(**AHEAD, **parts)
    assert result.learned >= 3
    assert max(update - version for update, version in runs.tokens()) <= 2


@pytest.mark.slow
def test_the_checkpoint_that_is_chosen_is_the_one_that_was_evaluated(runs: Runs) -> None:
    """The dev evaluation of an update is that of its checkpoint's weights, greedily played again."""
    result = runs(updates=6, **AHEAD, evaluate={"every": 1, "dev": 6, "test": 6})
    best = next(row for row in runs.rows() if row["update"] == result.best_update)
    assert best["dev_success"] == max(row["dev_success"] for row in runs.rows())
    assert (runs.folder / "run/best").resolve().name == f"step-{result.best_update:06d}"


REFUSED = {
    "refill": ({"rollout": {"refill": {"informative": 2, "most": 9}}}, "rollout.refill"),
    "sampler": ({"rollout": {"sampler": "pool"}}, "chooses by what the update before"),
    "strategy": ({"rollout": {"strategy": "vine"}, "credit": "vine"}, "forks of rollout.strategy"),
    "schedule": (
        {"schedule": {"sampling.temperature": {"name": "linear", "to": 0.5}}},
        "sampling.temperature",
    ),
    "nothing": (
        {"rollout": {"groups": 0}, "loss": ["nll"], "source": [{"name": "demonstrations"}]},
        "plays nothing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_played_ahead_is_refused_with_the_reason(letters: dict[str, Any], case: str) -> None:
    changes, reason = REFUSED[case]
    changed = {**letters, **changes}
    if "rollout" in changes:
        changed["rollout"] = {**letters["rollout"], **changes["rollout"]}
    check_recipe(changed)
    with pytest.raises(RecipeError, match=reason):
        check_recipe(changed | AHEAD)


@pytest.mark.slow
def test_an_evaluation_goes_on_while_the_next_update_is_learned_and_is_of_the_version_it_names(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dev is played on the engine by the weights of its update alone; a kill before its end loses nothing."""
    seen: list[tuple[int, set[int]]] = []

    async def evaluate(suite: Any, policy: Any, **given: Any) -> Any:
        version = policy.engine.version
        found = await evaluate_async(suite, policy, **given)
        seen.append((version, {version, policy.engine.version}))
        return found

    monkeypatch.setattr("turnwise.trainers.run.judging.evaluate_async", evaluate)
    runs(updates=6, scale={"staleness": 1})
    assert all(versions == {version} for version, versions in seen)
    rows = [row for row in runs.rows() if "dev_success" in row]
    assert [(row["update"], row.get("dev_version", row["update"])) for row in rows] == [
        (2, 2),
        (4, 4),
        (6, 6),
    ]
    events = [json.loads(line) for line in (runs.folder / "run/events.jsonl").read_text().splitlines()]
    told = [(row["kind"], row.get("update")) for row in events]
    for update in (2, 4):
        assert (
            told.index(("learning", update + 1))
            < told.index(("evaluated", update))
            < told.index(("update", update))
        ), "learning goes on beside it"
        state = json.loads((runs.folder / f"run/checkpoints/step-{update:06d}/state.json").read_text())
        assert state["update"] == update
        best = max((r for r in rows if r["update"] <= update), key=lambda r: r["dev_success"])
        assert state["best_score"] == best["dev_success"]
