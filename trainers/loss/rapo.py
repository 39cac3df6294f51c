"""Forward KL to a reference that counts more the more a trajectory earned."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import bounded, token_mean

LIMIT = 10.0  # of |log x|


@component(
    "loss",
    "rapo",
    objective="KL(π̂ ‖ π), π̂ the reference flattened after failures, where the policy acted",
    paper="2510.03865",
    slope="own",
    needs=("token_tempered_reference",),
)
def rapo(batch: TokenBatch) -> TokenLoss:
    """x·log x − x + 1 with x = π̂/π at each sampled token: its mean over samples of π is KL(π̂ ‖ π), and it is never negative.

    π̂ is the reference to a power φ that rises with the reward, normalised over the vocabulary: signal `tempered_reference`, which has the
    powers as options. RAPO (2025) holds what succeeded to its reference and lets what failed go further. As there, its slope is that of the
    estimator at the sampled tokens, −x·log x in log π. |log x| is at most 10. Add it to a policy loss with a small ``weight`` (1e-3, ours).

    Metric: ``kl_forward`` (its mean).

    Worked by hand: π_ref = .5, .3, .2 with φ = ½ is π̂ = .4154, .3218, .2628; π = .4, .4, .2: .0007, .0205, .0448, whose mean
    under π is KL(π̂ ‖ π) = .0174.

    >>> from dataclasses import replace
    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> pi, power = torch.tensor([[0.4, 0.4, 0.2]]), torch.tensor([[0.5, 0.3, 0.2]]).sqrt()
    >>> batch = replace(token_batch(pi.log().tolist()), signals={"token_tempered_reference": (power / power.sum()).log()})
    >>> loss_RT = rapo(batch).loss_RT
    >>> rounded(loss_RT, 4), round((pi * loss_RT).sum().item(), 4)
    ([[0.0007, 0.0205, 0.0448]], 0.0174)
    """
    gap_RT = bounded(batch.signals["token_tempered_reference"] - batch.logp_RT, batch.mask_RT)
    log_x_RT = gap_RT.clamp(-LIMIT, LIMIT)
    x_RT = log_x_RT.exp()
    loss_RT = x_RT * log_x_RT - x_RT + 1
    return TokenLoss(loss_RT, {"kl_forward": token_mean(loss_RT, batch.mask_RT)})
