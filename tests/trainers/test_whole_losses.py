"""Losses of whole minibatches, and trajectories whose rows are in different micro-batches."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import measured, signals
from test_learner import SHAPES, Measured, advantages, assert_same, episode, spoken, with_replies
from torch import Tensor

from turnwise.agents.core import ROOT, Episode
from turnwise.envs.core import EndReason
from turnwise.registry import Component, components, get_component
from turnwise.trainers.check.losses import whole
from turnwise.trainers.core import PartState, TeacherTop, TokenBatch, TokenLoss, WholeBatch, WholeLoss
from turnwise.trainers.kit.toy_batches import token_batch
from turnwise.trainers.learn.collate import TrainingBatch, collate, micro_batches
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.minibatch import is_cut
from turnwise.trainers.learn.objective import (
    LossTerm,
    Objective,
    SourceTerms,
    WholeTerm,
    policy_loss,
    weighs_apart,
)
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.loss.dpo import dpo

LOSSES = components("loss")
ORDER = [4, 0, 5, 2, 3, 1]  # of episodes; groups are the first three and the last three


class Stepping(Measured):
    """Keeps the gradients of each step, and moves the policy by the same small step whatever they are."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.seen: list[list[Tensor]] = []

    def _descend(self, learning_rate: float) -> float:
        norm = super()._descend(learning_rate)
        self.seen.append(self.gradients)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.add_(0.02 * torch.sin(torch.arange(parameter.numel())).view(parameter.shape))
        return norm


def played() -> list[Episode]:
    """Six episodes, some solved; the first in three rows, the third in two."""
    fresh = {0: frozenset({1, 2}), 2: frozenset({1})}
    episodes = [spoken(shape, i, fresh=fresh.get(i, frozenset())) for i, shape in enumerate(SHAPES)]
    return [
        dataclasses.replace(one, end=EndReason.SOLVED) if i in (0, 3, 4) else one
        for i, one in enumerate(episodes)
    ]


def ready(entry: Component) -> Any:
    """The loss as a run has it: one that remembers is made anew."""
    return entry.build({})() if inspect.isclass(entry.target) else entry.build({})


def aim(entry: Component, correction: str = "tis", level: str = "trajectory") -> Objective:
    """One loss, and the clipped one beside those of the whole."""
    loss = ready(entry)
    token = [LossTerm(entry.name, loss, 0.7)] if not entry.whole else []
    beside = [LossTerm("clip", get_component("loss", "clip").build({}), 1.0)] if entry.whole else []
    return Objective(
        [*token, *beside],
        get_component("reduce", "turn_mean").build({}),
        get_component("correction", correction).build({"level": level}),
        reference="reference" in entry.needs,
        whole=[WholeTerm(entry.name, loss, 0.7)] if entry.whole else [],
        signals=frozenset(entry.needs),
    )


def read_by(teacher: Any, batch: TrainingBatch) -> TrainingBatch:
    """The batch with what another model would say at each token's place, and how likely it finds the token itself and all."""
    reader, view = Learner(teacher, OptimizerOptions()).reader, batch.turns.tokens
    assert view is not None
    with torch.no_grad():
        token_RTJ, logp_RTJ = reader.likeliest(teacher, batch.rows, reader.states(teacher, batch.rows), 5)
        own_RT = reader.scores(teacher, batch.rows).logp_RT
        mean_RT = PassPart(reader, teacher, batch.rows, torch.arange(len(batch.rows.mask_RT))).mean_logp()
    told = {
        "token_teacher_logp": own_RT,
        "token_mean_logp": mean_RT,
        "token_tempered_reference": own_RT,
    }
    view = dataclasses.replace(view, signals={**view.signals, **told})
    turns = dataclasses.replace(batch.turns, tokens=view)
    return batch._replace(turns=turns, top=TeacherTop(token_RTJ, logp_RTJ))


def of_one_sign(advantage_BK: Tensor) -> Tensor:
    """Every trajectory is better or worse than expected in all of its turns, as losses of one outcome ask for."""
    return advantage_BK.abs() * advantage_BK[:, :1].sign()


def steps(
    model: Any,
    batch: TrainingBatch,
    given: Tensor,
    objective: Objective,
    reference: Any = None,
    **options: Any,
) -> Stepping:
    learner = Stepping(model, OptimizerOptions(**options), reference=reference)
    learner.update(batch, given, objective)
    return learner


# --- how rows are cut and ordered --------------------------------------------------------------------


@pytest.mark.parametrize("entry", LOSSES, ids=lambda entry: entry.name)
def test_micro_batches_and_the_order_of_rows_change_nothing(
    random_model: Callable[..., Any], entry: Component
) -> None:
    episodes, reference = played(), random_model(seed=5)
    batch = read_by(reference, collate([episodes[:3], episodes[3:]]))
    given = of_one_sign(advantages(batch))
    first = steps(random_model(), batch, given, aim(entry), reference, epochs=2, micro_tokens=10_000)
    assert is_cut(batch.rows, list(micro_batches(batch.rows, 1)))
    each = steps(random_model(), batch, given, aim(entry), reference, epochs=2, micro_tokens=1)
    moved = collate([[episodes[i] for i in ORDER if i >= 3], [episodes[i] for i in ORDER if i < 3]])
    moved = read_by(reference, moved)
    order = [i for i in ORDER if i >= 3] + [i for i in ORDER if i < 3]
    other = steps(random_model(), moved, given[order], aim(entry), reference, epochs=2, micro_tokens=30)
    assert len(first.seen) == 2
    for one, two, three in zip(first.seen, each.seen, other.seen, strict=True):
        assert max(float(g.abs().max()) for g in one) > 1e-6
        # In the second step disco's penalty multiplies the rounding of float32 by a thousand (measured: 3e-6).
        assert_same(one, two, 3e-5)
        assert_same(one, three, 3e-5)


def test_one_hundred_rewritten_turns_are_learned_within_the_limit(random_model: Callable[..., Any]) -> None:
    """Every turn is a row: no forward pass is longer than the limit, and the gradients are those of the uncut batch."""
    turns = [(3 + k % 4, 1 + k % 3) for k in range(100)]
    long = spoken([(2, 1)], 0)
    pieces = [spoken([shape], k + 1) for k, shape in enumerate(turns)]
    rewritten = [
        dataclasses.replace(
            piece.trajectory.turns[0], reply=piece.trajectory.turns[0].reply._replace(parent=ROOT)
        )
        for piece in pieces
    ]
    trajectory = dataclasses.replace(long.trajectory, turns=tuple(rewritten))
    episode = dataclasses.replace(long, trajectories={"agent": trajectory}, end=EndReason.SOLVED)
    batch = collate([[episode, spoken([(4, 2), (3, 3)], 200), spoken([(5, 4)], 201)]])
    assert len(batch.rows.length_R) == 102
    given, found = advantages(batch), []
    for most in (48, 100_000):
        head = signals("progress")
        learner = Stepping(random_model(), OptimizerOptions(epochs=2, micro_tokens=most), heads=head.heads)
        ready = measured(head, learner, batch)
        sizes, read = [], learner.reader.states
        learner.reader.states = lambda m, part: sizes.append(part.token_RT.numel()) or read(m, part)  # noqa: B023
        metrics = learner.update(ready, given, aim(get_component("loss", "kl_cov")))
        assert max(sizes) <= most
        found.append((learner.seen, metrics))
    (cut, low), (uncut, high) = found
    for one, two in zip(cut, uncut, strict=True):
        assert_same(one, two, 1e-5)
    assert low == pytest.approx(high, rel=1e-3, abs=1e-5)
    assert low["progress_error"] > 0


@pytest.mark.parametrize(("level", "passes"), [("token", 1), ("turn", 1), ("trajectory", 2)])
def test_only_what_asks_for_cut_trajectories_costs_a_pass(
    random_model: Callable[..., Any], level: str, passes: int
) -> None:
    episodes = played()
    batch, clip = collate([episodes]), get_component("loss", "clip")
    for most, wanted in ((1, passes), (10_000, 1)):
        learner, rows = Stepping(random_model(), OptimizerOptions(micro_tokens=most)), list[int]()
        read = learner.reader.states
        learner.reader.states = lambda m, part: rows.append(len(part.token_RT)) or read(m, part)  # noqa: B023
        learner.update(batch, advantages(batch), aim(clip, level=level))
        assert sum(rows) == wanted * len(batch.rows.length_R)


# --- the two steps are the gradient --------------------------------------------------------------------


@pytest.mark.parametrize("name", [entry.name for entry in LOSSES if entry.whole])
def test_slopes_on_detached_scores_are_the_gradient_through_the_model(
    random_model: Callable[..., Any], name: str
) -> None:
    """Against the loss as a function of the weights, by plain autograd through one forward pass a row."""
    entry, model, episodes = get_component("loss", name), random_model(), played()
    reference = random_model(seed=5)
    batch = read_by(reference, collate([episodes[:3], episodes[3:]]))
    given, objective = advantages(batch), dataclasses.replace(aim(entry), terms=[])
    seen: list[WholeBatch] = []
    before: list[Any] = []  # the loss as it was before each step: it may remember
    loss = ready(entry)

    def watch(batch: WholeBatch) -> WholeLoss:
        seen.append(batch)
        before.append(copy.deepcopy(loss))
        return loss(batch)

    watched = dataclasses.replace(objective, whole=[WholeTerm(name, watch, 1.0)])
    learner = steps(model, batch, given, watched, reference, epochs=2, micro_tokens=30)
    model = random_model()
    for step, (found, told) in enumerate(zip(learner.seen, seen, strict=True)):
        rows = batch.rows
        logp = [
            model(rows.token_RT[r : r + 1, :n]).logits[0].log_softmax(-1)
            for r, n in enumerate(rows.length_R.tolist())
        ]
        logp_RT, entropy_RT = torch.zeros(rows.mask_RT.shape), torch.zeros(rows.mask_RT.shape)
        for r, one in enumerate(logp):
            n = len(one)
            logp_RT[r, 1:n] = one[:-1].gather(-1, rows.token_RT[r, 1:n, None])[:, 0]
            entropy_RT[r, 1:n] = -(one[:-1].exp() * one[:-1]).sum(-1)
        logp_RT, entropy_RT = logp_RT * rows.mask_RT, entropy_RT * rows.mask_RT
        direct = dataclasses.replace(told, logp_RT=logp_RT.double(), entropy_RT=entropy_RT.double())
        if step == 0:  # nothing has moved: |log ratio| has no slope at 0, and one of either sign beside it
            direct = dataclasses.replace(direct, old_logp_RT=logp_RT.detach().double())
        wanted = torch.autograd.grad(before[step](direct).loss, list(model.parameters()))
        assert told.success_B.tolist() == [True, False, False, True, True, False]
        assert torch.allclose(told.return_B, batch.turns.return_B)
        assert (float((told.logp_RT.detach() - told.old_logp_RT).abs().max()) > 1e-3) == (step > 0)
        assert_same([*wanted], found, 1e-5)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.02 * torch.sin(torch.arange(parameter.numel())).view(parameter.shape))


def test_the_whole_has_what_was_played_and_not_read(random_model: Callable[..., Any]) -> None:
    """Trajectories of weight 0 have no row, and count; each minibatch numbers its own from 0."""
    episodes, seen = played(), list[WholeBatch]()
    batch = collate([episodes[:3], episodes[3:]])

    def watch(batch: WholeBatch) -> WholeLoss:
        seen.append(batch)
        return WholeLoss(batch.logp_RT.sum(), {})

    objective = dataclasses.replace(
        aim(get_component("loss", "clip")), terms=[], whole=[WholeTerm("watch", watch, 1.0)]
    )
    weight_B = torch.tensor([1.0, 0.0, 0.5, 2.0, 0.0, 1.0])
    learner = Stepping(random_model(), OptimizerOptions(minibatches=2))
    learner.update(batch, advantages(batch), objective, weight_B=weight_B, order=[1, 0])
    second, first = seen
    assert (first.weight_B.tolist(), second.weight_B.tolist()) == ([1.0, 0.0, 0.5], [2.0, 0.0, 1.0])
    assert first.group_B.tolist() == second.group_B.tolist() == [0, 0, 0]
    assert first.trajectory_R.tolist() == [0, 0, 0, 2, 2]
    assert second.trajectory_R.tolist() == [0, 2]
    assert second.success_B.tolist() == [True, True, False]
    assert first.weight_RT.sum() < 1, "the trajectory that was not read is in the denominator"
    another = Stepping(random_model(), OptimizerOptions(minibatches=2))
    another.update(batch, advantages(batch), objective, order=[1, 0])
    plain_NT, halved_NT = (x.advantage_RT[x.trajectory_R == 2] for x in (seen[-1], first))
    assert plain_NT.any()
    torch.testing.assert_close(halved_NT, 0.5 * plain_NT[:, : halved_NT.shape[1]])


def test_a_self_explanation_is_what_dpo_prefers_to_each_wrong_chain(random_model: Callable[..., Any]) -> None:
    """ExPO's DPO form: the guide `expo` puts c in place of a row, and the loss `dpo` pairs it with the policy's own failures.

    With β = 0.1 the loss is the mean of −log σ(0.1·(s_c − s_j)) over the two j, s the sum of log π − log π_ref over an episode's tokens.
    """
    group: list[Episode] = []
    for i, shape in enumerate(SHAPES[:3]):
        replies = [turn.reply for turn in spoken(shape, i).trajectory.turns]
        if i == 0:
            replies = [reply._replace(source="guide/expo") for reply in replies]
        group.append(with_replies(episode([*[0.0] * (len(shape) - 1), float(i == 0)]), replies))
    batch, model, reference = collate([group]), random_model(), random_model(seed=5)
    by = Learner(model, OptimizerOptions()).reader
    with torch.no_grad():
        gap_RT = (
            by.scores(model, batch.rows).logp_RT - by.scores(reference, batch.rows).logp_RT
        ) * batch.rows.mask_RT
    c, *wrong = gap_RT.sum(1).tolist()
    found: list[float] = []

    def watch(batch: WholeBatch) -> WholeLoss:
        told = dpo(batch, beta=0.1)
        found.extend([told.loss.item(), told.metrics["pairs"].item()])
        return told

    objective = dataclasses.replace(
        aim(get_component("loss", "dpo")), terms=[], whole=[WholeTerm("dpo", watch, 1.0)]
    )
    foreign = SourceTerms([], objective.correction)
    objective = dataclasses.replace(objective, by_source={"guide/expo": foreign})
    Stepping(model, OptimizerOptions(), reference=reference).update(batch, advantages(batch), objective)
    assert found == [pytest.approx(sum(math.log1p(math.exp(-0.1 * (c - s))) for s in wrong) / 2, rel=1e-4), 2]


# --- losses of tokens, and weights on what they weigh by advantages ----------------------------------------


def test_a_correction_weighs_a_regression_outside_of_its_exponent() -> None:
    """Of w·min(exp(A/λ), cap): what weighs nothing is not imitated, and twice as much has twice the slope."""
    batch = token_batch([[-1.0, -1.0, -2.0, -1.0]], [[1.0, 0.0, -1.0, 4.0]])
    terms = [LossTerm("awr", get_component("loss", "awr").build({}), 0.5)]
    ones_RT = torch.ones_like(batch.logp_RT)
    for weight in (0.0, 0.25, 1.0, 2.0):
        loss, metrics = policy_loss(batch, weight * ones_RT, ones_RT, ones_RT, [(terms, ones_RT)])
        (slope_RT,) = torch.autograd.grad(loss, [batch.logp_RT])
        assert slope_RT[0].tolist() == pytest.approx(
            [-0.5 * weight * x for x in (math.e, 1.0, 1 / math.e, 20.0)]
        )
        assert metrics["correction"].item() == weight


def test_what_a_filter_keeps_in_part_weighs_outside_of_the_exponent_too() -> None:
    batch = token_batch([[-1.0, -1.0, -2.0]], [[1.0, 0.0, -1.0]])
    terms = [LossTerm("awr", get_component("loss", "awr").build({}), 1.0)]
    ones_RT = torch.ones_like(batch.logp_RT)
    loss, metrics = policy_loss(batch, 2 * ones_RT, 0.25 * ones_RT, ones_RT, [(terms, ones_RT)])
    (slope_RT,) = torch.autograd.grad(loss, [batch.logp_RT])
    assert slope_RT[0].tolist() == pytest.approx([-0.5 * x for x in (math.e, 1.0, 1 / math.e)])
    assert metrics["correction"].item() == 2.0


def test_only_regression_takes_weights_apart_from_advantages() -> None:
    """All other losses of tokens are a·A + b along their advantages: a weight on A is one on what A weighs."""
    apart = [entry.name for entry in LOSSES if not entry.whole and weighs_apart(entry.build({}))]
    assert apart == ["awr"]


def test_a_loss_that_takes_weights_apart_is_still_weighed_beside_others() -> None:
    batch = token_batch([[-1.0, -1.0]], [[1.0, -1.0]])
    weight_RT = torch.tensor([[0.0, 2.0]], dtype=batch.logp_RT.dtype)
    ones_RT = torch.ones_like(batch.logp_RT)
    terms = [
        LossTerm("nll", get_component("loss", "nll").build({}), 1.0),
        LossTerm("awr", get_component("loss", "awr").build({}), 1.0),
    ]
    loss, _ = policy_loss(batch, weight_RT, ones_RT, ones_RT, [(terms, ones_RT)])
    (slope_RT,) = torch.autograd.grad(loss, [batch.logp_RT])
    assert slope_RT[0].tolist() == pytest.approx([0.0, 2.0 - 2 / math.e])


# --- losses that remember -----------------------------------------------------------------------------


class Baseline:
    """Minus (return − its running mean)·log π."""

    def __init__(self, *, rate: float = 0.5) -> None:
        self.rate, self.mean = rate, 0.0

    def __call__(self, batch: WholeBatch) -> WholeLoss:
        gain_R = (batch.return_B - self.mean)[batch.trajectory_R]
        self.mean += self.rate * (float(batch.return_B.mean()) - self.mean)
        loss_RT = -gain_R[:, None] * batch.logp_RT * batch.mask_RT
        return WholeLoss((batch.weight_RT * loss_RT).sum(), {"baseline": torch.tensor(self.mean)})

    def state(self) -> PartState:
        return PartState({"mean": self.mean})

    def restore(self, state: PartState) -> None:
        self.mean = float(state.numbers["mean"])  # pyright: ignore


def entry_of(target: Any) -> Component:
    return Component("loss", "remembers", target, __name__, __file__, whole=True, slope="own")


def test_a_loss_that_remembers_is_held_to_its_state() -> None:
    from turnwise.requirements import BrokenRequirement
    from turnwise.trainers.check.losses import goes_on_where_it_was

    class Forgetful(Baseline):
        def restore(self, state: PartState) -> None:
            pass

    assert goes_on_where_it_was(entry_of(Baseline)) == "the same next losses"
    with pytest.raises(BrokenRequirement, match="differs"):
        goes_on_where_it_was(entry_of(Forgetful))
    with pytest.raises(BrokenRequirement, match="whole=True"):
        goes_on_where_it_was(dataclasses.replace(entry_of(Baseline), whole=False))


def test_slopes_and_rows_are_held_to_what_a_loss_declares() -> None:
    from turnwise.requirements import BrokenRequirement
    from turnwise.trainers.check.losses import rows_do_not_matter, slope_at_zero_staleness

    def doubled(batch: TokenBatch) -> TokenLoss:
        return TokenLoss(-2 * batch.advantage_RT * batch.logp_RT * batch.mask_RT, {})

    def centred(batch: TokenBatch) -> TokenLoss:
        loss_RT = -(batch.advantage_RT - batch.advantage_RT.mean()) * batch.logp_RT
        return TokenLoss(loss_RT * batch.mask_RT, {})

    def first_row(batch: WholeBatch) -> WholeLoss:
        return WholeLoss((batch.weight_RT * batch.logp_RT)[0].sum(), {})

    one = dataclasses.replace(entry_of(doubled), whole=False, slope="-c·A")
    assert slope_at_zero_staleness(one) == "-c·A"
    with pytest.raises(BrokenRequirement, match=r"Declared slope '-A', measured -c·A"):
        slope_at_zero_staleness(dataclasses.replace(one, slope="-A"))
    with pytest.raises(BrokenRequirement, match="whole=True"):
        rows_do_not_matter(dataclasses.replace(entry_of(centred), whole=False))
    with pytest.raises(BrokenRequirement, match="order of rows"):
        rows_do_not_matter(entry_of(first_row))
    assert whole(0).success_B.any()
