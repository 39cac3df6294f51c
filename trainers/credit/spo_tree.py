"""SPO-tree: how much more the child node is worth than its parent."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, group_mean, over_cells, over_turns, prefix_cells


@component(
    "credit",
    "spo_tree",
    shared_turns=True,
    paper="2505.23564",
    bias="biased: a node's value is the mean of rollouts among which is the trajectory itself",
)
def spo_tree(batch: TurnBatch) -> Tensor:
    """Value of the prefix after the turn minus value of the prefix before it.

    V(node) = mean return of the rollouts through it, of a leaf its return;  A_{i,k} = V(child) − V(parent).
    Segment policy optimisation (Guo et al. 2025), tree form, segment = turn. Made for rollouts that
    branch on purpose: where a rollout is alone, all of its return is already in the value and its turns
    get 0. Left out: division by the spread of the children, replay of edges, the prover bonus.

    Worked by hand: leaves 1, 1 | 0, 1 under two children: root 3/4, children 1 and 1/2.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 1], [0, 0], [0, 1]], states=[[0, 1], [0, 1], [0, 2], [0, 2]])
    >>> rounded(spo_tree(batch))
    [[0.25, 0.0], [0.25, 0.0], [-0.25, -0.5], [-0.25, 0.5]]
    """
    mask_BK = batch.mask_BK
    value_BK = over_cells(group_mean, over_turns(batch.return_B, batch), prefix_cells(batch), mask_BK)
    return following(value_BK, batch.return_B, mask_BK) - value_BK
