"""Of two trajectories of a group the one that earned more shall have become likelier."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import against_reference, mean_over_pairs, pairs, trajectory_sum


@component(
    "loss",
    "dpo",
    objective="the likelihood of preferences (Bradley–Terry), best at π ∝ π_ref·exp(R/β)",
    paper="2305.18290",
    whole=True,
    slope="own",
    needs=("reference",),
)
def dpo(batch: WholeBatch, *, beta: float = 0.1, smoothing: float = 0.0) -> WholeLoss:
    """−(1 − s)·log σ(β·h) − s·log σ(−β·h), h = Σ log π/π_ref of the better less that of the worse, s = ``smoothing``.

    Direct preference optimisation (Rafailov et al. 2023), eq. 7, on all pairs of a group with different returns that are
    read (the paper has one labelled pair for each prompt); the mean is over pairs, then over the minibatch's groups, and a
    group without pairs gives 0. Smoothing is conservative DPO (Mitchell 2023). Advantages are not used, so a correction for
    the engine does nothing here. Each token's log π − log π_ref is within ±20.

    Metrics: ``margin`` (mean h, in nats), ``pairs`` (their number).

    Worked by hand: −10 against −15 under a reference of −12 and −14 is h = 3; −log σ(0.3) = 0.554355.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-10], [-15]], reference_logp=[[-12], [-14]], success=[1, 0])
    >>> round(dpo(batch).loss.item(), 6), round(dpo(batch, smoothing=0.1).loss.item(), 6)
    (0.554355, 0.584355)

    Raises:
        RecipeError: there is no reference model.
    """

    def loss(h_P: Tensor) -> Tensor:
        return -(1 - smoothing) * logsigmoid(beta * h_P) - smoothing * logsigmoid(-beta * h_P)

    return of_margins(batch, "dpo", loss)


def of_margins(batch: WholeBatch, name: str, loss: Callable[[Tensor], Tensor]) -> WholeLoss:
    """A loss of the margins h of pairs against the reference, and the metrics of :func:`dpo`."""
    score_B = trajectory_sum(against_reference(batch, name), batch)
    seen: list[Tensor] = [score_B.new_zeros(0)]

    def each() -> Iterator[Tensor]:
        for better_P, worse_P in pairs(batch):
            h_P = score_B[better_P] - score_B[worse_P]
            seen.append(h_P.detach())
            yield loss(h_P)

    value = mean_over_pairs(batch, each())
    found = torch.cat(seen)
    count = score_B.new_tensor(float(len(found)))
    return WholeLoss(value, {"margin": found.sum() / count.clamp(min=1), "pairs": count})
