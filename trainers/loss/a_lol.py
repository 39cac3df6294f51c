"""Imitation of what was better than expected, weighted by how likely it has become against the reference."""

from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import against_reference, of_trajectory, trajectory_sum
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "a_lol",
    objective="the expected reward on stored episodes that did better than the reference is expected to",
    paper="2305.14718",
    whole=True,
    slope="own",
    needs=("reference",),
)
def a_lol(
    batch: WholeBatch,
    *,
    ratio: Literal["trajectory", "token", "none"] = "trajectory",
    low: float = 0.1,
    high: float = 1.9,
) -> WholeLoss:
    """−max(A, 0)·sg[clip(r, low, high)]·log π of each token, r = π/π_ref of its trajectory, or of itself, or 1.

    A-LoL (Baheti et al. 2023), eq. 5: offline, with the model before training as reference and an advantage against a
    learned value of the task (`credit: gae`); what was worse than expected is left out. With another
    credit rule, such as the default one, it is another method. Left out: drawing episodes in proportion to A, and the KL variant. By the reducer's weights. Each token's log π − log π_ref is within ±20.

    Metrics: ``used`` (share of tokens with A > 0), ``imitation`` (their mean A·r).

    Worked by hand with A = 1, −1 and a trajectory whose log ratio is 0.5: −1.648721·log π for the first token.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-1, -2]], [[1, -1]], reference_logp=[[-1.5, -2]])
    >>> round(2 * a_lol(batch).loss.item(), 6), round(2 * a_lol(batch, ratio="none").loss.item(), 6)
    (1.648721, 1.0)

    Raises:
        RecipeError: there is no reference model.
    """
    gap_RT = against_reference(batch, "a_lol").detach()
    if ratio == "trajectory":
        gap_RT = of_trajectory(trajectory_sum(gap_RT, batch).clamp(-20, 20), batch).expand_as(gap_RT)
    ratio_RT = gap_RT.exp().clamp(low, high) if ratio != "none" else gap_RT * 0 + 1
    used_RT = batch.mask_RT & (batch.advantage_RT > 0)
    weight_RT = batch.advantage_RT * ratio_RT * used_RT
    metrics = {"used": token_mean(used_RT, batch.mask_RT), "imitation": token_mean(weight_RT, used_RT)}
    return WholeLoss(-(batch.weight_RT * weight_RT * batch.logp_RT).sum(), metrics)
