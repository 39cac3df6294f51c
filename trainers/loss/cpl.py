"""Preferences between trajectories or their segments, without a reference: the log-likelihood of an action is its advantage."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, mean_over_pairs, pairs, trajectory_sum


@component(
    "loss",
    "cpl",
    objective="the likelihood of preferences by regret, with an action's log-likelihood as its advantage",
    paper="2310.13639",
    whole=True,
    slope="own",
)
def cpl(
    batch: WholeBatch,
    *,
    alpha: float = 0.1,
    conservative: float = 0.5,
    discount: float = 1.0,
    segment: int = 0,
) -> WholeLoss:
    """−log σ(S⁺ − λ·S⁻): S = α·Σ γᵏ·log π over the tokens of a trajectory or a segment, k the turn in it, λ = ``conservative``.

    Contrastive preference learning (Hejna et al. 2023), eq. 8 (λ < 1 is its conservative form, which keeps what was seen
    likely). Pairs are all of a group with different returns that are read; the mean is over pairs, then over groups. Unequal
    lengths weigh: with λ = 1 the shorter trajectory begins ahead. Advantages are not used.

    With ``segment`` the trajectories are cut after every so many turns, and what is compared are segments of a group at the
    same place and with equally many turns, as the paper's are equally long; what has no such partner is left out. The better
    one is that with the higher sum of its turns' advantages (a turn's is the mean of its tokens'): preferences by regret, as the
    paper's people state them. With a credit rule that gives every turn of a trajectory the same, it is that of the better one.

    Metrics: ``margin`` (mean of S⁺ − λ·S⁻), ``pairs`` (their number).

    Worked by hand: Σ log π = −3 and −5 give S = −0.3 and −0.5; λ = ½: −log σ(−0.05) = 0.718460; λ = 1: 0.598139. Cut after
    each turn, the first turns are −0.1 against −0.2 with advantages 1 and 2, and the others have no partner: −log σ(−0.2 + 0.05).

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-1, -2], [-5]], success=[1, 0])
    >>> [round(cpl(batch, conservative=x).loss.item(), 6) for x in (0.5, 1.0)]
    [0.71846, 0.598139]
    >>> batch = whole_batch([[-1, -2], [-2]], [[1, 1], [2]], turn=[[0, 1], [0]], success=[1, 0])
    >>> round(cpl(batch, segment=1).loss.item(), 6)
    0.770957

    Raises:
        RecipeError: ``segment`` is below 0.
    """
    if segment < 0:
        raise RecipeError(
            f"loss 'cpl': segment={segment} is no number of turns.",
            "Give 1 or more, or 0 for whole trajectories.",
        )
    turn_RT = batch.turn_RT.clamp(min=0)
    within_RT = turn_RT % segment if segment else turn_RT
    worth_RT = alpha * discount ** within_RT.to(batch.logp_RT.dtype) * batch.logp_RT
    score_N = _by_segment(worth_RT, batch, segment).flatten() if segment else trajectory_sum(worth_RT, batch)
    seen: list[Tensor] = [score_N.new_zeros(0)]

    def each() -> Iterator[Tensor]:
        for better_P, worse_P in segment_pairs(batch, segment) if segment else pairs(batch):
            margin_P = score_N[better_P] - conservative * score_N[worse_P]
            seen.append(margin_P.detach())
            yield -logsigmoid(margin_P)

    loss = mean_over_pairs(batch, each())
    found = torch.cat(seen)
    count = score_N.new_tensor(float(len(found)))
    return WholeLoss(loss, {"margin": found.sum() / count.clamp(min=1), "pairs": count})


def segment_pairs(batch: WholeBatch, segment: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each group the pairs of segments that are compared, the better and the worse one, (P,), as b·J + j."""
    one_RT = batch.mask_RT.to(batch.advantage_RT.dtype)
    tokens_BK, given_BK = _by_segment(one_RT, batch, 1), _by_segment(batch.advantage_RT, batch, 1)
    regret_BJ = _joined(given_BK / tokens_BK.clamp(min=1), segment)
    turns_BJ = _joined((tokens_BK > 0).to(given_BK.dtype), segment)
    for member_M in group_members(batch):
        gap_MMJ = regret_BJ[member_M][:, None] - regret_BJ[member_M][None]
        turns_MJ = turns_BJ[member_M]
        alike_MMJ = turns_MJ[:, None] == turns_MJ[None]
        better, worse, place = ((gap_MMJ > 1e-9) & alike_MMJ).nonzero(as_tuple=True)
        J = regret_BJ.shape[-1]
        yield member_M[better] * J + place, member_M[worse] * J + place


def _by_segment(x_RT: Tensor, batch: WholeBatch, segment: int) -> Tensor:
    """Sum of ``x`` over the sampled tokens of each segment of so many turns, (B, J)."""
    place_RT = batch.turn_RT.clamp(min=0) // segment
    J = max(place_RT.flatten().tolist(), default=0) + 1
    index_RT = batch.trajectory_R[:, None] * J + place_RT
    total_N = torch.zeros(len(batch.group_B) * J, dtype=x_RT.dtype)
    return total_N.index_add(0, index_RT.flatten(), (x_RT * batch.mask_RT).flatten()).view(-1, J)


def _joined(x_BK: Tensor, segment: int) -> Tensor:
    """Sums over every so many turns, (B, J)."""
    return torch.stack([part_BK.sum(-1) for part_BK in x_BK.split(segment, -1)], -1)
