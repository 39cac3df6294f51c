"""Explicit policy optimisation: discounted returns of a strategist, scaled by the trajectory's largest."""

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import returns_to_go


@component(
    "credit",
    "epo_strategic",
    paper="2502.12486",
    bias="biased: divides a trajectory's returns by the largest of them, and has no baseline",
)
def epo_strategic(batch: TurnBatch, *, discount: float = 0.99) -> Tensor:
    """Discounted returns-to-go, divided by the largest of the trajectory in size; 0 where all are 0.

    G_k = r_k + γ·G_{k+1}, A_k = G_k / max_l |G_l|: EPO (Liu et al. 2025), whose strategy model writes a line in each turn for a frozen
    model that acts, and learns by REINFORCE on the lines alone: `loss: [nll]`, with the actor among `rollout.opponents`. Its turns are paid 1
    where a judge finds them critical, and the outcome at the end. Left out here: who finds them so, and worlds with a strategist.

    Worked by hand: r = 0, 1, 0, 0.8 has the returns 1.7662, 1.7841, 0.7920, 0.8000 at γ = 0.99.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(epo_strategic(turn_batch([[0, 1, 0, 0.8], [0, 0]])), 4)
    [[0.99, 1.0, 0.4439, 0.4484], [0.0, 0.0, 0.0, 0.0]]

    Raises:
        RecipeError: ``discount`` lies outside of 0 to 1.
    """
    if not 0 <= discount <= 1:
        raise RecipeError(f"credit 'epo_strategic': discount={discount:g}.", "Give a number from 0 to 1.")
    return_BK = returns_to_go(batch, discount)
    most_B = return_BK.abs().amax(-1, keepdim=True) if return_BK.shape[1] else return_BK
    return return_BK / most_B.masked_fill(most_B == 0, 1.0)
