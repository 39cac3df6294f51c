"""Learners that take every step together: the same weights as one learner's, and a named error where one is gone."""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from test_learner import SHAPES, advantages, objective, spoken
from torch import Tensor

from turnwise.errors import RunError
from turnwise.tasks.core import Suite
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.ranks import Meeting, Rank
from turnwise.trainers.learn.team import Alone, Team, shares
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.ranks import Ranks
from turnwise.trainers.run.relearn import relearn

OPTIONS = OptimizerOptions(learning_rate=1e-2, epochs=2, minibatches=2, micro_tokens=24, max_grad_norm=0.3)
AIMS: dict[str, Callable[[], Any]] = {
    "clip": lambda: objective("clip", "entropy", correction="tis"),
    "by trajectory": lambda: objective("clip", correction="mis", level="trajectory"),
}


@pytest.fixture
def batch() -> TrainingBatch:
    episodes = [spoken(s, i, fresh=frozenset({1}) if i == 0 else frozenset()) for i, s in enumerate(SHAPES)]
    return collate([episodes[:3], episodes[3:]])


@pytest.fixture
def tied_model(random_model: Callable[..., Any]) -> Any:
    return random_model(tied=True)


def learned(
    model: Any, batch: TrainingBatch, aim: Any, team: Team, options: OptimizerOptions = OPTIONS
) -> Any:
    """The weights after an update, and its metrics."""
    learner = Learner(copy.deepcopy(model), options)
    learner.team = team
    metrics = learner.update(batch, advantages(batch), aim)
    return [p.detach().clone() for p in learner.model.parameters()], metrics


def together(size: int, folder: Path, work: Callable[[Rank], Any]) -> list[Any]:
    """What each of so many ranks comes to, each in a thread of its own."""

    def one(rank: int) -> Any:
        return work(Rank(rank, size, Meeting.in_file(folder / "meeting", size), patience_s=60.0))

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def gap(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """The largest difference, relative to the largest weight of its tensor."""
    pairs = zip(ours, theirs, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-12)) for a, b in pairs)


@pytest.mark.parametrize("aim", AIMS)
def test_two_ranks_make_the_weights_of_one_process_with_the_same_shares_bit_for_bit(
    tied_model: Any, batch: TrainingBatch, tmp_path: Path, aim: str
):
    alone, metrics = learned(tied_model, batch, AIMS[aim](), Alone(2))
    for weights, found in together(2, tmp_path, lambda rank: learned(tied_model, batch, AIMS[aim](), rank)):
        assert all(torch.equal(a, b) for a, b in zip(weights, alone, strict=True))
        assert found == metrics, "denominators and means are of all ranks"


@pytest.mark.parametrize("size", [2, 3, 7])
def test_any_number_of_ranks_makes_the_weights_of_one_learner(
    tied_model: Any, batch: TrainingBatch, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
):
    """In float64, to 1e-10; seven ranks have six rows to read."""
    torch.set_default_dtype(torch.float64)
    monkeypatch.setattr("torch.optim.AdamW", _Plain)  # Adam's first steps are signs, which magnify rounding
    try:
        model = copy.deepcopy(tied_model).double()
        one, metrics = learned(model, batch, AIMS["clip"](), Alone())
        for weights, found in together(size, tmp_path, lambda r: learned(model, batch, AIMS["clip"](), r)):
            assert gap(weights, one) < 1e-10
            assert found == pytest.approx(metrics, rel=1e-9)
        assert gap(one, [p.detach() for p in model.parameters()]) > 1e-4, "something was learned"
    finally:
        torch.set_default_dtype(torch.float32)


class _Plain(torch.optim.SGD):
    def __init__(self, groups: Any, *, lr: float, **_: Any) -> None:
        super().__init__(groups, lr=lr)


def test_rows_are_shared_out_evenly_and_each_once(batch: TrainingBatch):
    for count in (1, 2, 3, 7, 9):
        found = shares(batch.rows, count, torch.arange(len(batch.rows.length_R)))
        assert sorted(torch.cat(found).tolist()) == list(range(len(batch.rows.length_R)))
    sizes = [
        int(batch.rows.length_R[own_M].sum())
        for own_M in shares(batch.rows, 2, torch.arange(len(batch.rows.length_R)))
    ]
    assert max(sizes) - min(sizes) <= int(batch.rows.length_R.max())


def test_learners_that_were_given_something_else_refuse_to_learn(
    tied_model: Any, batch: TrainingBatch, tmp_path: Path
):
    def work(rank: Rank) -> str:
        learner = Learner(copy.deepcopy(tied_model), OPTIONS)
        learner.team = rank
        with pytest.raises(RunError, match="do not have the same episodes") as error:
            learner.update(batch, advantages(batch, seed=rank.rank), AIMS["clip"]())
        return str(error.value)

    assert len(together(2, tmp_path, work)) == 2


@pytest.mark.slow
def test_a_rank_that_says_nothing_is_given_up(tied_model: Any, batch: TrainingBatch, tmp_path: Path):
    def work(rank: int) -> str:
        team = Rank(
            rank, 2, Meeting.in_file(tmp_path / "meeting", 2), patience_s=1.0, why=lambda: "it was seen"
        )
        if rank:
            done.result(60)
            return ""
        with pytest.raises(RunError, match=r"Learner 0 of 2 waits for another .* it was seen"):
            team.sum_(torch.zeros(3))
        return "given up"

    with ThreadPoolExecutor(2) as pool:
        done = pool.submit(work, 0)
        other = pool.submit(work, 1)
        assert done.result(60) == "given up"
        other.result(60)


# --- whole runs, with a process for each learner --------------------------------------------------------


@pytest.fixture
def recipe(letters: dict[str, Any]) -> dict[str, Any]:
    small = {"checkpoint": {"every": 1, "keep": 9}, "evaluate": {"every": 3, "dev": 2, "test": 2}}
    return letters | small | {"updates": 3, "scale": {"learners": 2}}


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_learners_and_is_learned_again_by_one(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A learner that is killed ends the run with its name; one goes on for an update, then two again."""
    run, killed = tmp_path / "run", list[int]()

    def go_on(learners: int, log: Callable[[str], None] = lambda line: None) -> None:
        data = recipe | {"scale": {"learners": learners}}
        train(data, out=run, resume=(run / "recipe.yaml").exists(), preflight=False, log=log)

    learn = Ranks.learn

    def doomed(ranks: Ranks, update: int, played: Any) -> None:
        if update == 1:
            killed.append(ranks.processes[0].pid)
            os.kill(killed[0], signal.SIGKILL)
        learn(ranks, update, played)

    def stop(line: str) -> None:
        if "2/3" in line:
            raise KeyError(line)

    with monkeypatch.context() as patch:
        patch.setattr(Ranks, "learn", doomed)
        with pytest.raises(RunError, match="learner 1 was ended by SIGKILL"):
            go_on(2)
    with pytest.raises(KeyError, match="2/3"):
        go_on(1, stop)
    go_on(2)
    assert killed
    assert relearn(run).equal == (0, 1, 2, 3)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row.get("learners") for row in rows if row["phase"] == "rl"] == [2, None, 2]
    assert "Error" not in (run / "learner-1.log").read_text()


@pytest.mark.slow
def test_a_learner_that_cannot_start_says_why(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "turnwise.trainers.run.ranks.get_suite", lambda name: Suite("other", "test/Letters-v0", "")
    )
    with pytest.raises(RunError, match=r"A learner did not start: learner 1 ended with 1: .*test/letters"):
        train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
