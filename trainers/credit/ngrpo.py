"""NGRPO: an imagined success joins every group."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_size, group_sum, over_turns


@component(
    "credit",
    "ngrpo",
    paper="2509.18851",
    bias="biased: the baseline includes the trajectory itself and an imagined one",
)
def ngrpo(batch: TurnBatch, *, best: float = 1.0) -> Tensor:
    """GRPO, with a trajectory of the best possible return added to the statistics of each group.

    μ′, s′ = mean and sample standard deviation of R_1, …, R_n, ``best``;  A_i = (R_i − μ′) / (s′ + 1e-6).
    Nan et al. 2025. A group that failed altogether is pushed away from what it did; one that all
    reached ``best`` gives 0. Goes with ``loss: clip``, low 0.16, high 0.24.

    Worked by hand: R = [0, 0, 0, 0] and 1: μ′ = 0.2, s′ = √0.2 = 0.447214.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(ngrpo(turn_batch([[0], [0], [0], [0]])))
    [[-0.447213], [-0.447213], [-0.447213], [-0.447213]]
    >>> rounded(ngrpo(turn_batch([[1], [0], [0], [0]])))
    [[1.095443], [-0.730295], [-0.730295], [-0.730295]]
    """
    R_B, group_B = batch.return_B, batch.group_B
    n_B = group_size(group_B)
    mean_B = (group_sum(R_B, group_B) + best) / (n_B + 1)
    square_B = group_sum((R_B - mean_B) ** 2, group_B) + (best - mean_B) ** 2
    return over_turns((R_B - mean_B) / ((square_B / n_B).sqrt() + EPS), batch)
