"""TEMPO: GRPO plus the change in value from prefix to prefix of the group's tree."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    EPS,
    following,
    group_mean,
    group_std,
    over_cells,
    over_turns,
    prefix_cells,
)


@component(
    "credit",
    "tempo",
    shared_turns=True,
    paper="2509.18314",
    bias="biased: values and standard deviation come from a group that the trajectory itself belongs to",
)
def tempo(batch: TurnBatch) -> Tensor:
    """GRPO, plus how much more the prefix was worth after the turn than before it.

    V(prefix) = mean return of the rollouts of the group that share it (the prefix tree, P2T);
    A_{i,k} = [(R_i − mean_g R) + V(s_{k+1}) − V(s_k)] / (std_g R + 1e-6); the value after the last turn is
    R_i. Where nobody branches off, V stays and plain GRPO remains. Tran et al. 2025.

    Ours: a prefix is the sequence of states up to a turn, the paper's of tokens. Where the division
    by the standard deviation belongs is taken from a review of the paper.

    Worked by hand: R = 1, 1, 0, 0 over prefixes ab, ab, ac, d: std 0.57735, V(a) = 2/3, V(ab) = 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> states = [[0, 1, 2], [0, 1, 2], [0, 1, 3], [0, 4]]
    >>> rounded(tempo(turn_batch([[0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0]], states=states)))[0]
    [1.154699, 1.443373, 0.866024]
    >>> rounded(tempo(turn_batch([[0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0]], states=states)))[2:]
    [[-0.577349, -2.020722, -0.866024], [-1.732048, -0.866024, 0.0]]
    """
    R_B, mask_BK = batch.return_B, batch.mask_BK
    value_BK = over_cells(group_mean, over_turns(R_B, batch), prefix_cells(batch), mask_BK)
    step_BK = following(value_BK, R_B, mask_BK) - value_BK
    outcome_BK = over_turns(R_B - group_mean(R_B, batch.group_B), batch)
    return (outcome_BK + step_BK) / over_turns(group_std(R_B, batch.group_B) + EPS, batch).clamp(min=EPS)
