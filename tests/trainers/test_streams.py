"""What sources show is learned beside what is played; tokens that others chose have losses and corrections of their own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.registry import get_component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.reward_edits import replace_turns
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.minibatch import Stream
from turnwise.trainers.learn.model import load_model, vocabulary_logp
from turnwise.trainers.learn.objective import LossTerm, Objective, SourceTerms
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.toy_rows import spoken
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.core import Teacher, taught


def part(kind: str, name: str, **options: Any) -> Any:
    return get_component(kind, name).build(options)


def objective(*losses: str, **more: Any) -> Objective:
    terms = [LossTerm(name, part("loss", name), 1.0) for name in losses]
    return Objective(terms, part("reduce", "fixed_length"), part("correction", "tis", cap=100.0), **more)


def by(source: str, episode: Episode, *turns: int, weight: float = 1.0, known: bool = False) -> Episode:
    """The episode, some of whose turns another one chose."""

    def change(played: Any) -> Any:
        for k, turn in enumerate(played):
            reply = turn.reply._replace(source=source, logprobs=turn.reply.logprobs if known else ())
            yield dataclasses.replace(turn, reply=reply, weight=weight) if k in turns else turn

    return replace_turns(episode, lambda played: [*change(played)])


@pytest.fixture
def gradients(small_model: Any) -> Any:
    """Gradients of one step on streams, as one vector; no step is taken."""

    def find(
        batch: TrainingBatch, credit: Tensor, wanted: Objective, beside: Sequence[Stream] = (), **options: Any
    ) -> Tensor:
        torch.manual_seed(0)
        learner = Learner(load_model(small_model, torch.device("cpu")), OptimizerOptions(**options))
        found: list[Tensor] = []

        def keep(rate: float) -> float:
            found.append(
                torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None])
            )
            learner.optimizer.zero_grad(set_to_none=True)
            return 1.0

        learner._descend = keep  # type: ignore[method-assign]
        learner.update(batch, credit, wanted, beside=beside)
        return torch.stack(found).sum(0)

    return find


def ones(batch: TrainingBatch) -> Tensor:
    return batch.turns.mask_BK.double()


def close(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).norm() <= 1e-5 * b.norm())


PLAYED = [[spoken([[-2.0, -3.0], [-4.0]]), spoken([[-1.0], [-5.0, -2.0], [-3.0]])]]
SHOWN = [[spoken([[-1.0, -1.0, -1.0]])], [spoken([[-2.0], [-2.0]])]]


@pytest.mark.parametrize("minibatches", [1, 2])
def test_what_is_shown_adds_its_own_gradient(gradients: Any, minibatches: int) -> None:
    played, shown = collate(PLAYED), collate(SHOWN)
    own, theirs = objective("clip"), objective("nll")
    together = gradients(
        played,
        ones(played),
        own,
        [Stream(shown, ones(shown), theirs, name="source/s")],
        minibatches=minibatches,
    )
    apart = gradients(played, ones(played), own, minibatches=minibatches)
    apart = apart + gradients(shown, ones(shown), theirs, minibatches=minibatches)
    assert close(together, apart)
    assert not close(together, gradients(played, ones(played), own, minibatches=minibatches))


def test_a_stream_that_nobody_played_is_learned_too(gradients: Any) -> None:
    empty, shown = collate([]), collate(SHOWN)
    alone = gradients(
        empty, ones(empty), objective("clip"), [Stream(shown, ones(shown), objective("nll"), name="s")]
    )
    assert close(alone, gradients(shown, ones(shown), objective("nll")))


def test_tokens_of_a_source_have_its_losses(gradients: Any) -> None:
    """Half of the tokens under one objective and half under the other: the sum of the two on their own tokens."""

    def doubled(batch: TokenBatch) -> TokenLoss:
        return TokenLoss(-7 * batch.logp_RT * batch.mask_RT, {})

    mixed = collate([[by("guide/g", PLAYED[0][0], 0), PLAYED[0][1]]])
    own = objective("clip")
    terms = SourceTerms([LossTerm("doubled", doubled, 1.0)], part("correction", "none"))
    found = gradients(mixed, ones(mixed), dataclasses.replace(own, by_source={"guide/g": terms}))

    def masked(theirs: bool) -> Objective:
        def only(batch: TokenBatch) -> TokenLoss:
            first_RT = (batch.turn_RT == 0) & (batch.trajectory_R == 0)[:, None]
            plain = doubled(batch) if theirs else part("loss", "clip")(batch)
            return TokenLoss(plain.loss_RT * (first_RT if theirs else ~first_RT), {})

        return dataclasses.replace(own, terms=[LossTerm("only", only, 1.0)])

    expected = sum(gradients(mixed, ones(mixed), masked(theirs)) for theirs in (False, True))
    assert close(found, expected)
    assert not close(found, gradients(mixed, ones(mixed), own))


def test_unknown_log_probabilities_are_not_taken_for_certainty(gradients: Any) -> None:
    """A correction of 1 where nobody knows how likely the token was; behaviour 0 would give weights near 0."""
    known = collate([[spoken([[-2.0, -3.0]])]])
    unknown = collate([[by("s", spoken([[-2.0, -3.0]]), 0)]])
    plain = dataclasses.replace(objective("clip"), correction=part("correction", "none"))
    assert close(gradients(unknown, ones(unknown), objective("clip")), gradients(known, ones(known), plain))
    assert not close(gradients(known, ones(known), objective("clip")), gradients(known, ones(known), plain))


@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_source_may_have_a_correction_of_its_own(gradients: Any, minibatches: int) -> None:
    groups = [[by("source/s", one, 0, 1, 2, known=True)] for one in PLAYED[0]]
    batch, own = collate(groups), objective("clip")
    none = SourceTerms(own.terms, part("correction", "none"))
    found = gradients(
        batch, ones(batch), dataclasses.replace(own, by_source={"source/s": none}), minibatches=minibatches
    )
    plain = dataclasses.replace(own, correction=none.correction)
    assert close(found, gradients(batch, ones(batch), plain, minibatches=minibatches))
    assert not close(found, gradients(batch, ones(batch), own, minibatches=minibatches))


def test_a_turns_weight_multiplies_its_advantage(gradients: Any) -> None:
    halved = collate([[by("s", PLAYED[0][0], 1, weight=0.5, known=True)]])
    plain = collate([[PLAYED[0][0]]])
    credit = ones(plain)
    credit[0, 1] = 0.5
    assert close(
        gradients(halved, ones(halved), objective("clip")), gradients(plain, credit, objective("clip"))
    )


class Same(Teacher):
    """The policy itself."""


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_distillation_with_the_whole_vocabulary_is_the_divergence(small_model: Any, beta: float) -> None:
    """Against the definition, from logits of two models: value and gradient."""
    torch.manual_seed(1)
    model, other = (load_model(small_model, torch.device("cpu")) for _ in range(2))
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    learner = Learner(model, OptimizerOptions())
    batch = collate(PLAYED)
    V = model.get_input_embeddings().weight.shape[0]
    see: Any = SignalContext(frozenset(), learner, None, None, 512, {})  # type: ignore[arg-type]
    teacher = Same()
    teacher.model = other
    batch = taught(teacher, see, batch, PLAYED, V)
    terms = [LossTerm("distill", part("loss", "distill", beta=beta), 1.0)]
    wanted = dataclasses.replace(objective(), terms=terms, signals=frozenset({"teacher_top"}))
    kept: list[Tensor] = []

    def keep(rate: float) -> float:
        kept.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
        return 1.0

    learner._descend = keep  # type: ignore[method-assign]
    metrics = learner.update(batch, ones(batch), wanted)
    model.zero_grad()
    rows = batch.rows

    def log_probs(of: Any) -> Tensor:
        hidden = of.model(input_ids=rows.token_RT).last_hidden_state
        return vocabulary_logp(of, hidden[:, :-1][rows.mask_RT[:, 1:]], 1.0)

    p = log_probs(model)
    with torch.no_grad():
        q = log_probs(other)
    if beta in (0.0, 1.0):
        a, b = (q, p) if beta == 0 else (p, q)
        divergence_N = (a.exp() * (a - b)).sum(-1)
    else:
        m = (beta * q.exp() + (1 - beta) * p.exp()).log()
        divergence_N = beta * (q.exp() * (q - m)).sum(-1) + (1 - beta) * (p.exp() * (p - m)).sum(-1)
    assert metrics["distill"] == pytest.approx(float(divergence_N.detach().mean()), rel=1e-3)
    weight_RT = wanted.reduce(
        type("R", (), {"mask_RT": rows.mask_RT, "turn_RT": rows.turn_RT, "trajectory_R": rows.trajectory_R})()
    )
    (weight_RT[rows.mask_RT].float() * divergence_N).sum().backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert float((kept[0] - expected).norm() / expected.norm()) < 2e-3


def test_a_teacher_that_is_the_policy_finds_what_the_policy_finds(small_model: Any) -> None:
    learner = Learner(load_model(small_model, torch.device("cpu")), OptimizerOptions(micro_tokens=8))
    see: Any = SignalContext(frozenset(), learner, None, None, 512, {})  # type: ignore[arg-type]
    batch = taught(Same(), see, collate(PLAYED), PLAYED, 0)
    assert batch.turns.tokens is not None
    found = batch.turns.tokens.signals["token_teacher_logp"]
    assert torch.allclose(found, learner.score(batch.rows).double(), atol=1e-5)
    assert batch.top is None
    assert math.isclose(float(found[~batch.rows.mask_RT].abs().sum()), 0.0)
