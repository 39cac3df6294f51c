"""PSR and NSR: reinforce successes, or rather discourage failures."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import over_turns


@component(
    "credit",
    "psr_nsr",
    paper="2506.01347",
    bias="changes the objective: to (positive + negative)·P(return ≥ success)",
)
def psr_nsr(
    batch: TurnBatch, *, positive: float = 0.1, negative: float = 1.0, success: float = 1.0
) -> Tensor:
    """A fixed advantage for success and another for failure; no baseline.

    A_i = ``positive`` where R_i ≥ ``success``, else −``negative``. Zhu et al. 2025: negative = 0 is positive
    sample reinforcement, positive = 0 negative sample reinforcement, 0.1 and 1 is W-REINFORCE. In
    expectation the split changes nothing but the scale — which is why a test finds the exact gradient of
    the success rate — but it decides which trajectories the noise comes from, and so how fast entropy falls.

    Worked by hand: R = [1, 0, 0, 1].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(psr_nsr(turn_batch([[1], [0], [0], [1]])))
    [[0.1], [-1.0], [-1.0], [0.1]]
    """
    solved_B = batch.return_B >= success - 1e-6
    advantage_B = batch.return_B.new_full(solved_B.shape, -negative).masked_fill(solved_B, positive)
    return over_turns(advantage_B, batch)
