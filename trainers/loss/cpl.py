"""Preferences between trajectories, without a reference: the log-likelihood of an action is its advantage."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import mean_over_pairs, pairs, trajectory_sum


@component("loss", "cpl", paper="2310.13639", whole=True, slope="own")
def cpl(
    batch: WholeBatch, *, alpha: float = 0.1, conservative: float = 0.5, discount: float = 1.0
) -> WholeLoss:
    """−log σ(S⁺ − λ·S⁻): S = α·Σ γᵏ·log π over the tokens of a trajectory, k the turn, λ = ``conservative``.

    Contrastive preference learning (Hejna et al. 2023), eq. 8 (λ < 1 is its conservative form, which keeps what was seen
    likely). Pairs are all of a group with different returns that are read; the mean is over pairs, then over groups. Unequal
    lengths weigh: with λ = 1 the shorter trajectory begins ahead. Advantages are not used.

    Metrics: ``margin`` (mean of S⁺ − λ·S⁻), ``pairs`` (their number).

    Worked by hand: Σ log π = −3 and −5 give S = −0.3 and −0.5; λ = ½: −log σ(−0.05) = 0.718460; λ = 1: 0.598139.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-1, -2], [-5]], success=[1, 0])
    >>> [round(cpl(batch, conservative=x).loss.item(), 6) for x in (0.5, 1.0)]
    [0.71846, 0.598139]
    """
    fade_RT = discount ** batch.turn_RT.clamp(min=0).to(batch.logp_RT.dtype)
    score_B = alpha * trajectory_sum(fade_RT * batch.logp_RT, batch)
    seen: list[Tensor] = [score_B.new_zeros(0)]

    def each() -> Iterator[Tensor]:
        for better_P, worse_P in pairs(batch):
            margin_P = score_B[better_P] - conservative * score_B[worse_P]
            seen.append(margin_P.detach())
            yield -logsigmoid(margin_P)

    loss = mean_over_pairs(batch, each())
    found = torch.cat(seen)
    count = score_B.new_tensor(float(len(found)))
    return WholeLoss(loss, {"margin": found.sum() / count.clamp(min=1), "pairs": count})
