"""The learner's arithmetic against plain Hugging Face forwards, and the equivalences between ways to cut a batch."""

from __future__ import annotations

import dataclasses
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import measured, signals
from torch import Tensor

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Reply
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.registry import components, get_component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import MAX_SKIPPED, Learner
from turnwise.trainers.learn.objective import LossTerm, Objective, weighs_apart
from turnwise.trainers.learn.optimizer import make_optimizer
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.weights import weights_of

VOCAB = 320
SHAPES = ([(5, 3), (4, 2), (2, 6)], [(7, 1)], [(3, 2), (9, 4)], [(6, 5), (1, 1)], [(2, 2)], [(4, 3), (3, 3)])


class Measured(Learner):
    """Keeps each step's gradients instead of following them."""

    gradients: list[Tensor]

    def _descend(self, learning_rate: float) -> float:
        parameters = [p for held in self.weights for p in held.trainable()]
        self.gradients = [p.grad.clone() if p.grad is not None else torch.zeros_like(p) for p in parameters]
        self.optimizer.zero_grad(set_to_none=True)
        return 0.0


def spoken(shape: list[tuple[int, int]], seed: int, *, fresh: frozenset[int] = frozenset()) -> Episode:
    """An episode of random tokens: ``shape`` has the prompt's and the action's length of each turn."""
    rng = random.Random(seed)
    said: list[int] = []
    replies: list[Reply] = []
    for k, (prompt, action) in enumerate(shape):
        new = [rng.randrange(VOCAB) for _ in range(prompt)]
        ids = tuple(rng.randrange(VOCAB) for _ in range(action))
        logps = tuple(-rng.uniform(3, 8) for _ in ids)
        whole = (*said, *new) if k in fresh else tuple(new)
        replies.append(
            Reply(
                Message("assistant", "!"), tuple(whole), ids, logps, parent=ROOT if k in fresh else PREVIOUS
            )
        )
        said += [*new, *ids]
    return with_replies(episode([rng.uniform(-1, 1) for _ in shape]), replies)


def with_replies(played: Episode, replies: list[Reply]) -> Episode:
    turns = tuple(
        dataclasses.replace(t, reply=r) for t, r in zip(played.trajectory.turns, replies, strict=True)
    )
    return dataclasses.replace(
        played, trajectories={"agent": dataclasses.replace(played.trajectory, turns=turns)}
    )


@pytest.fixture
def batch() -> TrainingBatch:
    """Two groups; the first episode has a branch."""
    episodes = [spoken(s, i, fresh=frozenset({1}) if i == 0 else frozenset()) for i, s in enumerate(SHAPES)]
    return collate([episodes[:3], episodes[3:]])


def advantages(batch: TrainingBatch, seed: int = 0) -> Tensor:
    noise = torch.randn(batch.turns.mask_BK.shape, generator=torch.Generator().manual_seed(seed))
    return noise * batch.turns.mask_BK


def objective(
    *losses: str, reduce: str = "token_mean", correction: str = "none", level: str = "", **more: Any
) -> Objective:
    terms = [LossTerm(name, get_component("loss", name).build({}), 1.0) for name in losses or ("clip",)]
    levels = {"level": level} if level else {}
    corrected = get_component("correction", correction).build(levels)
    return Objective(terms, get_component("reduce", reduce).build({}), corrected, **more)


def gradients(
    model: Any, batch: TrainingBatch, advantage: Tensor, aim: Objective, value: bool = False, **options: Any
) -> list[Tensor]:
    found = signals("value", "value") if value else None
    learner = Measured(model, OptimizerOptions(**options), heads=found.heads if found else ())
    if found:
        batch = measured(found, learner, batch)
    learner.update(batch, advantage, aim)
    assert any(float(g.abs().max()) > 0 for g in learner.gradients)
    return learner.gradients


def assert_same(first: list[Tensor], second: list[Tensor], tolerance: float = 1e-6) -> None:
    largest = max(float(g.abs().max()) for g in first)
    for a, b in zip(first, second, strict=True):
        assert float((a - b).abs().max()) <= tolerance * max(1.0, largest)


# --- what is read off the model ----------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_probabilities_are_the_model_s(
    random_model: Callable[..., Any], batch: TrainingBatch, temperature: float
) -> None:
    model, rows = random_model(), batch.rows
    found = Learner(model, OptimizerOptions(micro_tokens=40), temperature=temperature).score(rows)
    for r, length in enumerate(rows.length_R.tolist()):
        with torch.no_grad():
            logits = model(rows.token_RT[r : r + 1, :length]).logits[0]
        logp = (logits / temperature).log_softmax(-1)
        for t in range(length):
            wanted = logp[t - 1, rows.token_RT[r, t]] if rows.mask_RT[r, t] else 0.0
            assert float(found[r, t]) == pytest.approx(float(wanted), abs=2e-5)
    assert not found[~rows.mask_RT].any()


def test_entropy_is_that_of_the_whole_distribution(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    model, rows = random_model(), batch.rows
    metrics = Measured(model, OptimizerOptions()).update(batch, advantages(batch), objective())
    total = 0.0
    with torch.no_grad():
        for r, length in enumerate(rows.length_R.tolist()):
            logp = model(rows.token_RT[r : r + 1, :length]).logits[0].log_softmax(-1)
            entropy_T = -(logp.exp() * logp).sum(-1)
            total += float(entropy_T[:-1][rows.mask_RT[r, 1:length]].sum())
    assert metrics["entropy"] == pytest.approx(total / int(rows.mask_RT.sum()), rel=1e-5)


# --- equivalences: how a batch is cut, ordered and padded changes nothing -----------------------------------

REDUCERS = [c.name for c in components("reduce")]


@pytest.mark.parametrize("reduce", REDUCERS)
def test_micro_batches_are_equivalent(
    random_model: Callable[..., Any], batch: TrainingBatch, reduce: str
) -> None:
    model, given = random_model(), advantages(batch)
    aim = objective("clip", "entropy", reduce=reduce, correction="tis", level="trajectory")
    whole = gradients(model, batch, given, aim, value=True, micro_tokens=10_000)
    each = gradients(model, batch, given, aim, value=True, micro_tokens=1)
    assert_same(whole, each)


@pytest.mark.parametrize("reduce", REDUCERS)
def test_the_order_of_trajectories_does_not_matter(random_model: Callable[..., Any], reduce: str) -> None:
    model = random_model()
    episodes = [
        spoken(shape, i, fresh=frozenset({1}) if i == 0 else frozenset()) for i, shape in enumerate(SHAPES)
    ]
    first = collate([episodes])
    permuted = [3, 0, 5, 1, 4, 2]
    second = collate([[episodes[i] for i in permuted]])
    aim, given = objective(reduce=reduce), advantages(first)
    assert_same(
        gradients(model, first, given, aim, value=True, micro_tokens=40),
        gradients(model, second, given[permuted], aim, value=True, micro_tokens=40),
    )


def test_padding_does_not_matter(random_model: Callable[..., Any], batch: TrainingBatch) -> None:
    model, given = random_model(), advantages(batch)
    wide = [
        torch.nn.functional.pad(x, (0, 37), value=v)
        for x, v in zip(batch.rows[:4], (5, False, -1, 0.0), strict=True)
    ]
    padded = batch._replace(rows=type(batch.rows)(*wide, *batch.rows[4:]))
    # A longer row forces the padding into the micro-batches of the others.
    padded.rows.length_R[:] = batch.rows.length_R
    assert_same(gradients(model, batch, given, objective()), gradients(model, padded, given, objective()))
    short = collate([[spoken(SHAPES[1], 1)]])
    with_long = collate([[spoken(SHAPES[1], 1), spoken([(90, 1)], 9)]])
    score = Learner(model, OptimizerOptions()).score
    assert torch.allclose(
        score(short.rows)[0], score(with_long.rows)[0, : short.rows.token_RT.shape[1]], atol=1e-5
    )


@pytest.mark.parametrize("reduce", REDUCERS)
def test_branches_with_the_same_prefix_are_one_row(random_model: Callable[..., Any], reduce: str) -> None:
    model, shape = random_model(), [(5, 3), (4, 2), (2, 6)]
    one, three = (collate([[spoken(shape, 4, fresh=fresh)]]) for fresh in (frozenset(), frozenset({1, 2})))
    assert (len(one.rows.length_R), len(three.rows.length_R)) == (1, 3)
    given, aim = advantages(one), objective(reduce=reduce, correction="tis", level="trajectory")
    assert_same(
        gradients(model, one, given, aim, value=True),
        gradients(model, three, given, aim, value=True),
        tolerance=1e-5,
    )


def test_minibatches_have_their_own_denominators(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    """Two minibatches at rate ~0 give the two gradients that two separate batches give; groups stay whole."""
    seen: list[list[Tensor]] = []

    class All(Measured):
        def _descend(self, learning_rate: float) -> float:
            norm = super()._descend(learning_rate)
            seen.append(self.gradients)
            return norm

    model, given = random_model(), advantages(batch)
    All(model, OptimizerOptions(minibatches=2)).update(batch, given, objective(), order=[1, 0])
    assert len(seen) == 2
    episodes = [spoken(s, i, fresh=frozenset({1}) if i == 0 else frozenset()) for i, s in enumerate(SHAPES)]
    for order, found in zip(([3, 4, 5], [0, 1, 2]), seen, strict=True):
        alone = collate([[episodes[i] for i in order]])
        width = alone.turns.mask_BK.shape[1]
        assert_same(found, gradients(model, alone, given[order][:, :width], objective()))


@pytest.mark.parametrize("reduce", ["fixed_length", "token_mean", "sequence_mean", "turn_mean"])
def test_what_the_filter_drops_counts_in_denominators(
    random_model: Callable[..., Any], batch: TrainingBatch, reduce: str
) -> None:
    """Weight 0 gives the gradient of an advantage of 0, without reading the trajectory; others multiply advantages."""
    model, given = random_model(), advantages(batch)
    weight_B = torch.tensor([1.0, 0.0, 0.5, 0.0, 0.0, 2.0])
    whole = gradients(model, batch, given * weight_B[:, None], objective(reduce=reduce))
    learner, read = Measured(model, OptimizerOptions()), []
    hidden = learner.reader.states
    learner.reader.states = lambda m, part: read.extend(part.trajectory_R.tolist()) or hidden(m, part)
    learner.update(batch, given, objective(reduce=reduce), weight_B=weight_B)
    assert_same(whole, learner.gradients)
    assert set(read) == {0, 2, 5}


# --- the objective -----------------------------------------------------------------------------------


def surrogate(model: Any, batch: TrainingBatch, weight_RT: Tensor) -> list[Tensor]:
    """Gradients of −Σ weight · log π by plain autograd."""
    rows = batch.rows
    loss = torch.zeros(())
    for r, length in enumerate(rows.length_R.tolist()):
        logp = model(rows.token_RT[r : r + 1, :length]).logits[0].log_softmax(-1)
        picked = logp[:-1].gather(-1, rows.token_RT[r, 1:length, None])[:, 0]
        loss = loss - (picked * weight_RT[r, 1:length]).sum()
    found = torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad])
    return [g.clone() for g in found]


def token_weights(batch: TrainingBatch, given: Tensor) -> Tensor:
    rows = batch.rows
    return (
        given[rows.trajectory_R[:, None], rows.turn_RT.clamp(min=0)] * rows.mask_RT / int(rows.mask_RT.sum())
    )


def test_clip_without_staleness_is_the_policy_gradient(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    model, given = random_model(), advantages(batch)
    assert_same(
        gradients(model, batch, given, objective()), surrogate(model, batch, token_weights(batch, given))
    )


def test_the_correction_multiplies_the_advantages(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    model, given = random_model(), advantages(batch)
    ours = Learner(model, OptimizerOptions()).score(batch.rows)
    ratio_RT = (ours - batch.rows.behaviour_logp_RT).exp().clamp(max=2.0)
    assert 0 < int((ratio_RT[batch.rows.mask_RT] == 2.0).sum()) < int(batch.rows.mask_RT.sum())
    assert_same(
        gradients(model, batch, given, objective(correction="tis")),
        surrogate(model, batch, token_weights(batch, given) * ratio_RT),
        tolerance=1e-5,
    )


@pytest.mark.parametrize(("epochs", "minibatches", "scores"), [(1, 1, 0), (1, 2, 1), (2, 1, 0), (2, 2, 1)])
def test_old_log_probabilities_are_those_before_the_first_step(
    random_model: Callable[..., Any], batch: TrainingBatch, epochs: int, minibatches: int, scores: int
) -> None:
    seen: list[TokenBatch] = []

    def watch(tokens: TokenBatch) -> TokenLoss:
        seen.append(tokens)
        return TokenLoss(-tokens.logp_RT * tokens.advantage_RT, {})

    calls: list[int] = []

    class Counting(Learner):
        def score(self, *args: Any, **options: Any) -> Tensor:
            calls.append(1)
            return super().score(*args, **options)

    options = OptimizerOptions(
        epochs=epochs, minibatches=minibatches, learning_rate=0.01, micro_tokens=10_000
    )
    learner = Counting(random_model(), options)
    before = learner.score(batch.rows)
    calls.clear()
    aim = dataclasses.replace(objective(), terms=[LossTerm("watch", watch, 1.0)])
    weighs_apart(watch)  # the learner tries a loss before it uses it
    seen.clear()
    learner.update(batch, advantages(batch), aim)
    assert len(calls) == scores
    assert len(seen) == learner.steps == epochs * minibatches
    old = sorted(x for tokens in seen for x in tokens.old_logp_RT[tokens.mask_RT].tolist())
    wanted = sorted(before[batch.rows.mask_RT].tolist() * epochs)
    assert old == pytest.approx(wanted, abs=1e-5)
    stale = [float((t.logp_RT.detach() - t.old_logp_RT)[t.mask_RT].abs().max()) for t in seen]
    assert stale[0] == 0
    assert all(gap > 1e-3 for gap in stale[1:])


@pytest.mark.parametrize(
    ("loss", "correction", "passes"), [("nll", "none", 0), ("clip", "none", 1), ("nll", "tis", 0)]
)
def test_what_imitates_takes_no_pass_to_know_what_was_likely_before(
    random_model: Callable[..., Any], batch: TrainingBatch, loss: str, correction: str, passes: int
) -> None:
    """And its weights are the same, to the bit, as with that pass."""
    unknown = batch._replace(
        rows=batch.rows._replace(
            behaviour_logp_RT=torch.zeros_like(batch.rows.behaviour_logp_RT),
            known_RT=torch.zeros_like(batch.rows.known_RT),
        )
    )
    weights: list[list[Tensor]] = []
    for always in (False, True):
        calls: list[int] = []

        class Counting(Learner):
            def score(self, *args: Any, calls: list[int] = calls, **options: Any) -> Tensor:
                calls.append(1)
                return super().score(*args, **options)

        aim = objective(loss, correction=correction)
        if always:
            aim.__dict__["reads_old"] = True
        learner = Counting(random_model(), OptimizerOptions(epochs=2, minibatches=2, learning_rate=0.01))
        learner.update(unknown, advantages(batch), aim)
        assert len(calls) == (1 if always else passes)
        weights.append([p.detach().clone() for p in learner.model.parameters()])
    assert all(map(torch.equal, *weights))


def test_losses_that_compare_with_before_are_found_by_trying() -> None:
    """All that take a ratio do; what does not needs no pass."""
    plain = {
        entry.name
        for entry in components("loss")
        if not entry.needs and not entry.whole and not objective(entry.name).reads_old
    }
    assert "nll" in plain
    assert not plain & {"clip", "cispo", "gspo", "sapo", "dppo", "bpo"}


def test_supervised_steps_are_cross_entropy(random_model: Callable[..., Any], batch: TrainingBatch) -> None:
    model, rows = random_model(), batch.rows
    inside = (torch.arange(rows.token_RT.shape[1]) < rows.length_R[:, None]).float()
    inside[:, 0] = 0  # nothing predicts the first token
    weight_RT = torch.where(rows.mask_RT, 1.0, 0.25) * inside
    for micro in (1, 10_000):
        learner = Measured(model, OptimizerOptions(micro_tokens=micro))
        metrics = learner.supervise(rows, 0.25, 1e-3)
        assert_same(learner.gradients, surrogate(model, batch, weight_RT / weight_RT.sum()))
        mean = -learner.score(rows).sum() / rows.mask_RT.sum()
        assert metrics["action_nll"] == pytest.approx(float(mean), rel=1e-5)
    learner = Learner(model, OptimizerOptions())
    first = learner.supervise(rows, 0.0, 3e-3)["action_nll"]
    for _ in range(15):
        last = learner.supervise(rows, 0.0, 3e-3)["action_nll"]
    assert last < 0.5 * first


# --- value head, adapters, reference -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("critic", "given"),
    [
        ("advantages", lambda returns, value: returns - value),
        ("returns", lambda returns, value: 3 * torch.cos(7 * value)),  # whatever the rule gives
    ],
)
def test_values_learn_returns_and_leave_the_policy_alone(
    random_model: Callable[..., Any], batch: TrainingBatch, critic: str, given: Callable[..., Tensor]
) -> None:
    model, found = random_model(), signals("value", "value", critic=critic)
    before = {name: p.clone() for name, p in model.named_parameters()}
    learner = Learner(
        model,
        OptimizerOptions(learning_rate=1e-12, value_learning_rate=1e-2),
        heads=found.heads,
    )
    returns = batch.turns.reward_BK.flip(-1).cumsum(-1).flip(-1)

    def values() -> Tensor:
        return measured(found, learner, batch).turns.signals["value"]

    assert not values().any()
    for _ in range(80):
        now = measured(found, learner, batch)
        value, mask = now.turns.signals["value"], now.turns.mask_BK
        metrics = learner.update(now, given(returns, value) * mask, objective())
    assert float((values() - returns)[mask].abs().max()) < 0.1
    assert metrics["value_error"] < 0.1
    assert all(torch.allclose(p, before[name], atol=1e-6) for name, p in model.named_parameters())


def test_the_value_head_has_its_own_rate_and_limit(random_model: Callable[..., Any]) -> None:
    model = random_model()
    heads = signals("value", "value").heads
    learner = Learner(
        model, OptimizerOptions(learning_rate=1e-5, value_learning_rate=1e-2, warmup=4), heads=heads
    )
    batch = collate([[spoken(SHAPES[0], 0)]])
    turns = dataclasses.replace(batch.turns, signals={"value": torch.zeros_like(batch.turns.reward_BK)})
    learner.update(batch._replace(turns=turns), 1000 * advantages(batch), objective())
    rates = {round(group["lr"], 9) for group in learner.optimizer.param_groups}
    assert rates == {round(1e-5 / 4, 9), round(1e-2 / 4, 9)}
    assert not make_optimizer([weights_of(model)], OptimizerOptions(weight_decay=0.1)).param_groups[1][
        "weight_decay"
    ]


def lora(model: Any) -> Any:
    peft = pytest.importorskip("peft")
    return peft.get_peft_model(
        model, peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    )


def test_adapters_alone_are_trained_and_switched_off_for_the_reference(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    plain = Learner(random_model(), OptimizerOptions()).score(batch.rows)
    learner = Learner(lora(random_model()), OptimizerOptions(learning_rate=0.05))
    assert torch.allclose(learner.score(batch.rows), plain, atol=1e-5)
    before = {name: p.clone() for name, p in learner.model.named_parameters()}
    metrics = learner.update(batch, advantages(batch), objective("clip", "kl", reference=True))
    assert metrics["kl_reference"] == pytest.approx(0, abs=1e-6)
    changed = {name for name, p in learner.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed
    assert all("lora_" in name for name in changed)
    assert not torch.allclose(learner.score(batch.rows), plain, atol=1e-3)
    assert torch.allclose(learner.score(batch.rows, reference=True), plain, atol=1e-5)
    assert (
        learner.update(batch, advantages(batch), objective("clip", "kl", reference=True))["kl_reference"]
        > 1e-4
    )


def test_the_reference_stays_while_the_policy_moves(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    reference = random_model().requires_grad_(False)
    learner = Learner(random_model(), OptimizerOptions(learning_rate=0.01), reference=reference)
    before = learner.score(batch.rows, reference=True)
    aim = objective("clip", "kl", reference=True)
    kl = [learner.update(batch, advantages(batch), aim)["kl_reference"] for _ in range(3)]
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert min(kl[1:]) > 0.01
    assert torch.equal(learner.score(batch.rows, reference=True), before)
    with pytest.raises(RunError, match="reference"):
        Learner(random_model(), OptimizerOptions()).update(batch, advantages(batch), aim)


# --- what goes wrong ---------------------------------------------------------------------------------


def exploding(tokens: TokenBatch) -> TokenLoss:
    return TokenLoss(tokens.logp_RT * math.nan, {})


def test_steps_without_finite_gradients_are_skipped_counted_and_in_the_end_fatal(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    model = random_model()
    learner = Learner(model, OptimizerOptions(minibatches=2, learning_rate=0.01))
    before = {name: p.clone() for name, p in model.named_parameters()}
    bad = dataclasses.replace(objective(), terms=[LossTerm("exploding", exploding, 1.0)])
    metrics = learner.update(batch, advantages(batch), bad)
    assert metrics["skipped_steps"] == 2
    assert "grad_norm" not in metrics
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    good = learner.update(batch, advantages(batch), objective())
    assert good["skipped_steps"] == 0
    assert good["grad_norm"] > 0
    for _ in range(MAX_SKIPPED // 2 - 1):
        learner.update(batch, advantages(batch), bad)
    with pytest.raises(RunError, match=f"{MAX_SKIPPED} optimizer steps in a row"):
        learner.update(batch, advantages(batch), bad)
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_a_batch_without_tokens_changes_nothing(random_model: Callable[..., Any]) -> None:
    learner = Learner(random_model(), OptimizerOptions())
    for groups in ([], [[episode([])]]):
        empty = collate(groups)
        assert learner.update(empty, torch.zeros(empty.turns.mask_BK.shape), objective()) == {}
    assert learner.steps == 0
    mixed = collate([[episode([]), spoken(SHAPES[0], 0)]])
    assert learner.update(mixed, advantages(mixed), objective())["grad_norm"] > 0


def test_half_precision_is_computed_in_bfloat16_and_kept_in_float32(
    random_model: Callable[..., Any], batch: TrainingBatch
) -> None:
    options = {"learning_rate": 1e-3, "micro_tokens": 60}
    full = Learner(random_model(), OptimizerOptions(precision="float32", **options))
    found = signals("value", "value")
    half = Learner(random_model(), OptimizerOptions(precision="bfloat16", **options), heads=found.heads)
    gap = (full.score(batch.rows) - half.score(batch.rows)).abs().max()
    assert 1e-4 < float(gap) < 0.5
    now = measured(found, half, batch)
    assert now.turns.signals["value"].isfinite().all()
    metrics = half.update(now, advantages(batch), objective("clip", "entropy"))
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["grad_norm"] > 0
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
