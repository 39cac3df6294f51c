"""Each trajectory for itself: a success shall be likelier than the reference says, a failure less likely."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import against_reference, token_count, trajectory_sum
from turnwise.trainers.kit.tokens import chosen


@component(
    "loss",
    "kto",
    objective="the prospect value of each outcome against the reference, without pairs",
    paper="2402.01306",
    whole=True,
    slope="own",
    needs=("reference",),
)
def kto(
    batch: WholeBatch, *, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0
) -> WholeLoss:
    """λ·(1 − σ(±β·(x − z))): x = Σ log π/π_ref of a trajectory, z the mean of x, + for successes and − for failures.

    Kahneman–Tversky optimisation (Ethayarajh et al. 2024), eq. 8. z = max(0, mean of x over the minibatch's trajectories
    that are read), without gradient: their x estimates KL(π ‖ π_ref), since the policy sampled them; the paper estimates it
    from answers to other prompts. Needs neither groups nor pairs. The mean is over trajectories. Advantages are not used. Each token's log π − log π_ref is within ±20.

    Metrics: ``kl_reference`` (z, in nats), ``satisfied`` (share of trajectories on their side of z).

    Worked by hand with x = 2 (success) and −1 (failure): z = 0.5; 1 − σ(0.15) = 0.462570 twice.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[2], [-1]], reference_logp=[[0], [0]], success=[1, 0])
    >>> round(kto(batch).loss.item(), 6)
    0.46257

    Raises:
        RecipeError: there is no reference model.
    """
    x_B = trajectory_sum(against_reference(batch, "kto"), batch)
    here_B = token_count(batch) > 0
    n = here_B.sum().clamp(min=1)
    z = ((x_B.detach() * here_B).sum() / n).clamp(min=0)
    side_B = chosen(batch.success_B, 1.0, -1.0, x_B) * (x_B - z)
    weight_B = chosen(batch.success_B, desirable, undesirable, x_B) * here_B
    satisfied = ((side_B.detach() > 0) & here_B).sum() / n
    loss = (weight_B * torch.sigmoid(-beta * side_B)).sum() / n
    return WholeLoss(loss, {"kl_reference": z, "satisfied": satisfied.to(z.dtype)})
