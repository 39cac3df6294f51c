"""DPO with a target for the margin in place of the sigmoid, so that sure preferences do not drive it to infinity."""

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.loss.dpo import of_margins


@component(
    "loss",
    "ipo",
    objective="preferences, with each margin regressed on 1/(2β), so that no pair is made certain",
    paper="2310.12036",
    whole=True,
    slope="own",
    needs=("reference",),
)
def ipo(batch: WholeBatch, *, beta: float = 0.1) -> WholeLoss:
    """(h − 1/(2β))², h = Σ log π/π_ref of the better less that of the worse trajectory of a pair.

    Azar et al. 2023, eq. 17. Pairs, means and metrics as in ``dpo``. Each token's log π − log π_ref is within ±20.

    Worked by hand: h = 3 and β = 0.1 give (3 − 5)² = 4.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-10], [-15]], reference_logp=[[-12], [-14]], success=[1, 0])
    >>> round(ipo(batch).loss.item(), 6)
    4.0

    Raises:
        RecipeError: there is no reference model.
    """
    return of_margins(batch, "ipo", lambda h_P: (h_P - 1 / (2 * beta)) ** 2)
