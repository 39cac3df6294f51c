"""CAPO: a judge names the wrong turns; the whole and its turns are paid together."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_sum, signal


@component(
    "credit",
    "capo",
    paper="2508.02298",
    needs=("wrong", "tokens"),
    bias="biased: pays a judge's opinion, standardised over a group's tokens, among them the turn's own",
)
def capo(batch: TurnBatch, *, whole: float = 2.0, process: float = 1.0, success: float = 1.0) -> Tensor:
    """Success of the trajectory minus the judge's verdict on the turn, standardised over the tokens of the group.

    r_k = W_whole·1[R ≥ success] − W_process·wrong_k;  A_k = (r_k − mean)/(std + 1e-6), both over all sampled tokens of
    the group (sample deviation). W_whole > W_process, so that a flawed success stays above a failure. Xie et al.
    2025; ``wrong`` is the judges' verdict (see the recipe's ``judge``). A turn is the paper's step. The scope of the
    standardisation is an interpretation.

    Worked by hand: a success with 2 right and 2 wrong tokens, a failure with 2 and 1: r = 2, 1 | 0, −1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"wrong": [[0, 1], [0, 1]], "tokens": [[2, 2], [2, 1]]}
    >>> rounded(capo(turn_batch([[0, 1], [0, 0]], signals=signals)), 4)
    [[1.1555, 0.2568], [-0.6419, -1.5407]]
    """
    mask_BK, wrong_BK = batch.mask_BK, signal(batch, "wrong")
    solved_B = (batch.return_B >= success - 1e-6).to(wrong_BK.dtype)
    reward_BK = (whole * solved_B[:, None] - process * wrong_BK) * mask_BK
    weight_BK = signal(batch, "tokens") * mask_BK
    count_B = group_sum(weight_BK.sum(1), batch.group_B).clamp(min=1)
    mean_B = group_sum((weight_BK * reward_BK).sum(1), batch.group_B) / count_B
    off_BK = (reward_BK - mean_B[:, None]) * mask_BK
    square_B = group_sum((weight_BK * off_BK**2).sum(1), batch.group_B)
    std_B = (square_B / (count_B - 1).clamp(min=1)).sqrt()
    return off_BK / (std_B + EPS)[:, None]
