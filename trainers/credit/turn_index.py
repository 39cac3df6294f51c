"""The obvious turn-level GRPO, and why it is wrong: rewards centred per turn index, then summed."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_cells, reverse_cumsum, turn_cells


@component(
    "credit",
    "turn_index",
    bias="biased: the baseline has as many terms as the trajectory goes on to play, so it pays for stopping",
)
def turn_index(batch: TurnBatch) -> Tensor:
    """Each turn's reward minus the mean of the peers that play that turn, summed from each turn on.

    A_{i,k} = Σ_{l=k}^{K_i} (r_{i,l} − b_l),  b_l = mean of r_{j,l} over the trajectories of the group that
    play turn l. It is what one writes first, and is kept as a warning: the sum of b runs to the *own* last
    turn, so going on costs E[b] and stopping saves it (argued in verl#7244; measured here against the
    exact gradient). ``return_to_go`` subtracts a baseline from the return instead and is unbiased.

    Worked by hand: rewards [1, 1], [0]: b = [1/2, 1].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(turn_index(turn_batch([[1, 1], [0]])))
    [[0.5, 0.0], [-0.5, 0.0]]
    """
    baseline_BK = over_cells(group_mean, batch.reward_BK, turn_cells(batch), batch.mask_BK)
    return reverse_cumsum((batch.reward_BK - baseline_BK) * batch.mask_BK) * batch.mask_BK
