"""MT-GRPO: the outcome standardised, plus each turn's own reward standardised."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, last_turn, over_cells, over_turns, turn_cells


@component(
    "credit",
    "mt_grpo",
    paper="2505.11821",
    bias="biased: a turn is paid for its own reward but not for those it leads to, and for being short of peers",
)
def mt_grpo(batch: TurnBatch, *, weight: float = 1.0) -> Tensor:
    """GRPO on the outcome, plus GRPO on the reward of each turn among the peers that play that turn.

    A_{i,k} = z(O)_i + λ·z(r_{·,k})_i, where O is the reward of a trajectory's last turn, the second term is
    left out at last turns, and z divides by the sample standard deviation + 1e-4. Zeng et al. 2025.

    Ours: the paper has two turns, of which the first has a reward; here every turn but the last has one. Where no
    tool answered, the released code gives z(O + r of the turn) alone; here a trajectory of one turn has z(O), with whatever that
    turn earned in O and no second term, and one that went on without a tool is treated as all others are.
    What an action earns in later turns before the last is never credited to it.

    Worked by hand: first-turn rewards [0.2, 0, 0.2, 0.1], outcomes [1, 0, 0, 1].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(mt_grpo(turn_batch([[0.2, 1], [0, 0], [0.2, 0], [0.1, 1]])))
    [[1.648408, 0.865875], [-2.170096, -0.865875], [-0.083343, -0.865875], [0.605031, 0.865875]]
    """
    mask_BK, last_BK = batch.mask_BK, last_turn(batch.mask_BK)
    outcome_B = (batch.reward_BK * last_BK).sum(-1)
    advantage_BK = over_turns(group_z(outcome_B, batch.group_B, eps=1e-4), batch)
    early_BK = mask_BK & ~last_BK

    def standardise(x: Tensor, group: Tensor) -> Tensor:
        return group_z(x, group, eps=1e-4)

    return advantage_BK + weight * over_cells(standardise, batch.reward_BK, turn_cells(batch), early_BK)
