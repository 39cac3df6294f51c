"""KL-regularised reinforcement learning on small processes: its objective, and where it must come to rest.

Korbak, Perez and Buckley (2022, arXiv 2205.11275): E[R] − β·KL(π ‖ π₀) over trajectories is a variational bound, whose
maximum is Bayesian inference with the prior π₀ and the evidence exp(R/β). Where no state is met at two turns the policy that
reaches it is a soft Bellman backup; without KL nothing but the best actions is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from turnwise.trainers.lab.exact import Paths, Process


class Posterior(NamedTuple):
    """The policy that maximises E[R] − β·KL(π ‖ π₀), (S, A), and that maximum."""

    policy_SA: Tensor
    value: float


def log_ratio(p: Paths, prior_SA: Tensor) -> Tensor:
    """log π − log π₀ of each turn's action, 0 where there is no turn, (N, K); carries gradient."""
    prior_NK = prior_SA.log_softmax(-1)[p.state_NK, p.action_NK]
    return (p.logp_NK - prior_NK) * p.mask_NK


def regularised_return(p: Paths, prior_SA: Tensor, beta: float) -> Tensor:
    """E[R] − β·KL(π ‖ π₀) over trajectories; a scalar with gradient."""
    return (p.probability_N * (p.return_N - beta * log_ratio(p, prior_SA).sum(-1))).sum()


def paid_for_kl(p: Paths, prior_SA: Tensor, beta: float) -> Paths:
    """The trajectories with rewards less β·(log π − log π₀) of each turn, constants: KL in the reward."""
    return replace(p, reward_NK=p.reward_NK - beta * log_ratio(p, prior_SA).detach())


def posterior(process: Process, prior_SA: Tensor, beta: float) -> Posterior:
    """The soft Bellman backup: π*(a|s) ∝ π₀(a|s)·exp(Q(s, a)/β), V(s) = β·log Σ_a π₀·exp(Q/β), Q the mean of r + V(s′).

    Worked by hand on one turn with π₀ = (½, ½), rewards 0 and 1, β = 1: π* = (1, e)/(1 + e), V = log((1 + e)/2) = 0.620115.

    >>> import torch
    >>> from turnwise.trainers.lab.exact import Branch
    >>> turn = Process("turn", {(0, 0): (Branch(1.0, 0.0, None),), (0, 1): (Branch(1.0, 1.0, None),)}, horizon=1)
    >>> found = posterior(turn, torch.zeros(1, 2, dtype=torch.float64), 1.0)
    >>> [round(x, 6) for x in found.policy_SA[0].tolist()], round(found.value, 6)
    ([0.268941, 0.731059], 0.620115)

    Raises:
        ValueError: a state is met at two turns, so that no policy of states reaches the maximum.
    """
    logp_SA, found_SA = prior_SA.double().log_softmax(-1), prior_SA.double().softmax(-1).clone()
    left_of: dict[int, int] = {}

    def value(state: int | None, left: int) -> float:
        if state is None or left == 0:
            return 0.0
        if left_of.setdefault(state, left) != left:
            raise ValueError(f"state {state} of {process.name} is met at two turns")
        soft_A = logp_SA[state].clone()
        for action in range(process.shape[1]):
            soft_A[action] += sum(
                branch.probability * (branch.reward + value(branch.state, left - 1)) / beta
                for branch in process.branches[state, action]
            )
        found_SA[state] = soft_A.softmax(-1)
        return beta * soft_A.logsumexp(-1).item()

    best = value(0, process.horizon)
    return Posterior(found_SA, best)
