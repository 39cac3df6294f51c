"""RLVMR: the outcome compared with the group, and what a tag earned with the same tag."""

from typing import Literal

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import cell_size, cells, group_z, over_cells, over_turns, signal


@component(
    "credit",
    "rlvmr",
    paper="2507.22844",
    needs=("tag", "tag_reward"),
    bias="biased: pays for tags that were earned, and standardises over turns and trajectories, its own among them",
)
def rlvmr(
    batch: TurnBatch, *, weight: float = 0.5, counts: Literal["trajectories", "turns"] = "trajectories"
) -> Tensor:
    """A^E + w·A^S: the return standardised in its group, and the reward of the turn's tag among turns of the group with that tag.

    A^S = (x − mean)/(std + 1e-6) over the turns of one group and one tag, sample deviation; of a single turn x itself. RLVMR
    (Zhang et al. 2025). A^E is GRPO's, with ``counts: turns`` over the group's turns, each trajectory as often as it has some, as the
    released code does. Tags and their rewards are the signal `tag`; the return should be the outcome alone (let the environment pay
    nothing for tags). Its refusals of 0.1 and its KL of 0.01 are a reward and a loss of their own.

    Worked by hand: a success with a plan (1) and exploring (1); a failure with a plan (0), exploring (0), reflection (1).

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> said = {"tag": [[1, 2], [1, 2, 3]], "tag_reward": [[1, 1], [0, 0, 1]]}
    >>> batch = turn_batch([[0, 1], [0, 0, 0]], signals=said)
    >>> rounded(rlvmr(batch), 4)
    [[1.0607, 1.0607, 0.0], [-1.0607, -1.0607, -0.2071]]
    >>> rounded(rlvmr(batch, counts="turns"), 4)
    [[1.449, 1.449, 0.0], [-1.0838, -1.0838, -0.2303]]
    """
    mask_BK, group_B = batch.mask_BK, batch.group_B
    return_BK, group_BK = over_turns(batch.return_B, batch), cells(group_B[:, None], batch.state_BK * 0)
    if counts == "turns":
        whole_BK = over_cells(group_z, return_BK, group_BK, mask_BK)
    else:
        whole_BK = over_turns(group_z(batch.return_B, group_B), batch)
    paid_BK = signal(batch, "tag_reward").to(return_BK.dtype)
    cell_BK = cells(group_BK, signal(batch, "tag").long())
    single_BK = cell_size(cell_BK, mask_BK) == 1
    step_BK = paid_BK.where(single_BK, over_cells(group_z, paid_BK, cell_BK, mask_BK))
    return whole_BK + weight * step_BK
