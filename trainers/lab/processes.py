"""The decision processes on which credit rules are measured: small, and each hard in its own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.trainers.lab.exact import Branch, Paths, Process


def _sure(reward: float, state: int | None = None) -> tuple[Branch, ...]:
    return (Branch(1.0, reward, state),)


CHAIN = Process(
    "chain",
    {
        (0, 0): _sure(0.3, 1),
        (0, 1): _sure(0.0, 2),
        (1, 0): _sure(0.1),
        (1, 1): _sure(0.691),
        (2, 0): _sure(1.0),
        (2, 1): _sure(-0.4),
    },
    horizon=2,
    about="two turns with rewards at both; the two best action sequences have similar values",
)
STOPPING = Process(
    "stopping",
    {
        (0, 0): _sure(0.4),
        (0, 1): _sure(0.2, 1),
        (1, 0): _sure(0.1),
        (1, 1): _sure(0.3, 2),
        (2, 0): _sure(1.0),
        (2, 1): _sure(0.0),
    },
    horizon=3,
    about="the policy chooses when to stop",
)
LOOP = Process(
    "loop",
    {
        (0, 0): _sure(-0.1, 0),
        (0, 1): _sure(0.2, 1),
        (1, 0): _sure(0.0, 0),
        (1, 1): _sure(1.0),
    },
    horizon=4,
    about="states are visited again at later turns; a turn limit truncates",
)
CHANCE = Process(
    "chance",
    {
        (0, 0): (Branch(0.7, 0.0, 1), Branch(0.3, 0.5, None)),
        (0, 1): (Branch(0.4, 0.2, 1), Branch(0.6, 0.0, 2)),
        (1, 0): (Branch(0.5, 1.0, None), Branch(0.5, -0.2, None)),
        (1, 1): _sure(0.3),
        (2, 0): _sure(0.8),
        (2, 1): _sure(0.1),
    },
    horizon=2,
    about="the environment's transitions are random",
)
PUZZLE = Process(
    "puzzle",
    {
        (0, 0): _sure(0.0, 1),
        (0, 1): _sure(0.0, 2),
        (1, 0): _sure(0.0),
        (1, 1): _sure(1.0),
        (2, 0): _sure(1.0),
        (2, 1): _sure(0.0, 3),
        (3, 0): _sure(1.0),
        (3, 1): _sure(0.0),
    },
    horizon=3,
    about="the only reward is the outcome, at the end, after two or three turns",
)
PROCESSES = (CHAIN, STOPPING, LOOP, CHANCE, PUZZLE)


def lopsided(process: Process) -> Tensor:
    """Logits of a policy that is neither uniform nor certain, the same on every call, (S, A)."""
    S, A = process.shape
    index_SA = torch.arange(S * A, dtype=torch.float64).view(S, A)
    return torch.sin(2.5 * index_SA + 1.0)


def signals(p: Paths) -> dict[str, Tensor]:
    """Everything a rule may need, on every trajectory; a turn is one token, and values are exact.

    A rule that needs another signal cannot be tested before that signal is added here. What an implicit
    reward, a judge or the run's memory would have said is made up, but not constant (``MADE_UP``).
    """
    mask_NK = p.mask_NK.to(p.value_NK.dtype)
    logp_SA = p.logits_SA.detach().log_softmax(-1)
    entropy_S = -(logp_SA.exp() * logp_SA).sum(-1)
    mixed_NK = torch.cos(3.0 * p.state_NK + 2.0 * p.action_NK) * mask_NK
    return {
        "value": p.value_NK,
        "last_value": p.last_value_N,
        "fork_value": p.value_NK,
        "edge": torch.zeros_like(p.value_NK),  # trajectories are drawn apart: no turn is shared
        "leaf_weight": mask_NK,
        "logp": p.logp_NK.detach(),
        "tokens": mask_NK,
        "entropy": entropy_S[p.state_NK] * mask_NK,
        "information": 0.5 * mixed_NK,
        "implicit": 0.1 * mixed_NK,
        "progress": 0.5 * p.reward_NK + 0.1 * mixed_NK,
        "valid": mask_NK * (mixed_NK > -0.9),
        "wrong": mask_NK * (mixed_NK < -0.3),
        "principle": (0.5 + 0.5 * mixed_NK) * mask_NK,
        "standing": p.return_N.sigmoid()[:, None] * mask_NK,
        "matched": (0.5 + 0.5 * mixed_NK[:, :1]) * mask_NK,
        "past_visits": torch.full_like(p.return_N, 3.0),
        "past_mean": torch.full_like(p.return_N, 0.4),
        "past_std": torch.full_like(p.return_N, 0.45),
        "rank_drive": 0.3 * mixed_NK,
        "token_disagreement": (0.5 + 0.5 * mixed_NK) * mask_NK,
        "token_value": p.value_NK,
        "token_entropy": entropy_S[p.state_NK] * mask_NK,
        "token_implicit": 0.1 * mixed_NK,
        "token_planning": mask_NK * (p.state_NK == 0),
        "token_logp": p.logp_NK.detach(),
        "token_mean_logp": logp_SA.mean(-1)[p.state_NK] * mask_NK,
        "token_teacher_logp": p.logp_NK.detach() + 0.3 * mixed_NK,
    }


MADE_UP = frozenset(
    (
        *("information", "implicit", "progress", "valid", "wrong", "principle", "standing", "matched"),
        *("past_visits", "past_mean", "past_std", "token_implicit", "token_planning", "edge", "leaf_weight"),
        *("token_teacher_logp", "token_disagreement", "rank_drive"),
    )
)
"""Signals that mean nothing on a process: no figure may be reported of rules that need them."""


class ProcessObjective(NamedTuple):
    """The objective that a rule ascends if it is not the expected return."""

    formula: str
    value: Callable[[Paths, int], Tensor]  # of all trajectories and the group size; a scalar with gradient
    solvable: bool = False  # only meant for processes whose returns are 0 or 1


def _success(p: Paths) -> Tensor:
    return (p.probability_N * (p.return_N >= 1)).sum()


def _log_success(p: Paths, n: int) -> Tensor:
    failure = 1 - _success(p)
    return torch.stack([-(failure**k) / k for k in range(1, n)]).sum()


def _mean_best(p: Paths, n: int) -> Tensor:
    """E[max of n returns]/n, from the distribution of a single return."""
    levels, label_N = p.return_N.unique(return_inverse=True)
    single = torch.zeros_like(levels).index_add(0, label_N, p.probability_N)
    reached = single.cumsum(0) ** n  # P(max ≤ level)
    best = torch.cat([reached[:1], reached[1:] - reached[:-1]])
    return (levels * best).sum() / n


OBJECTIVES = {
    "pass_at_k": ProcessObjective("E[max(R_1, …, R_n)]/n", _mean_best),
    "psr_nsr": ProcessObjective("1.1·P(R ≥ 1)", lambda p, n: 1.1 * _success(p)),
    "maxrl": ProcessObjective("−Σ_{k=1}^{n−1} P(R = 0)^k / k", _log_success, solvable=True),
}
"""By name of the credit rule; a rule that declares to change the objective must be here."""
