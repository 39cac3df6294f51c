"""The training benchmark: everyone who is compared does the same work."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from turnwise.trainers.bench.contenders import Bare, Prepared, Trl
from turnwise.trainers.bench.train import TrainWorkload, _advantages, bench_train, make_batch
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.learner import Learner, Objective
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.reduce.token_mean import token_mean
from turnwise.trainers.run.learning import LearningSetup

SMALL = TrainWorkload(tasks=2, group=4, micro_tokens=300, trl=False)
TRL = pytest.mark.skipif(find_spec("trl") is None, reason="TRL is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def made(folder: Path) -> tuple[LearningSetup, TrainingBatch]:
    return make_batch(folder, SMALL)


@pytest.fixture(autouse=True)
def same_random() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        yield


def prepared(folder: Path, made: tuple[LearningSetup, TrainingBatch], steps: int = 1) -> Prepared:
    setup, batch = made
    model = load_model(folder, torch.device("cpu"))
    return Prepared(model, setup.optimizer, batch, _advantages(batch), steps)


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def step_of(model: nn.Module, folder: Path) -> Tensor:
    """How far the weights have moved."""
    start = load_model(folder, torch.device("cpu"))
    pairs = zip(model.parameters(), start.parameters(), strict=True)
    return torch.cat([(a - b).detach().flatten() for a, b in pairs])


@pytest.mark.slow
def test_the_figures_say_what_was_asked() -> None:
    figures = bench_train(repeats=2, workload=SMALL)
    assert {"learner", "bare", "lean", "share_of_bare", "share_of_lean", "share_of_bare_2_steps"} <= set(
        figures
    )
    assert not any("trl" in name for name in figures)
    assert all(figure.value > 0 and figure.spread >= 0 for figure in figures.values())
    assert {f.unit for name, f in figures.items() if name in ("learner", "bare", "lean")} == {"tokens/s"}


@pytest.mark.slow
def test_a_missing_trl_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwise.trainers.bench.train.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="pip install trl"):
        figures = bench_train(repeats=1, workload=SMALL._replace(trl=None))
    assert not any("trl" in name for name in figures)


def test_the_batch_is_that_of_multi_turn_episodes(made: tuple[LearningSetup, TrainingBatch]) -> None:
    _, batch = made
    assert len(batch.turns.group_B) == SMALL.tasks * SMALL.group
    assert int(batch.turns.length_B.min()) >= 2
    sampled_RT = batch.rows.mask_RT
    assert bool((batch.rows.behaviour_logp_RT[sampled_RT] < 0).all())
    assert 0.05 < sampled_RT.sum() / batch.rows.length_R.sum() < 0.6


def test_everyone_gets_every_row_once(folder: Path, made: tuple[LearningSetup, TrainingBatch]) -> None:
    batch = made[1]
    for steps in (1, 2):
        work = prepared(folder, made, steps)
        assert len(work.steps) == steps
        parts = [part for step in work.steps for part in step]
        assert len(parts) > 2  # small enough to be cut
        owners = torch.cat([part.trajectory_R for part in parts])
        assert owners.sort().values.tolist() == batch.rows.trajectory_R.tolist()
        assert sum(int(part.mask_RT.sum()) for part in parts) == int(batch.rows.mask_RT.sum())
        assert all(part.token_RT.numel() <= SMALL.micro_tokens for part in parts if len(part.token_RT) > 1)


def test_the_lean_loop_takes_the_same_step(folder: Path, made: tuple[LearningSetup, TrainingBatch]) -> None:
    plain, lean = prepared(folder, made), prepared(folder, made)
    for work, is_lean in ((plain, False), (lean, True)):
        nll = Bare(work, lean=is_lean)
        for part in work.steps[0]:
            (nll._nll_lean(part) if is_lean else nll._nll(part)).backward()
    torch.testing.assert_close(gradients(plain.model), gradients(lean.model), rtol=1e-4, atol=1e-5)


def test_the_bare_loop_learns(folder: Path, made: tuple[LearningSetup, TrainingBatch]) -> None:
    work = prepared(folder, made)
    bare = Bare(work)
    before = [bare._nll(part).item() for part in work.steps[0]]
    for _ in range(3):
        bare()
    assert sum(bare._nll(part).item() for part in work.steps[0]) < sum(before)


@pytest.mark.slow
@TRL
def test_trl_descends_the_same_gradient(
    folder: Path, made: tuple[LearningSetup, TrainingBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clipped loss, mean over sampled tokens, several micro-batches: TRL's gradient is the learner's."""
    setup, batch = made
    built = setup.objective
    clip = [term for term in built.terms if term.name == "clip"]
    learner = Learner(
        load_model(folder, torch.device("cpu")), dataclasses.replace(setup.optimizer, minibatches=1)
    )
    monkeypatch.setattr(learner.optimizer, "zero_grad", lambda set_to_none=True: None)  # keep them
    learner.update(batch, _advantages(batch), Objective(clip, token_mean, built.correction))
    ours = gradients(learner.model)  # after clipping by norm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trl = Trl(prepared(folder, made), folder)
        trl.backward()
    theirs = trl.trainer.model
    nn.utils.clip_grad_norm_(theirs.parameters(), setup.optimizer.max_grad_norm)
    torch.testing.assert_close(gradients(theirs), ours, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
@TRL
def test_a_pass_of_trl_moves_the_weights_as_ours_does(
    folder: Path, made: tuple[LearningSetup, TrainingBatch]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work = prepared(folder, made)
        Trl(work, folder)()
    moved = step_of(work.model, folder)
    # AdamW's first step is the rate itself, wherever there is a gradient.
    assert moved.abs().max().item() == pytest.approx(work.options.learning_rate, rel=0.05)
