"""The decision processes on which credit rules are measured: small, and each hard in its own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.registry import components
from turnwise.trainers.lab.exact import Branch, Paths, Process, paths


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


NEVER = -60.0
"""A logit of what cannot be done; e⁻⁶⁰ is nothing in float64."""


def lopsided(process: Process) -> Tensor:
    """Logits of a policy that is neither uniform nor certain, the same on every call, (S, A)."""
    S, A = process.shape
    index_SA = torch.arange(S * A, dtype=torch.float64).view(S, A)
    logits_SA = torch.sin(2.5 * index_SA + 1.0)
    for context, action in process.forbidden() if process.seen else ():
        logits_SA[context, action] = NEVER
    return logits_SA


GIVERS = ("signal", "strategy", "guide", "judge", "teacher")
"""The kinds of components that give signals, and say what these are on a process."""


def signals(p: Paths) -> dict[str, Tensor]:
    """Everything a rule may need, on every trajectory, as what gives it says: exact, or made up where it means nothing here."""
    found: dict[str, Tensor] = {}
    for entry in (entry for kind in GIVERS for entry in components(kind)):
        for known in filter(None, (entry.stand_in, entry.exact)):
            found |= known(p)
    return found


def made_up() -> frozenset[str]:
    """Signals that mean nothing on a process: no figure may be reported of rules that need them."""
    p = paths(CHAIN, lopsided(CHAIN))
    entries = [entry for kind in GIVERS for entry in components(kind)]
    return frozenset(name for entry in entries if entry.stand_in for name in entry.stand_in(p))


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
