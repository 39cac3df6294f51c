"""Think-RM: what a judge prefers, pair by pair, as the advantage."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import signal


@component(
    "credit",
    "think_rm",
    paper="2505.16265",
    needs=("preference",),
    bias="biased: standardised preferences say nothing of how much better a trajectory was",
)
def think_rm(batch: TurnBatch) -> Tensor:
    """The preference of a trajectory over the others of its group, which the judge has standardised, at each of its turns.

    Think-RM (Hong et al. 2025) needs no number for an episode: the judge `think_rm` compares all pairs. Rewards have no effect.

    Worked by hand: strengths of r = 2, 1, 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(think_rm(turn_batch([[0, 0], [1], [0]], signals={"preference": [[1.0, 1.0], [0.0], [-1.0]]})), 4)
    [[1.0, 1.0], [0.0, 0.0], [-1.0, 0.0]]
    """
    return signal(batch, "preference") * batch.mask_BK
