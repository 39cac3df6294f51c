"""Small decision processes whose policy gradients are known exactly.

Every trajectory of such a process can be listed with its probability, so the expected update of a credit
rule is a finite sum, and its bias is measured without sampling. This is what holds each rule to the bias it
declares (docs/architecture.md#the-trainer-knows-no-algorithm-by-name).

Axes: N all trajectories of a process, K turn, S state, A action, C batches that can be drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from turnwise.trainers.core import Credit, TokenView, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens


class Branch(NamedTuple):
    """One thing that may happen: how likely, what it pays, where it leads (None: the end)."""

    probability: float
    reward: float
    state: int | None


@dataclass(frozen=True)
class Process:
    """A finite decision process that starts in state 0 and is cut after ``horizon`` turns.

    The same state may be met at different turns; what the policy and ``state_BK`` see is the state alone, or with ``seen`` the
    context that it gives: one that several states may share.
    """

    name: str
    branches: Mapping[tuple[int, int], tuple[Branch, ...]]  # (state, action) → what may happen
    horizon: int
    about: str = ""
    seen: tuple[int, ...] = ()  # the context of each state; the state itself unless given
    memory: frozenset[tuple[int, int]] = frozenset()  # (state, action) that write for later contexts

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of states (or contexts) that the policy sees, and of actions."""
        states = 1 + max(self.seen or (s for s, _ in self.branches))
        return states, 1 + max(a for _, a in self.branches)

    def context(self, state: int) -> int:
        """What the policy sees of a state."""
        return self.seen[state] if self.seen else state

    def forbidden(self) -> list[tuple[int, int]]:
        """Contexts and actions that no state with this context takes."""
        taken = {(self.context(state), action) for state, action in self.branches}
        states, actions = self.shape
        return [(c, a) for c in range(states) for a in range(actions) if (c, a) not in taken]


@dataclass(frozen=True)
class Paths:
    """All trajectories of a process under one policy.

    Attributes:
        process: whose trajectories they are.
        logits_SA: the policy is their softmax; a leaf that carries gradient.
        logp_NK: log π(a_k | s_k), 0 where there is no turn; carries gradient.
        chance_N: the part of a trajectory's probability that the policy has no hand in.
        reward_NK, mask_NK, state_NK, action_NK: as in a batch.
        cut_N: True where the horizon cut the trajectory.
        value_NK: the exact value of the state before each turn, given the turns that are left; of a context that several
            states share the mean over these, as likely as they are then.
        fork_value_NK: of the state itself.
        memory_NK: True where the policy writes for its own later contexts.
        last_value_N: of the state in which the horizon cut the trajectory, had it been as long again.
    """

    process: Process
    logits_SA: Tensor
    logp_NK: Tensor
    chance_N: Tensor
    reward_NK: Tensor
    mask_NK: Tensor
    state_NK: Tensor
    action_NK: Tensor
    cut_N: Tensor
    value_NK: Tensor
    last_value_N: Tensor
    fork_value_NK: Tensor
    memory_NK: Tensor

    @property
    def probability_N(self) -> Tensor:
        """Probability of each trajectory; carries gradient."""
        return self.chance_N * self.logp_NK.sum(-1).exp()

    @property
    def return_N(self) -> Tensor:
        return self.reward_NK.sum(-1)

    @property
    def score_NKSA(self) -> Tensor:
        """∇log π(a_k | s_k), 0 where there is no turn."""
        S, A = self.logits_SA.shape
        chosen_NKA = torch.nn.functional.one_hot(self.action_NK, A)
        surprise_NKA = chosen_NKA - self.logits_SA.detach().softmax(-1)[self.state_NK]
        here_NKS = torch.nn.functional.one_hot(self.state_NK, S) * self.mask_NK[..., None]
        return here_NKS[..., None] * surprise_NKA[..., None, :]

    def gradient(self, objective: Tensor) -> Tensor:
        """∂objective/∂logits, (S, A)."""
        (gradient_SA,) = torch.autograd.grad(objective, self.logits_SA, retain_graph=True)
        return gradient_SA

    def policy_gradient(self) -> Tensor:
        """The exact gradient of the expected return, (S, A)."""
        return self.gradient((self.probability_N * self.return_N).sum())


def paths(process: Process, logits_SA: Tensor) -> Paths:
    """List all trajectories of ``process`` under the softmax policy ``logits_SA``."""
    logits_SA = logits_SA.detach().double().requires_grad_()
    logp_SA = logits_SA.log_softmax(-1)
    found = list(_walk(process, 0, process.horizon))
    K = max(len(steps) for _, steps, _ in found)

    def column(index: int) -> Tensor:
        rows = [[*(step[index] for step in steps), *[0] * (K - len(steps))] for _, steps, _ in found]
        return torch.tensor(rows, dtype=torch.float64)

    world_NK, action_NK = column(0).long(), column(1).long()
    memory_NK = torch.zeros(len(found), K, dtype=torch.bool)
    for state, action in process.memory:
        memory_NK |= (world_NK == state) & (action_NK == action)
    state_NK = torch.tensor(process.seen)[world_NK] if process.seen else world_NK
    mask_NK = torch.tensor([[k < len(steps) for k in range(K)] for _, steps, _ in found])
    value = [
        [
            *(
                value_of_state(process, logp_SA, int(s), process.horizon - k)
                for k, (s, _, _) in enumerate(steps)
            )
        ]
        for _, steps, _ in found
    ]
    logp_NK = logp_SA[state_NK, action_NK] * mask_NK
    chance_N = torch.tensor([chance for chance, _, _ in found], dtype=torch.float64)
    value_NK = torch.tensor([[*row, *[0.0] * (K - len(row))] for row in value], dtype=torch.float64)
    return Paths(
        process,
        logits_SA,
        logp_NK,
        chance_N,
        column(2),
        mask_NK,
        state_NK,
        action_NK,
        torch.tensor([end is not None for _, _, end in found]),
        _seen_value(value_NK, state_NK, mask_NK, chance_N * logp_NK.detach().sum(-1).exp())
        if process.seen
        else value_NK,
        torch.tensor(
            [
                0.0 if end is None else value_of_state(process, logp_SA, end, process.horizon)
                for _, _, end in found
            ],
            dtype=torch.float64,
        ),
        value_NK,
        memory_NK & mask_NK,
    )


def _seen_value(value_NK: Tensor, state_NK: Tensor, mask_NK: Tensor, chance_N: Tensor) -> Tensor:
    """The mean value of what is seen before each turn, over all trajectories that are seen to be there then."""
    found_NK = torch.zeros_like(value_NK)
    for k in range(value_NK.shape[1]):
        weight_N = chance_N * mask_NK[:, k]
        same_NN = (state_NK[:, None, k] == state_NK[None, :, k]).to(value_NK.dtype) * weight_N
        mean_N = (same_NN @ value_NK[:, k]) / same_NN.sum(-1).clamp(min=1e-300)
        exact_N = (same_NN > 0).sum(-1) == 0
        found_NK[:, k] = torch.where(exact_N, 0.0, mean_N) * mask_NK[:, k]
    return found_NK


Steps: TypeAlias = tuple[tuple[int, int, float], ...]


def _walk(process: Process, state: int, left: int) -> list[tuple[float, Steps, int | None]]:
    """Every way on from ``state``: chance, (state, action, reward) per turn, the state in which it was cut."""
    if left == 0:
        return [(1.0, (), state)]
    ways: list[tuple[float, Steps, int | None]] = []
    for action in range(process.shape[1]):
        for branch in process.branches.get((state, action), ()):
            step = (state, action, branch.reward)
            if branch.state is None:
                ways.append((branch.probability, (step,), None))
                continue
            for chance, steps, end in _walk(process, branch.state, left - 1):
                ways.append((branch.probability * chance, (step, *steps), end))
    return ways


def value_of_state(process: Process, logp_SA: Tensor, state: int, left: int) -> float:
    """The exact value of ``state`` with ``left`` turns to go."""
    if left == 0:
        return 0.0
    total = 0.0
    for action in range(process.shape[1]):
        for branch in process.branches.get((state, action), ()):
            after = 0.0 if branch.state is None else value_of_state(process, logp_SA, branch.state, left - 1)
            total += (
                logp_SA[process.context(state), action].exp().item()
                * branch.probability
                * (branch.reward + after)
            )
    return total


# --- the update that a credit rule makes on average -----------------------------------------------


def batch_of(
    p: Paths, index_B: Tensor, group_B: Tensor, signals: Mapping[str, Tensor], *, per_turn: int = 1
) -> TurnBatch:
    """The batch in which these trajectories were drawn.

    A step of the process is one sampled token; ``per_turn`` of them make a turn, which is paid at its end.
    Signals whose name begins with ``token_`` are of tokens, the others of turns (as they are at its first token).
    """
    mask_BT, reward_BT = p.mask_NK[index_B], p.reward_NK[index_B]
    turn_T = torch.arange(mask_BT.shape[1]) // per_turn
    reward_BK = reward_BT.new_zeros(len(index_B), int(turn_T[-1]) + 1).index_add_(1, turn_T, reward_BT)
    given = {name: value[index_B] for name, value in signals.items()}
    view = TokenView(
        token_RT=p.action_NK[index_B],
        mask_RT=mask_BT,
        turn_RT=turn_T.expand_as(mask_BT).masked_fill(~mask_BT, -1),
        trajectory_R=torch.arange(len(index_B)),
        signals={name: x for name, x in given.items() if name.startswith("token_")},
    )
    return TurnBatch(
        reward_BK=reward_BK,
        mask_BK=mask_BT[:, ::per_turn],
        group_B=group_B,
        truncated_B=p.cut_N[index_B],
        state_BK=p.state_NK[index_B][:, ::per_turn] + 1,
        signals={
            name: x[:, ::per_turn] if x.dim() == 2 else x
            for name, x in given.items()
            if not name.startswith("token_")
        },
        tokens=view,
        memory_BK=p.memory_NK[index_B][:, ::per_turn],
    )


class Update(NamedTuple):
    """The mean and the variance of the update that a rule makes."""

    mean_SA: Tensor
    variance: float  # E‖update − mean‖²


def expected_update(
    credit: Credit, p: Paths, n: int, signals: Mapping[str, Tensor], *, groups: int = 1, per_turn: int = 1
) -> Update:
    """Moments of (1/B) Σ_i Σ_k A_{i,k} ∇log π(a_{i,k}|s_{i,k}) over batches of ``groups`` groups of ``n``.

    Exact: batches that differ only in order are counted together, which a rule that doesn't look at the
    order allows. A step of the process is a token; with ``per_turn`` above 1 turns have several of them.
    """
    group_Cn = torch.tensor(list(itertools.combinations_with_replacement(range(len(p.reward_NK)), n)))
    choice_CG = torch.tensor(list(itertools.product(range(len(group_Cn)), repeat=groups)))
    return step_gradient(credit, p, group_Cn[choice_CG].flatten(1), n, signals, per_turn=per_turn)


def step_gradient(
    credit: Credit, p: Paths, index_CB: Tensor, n: int, signals: Mapping[str, Tensor], *, per_turn: int = 1
) -> Update:
    """Moments of the update over batches ``index_CB`` of groups of ``n``, each group standing for all its orders."""
    chance_C = chances(p, index_CB, n)
    advantage_CBK = group_advantages(credit, p, index_CB, n, signals, per_turn)
    update_CSA = torch.einsum("cbk,cbksa->csa", advantage_CBK, p.score_NKSA[index_CB]) / index_CB.shape[1]
    mean_SA = torch.einsum("c,csa->sa", chance_C, update_CSA)
    square = (chance_C * ((update_CSA - mean_SA) ** 2).sum((1, 2))).sum()
    return Update(mean_SA, square.item())


def all_groups(p: Paths, n: int) -> tuple[Tensor, Tensor]:
    """Every group of ``n`` trajectories (C, n), order aside, and in how many orders each can be drawn (C,)."""
    groups = [*itertools.combinations_with_replacement(range(len(p.reward_NK)), n)]
    orders = [float(_orders([*group])) for group in groups]
    return torch.tensor(groups), torch.tensor(orders, dtype=torch.float64)


def chances(p: Paths, index_CB: Tensor, n: int) -> Tensor:
    """Return the probability of each batch of groups of ``n``, (C,), each group standing for all its orders."""
    group_CGn = index_CB.view(len(index_CB), -1, n)
    orders_CG = torch.tensor(
        [[float(_orders(group)) for group in batch] for batch in group_CGn.tolist()], dtype=torch.float64
    )
    return (orders_CG * p.probability_N.detach()[group_CGn].prod(-1)).prod(-1)


def group_advantages(
    credit: Credit, p: Paths, index_CB: Tensor, n: int, signals: Mapping[str, Tensor], per_turn: int = 1
) -> Tensor:
    """The advantages of each step in every batch, (C, B, K)."""
    return of_batches(
        lambda batch: on_tokens(credit(batch), batch), p, index_CB, n, signals, per_turn=per_turn
    )


def of_batches(
    value: Callable[[TurnBatch], Tensor],
    p: Paths,
    index_CB: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
    *,
    per_turn: int = 1,
) -> Tensor:
    """Apply ``value`` to the trajectories of every batch, (B, …) → (C, B, …); all at once where groups don't touch each other."""
    C, B = index_CB.shape
    group_CB = torch.arange(C * B // n).repeat_interleave(n).view(C, B)

    def given(index_B: Tensor, group_B: Tensor) -> Tensor:
        return value(batch_of(p, index_B, group_B, signals, per_turn=per_turn))

    flat = given(index_CB.flatten(), group_CB.flatten())
    together = flat.view(C, B, *flat.shape[1:])

    def alone(c: int) -> Tensor:
        return given(index_CB[c], group_CB[c] - group_CB[c, 0])

    probes = range(0, C, max(C // 7, 1))
    if all(torch.allclose(alone(c), together[c], atol=1e-12) for c in probes):
        return together
    return torch.stack([alone(c) for c in range(C)])


def _orders(row: list[int]) -> int:
    """In how many orders a multiset can be drawn."""
    count = math.factorial(len(row))
    for item in set(row):
        count //= math.factorial(row.count(item))
    return count


class Bias(NamedTuple):
    """An expected update compared with a gradient: update = scale · gradient + rest.

    ``angle`` is the sine of the angle between the two, 0 where they point the same way; ``error`` is the
    largest difference of any component, relative to the largest component of the gradient.
    """

    scale: float
    angle: float
    error: float

    @property
    def degrees(self) -> float:
        """The angle between the two in degrees, from 0 to 180."""
        acute = math.degrees(math.asin(min(self.angle, 1.0)))
        return acute if self.scale >= 0 else 180 - acute


def in_words(found: Mapping[str, Bias]) -> str:
    """Write the bias on each process in words.

    >>> in_words({"chain": Bias(scale=0.9, angle=0.5, error=0.6)})
    'chain 30.0° off, factor 0.90'
    """
    return "; ".join(
        f"{name} {bias.degrees:.1f}° off, factor {bias.scale:.2f}" for name, bias in found.items()
    )


def compare(update_SA: Tensor, gradient_SA: Tensor) -> Bias:
    """Measure the bias of an expected update.

    >>> compare(torch.tensor([2.0, 2.0]), torch.tensor([1.0, 1.0]))
    Bias(scale=2.0, angle=0.0, error=1.0)
    """
    scale = (update_SA * gradient_SA).sum() / (gradient_SA**2).sum()
    rest_SA = update_SA - scale * gradient_SA
    angle = rest_SA.norm() / update_SA.norm().clamp(min=1e-300)
    error = (update_SA - gradient_SA).abs().max() / gradient_SA.abs().max()
    return Bias(scale.item(), angle.item(), error.item())
