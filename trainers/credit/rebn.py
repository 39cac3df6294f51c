"""ReBN: discounted returns of all turns, standardised over the batch."""

from typing import Literal

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import returns_to_go


@component(
    "credit",
    "rebn",
    paper="2510.01051",
    bias="biased: discounts, and standardises over a batch that the turn itself belongs to",
)
def rebn(
    batch: TurnBatch, *, discount: float = 0.9, std: Literal["population", "sample"] = "population"
) -> Tensor:
    """Return batch normalisation: every turn is a transition, and all of them are compared.

    G_k = r_k + γ·G_{k+1};  A = (G − mean G) / (std G + 1e-9) over all turns of the batch, whatever their
    task. GEM (Liu et al. 2025). γ < 1 rewards finishing early. Needs no groups.

    Worked by hand: G = [0.81, 0.9, 1], [−0.9, −1]; mean 0.162.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(rebn(turn_batch([[0, 0, 1], [0, -1]])))
    [[0.711712, 0.81056, 0.920392], [-1.166416, -1.276248, 0.0]]
    >>> rounded(rebn(turn_batch([[0, 0, 1], [0, -1]]), std="sample"))
    [[0.636574, 0.724987, 0.823224], [-1.043274, -1.141511, 0.0]]
    """
    G_BK, mask_BK = returns_to_go(batch, discount), batch.mask_BK
    n = mask_BK.sum()
    deviation_BK = (G_BK - G_BK.sum() / n.clamp(min=1)) * mask_BK
    freedom = n if std == "population" else (n - 1).clamp(min=1)
    return deviation_BK / ((deviation_BK**2).sum() / freedom).sqrt().add(1e-9)
