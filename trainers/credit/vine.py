"""VinePPO: what fresh rollouts from the next state earn, minus what those from this state earn."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, signal


@component("credit", "vine", paper="2410.01679", needs=("fork_value",), bias="unbiased")
def vine(batch: TurnBatch) -> Tensor:
    """One-step advantages from Monte-Carlo values.

    A_k = r_k + V(s_{k+1}) − V(s_k), V = 0 after the last turn, where V(s) is the mean return of fresh rollouts
    from s (forks of the environment). Kazemnejad et al. 2024 (9 rollouts per state). Unbiased because the
    rollouts are drawn apart from the trajectory: E[V(s_{k+1})|s_{k+1}] is the true value.

    Worked by hand: V = 4/9, 7/9, 3/9, reward 1 at the end.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(vine(turn_batch([[0, 0, 1]], signals={"fork_value": [[4 / 9, 7 / 9, 3 / 9]]})))
    [[0.333333, -0.444444, 0.666667]]
    """
    value_BK = signal(batch, "fork_value") * batch.mask_BK
    after_BK = following(value_BK, batch.return_B.new_zeros(len(value_BK)), batch.mask_BK)
    return (batch.reward_BK + after_BK - value_BK) * batch.mask_BK
