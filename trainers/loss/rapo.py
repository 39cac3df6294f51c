"""Forward KL to a reference that counts more the more a trajectory earned."""

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import against_reference, of_trajectory
from turnwise.trainers.kit.tokens import bounded, chosen, token_mean

LIMIT = 10.0  # of |log x|


@component(
    "loss",
    "rapo",
    objective="the direction of KL(π_ref^φ ‖ π), which it is where φ = 1",
    paper="2510.03865",
    whole=True,
    slope="own",
    needs=("reference",),
)
def rapo(batch: WholeBatch, *, failure: float = 0.5, success: float = 1.0) -> WholeLoss:
    """x·log x − x + 1 with x = π_ref^φ/π at each sampled token: where φ = 1, KL(π_ref ‖ π) on samples of π; never negative.

    φ is ``success`` for trajectories that solved their task and ``failure`` for others, so that what failed is held to a
    flatter reference. RAPO (2025): forward KL and a reference tempered by reward are its ideas; this φ is ours. With φ = 1 it
    estimates KL(π_ref ‖ π) exactly. With φ < 1 it is no KL: π_ref^φ is not normalised, which needs the reference's whole
    distribution, so that the mean is 13 times the KL in a vocabulary of 3, and 26 to 580 times at 512 to 150,000 tokens, and so
    is, roughly, what ``weight`` means. The direction is nearly right (cosine 0.998). |log x| is at most 10. By the reducer's weights; add it to a policy loss with a small ``weight``.

    Metric: ``kl_forward`` (its mean).

    Worked by hand with x = 0.5/0.4: 1.25·0.223144 − 0.25 = 0.028929.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[log(0.4)]], reference_logp=[[log(0.5)]], success=[1])
    >>> round(rapo(batch).loss.item(), 6)
    0.028929

    Raises:
        RecipeError: there is no reference model.
    """
    against_reference(batch, "rapo")
    assert batch.reference_logp_RT is not None
    phi_RT = of_trajectory(chosen(batch.success_B, success, failure, batch.logp_RT), batch)
    log_x_RT = bounded(phi_RT * batch.reference_logp_RT - batch.logp_RT, batch.mask_RT).clamp(-LIMIT, LIMIT)
    x_RT = log_x_RT.exp()
    loss_RT = (x_RT * log_x_RT - x_RT + 1) * batch.mask_RT
    return WholeLoss((batch.weight_RT * loss_RT).sum(), {"kl_forward": token_mean(loss_RT, batch.mask_RT)})
