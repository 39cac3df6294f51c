"""Return of what a turn can have changed in a tree of conversations, minus that of the peers."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.branches import influenced
from turnwise.trainers.kit.groups import alone, peers_mean


@component("credit", "branch_return", paper="1506.05254", bias="unbiased", branches=True)
def branch_return(batch: TurnBatch) -> Tensor:
    """Sum of the rewards of turns that may have been told something of this one, compared with the peers' k-th turns.

    D_{i,k} = Σ_{j ≽ k} r_{i,j},  A_{i,k} = D_{i,k} − (1/(n−1)) Σ_{i'≠i} D_{i',k}, where a peer that has ended counts 0.

    j ≽ k holds for k itself and for later turns of its conversation, of the conversations that it or they called for, and of
    its caller's after the call, which have the branch's answer; so a sub-agent shares in the return of whoever called it. It
    does not hold between two sub-agents that one turn called. Schulman et al. 2015, theorem 1: the gradient of an expected
    sum of costs needs for each sampled node only the costs that it influences. Here a turn is a node and a reward is a cost.
    Ours is how the tree is read (``turnwise.trainers.kit.branches``), and the baseline, which is that of ``return_to_go``.
    Without branches it is ``return_to_go``.

    It is unbiased where sub-agents of one turn change nothing for each other. Where one changes the other's world (two that
    buy from one stock), what it does there to the other's rewards is left out; ``return_to_go`` has it.

    A group of one gets 0.

    Worked by hand: a main turn (0) calls two helpers (1, 2), which earn 0.5 and 0.25, and its next turn (3) earns 1; the peer
    earns nothing. D = [1.75, 1.5, 1.25, 1]: the second helper's 0.25 is not the first one's.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> tree = {"parents": [[-1, -1, -1, 0]] * 2, "callers": [[-1, 0, 0, -1]] * 2}
    >>> rounded(branch_return(turn_batch([[0, 0.5, 0.25, 1], [0, 0, 0, 0]], **tree)))
    [[1.75, 1.5, 1.25, 1.0], [-1.75, -1.5, -1.25, -1.0]]
    >>> rounded(branch_return(turn_batch([[0, 1], [0], [0.5, 0, -0.5]])))
    [[1.0, 1.25, 0.0], [-0.5, 0.0, 0.0], [-0.5, -1.0, -0.5]]
    """
    influence_BKK = influenced(batch).to(batch.reward_BK.dtype)
    D_BK = torch.einsum("bkj,bj->bk", influence_BKK, batch.reward_BK)
    advantage_BK = (D_BK - peers_mean(D_BK, batch.group_B)) * batch.mask_BK
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0)
