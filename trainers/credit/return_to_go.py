"""Turn-level return-to-go minus what the peers got from the same turn on."""

from typing import Literal

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_sum, peers_mean, returns_to_go


@component("credit", "return_to_go", bias="unbiased")
def return_to_go(
    batch: TurnBatch, *, discount: float = 1.0, peers: Literal["all", "alive"] = "all"
) -> Tensor:
    """Discounted sum of rewards from each turn on, compared with what the peers got from that turn on.

    A_{i,k} = G_{i,k} − b_{i,k},  G_{i,k} = r_{i,k} + γ·G_{i,k+1},
    b_{i,k} = (1/(n−1)) Σ_{j≠i} G_{j,k}, where a peer that has ended counts as G_{j,k} = 0.

    Why it is unbiased although the policy chooses when to stop: whether i plays turn k is settled before
    its action a_k, and b_{i,k} is a function of the other trajectories alone. So
    E[b_{i,k}·1{i plays k}·∇log π(a_k|s_k)] = E[b_{i,k}]·E[1{i plays k}·E[∇log π(a_k|s_k) | s_k]] = 0.
    The same holds with ``peers="alive"``, which averages over the peers that play turn k too and
    subtracts nothing where there are none. Both are tested against exact gradients; what is biased is a
    mean that includes i itself, or a baseline on rewards that is then summed over i's own turns
    (``turn_index``).

    A group of one gets 0. ``discount`` < 1 no longer follows the gradient of the undiscounted return.
    The estimator is textbook REINFORCE with RLOO's leave-one-out baseline (2402.14740) per turn.

    Worked by hand: rewards [0, 1], [0], [0.5, 0, −0.5] give G = [1, 1], [0], [0, −0.5, −0.5];
    first turn 1 − (0+0)/2, 0 − (1+0)/2, 0 − (1+0)/2; second 1 − (0−0.5)/2 = 1.25.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0], [0.5, 0, -0.5]])
    >>> rounded(return_to_go(batch))
    [[1.0, 1.25, 0.0], [-0.5, 0.0, 0.0], [-0.5, -1.0, -0.5]]
    >>> rounded(return_to_go(batch, peers="alive"))
    [[1.0, 1.5, 0.0], [-0.5, 0.0, 0.0], [-0.5, -1.5, -0.5]]
    """
    G_BK = returns_to_go(batch, discount)
    if peers == "all":
        baseline_BK = peers_mean(G_BK, batch.group_B)
    else:
        alive_BK = batch.mask_BK.to(G_BK.dtype)
        others_BK = group_sum(alive_BK, batch.group_B) - alive_BK
        baseline_BK = (group_sum(G_BK, batch.group_B) - G_BK) / others_BK.clamp(min=1)
    advantage_BK = (G_BK - baseline_BK) * batch.mask_BK
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0)
