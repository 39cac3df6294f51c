"""Laws of objectives: which losses are one, and where those that regress on returns come to rest."""

from __future__ import annotations

import itertools
import math
import random

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import get_component
from turnwise.trainers.kit.toy_batches import token_batch, turn_batch, whole_batch
from turnwise.trainers.lab.twins import CREDIT_TWINS, TWINS, CreditTwin, LossTwin, PartChoice, compare

REWARD = torch.tensor([0.0, 1.0, 0.4], dtype=torch.float64)
PRIOR = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.one}={twin.two}")
def test_twins_are_one(twin: LossTwin) -> None:
    found = compare(twin.one, twin.two, twin.setting)
    assert found.degrees < 1e-3
    scale = twin.scale if twin.scale is not None else found.ratios[0]
    assert found.ratios == pytest.approx(
        [scale] * len(found.ratios), rel=1e-5
    )  # GRPO adds 1e-6 to its deviation


@pytest.mark.parametrize(
    "twin", [twin for twin in TWINS if twin.apart != twin.setting], ids=lambda twin: f"{twin.one}={twin.two}"
)
def test_twins_part_where_it_is_said(twin: LossTwin) -> None:
    """So that the page says no more than it may."""
    assert compare(twin.one, twin.two, twin.apart).degrees > 1


def posterior(beta: float) -> Tensor:
    power = PRIOR * (REWARD / beta).exp()
    return power / power.sum()


def regress(loss: str, options: dict[str, object], steps: int, rate: float) -> Tensor:
    """Descend a loss of groups on every pair of three actions of one state, from the prior."""
    built = get_component("loss", loss).build(options)
    logits = PRIOR.log().clone().requires_grad_()
    for _ in range(steps):
        logp = logits.log_softmax(-1)
        pairs = list(itertools.combinations(range(3), 2))
        rows = [[float(logp.detach()[a])] for pair in pairs for a in pair]
        batch = whole_batch(
            rows,
            old_logp=rows,
            reference_logp=[[float(PRIOR[a].log())] for pair in pairs for a in pair],
            reward=[[float(REWARD[a])] for pair in pairs for a in pair],
            group=[g for g, pair in enumerate(pairs) for _ in pair],
        )
        (slope_RT,) = torch.autograd.grad(built(batch).loss, [batch.logp_RT])
        wanted = sum(slope_RT[r, 0] * logp[a] for r, a in enumerate(a for pair in pairs for a in pair))
        (step,) = torch.autograd.grad(wanted, [logits])
        logits = (logits - rate * step).detach().requires_grad_()
    return logits.softmax(-1).detach()


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_prdp_rests_at_the_posterior(beta: float) -> None:
    """π ∝ π₀·exp(R/β), which maximises E[R] − β·KL(π ‖ π₀)."""
    found = regress("prdp", {"beta": beta, "proximal": None}, 400, 0.5)
    assert torch.allclose(found, posterior(beta), atol=1e-6)


def descend(beta: float, steps: int) -> Tensor:
    """The policy gradient of all groups of two, with the reward less β·(log π − log π₀), by our rule and loss."""
    rule, clip = get_component("credit", "dr_grpo").build({}), get_component("loss", "clip").build({})
    logits = PRIOR.log().clone().requires_grad_()
    for _ in range(steps):
        logp = logits.log_softmax(-1)
        now: list[float] = logp.tolist()
        paid = REWARD - beta * (logp.detach() - PRIOR.log())
        step = torch.zeros_like(logits)
        for a, b in itertools.product(range(3), repeat=2):
            credit = rule(turn_batch([[float(paid[a])], [float(paid[b])]]))
            batch = token_batch([[now[a]], [now[b]]], credit.tolist())
            (slope,) = torch.autograd.grad(clip(batch).loss_RT.sum(), [batch.logp_RT])
            chance = math.exp(now[a] + now[b])
            wanted = chance * (slope[0, 0] * logp[a] + slope[1, 0] * logp[b])
            step = step + torch.autograd.grad(wanted, [logits], retain_graph=True)[0]
        logits = (logits - 1.0 * step).detach().requires_grad_()
    return logits.softmax(-1).detach()


def test_kl_in_the_reward_rests_at_the_posterior_and_without_it_one_action_is_left() -> None:
    assert torch.allclose(descend(0.5, 120), posterior(0.5), atol=1e-4)
    assert descend(0.0, 120)[1] > 0.97


@pytest.mark.parametrize("twin", CREDIT_TWINS, ids=lambda twin: f"{twin.one}={twin.two}")
def test_credit_twins_are_one_and_part_where_it_is_said(twin: CreditTwin) -> None:
    def given(choice: PartChoice, seed: int) -> Tensor:
        rng = random.Random(seed)
        rewards = [[rng.choice([0.0, 0.5, 1.0]) for _ in range(rng.randint(1, 5))] for _ in range(6)]
        value = [[rng.uniform(-1, 1) for _ in row] for row in rewards]
        batch = turn_batch(rewards, [0, 0, 0, 1, 1, 1], signals={"value": value})
        return get_component("credit", choice.name).build(dict(choice.options))(batch) * batch.mask_BK

    for seed in range(6):
        assert torch.allclose(given(twin.one, seed), given(twin.two, seed), atol=1e-9)
        assert not torch.allclose(given(twin.apart, seed), given(twin.two, seed), atol=1e-3)
