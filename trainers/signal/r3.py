"""R3: the rise of the right answer's log-probability, weighed by how much the reasoning matters to each of its tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import cut_answers, forced, last_turn, ranked, spread


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"r3": wave(p), "r3_spread": 0.3 * turns_of(p), "r3_rank": turns_of(p)}


@component(
    "signal", "r3", paper="2506.13351", gives=("r3", "r3_spread", "r3_rank"), reads=("gold", "context"), stand_in=_stand_in,
)  # fmt: skip
def r3(
    see: SignalContext,
    batch: TrainingBatch,
    groups: Sequence[Group],
    *,
    propagate: float = 0.0,
    length: float = 0.0,
    worst: float = 0.1,
) -> Measured:
    """Σ_j w_j·(log p̃(y_j | reasoning) − log p̃(y_j | task alone)) on every turn, and what its filter looks at.

    σ_j is the deviation (by n) of log π(y_j | reasoning) over the group, so that only tokens count whose likelihood depends on the
    reasoning: w_j = σ_j/Σσ (ours: the paper leaves the form open). Where no token depends on it, R3 is 0. The reasoning reflection
    reward of DRO (Xu et al. 2025); the answer and the reasoning are those of `rlpr`, and a masked reasoning is none.

    p̃ = p + (1 − p)·(1 − e^(−γd)), γ = ``propagate``: what comes d tokens behind the one with the largest σ (that one: ours) counts as the more
    certain the further off it is, since earlier tokens of the right answer tell it; 0 leaves p. With ``length`` β it is multiplied by
    1 − β·| |y| − |ŷ| |/|y|, at least 0, ŷ being what the policy said after its thoughts, in tokens.

    ``r3_spread`` is max_j σ_j of the group. ``r3_rank`` is the mean rank in the vocabulary (1: the likeliest) of the ⌈worst·|y|⌉ tokens of y that
    rank lowest, the best of the group; it takes another pass, and is measured where a part asks for it, such as `filter: {name: r3, rank: r3_rank}`.

    Worked by hand: p = .9 .2 .95 and .9 .6 .96, .85 .1 .9 without reasoning; σ = 0, .5493, .0052. With γ = ½ the last token's .95, .96 and .9
    become .9697, .9757 and .9393. 130 tokens for 100 at β = ½ are .85.

    >>> p_NJ, bare_J = torch.tensor([[0.9, 0.2, 0.95], [0.9, 0.6, 0.96]]), torch.tensor([0.85, 0.1, 0.9])
    >>> logs = p_NJ.double().log(), bare_J.double().log().expand(2, 3)
    >>> [round(x, 4) for x in reflected(*logs).tolist()], [round(x, 4) for x in reflected(*logs, 0.5).tolist()]
    ([0.6871, 1.7755], [0.6869, 1.7752])
    >>> length_factor(100, 130, 0.5)
    0.85

    Raises:
        RecipeError: ``propagate`` or ``length`` is below 0, or ``worst`` is no share.
    """
    if propagate < 0 or length < 0 or not 0 < worst <= 1:
        raise RecipeError(
            f"signal 'r3': propagate={propagate:g}, length={length:g}, worst={worst:g}.",
            "Give 0 or more for the first two (0 leaves them out), and a share above 0 of an answer's tokens (0.1).",
        )
    after, answers, alone = cut_answers(see, batch, groups, "")
    told = forced(see.learner.score, after, answers, see.context)
    bare = forced(see.learner.score, alone, answers, see.context)
    rank = ranked(see.learner, after, answers, see.context) if "r3_rank" in see.needs else {}
    found, widest, best = dict[int, float](), dict[int, float](), dict[int, float]()
    for g in batch.turns.group_B.unique().tolist():
        members = [b for b in (batch.turns.group_B == g).nonzero().flatten().tolist() if b in told]
        if members:
            told_NJ, bare_NJ = (torch.stack([of[b] for b in members]) for of in (told, bare))
            gains = reflected(told_NJ, bare_NJ, propagate).tolist()
            found |= {
                b: gain * length_factor(len(answers[b]), len(last_turn(batch, b)[1]) - kept, length)
                for b, gain, kept in zip(members, gains, _thoughts(batch, after, members), strict=True)
            }
            widest |= dict.fromkeys(members, told_NJ.std(0, correction=0).max().item())
            if rank:
                best |= dict.fromkeys(members, min(_lowest(rank[b], worst) for b in members))
    ranks = {"r3_rank": spread(batch, best)} if rank else {}
    return Measured({"r3": spread(batch, found), "r3_spread": spread(batch, widest), **ranks})


def reflected(told_NJ: Tensor, bare_NJ: Tensor, propagate: float = 0.0) -> Tensor:
    """R3 of the members of a group, (N,), without the factor for lengths."""
    sigma_J = told_NJ.std(0, correction=0)
    total = sigma_J.sum()
    behind_J = (torch.arange(len(sigma_J)) - sigma_J.argmax()).clamp(min=0)
    open_J = (-propagate * behind_J).exp()  # 1 − p̃ is so much of 1 − p
    gain_NJ = torch.log1p(-open_J * -told_NJ.expm1()) - torch.log1p(-open_J * -bare_NJ.expm1())
    return (gain_NJ * sigma_J).sum(1) / total if total > 0 else told_NJ.new_zeros(len(told_NJ))


def length_factor(right: int, said: int, beta: float) -> float:
    """The factor for an answer of so many tokens, where the right one has so many."""
    return max(0.0, 1 - beta * abs(right - said) / right)


def _thoughts(batch: TrainingBatch, after: Mapping[int, Sequence[int]], members: Sequence[int]) -> list[int]:
    """The tokens of each last turn that count as reasoning."""
    return [len(after[b]) - len(last_turn(batch, b)[0]) for b in members]


def _lowest(rank_J: Tensor, worst: float) -> float:
    """The mean of the share of ranks that are largest."""
    count = math.ceil(worst * len(rank_J) - 1e-9)
    return rank_J.double().topk(max(1, count)).values.mean().item()
