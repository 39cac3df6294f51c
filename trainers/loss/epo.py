"""A bonus for entropy that is held near what entropy has been at the same turn."""

from __future__ import annotations

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import PartState, WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "epo",
    objective="mean entropy, near that of the history of each turn",
    paper="2509.22576",
    whole=True,
    slope="own",
)
class Epo:
    """−(H̄ − β·P̄): mean entropy is raised, tokens that stray from their turn's history are drawn back.

    H̄ is the mean entropy of the sampled tokens, P_t = max(0, H_t − above·h_k) + max(0, below·h_k − H_t) with h_k the mean of
    what turn k's mean entropy has been at earlier steps; without a history P = 0. EPO (Xu et al. 2025), eq. 7 to 9. The hinge
    P is ours: the paper's constant penalty has no gradient. Its λ is the loss's ``weight`` in the recipe (0.001 there); its
    phases multiply β: `schedule: {loss.epo.beta: epo}`. Minibatches that reach no turn from number ``late`` on (the first is 0;
    half of the turn limit there) have no loss. A step of the optimizer is a step of the history, which is in checkpoints.

    Metrics: ``entropy_strayed`` (share of tokens with P > 0), ``entropy_first`` and ``entropy_last`` (mean entropy of the
    first turn, and of the last one played).

    Worked by hand with h = 0.6 and H = 1.2, 0.3, 0.9, between 0.4·h and 1.3·h: P = 0.42, 0, 0.12; −(0.8 − 0.18) = −0.62.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> loss = Epo(below=0.4, above=1.3)
    >>> before = loss(whole_batch([[-1]], entropy=[[0.6]])).loss
    >>> round(before.item(), 6), round(loss(whole_batch([[-1] * 3], entropy=[[1.2, 0.3, 0.9]])).loss.item(), 6)
    (-0.6, -0.62)
    """

    def __init__(self, *, beta: float = 1.0, below: float = 0.0, above: float = 2.0, late: int = 0) -> None:
        self.beta, self.below, self.above, self.late = beta, below, above, late
        self._sum: dict[int, float] = {}
        self._steps: dict[int, int] = {}

    def __call__(self, batch: WholeBatch) -> WholeLoss:
        mask_RT, n = batch.mask_RT, batch.mask_RT.sum().clamp(min=1)
        entropy_RT = batch.entropy_RT * mask_RT
        stray_RT = torch.zeros_like(entropy_RT)
        means: dict[int, Tensor] = {}
        for k in batch.turn_RT[mask_RT].unique().tolist():
            at_RT = mask_RT & (batch.turn_RT == k)
            means[k] = token_mean(batch.entropy_RT, at_RT)
            if k in self._sum:
                usual = self._sum[k] / self._steps[k]
                over_RT = (entropy_RT - self.above * usual).clamp(min=0)
                under_RT = (self.below * usual - entropy_RT).clamp(min=0)
                stray_RT = torch.where(at_RT, over_RT + under_RT, stray_RT)
        for k, mean in means.items():
            self._sum[k] = self._sum.get(k, 0.0) + float(mean)
            self._steps[k] = self._steps.get(k, 0) + 1
        nothing = entropy_RT.new_zeros(())
        metrics = {
            "entropy_strayed": token_mean(stray_RT > 0, mask_RT),
            "entropy_first": means[min(means)] if means else nothing,
            "entropy_last": means[max(means)] if means else nothing,
        }
        reached = bool(means) and max(means) >= self.late
        return WholeLoss(-reached * (entropy_RT.sum() - self.beta * stray_RT.sum()) / n, metrics)

    def state(self) -> PartState:
        turns = sorted(self._sum)
        return PartState(
            {"turns": turns, "sums": [self._sum[k] for k in turns], "steps": [self._steps[k] for k in turns]}
        )

    def restore(self, state: PartState) -> None:
        turns, sums, steps = (list(state.numbers[name]) for name in ("turns", "sums", "steps"))  # pyright: ignore
        self._sum = {int(k): float(x) for k, x in zip(turns, sums, strict=True)}
        self._steps = {int(k): int(x) for k, x in zip(turns, steps, strict=True)}
