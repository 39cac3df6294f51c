"""Advantages above and below 0 in a training log, and what a reward of pure chance would make of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import clustered_mean
from turnwise.agents.log.records import Record
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit
from turnwise.trainers.audit.reading import LoggedGroups

_UNKNOWN = "no advantages: no agent of this log was trained"


class SignedMass(NamedTuple):
    """Sums over sampled tokens: of advantages above 0, of those below 0 without their sign, and the number of tokens."""

    positive: float = 0.0
    negative: float = 0.0
    tokens: int = 0

    @property
    def share(self) -> float | None:
        """The positive part of the mass; None without any."""
        mass = self.positive + self.negative
        return self.positive / mass if mass else None


@audit(215)
def signed_mass(played: LoggedGroups) -> AuditFinding:
    """Mass of positive and of negative advantages per sampled token, by update, and the misalignment of a random reward.

    M⁺ = Σ max(A, 0) / tokens and M⁻ = Σ max(−A, 0) / tokens, each turn's advantage on each of its tokens (ours): a method that keeps success
    and loses entropy pushes up more than down. A reward that is a fair coin disagrees with the right answer most in mixed groups:
    n(G − n)/G for n right of G (clipping and entropy under spurious rewards). The shares of clipped tokens by side and the entropy
    are metrics of a run already; the control itself is `reward: {name: noisy, rate: 0.5, scope: sample}`.

    By hand: 0, 2, 4 and 8 right of 8; one token with advantage 1 beside two with −0.25.

    >>> [misalignment(n, 8) for n in (0, 2, 4, 8)]
    [0.0, 1.5, 2.0, 0.0]
    >>> mass_of([(1.0, 1), (-0.25, 2)])
    SignedMass(positive=1.0, negative=0.5, tokens=3)
    """
    groups = [(misalignment(group.solved, len(group.records)), group.task) for group in played.groups]
    found = clustered_mean([x for x, _ in groups], [task for _, task in groups])
    figures = [AuditFigure("misalignment of a group", found.mean, found.interval, "number", "n(G − n)/G")]
    by_update: dict[int, list[SignedMass]] = {}
    for group in played.groups:
        for record in group.records:
            if record.advantages:
                by_update.setdefault(record.update or 0, []).append(_of_record(record))
    if not by_update:
        return AuditFinding([*figures, *_figures(SignedMass())])
    updates = sorted(by_update)
    each = [_together(by_update[update]) for update in updates]
    rows: list[Sequence[Cell]] = [
        (n, *_per_token(mass), mass.share) for n, mass in zip(updates, each, strict=True)
    ]
    curves = [
        AuditCurve(name, updates, [_per_token(mass)[side] or 0.0 for mass in each])
        for side, name in enumerate(("positive", "negative"))
    ]
    table = AuditTable("by update", ("update", "positive", "negative", "positive share"), rows)
    return AuditFinding(
        [*figures, *_figures(_together(each))], (table,), curves, ("update", "mass per token")
    )


def misalignment(solved: int, of: int) -> float:
    """n(G − n)/G of a group with n successes among G."""
    return solved * (of - solved) / of


def mass_of(advantages: Sequence[tuple[float, int]]) -> SignedMass:
    """The sums over turns, each with its advantage and the number of its tokens."""
    return SignedMass(
        sum(max(a, 0.0) * n for a, n in advantages),
        sum(max(-a, 0.0) * n for a, n in advantages),
        sum(n for _, n in advantages),
    )


def _of_record(record: Record) -> SignedMass:
    sides: Mapping[str, Sequence[float]] = record.advantages
    return mass_of(
        [
            (a, len(turn.reply.action_ids))
            for agent, given in sides.items()
            for a, turn in zip(given, record.episode.trajectories[agent].turns, strict=True)
        ]
    )


def _together(masses: Sequence[SignedMass]) -> SignedMass:
    return SignedMass(
        sum(m.positive for m in masses), sum(m.negative for m in masses), sum(m.tokens for m in masses)
    )


def _per_token(mass: SignedMass) -> tuple[float | None, float | None]:
    return (mass.positive / mass.tokens, mass.negative / mass.tokens) if mass.tokens else (None, None)


def _figures(mass: SignedMass) -> list[AuditFigure]:
    about = "" if mass.tokens else _UNKNOWN
    positive, negative = _per_token(mass)
    return [
        AuditFigure("positive mass per token", positive, None, "number", about),
        AuditFigure("negative mass per token", negative, None, "number", about),
        AuditFigure("positive share of the mass", mass.share, None, "share", about),
    ]
