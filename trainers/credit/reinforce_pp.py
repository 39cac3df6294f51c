"""REINFORCE++: return-to-go, standardised over the whole batch."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import returns_to_go, whiten


@component(
    "credit",
    "reinforce_pp",
    paper="2501.03262",
    bias="biased: mean and standard deviation are those of a batch that the turn itself belongs to",
)
def reinforce_pp(batch: TurnBatch, *, discount: float = 1.0) -> Tensor:
    """Returns-to-go of all turns of the batch, standardised together; groups play no part.

    G_k = r_k + γ·G_{k+1};  A = (G − mean G) / sqrt(var G + 1e-8), sample variance, over all turns of the
    batch. Hu et al. 2025, REINFORCE++ without baseline. Works with one rollout per task.

    Ours: the paper whitens over tokens, here each turn counts once. Left out: KL folded into the reward.

    Worked by hand (rewards [0, 0, 1] and [0, 0]): G = [1, 1, 1, 0, 0], mean 0.6, var 0.3.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(reinforce_pp(turn_batch([[0, 0, 1], [0, 0]])))
    [[0.730297, 0.730297, 0.730297], [-1.095445, -1.095445, 0.0]]
    """
    return whiten(returns_to_go(batch, discount), batch.mask_BK)
