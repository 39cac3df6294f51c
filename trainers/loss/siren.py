"""Entropy is held where it began, at the tokens at which the policy hesitates."""

from __future__ import annotations

from typing import Literal, cast

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Nucleus, PartState, WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import trajectory_sum
from turnwise.trainers.kit.tokens import units


@component(
    "loss",
    "siren",
    objective="the entropy that the most hesitant tokens had at first",
    paper="2509.25133",
    whole=True,
    slope="own",
)
class Siren:
    """(H − H₀)²: H is the mean over trajectories of the entropy of their most hesitant tokens, H₀ what it first was.

    Kept are tokens whose entropy is at least the (1 − ``share``) quantile of that of their trajectory, or with ``per`` of
    their turn, so that a talkative turn does not take all places. Neither collapse nor an explosion of entropy pays, unlike
    with a bonus. SIREN (Jiang et al. 2025); give ``weight`` 0.005, as there. H₀ is the value at the first step, kept in
    checkpoints, or ``aim``. With a ``mass`` below 1, 0.8 in the paper, entropy is that of the nucleus alone, the method's first step: of the
    likeliest tokens as long as their mass is below it, renormalised (``crossing``: with the one that reaches it, which the paper's code leaves
    out). Without, it is that of all tokens, which a large vocabulary raises: for probabilities 0.4, 0.25, 0.2, 0.1, 0.05 it is
    0.6663 with a mass of 0.8, 1.0551 with the crossing token, 1.415 without a nucleus. Its prefilter of 10,000 tokens is left out.

    Metrics: ``entropy_kept`` (H) and ``entropy_aim`` (H₀), in nats.

    Worked by hand: of the entropies 0.1, 0.2, 0.3, 0.4, 0.6 the 0.8 quantile is 0.44, so that H = 0.6; where the last has
    become 0.35, it is 0.36, H = 0.4 and the loss 0.2² = 0.04.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> loss = Siren()
    >>> [
    ...     round(loss(whole_batch([[-1] * 5], entropy=[[0.1, 0.2, 0.3, 0.4, most]])).loss.item(), 6)
    ...     for most in (0.6, 0.35)
    ... ]
    [0.0, 0.04]
    >>> round(0.005 * Siren(aim=0.6)(whole_batch([[-1]], entropy=[[0.35]])).loss.item(), 7)  # at a weight of 0.005
    0.0003125

    Raises:
        RecipeError: ``mass`` is no probability above 0.
    """

    def __init__(
        self,
        *,
        share: float = 0.2,
        per: Literal["trajectory", "turn"] = "trajectory",
        aim: float | None = None,
        mass: float = 1.0,
        crossing: bool = False,
    ) -> None:
        if not 0 < mass <= 1:
            raise RecipeError(f"loss 'siren': mass={mass} is no probability.", "Give it above 0 and up to 1.")
        self.nucleus = None if mass == 1 else Nucleus(mass, crossing)
        self.share, self._aim = share, aim
        self.per: Literal["trajectory", "turn"] = per

    def __call__(self, batch: WholeBatch) -> WholeLoss:
        entropy_RT = self._entropy(batch)
        kept_RT = self._kept(batch)
        kept_B, sum_B = trajectory_sum(kept_RT, batch), trajectory_sum(entropy_RT * kept_RT, batch)
        mean_B = sum_B / kept_B.clamp(min=1)
        found = mean_B.sum() / (kept_B > 0).sum().clamp(min=1)
        if self._aim is None:
            self._aim = found.item()
        metrics = {"entropy_kept": found.detach(), "entropy_aim": found.new_tensor(self._aim)}
        return WholeLoss((found - self._aim) ** 2, metrics)

    def _entropy(self, batch: WholeBatch) -> Tensor:
        if self.nucleus is None or batch.nucleus_RT is None:
            return batch.entropy_RT
        return batch.nucleus_RT

    def _kept(self, batch: WholeBatch) -> Tensor:
        """1 at the most hesitant tokens of each unit, (R, T)."""
        entropy_RT = self._entropy(batch)
        unit_RT, n = units(batch, self.per)
        least_N = [torch.quantile(entropy_RT[unit_RT == unit], 1 - self.share) for unit in range(n)]
        kept_RT = torch.zeros_like(entropy_RT)
        on_RT = batch.mask_RT
        if n:
            kept_RT[on_RT] = (entropy_RT[on_RT] >= torch.stack(least_N)[unit_RT[on_RT]]).to(kept_RT.dtype)
        return kept_RT

    def state(self) -> PartState:
        return PartState({"aim": self._aim})

    def restore(self, state: PartState) -> None:
        self._aim = cast("float | None", state.numbers["aim"])
