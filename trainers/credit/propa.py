"""PROPA: the turns that were tried in one state, compared by boosted shares of success."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import signal


@component(
    "credit",
    "propa",
    needs=("edge",),
    asks=("trains",),
    shared_turns=True,
    bias="changes the objective: to boosted shares of success, over the deviation of a state's turns",
)
def propa(batch: TurnBatch, *, least: float = 0.1, success: float = 1.0, trains: str = "") -> Tensor:
    """(y − mean)/std over the turns that were tried in one state, y = ln(1 + 10x)/ln 11 of the share x of episodes through a turn that succeeded.

    PROPA: the children of a node of the strategy `propa` are a group; it gives nothing where all shares are 0, all are 1, or they differ by less than ``least``.
    Deviations are of samples. A turn that several episodes share is one child, and its advantage is divided among them. Success is a return of ``success`` or more. ``trains`` names a
    signal that is trained beside it, `value`, which the rule does not look at: `signals: [{name: value, form: verifier, fit: tree_value}]` is the
    paper's verifier, by which a search chooses. Groups that give nothing still teach by imitation of right ways, in phases of their own (`alphamath`).

    Worked by hand: at the first turn shares of 0, ¼, ½ and 1 are boosted to 0, 0.5224, 0.7472 and 1. Through the second turn four episodes went, of
    which one succeeded, through the third and the last two; of what followed the turns of two succeeded and failed, and a state with one way teaches nothing.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> edge = [[0], [2, 0], [2, 0], [2, 0], [2, 0], [3], [3], [4], [4]]
    >>> paid = [[0], [0, 1], [0, 0], [0, 0], [0, 0], [1], [0], [1], [1]]
    >>> found = propa(turn_batch(paid, signals={"edge": edge})).tolist()
    >>> [round(x, 4) for x, _ in found]
    [-1.3332, -0.0264, -0.0264, -0.0264, -0.0264, 0.2112, 0.2112, 0.5082, 0.5082]
    >>> [round(x, 4) for _, x in found][:5]
    [0.0, 1.5, -0.5, -0.5, -0.5]

    Raises:
        RecipeError: ``least`` is not above 0.
    """
    if least <= 0:
        raise RecipeError(
            f"credit 'propa': least={least:g} compares what is alike.", "Give it above 0 (0.1)."
        )
    mask_BK, edge_BK = batch.mask_BK, signal(batch, "edge")
    won_B = (batch.return_B >= success - 1e-6).to(batch.reward_BK.dtype)
    advantage_BK = torch.zeros_like(batch.reward_BK)
    state_BB = batch.group_B[:, None] == batch.group_B  # those in one state before the turn
    own_BB = torch.eye(len(won_B), dtype=torch.bool, device=won_B.device)
    for k in range(mask_BK.shape[1]):
        here_BB = state_BB & mask_BK[:, k]
        turn_BB = here_BB & (own_BB | ((edge_BK[:, k, None] == edge_BK[:, k]) & (edge_BK[:, k] != 0)))
        copies_B = turn_BB.sum(1).clamp(min=1).to(won_B.dtype)
        x_B = (turn_BB * won_B).sum(1) / copies_B
        y_B, share_BB = (
            torch.log1p(10 * x_B),
            here_BB / copies_B,
        )  # /ln 11, which the deviation takes away again
        ways_B = share_BB.sum(1)
        apart_BB = y_B - ((share_BB @ y_B) / ways_B)[:, None]
        deviation_B = ((share_BB * apart_BB**2).sum(1) / (ways_B - 1)).sqrt()
        spread_B = x_B.where(here_BB, -torch.inf).amax(1) - x_B.where(here_BB, torch.inf).amin(1)
        found_B = apart_BB.diagonal() / deviation_B / copies_B
        advantage_BK[:, k] = found_B.where(mask_BK[:, k] & (spread_B >= least - 1e-6), 0.0)
        state_BB = turn_BB
    return advantage_BK
