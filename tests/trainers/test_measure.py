"""Signals are measured: read off weights, learned in the run, remembered, or taken from gold."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import measured, signals
from test_learner import SHAPES, objective, spoken
from test_trainer import Runs

from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split
from turnwise.trainers.core import TokenCredit
from turnwise.trainers.kit.token_credit import sequences
from turnwise.trainers.learn.collate import TrainingBatch, collate, plain_rows
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.signal.answers import solutions
from turnwise.trainers.signal.information import information_gain
from turnwise.trainers.signal.matched import entities, shares
from turnwise.trainers.signal.reward_model import BETA, ImplicitReward
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import try_out


@pytest.fixture
def batch() -> TrainingBatch:
    """Two groups; the first episode is in two rows."""
    episodes = [spoken(s, i, fresh=frozenset({1}) if i == 0 else frozenset()) for i, s in enumerate(SHAPES)]
    return collate([episodes[:3], episodes[3:]])


@pytest.fixture
def learner(random_model: Callable[..., Any]) -> Learner:
    options = OptimizerOptions(micro_tokens=40, learning_rate=1e-8, value_learning_rate=0.01)
    return Learner(random_model(), options)


def values(found: Any, learner: Learner, batch: TrainingBatch) -> tuple[Any, Any]:
    turns = measured(found, learner, batch).turns
    return turns.signals["value"].float(), turns.tokens.signals["token_value"].float()


def test_token_values_begin_with_the_value_of_the_state(learner: Learner, batch: TrainingBatch) -> None:
    found = signals("value", "value", "token_value")
    (head,) = found.heads
    torch.nn.init.normal_(head.module.layers[-1].weight)
    at = sequences(batch.turns)
    value_BK, value_RT = values(found, learner, batch)
    value_BM = at.pack(value_RT)
    first_BM = torch.cat([torch.ones_like(at.last_BM[:, :1]), at.last_BM[:, :-1]], 1) & at.mask_BM
    state_BM = at.of_turns(value_BK)
    assert torch.allclose(value_BM[first_BM], state_BM[first_BM], atol=1e-5)
    assert not torch.allclose(value_BM[at.mask_BM], state_BM[at.mask_BM], atol=1e-3), "later tokens differ"
    b = 1
    row = int(batch.rows.state_row_BK[b, 0])
    text = batch.rows.token_RT[row, : int(batch.rows.state_position_BK[b, 0]) + 1].tolist()
    beyond = head.last_values(learner, [[3], text])
    assert beyond[1] == pytest.approx(value_BK[b, 0].item(), abs=1e-5)


@pytest.mark.slow
def test_values_of_tokens_are_learned(learner: Learner, batch: TrainingBatch) -> None:
    """V of each token comes to the return of its trajectory, which is what A + V is with λ = 1."""
    signal = signals("value", "token_value")
    found = Learner(learner.model, learner.options, heads=signal.heads)
    return_RT = batch.turns.return_B[batch.rows.trajectory_R, None] * batch.rows.mask_RT
    for _ in range(150):
        now = measured(signal, found, batch)
        value_RT = now.turns.tokens.signals["token_value"]
        found.update(now, TokenCredit((return_RT - value_RT) * batch.rows.mask_RT), objective())
    value_RT = measured(signal, found, batch).turns.tokens.signals["token_value"]
    assert (value_RT - return_RT)[batch.rows.mask_RT].abs().mean() < 0.15


@pytest.mark.slow
def test_progress_sums_to_the_return(learner: Learner, batch: TrainingBatch) -> None:
    signal = signals("progress")
    found = Learner(learner.model, learner.options, heads=signal.heads)

    def progress() -> Any:
        return measured(signal, found, batch).turns.signals["progress"]

    assert not progress().any(), "before anything is learned"
    nothing_BK = torch.zeros(batch.turns.mask_BK.shape)
    errors = [found.update(batch, nothing_BK, objective())["progress_error"] for _ in range(120)]
    assert errors[-1] < 0.1 < errors[0]
    assert torch.allclose(progress().sum(1), batch.turns.return_B, atol=0.3)
    assert not progress()[~batch.turns.mask_BK].any()


def test_entropies_are_those_of_the_update(learner: Learner, batch: TrainingBatch) -> None:
    turns = measured(signals("entropy"), learner, batch).turns
    entropy_RT = turns.tokens.signals["token_entropy"]
    assert (entropy_RT[batch.rows.mask_RT] > 1).all()
    mean = learner.update(batch, torch.zeros(batch.turns.mask_BK.shape), objective())["entropy"]
    assert entropy_RT[batch.rows.mask_RT].mean().item() == pytest.approx(mean, rel=1e-4)
    for b, k in turns.mask_BK.nonzero().tolist():
        own_RT = (batch.rows.turn_RT == k) & (batch.rows.trajectory_R == b)[:, None]
        assert turns.signals["entropy"][b, k].item() == pytest.approx(entropy_RT[own_RT].mean().item())


def test_signals_of_one_pass_share_it(learner: Learner, batch: TrainingBatch) -> None:
    """Values, progress and entropies cost one forward pass over the rows, and are what each alone gives."""
    kinds = ("value", "progress", "entropy")
    alone = [signals(kind) for kind in kinds]
    together = signals("value")
    together.chosen = [one for found in alone for one in found.chosen]
    together._running = [one for found in alone for one in found._running]  # pyright: ignore[reportPrivateUsage]
    passes: list[int] = []
    hidden = learner.reader.states
    learner.reader.states = lambda model, part: passes.append(len(part.token_RT)) or hidden(model, part)
    found = measured(together, learner, batch).turns
    assert sum(passes) == len(batch.rows.token_RT) + len(batch.turns.truncated_B.nonzero())
    for kind, one in zip(kinds, alone, strict=True):
        for name, x in measured(one, learner, batch).turns.signals.items():
            assert torch.equal(x, found.signals[name]), (kind, name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["outcomes", "pairs"])
def test_a_reward_model_learns_to_tell_success_from_failure(
    kind: Any, learner: Learner, random_model: Any, batch: TrainingBatch
) -> None:
    found = learner
    copy = random_model()
    model = ImplicitReward(copy, found.reader, kind, learning_rate=1e-3, micro_tokens=40)
    reference_RT = found.score(batch.rows)
    assert not model.rewards(batch.rows, reference_RT).any(), "it begins as the policy"
    success_B = torch.tensor([True, False, True, False, False, True])
    losses = [model.learn(batch, reference_RT, success_B) for _ in range(25)]
    assert losses[-1] < 0.8 * losses[0]
    reward_RT = model.rewards(batch.rows, reference_RT)
    total_B = torch.zeros(6).index_add_(0, batch.rows.trajectory_R, reward_RT.sum(1))
    assert total_B[success_B].min() > total_B[~success_B].max()
    twin = ImplicitReward(random_model(), found.reader, kind, learning_rate=1e-3, micro_tokens=40)
    twin.load({name: tensor.clone() for name, tensor in model.tensors().items()})
    assert torch.equal(twin.rewards(batch.rows, reference_RT), reward_RT)
    assert twin.learn(batch, reference_RT, success_B) == model.learn(batch, reference_RT, success_B)
    assert torch.equal(twin.rewards(batch.rows, reference_RT), model.rewards(batch.rows, reference_RT))


def test_micro_batches_do_not_change_what_a_reward_model_learns(
    learner: Learner, random_model: Any, batch: TrainingBatch
) -> None:
    success_B = torch.tensor([True, False, True, False, False, True])
    found, made = learner, []
    reference_RT = found.score(batch.rows)
    for micro in (20, 4000):
        model = ImplicitReward(random_model(), found.reader, "pairs", learning_rate=1e-3, micro_tokens=micro)
        model.learn(batch, reference_RT, success_B)
        made.append(model.rewards(batch.rows, reference_RT) / BETA)
    assert made[0].any()
    assert torch.allclose(made[0], made[1], atol=2e-3)


def test_information_is_the_rise_of_the_answers_probability(learner: Learner, batch: TrainingBatch) -> None:
    found, answer = learner, (5, 6, 7)
    groups = [[None] * 3, [None] * 3]  # only their sizes are looked at
    gain_BK = information_gain(found, batch, groups, [answer, answer], 64)  # pyright: ignore[reportArgumentType]
    b = next(b for b in range(6) if batch.turns.length_B[b] == 2 and b != 0)
    scores = []
    for k in (0, 1):
        row, end = int(batch.rows.state_row_BK[b, k]), int(batch.rows.state_position_BK[b, k]) + 1
        text = [*batch.rows.token_RT[row, :end].tolist(), *answer]
        scores.append(found.score(plain_rows([text], [end])).sum().item() / 3)
    assert gain_BK[b, 0].item() == pytest.approx(scores[1] - scores[0], abs=1e-5)
    assert not gain_BK[b, 1:].any(), "nothing is known of what follows the last turn"


def test_gold_names_what_was_wanted() -> None:
    groups, _ = try_out(chain, "scripted:gold", "shop/quick", groups=2, size=2)
    plans = solutions(groups)
    assert [len(plan) for plan in plans] == [len(group[0].trajectory.turns) for group in groups]
    assert shares(groups, plans) == [1.0] * 4, "gold names everything"
    others, _ = try_out(chain, "scripted:random", "shop/quick", groups=2, size=2)
    assert all(share < 1 for share in shares(others, plans))
    assert entities(Message("assistant", "search[red shoes] click[Next]")) == {"red shoes", "next"}


def test_memory_of_tasks_is_that_of_the_formula() -> None:
    """Visits with 1, 0, 0, 0; 1, 1, 0, 0; and four successes: DCPO's formula worked by hand."""
    from turnwise.trainers.kit.toy_batches import episode

    task = next(iter(suite_tasks(get_suite("shop/quick"), Split.TRAIN, 1)))
    found, seen = signals("memory"), []
    nobody: Any = SimpleNamespace(reader=SimpleNamespace(tokens_read=0))  # it reads nothing
    for returns in ([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]):
        group = [dataclasses.replace(episode([r]), task=task) for r in returns]
        from turnwise.trainers.learn.collate import collate_turns

        bare: Any = TrainingBatch(collate_turns([group]), None, torch.zeros(4).bool(), torch.ones(4, 1))  # pyright: ignore[reportArgumentType]
        told = measured(found, nobody, bare, [group]).turns.signals
        seen.append({name: round(x[0].item(), 4) for name, x in told.items()})
    assert seen[0] == {"past_visits": 0, "past_mean": 0, "past_std": 0}
    assert seen[1] == {"past_visits": 1, "past_mean": 0.25, "past_std": 0.5}
    assert seen[2] == {"past_visits": 2, "past_mean": 0.375, "past_std": 0.5543}
    kept = found.stateful["signal/memory"].state().numbers[task.id]
    assert [round(x, 4) for x in kept] == [3, 0.5833, 0.5401]  # pyright: ignore


@pytest.fixture
def runs(tmp_path: Any, letters: dict[str, Any]) -> Runs:
    letters |= {"updates": 3, "checkpoint": {"every": 1, "keep": 9}}
    return Runs(tmp_path, letters)


@pytest.mark.slow
@pytest.mark.parametrize("credit", ["prime", "dcpo"])
def test_a_resumed_run_remembers_what_it_learned_beside_the_policy(runs: Runs, credit: str) -> None:
    changes = {
        "credit": credit,
        **({"signals": [{"name": "implicit_tokens", "learning_rate": 1e-3}]} if credit == "prime" else {}),
    }
    runs(out="whole", **changes)
    shutil.copytree(runs.folder / "whole", runs.folder / "cut", symlinks=True)
    for step in (2, 3):
        shutil.rmtree(runs.folder / f"cut/checkpoints/step-{step:06d}")
    runs(out="cut", resume=True, **changes)
    whole, cut = runs.weights(3, "whole"), runs.weights(3, "cut")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
