"""GiGPO: GRPO over trajectories, plus the same over turns played in one and the same state."""

from typing import Literal

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import cells, group_mean, group_z, over_cells, over_turns, returns_to_go


@component(
    "credit",
    "gigpo",
    paper="2505.10978",
    bias="biased: discounted, and compares with means that include the turn itself and its own later visits",
)
def gigpo(
    batch: TurnBatch,
    *,
    weight: float = 1.0,
    discount: float = 0.95,
    normalize: Literal["none", "std"] = "none",
) -> Tensor:
    """Return of the episode compared with its group, plus that of the turn compared with turns in the same state.

    A_{i,k} = f(R_i; group) + ω·f(G_{i,k}; turns of the group played in the same state), with
    G_k = r_k + γ·G_{k+1} and f(x) = x − mean, or (x − mean)/(std + 1e-6) with ``normalize="std"``. Feng et al.
    2025. A state met only once gives no second term.

    Ours: the group mean counts each trajectory once; later releases count it once per turn, which
    weights long episodes more. Left out: similarity instead of equality of states.

    Worked by hand: A in s0, s1 earns 0, 1; B in s0, s2 nothing; C in s0, s1, s3 earns 1 at the end.
    G in s0 is 0.95, 0, 0.9025, with mean 0.6175; in s1 it is 1, 0.95.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 0, 1]], states=[[0, 1], [0, 2], [0, 1, 3]])
    >>> rounded(gigpo(batch))
    [[0.665833, 0.358333, 0.0], [-1.284167, -0.666667, 0.0], [0.618333, 0.308333, 0.333333]]
    >>> rounded(gigpo(batch, normalize="std"))
    [[1.198498, 1.284436, 0.0], [-2.30826, -1.154699, 0.0], [1.109762, -0.129738, 0.577349]]
    """

    def compare(x: Tensor, group: Tensor) -> Tensor:
        return group_z(x, group) if normalize == "std" else x - group_mean(x, group)

    state_BK = cells(batch.group_B[:, None], batch.state_BK)
    turn_BK = over_cells(compare, returns_to_go(batch, discount), state_BK, batch.mask_BK)
    return over_turns(compare(batch.return_B, batch.group_B), batch) + weight * turn_BK
