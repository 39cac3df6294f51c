"""Where KL-regularised reinforcement learning comes to rest, on processes whose trajectories can be listed: the posterior
π₀·exp(R/β), whatever unbiased credit rule leads there; and without KL a policy that does one thing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import Component, components, get_component
from turnwise.trainers.core import Credit
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch
from turnwise.trainers.lab.exact import Paths, Process, compare, expected_update, paths
from turnwise.trainers.lab.processes import CHAIN, CHANCE, LOOP, PROCESSES, PUZZLE, STOPPING, lopsided
from turnwise.trainers.lab.regularised import log_ratio, paid_for_kl, posterior, regularised_return

ONCE = (CHAIN, STOPPING, CHANCE, PUZZLE)
"""No state is met at two turns, so that a policy of states reaches the posterior."""
UNBIASED = [entry for entry in components("credit") if entry.bias == "unbiased" and not entry.needs]
GROUP = 2


def prior(process: Process) -> Tensor:
    return lopsided(process)


def elsewhere(process: Process) -> Tensor:
    """A policy that is not the prior."""
    return lopsided(process).cos()


def climb(process: Process, step: Callable[[Paths], Tensor], steps: int, rate: float) -> Paths:
    """The trajectories under the policy that so many updates lead to, from the prior on."""
    logits_SA = prior(process)
    for _ in range(steps):
        logits_SA = logits_SA + rate * step(paths(process, logits_SA))
    return paths(process, logits_SA)


def by_reward(beta: float) -> Callable[[Paths], Tensor]:
    """The expected update of groups of two by our rule, with KL in the reward."""
    rule: Credit = get_component("credit", "rloo").build({})

    def step(p: Paths) -> Tensor:
        return expected_update(rule, paid_for_kl(p, prior(p.process), beta), GROUP, {}).mean_SA

    return step


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
@pytest.mark.parametrize("entry", UNBIASED, ids=lambda entry: entry.name)
def test_kl_in_the_reward_is_the_gradient_of_the_regularised_return(
    entry: Component, process: Process
) -> None:
    p = paths(process, elsewhere(process))
    paid = paid_for_kl(p, prior(process), 0.7)
    update_SA = expected_update(entry.build({}), paid, GROUP, {}).mean_SA
    assert compare(update_SA, p.gradient(regularised_return(p, prior(process), 0.7))).angle < 1e-9
    assert compare(update_SA, p.policy_gradient()).angle > 1e-3  # the return alone is another objective


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.5, 1.0])
@pytest.mark.parametrize("process", ONCE, ids=lambda process: process.name)
def test_it_rests_at_the_posterior_whose_value_is_the_evidence(process: Process, beta: float) -> None:
    wanted = posterior(process, prior(process), beta)
    found = climb(process, by_reward(beta), 150, 4.0)
    assert torch.allclose(found.logits_SA.softmax(-1), wanted.policy_SA, atol=1e-3)
    assert regularised_return(found, prior(process), beta).item() == pytest.approx(wanted.value, abs=1e-6)


@pytest.mark.parametrize("beta", [0.3, 1.0])
@pytest.mark.parametrize("process", [CHAIN, STOPPING, PUZZLE], ids=lambda process: process.name)
def test_without_chance_each_trajectory_is_as_likely_as_prior_and_return_say(
    process: Process, beta: float
) -> None:
    """p* ∝ p₀·exp(R/β), and β·log Σ p₀·exp(R/β) is the most that can be reached."""
    before = paths(process, prior(process))
    power_N = before.probability_N * (before.return_N / beta).exp()
    wanted = posterior(process, prior(process), beta)
    after = paths(process, wanted.policy_SA.log())
    assert torch.allclose(after.probability_N, power_N / power_N.sum(), atol=1e-12)
    assert beta * power_N.sum().log().item() == pytest.approx(wanted.value, abs=1e-12)


def test_a_state_that_is_met_at_two_turns_has_no_such_policy() -> None:
    with pytest.raises(ValueError, match="met at two turns"):
        posterior(LOOP, prior(LOOP), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("process", ONCE, ids=lambda process: process.name)
def test_without_kl_one_way_is_left(process: Process) -> None:
    """The same updates with β = 0: what is less than the best dies out, and the policy's entropy with it."""
    held, free = (climb(process, by_reward(beta), 150, 4.0) for beta in (0.5, 0.0))

    def entropy(p: Paths) -> float:
        return -(p.probability_N * p.logp_NK.sum(-1)).sum().item()

    best = paths(process, 60.0 * best_actions(process))
    assert free.return_N @ free.probability_N > 0.97 * (best.return_N @ best.probability_N)
    assert entropy(free) < 0.25 * entropy(held)


def best_actions(process: Process) -> Tensor:
    """1 at the action of the greatest value in each state."""
    return (posterior(process, prior(process), 1e-3).policy_SA > 0.5).double()


def by_regression(beta: float) -> Callable[[Paths], Tensor]:
    """Uphill of our loss `prdp` on every pair of trajectories."""
    loss = get_component("loss", "prdp").build({"beta": beta, "proximal": None})

    def step(p: Paths) -> Tensor:
        pairs = [*itertools.combinations(range(len(p.return_N)), 2)]
        row_R = [n for pair in pairs for n in pair]
        length_N = p.mask_NK.sum(-1).tolist()

        def rows(x_NK: Tensor) -> list[list[float]]:
            return [x_NK[n, : length_N[n]].tolist() for n in row_R]

        now_NK = p.logp_NK.detach()
        batch = whole_batch(
            rows(now_NK),
            old_logp=rows(now_NK),
            reference_logp=rows(now_NK - log_ratio(p, prior(p.process)).detach()),
            reward=rows(p.reward_NK),
            group=[g for g, pair in enumerate(pairs) for _ in pair],
        )
        (slope_RT,) = torch.autograd.grad(loss(batch).loss, [batch.logp_RT])
        slope_NK = torch.zeros_like(now_NK)
        for r, n in enumerate(row_R):
            slope_NK[n, : length_N[n]] += slope_RT[r, : length_N[n]]
        return -p.gradient((slope_NK * p.logp_NK).sum())

    return step


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.5, 1.0])
@pytest.mark.parametrize("process", [CHAIN, STOPPING, PUZZLE], ids=lambda process: process.name)
def test_regression_on_returns_rests_at_the_posterior_too(process: Process, beta: float) -> None:
    found = climb(process, by_regression(beta), 150, 0.5 / beta**2)
    wanted = posterior(process, prior(process), beta)
    assert torch.allclose(found.logits_SA.softmax(-1), wanted.policy_SA, atol=1e-4)


def by_loss(beta: float) -> Callable[[Paths], Tensor]:
    """The expected update with KL as a loss of tokens beside the policy gradient."""
    rule: Credit = get_component("credit", "rloo").build({})
    loss: Any = get_component("loss", "kl").build({"estimator": "k2"})

    def step(p: Paths) -> Tensor:
        now_NK = p.logp_NK.detach()
        batch = token_batch(
            now_NK.tolist(), reference_logp=(now_NK - log_ratio(p, prior(p.process)).detach()).tolist()
        )
        (slope_NK,) = torch.autograd.grad(loss(batch).loss_RT.sum(), [batch.logp_RT])
        held_NK = slope_NK * p.mask_NK * p.probability_N.detach()[:, None]
        pulled_SA = p.gradient((held_NK * p.logp_NK).sum())
        return expected_update(rule, p, GROUP, {}).mean_SA - beta * pulled_SA

    return step


@pytest.mark.slow
def test_kl_as_a_loss_rests_elsewhere_where_turns_lead_to_others() -> None:
    """Its gradient holds every state's actions near the prior, and not the way to states where that costs most."""
    wanted = posterior(CHAIN, prior(CHAIN), 0.3)
    found = climb(CHAIN, by_loss(0.3), 150, 4.0)
    apart_S = (found.logits_SA.softmax(-1) - wanted.policy_SA).abs().amax(-1)
    assert apart_S[0] > 0.1  # the first turn
    assert apart_S[1:].max() < 0.01  # the last one: there is nothing after it
    less = regularised_return(found, prior(CHAIN), 0.3).item()
    assert less < wanted.value - 0.03
