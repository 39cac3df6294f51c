"""The objective that is minimised: a weighted sum of reduced losses with off-policy corrected advantages."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import (
    Correction,
    Loss,
    LossOfWhole,
    Nucleus,
    Reduce,
    TokenBatch,
    TokenLoss,
    WholeBatch,
)
from turnwise.trainers.kit.toy_batches import token_batch
from turnwise.trainers.learn.passes import Scores


class LossTerm(NamedTuple):
    """A loss of tokens with its weight in the sum."""

    name: str
    loss: Loss
    weight: float


class WholeTerm(NamedTuple):
    """A loss of whole minibatches with its weight in the sum."""

    name: str
    loss: LossOfWhole
    weight: float


class SourceTerms(NamedTuple):
    """Losses and correction of their own by which tokens that a source chose are learned."""

    terms: Sequence[LossTerm]
    correction: Correction


@dataclass(frozen=True)
class Objective:
    """The objective that is minimised: Σ weight · reduce(loss) + Σ weight · loss of the whole.

    Attributes:
        terms: losses of tokens.
        reduce: gives tokens their weights in the sum.
        correction: multiplies advantages.
        reference: whether a loss compares with the frozen reference.
        whole: losses of whole minibatches.
        signals: what losses need of what the run measured, by name.
        by_source: losses and corrections of tokens that others chose, by who; all others take the objective's own.
    """

    terms: Sequence[LossTerm]
    reduce: Reduce
    correction: Correction
    reference: bool = False
    whole: Sequence[WholeTerm] = ()
    signals: frozenset[str] = frozenset()
    by_source: Mapping[str, SourceTerms] = field(default_factory=dict[str, SourceTerms])

    @property
    def reads_top(self) -> bool:
        """True if a loss looks at what a teacher would say instead."""
        return "teacher_top" in self.signals

    @functools.cached_property
    def nucleus(self) -> Nucleus | None:
        """The nucleus whose entropy a loss of the whole asks for (its attribute ``nucleus``); None where none does.

        Raises:
            RecipeError: two losses ask for two.
        """
        asked = {found for term in self.whole if (found := getattr(term.loss, "nucleus", None)) is not None}
        if len(asked) > 1:
            raise RecipeError(
                "Two losses ask for the entropy of two nuclei, and a pass measures one.",
                "Give them the same mass.",
            )
        return next(iter(asked), None)

    @property
    def reads_mean(self) -> bool:
        """True if a loss looks at the mean log-probability of the whole vocabulary."""
        return "token_mean_logp" in self.signals

    def corrected(self, batch: TokenBatch, source_RT: Tensor, sources: Sequence[str]) -> Tensor:
        """The weights on advantages, (R, T), by each token's own correction.

        Args:
            batch: of some rows.
            source_RT: who chose each token, counted from 1; 0: the policy.
            sources: their names.
        """
        weight_RT = self.correction(batch)
        for number, name in enumerate(sources, 1):
            if name in self.by_source:
                weight_RT = torch.where(
                    source_RT == number, self.by_source[name].correction(batch), weight_RT
                )
        return weight_RT

    def shares(
        self, source_RT: Tensor, sources: Sequence[str]
    ) -> Iterator[tuple[Sequence[LossTerm], Tensor]]:
        """The losses with the tokens that they apply to, 1 or 0, (R, T)."""
        own_RT = torch.ones_like(source_RT)
        for number, name in enumerate(sources, 1):
            if name in self.by_source:
                theirs_RT = source_RT == number
                own_RT = own_RT * ~theirs_RT
                yield self.by_source[name].terms, theirs_RT
        yield self.terms, own_RT

    @functools.cached_property
    def corrects_by_trajectory(self) -> bool:
        """True if the correction of a row depends on other rows of its trajectory; found by trying it."""
        return _spans_rows(self.correction)

    @functools.cached_property
    def reads_old(self) -> bool:
        """True if anything depends on how likely a token was before the update; found by trying it.

        What imitates does not: its minibatches need no pass before the first step. (What remembers is not tried.)
        """
        parts = [*(term.loss for term in self.terms), self.correction]
        if self.signals or self.reference or self.whole or self.by_source:
            return True
        return any(hasattr(part, "restore") or _reads_old(part) for part in parts)


class Slopes(NamedTuple):
    """Slopes of the losses of a whole minibatch in each token's log-probability and entropy, perhaps in that of the nucleus, and
    their metrics."""

    logp_RT: Tensor
    entropy_RT: Tensor
    metrics: Mapping[str, Tensor]
    nucleus_RT: Tensor | None = None

    def along(self, index_N: Tensor, scores: Scores) -> Tensor:
        """Return a number that has this slope in the scores of some rows: Σ slope·score."""
        longest, device = scores.logp_RT.shape[1], scores.logp_RT.device
        logp_NT, entropy_NT = (x_RT[index_N, :longest].to(device) for x_RT in (self.logp_RT, self.entropy_RT))
        total = (logp_NT * scores.logp_RT).sum() + (entropy_NT * scores.entropy_RT).sum()
        if self.nucleus_RT is None or scores.nucleus_RT is None:
            return total
        return total + (self.nucleus_RT[index_N, :longest].to(device) * scores.nucleus_RT).sum()


def policy_loss(
    batch: TokenBatch,
    correction_RT: Tensor,
    kept_RT: Tensor,
    weight_RT: Tensor,
    shares: Iterable[tuple[Sequence[LossTerm], Tensor]],
) -> tuple[Tensor, dict[str, Tensor]]:
    """Σ weight · reduce(loss of tokens) over a micro-batch, and means over its tokens to be shown.

    The correction and what the filter keeps (``kept_RT``) multiply advantages, or the loss itself where that is not the same
    (:func:`weighs_apart`).
    """
    counted_RT = kept_RT * correction_RT
    played, batch = batch, replace(batch, advantage_RT=batch.advantage_RT * counted_RT)
    mask_RT, n = batch.mask_RT, batch.mask_RT.sum().clamp(min=1)
    gap_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).abs() * mask_RT
    loss = batch.logp_RT.new_zeros(())
    metrics = {
        "entropy": (batch.entropy_RT.detach() * mask_RT).sum() / n,
        "engine_gap": gap_RT.sum() / n,
        "correction": (correction_RT * mask_RT).sum() / n,
    }
    for terms, share_RT in shares:
        for term in terms:
            apart = weighs_apart(term.loss)
            found = term.loss(played if apart else batch)
            loss_RT = found.loss_RT * counted_RT if apart else found.loss_RT
            loss = loss + term.weight * (weight_RT * share_RT * loss_RT).sum()
            metrics |= dict(found.metrics)
    return loss, metrics


def whole_slopes(
    batch: WholeBatch,
    terms: Sequence[WholeTerm],
    row_M: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype = torch.float32,
) -> Slopes:
    """Evaluate the losses of a whole minibatch once, and differentiate them in its leaves.

    Args:
        batch: the minibatch.
        terms: the losses.
        row_M: where its rows are in the batch.
        shape: (R, T) of the batch, in which slopes are given.
        dtype: of the slopes.
    """
    leaves = [x for x in (batch.logp_RT, batch.entropy_RT, batch.nucleus_RT) if x is not None]
    # So that all are differentiated in, whatever a loss reads.
    total = (batch.logp_RT.sum() + batch.entropy_RT.sum()) * 0
    if batch.nucleus_RT is not None:
        total = total + batch.nucleus_RT.sum() * 0
    metrics: dict[str, Tensor] = {}
    for term in terms:
        found = term.loss(batch)
        total = total + term.weight * found.loss
        metrics |= dict(found.metrics)
    slopes = torch.zeros(len(leaves), *shape, dtype=dtype)
    for slope_RT, found_RT in zip(slopes, torch.autograd.grad(total, leaves), strict=True):
        slope_RT[row_M, : found_RT.shape[1]] = found_RT.to(slopes.dtype)
    return Slopes(slopes[0], slopes[1], metrics, slopes[2] if len(leaves) > 2 else None)


def weighs_apart(loss: Loss) -> bool:
    """Say whether a weight on a token's advantage is none on its loss, as where the advantage is in an exponent; found by trying it.

    A loss that is a·A + b along every advantage A, for any a and b, takes weights by its advantage; one that wants more than a
    small batch has does too. (What remembers is not tried.)

    >>> from turnwise.trainers.loss.awr import awr
    >>> from turnwise.trainers.loss.clip import clip
    >>> weighs_apart(awr), weighs_apart(clip)
    (True, False)
    """
    if hasattr(loss, "restore"):
        return False
    known = getattr(type(loss), "__hash__", None) is not None
    return _weighs_apart(loss) if known else _weighs_apart.__wrapped__(loss)


@functools.lru_cache(maxsize=64)
def _weighs_apart(loss: Loss) -> bool:
    rng = derive_rng("weights")
    logp, old, advantage, entropy = (
        [[rng.uniform(low, high) for _ in range(6)] for _ in range(4)]
        for low, high in ((-4, -1), (-4, -1), (-2, 2), (0, 2))
    )

    def said(weight: float) -> Tensor:
        weighed = [[weight * x for x in row] for row in advantage]
        batch = token_batch(logp, weighed, old_logp=old, reference_logp=old, entropy=entropy)
        return loss(batch).loss_RT.detach()

    try:
        none_RT, once_RT, twice_RT = map(said, (0.0, 1.0, 2.0))
    except (RecipeError, RuntimeError, KeyError):  # it needs more than this batch has
        return False
    return not torch.allclose(twice_RT - once_RT, once_RT - none_RT)


def _reads_old(part: Loss | Correction) -> bool:
    """Try a loss or a correction on tokens that were as likely before as they are, and on such that were not."""
    rng = derive_rng("before")

    def said(old: Sequence[Sequence[float]]) -> list[Tensor]:
        batch = token_batch(logp, advantage, old_logp=old, behaviour_logp=old, entropy=entropy)
        found = part(batch)
        if not isinstance(found, TokenLoss):
            return [found]
        slopes = torch.autograd.grad(
            found.loss_RT.sum(), (batch.logp_RT, batch.entropy_RT), allow_unused=True
        )
        return [found.loss_RT, *(x for x in slopes if x is not None), *found.metrics.values()]

    logp, advantage, entropy = (
        [[rng.uniform(low, high) for _ in range(6)] for _ in range(4)]
        for low, high in ((-4, -1), (-2, 2), (0, 2))
    )
    same = said(logp)
    for size in (0.03, 0.3, 3.0):
        other = said([[x + rng.gauss(0, size) for x in row] for row in logp])
        if len(other) != len(same) or not all(map(torch.equal, same, other)):
            return True
    return False


def _spans_rows(correction: Correction) -> bool:
    """Try a correction on trajectories of two rows, at small and at large gaps between engine and trainer."""
    rng = derive_rng("two rows")
    for size in (0.03, 0.3, 3.0, 30.0):
        logp = [[rng.uniform(-4, -1) for _ in range(3)] for _ in range(8)]
        said = [[x + rng.gauss(0, size) for x in row] for row in logp]
        together = token_batch(
            logp, behaviour_logp=said, turn=[[2 * (r % 2)] * 2 + [2 * (r % 2) + 1] for r in range(8)],
            trajectory=[r // 2 for r in range(8)],
        )  # fmt: skip
        weight_RT = correction(together)
        for r in range(8):
            alone = token_batch([logp[r]], behaviour_logp=[said[r]], turn=[together.turn_RT[r].tolist()])
            if not torch.allclose(correction(alone)[0], weight_RT[r]):
                return True
    return False
