"""Calibration of the confidence that runs told: how far it is from their success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.kit.confidence import told_confidence

BINS = 10


class ConfidenceBin(NamedTuple):
    """Runs of like confidence: how many, their mean confidence, and the share of them that is right."""

    low: float
    n: int
    confidence: float
    right: float


@audit(139, paper="2507.16806")
def calibration(played: LoggedGroups) -> AuditFinding:
    """Error of the told confidence by bins (ECE), its Brier score, and how well it ranks right before wrong (AUROC).

    Of runs with q in `<confidence>q</confidence>` and y = 1 where the task was solved: ECE = Σ_b n_b/n · |mean y − mean q| over ten bins of
    equal width, each with its lower end and the last with 1 too; Brier = mean (y − q)²; AUROC = the share of pairs of a right and a wrong
    run in which the right one told more, ties counting half (RLCR, Damani et al. 2025). Runs without a confidence are
    counted apart (ours).

    By hand, the book's four runs; in AUROC three of four pairs are in order.

    >>> q, y = [.95, .9, .6, .55], [1, 0, 1, 0]
    >>> round(expected_error(binned(q, y)), 4), round(brier(q, y), 4), auroc(q, y)
    (0.45, 0.3188, 0.75)
    """
    told = [
        (q, float(episode.success), group.task)
        for group in played.groups
        for episode in group.episodes
        if (q := told_confidence(episode.trajectory.turns)) is not None
    ]
    if not told:
        raise TurnwiseError(
            f"In {played.label} no run told a confidence between 0 and 1.",
            "Ask for `<confidence>0.8</confidence>` in the last message: `sampling.instruction` in a recipe, `--instruction` of `turnwise eval`.",
        )
    q, y, tasks = ([row[i] for row in told] for i in range(3))
    sure, right = [float(x) for x in q], [float(x) for x in y]
    bins = binned(sure, right)
    scored = score_mean([(a - b) ** 2 for a, b in zip(sure, right, strict=True)], tasks)
    figures = [
        AuditFigure("ECE", expected_error(bins), None, "number", "0 where confidence is success"),
        AuditFigure("Brier score", scored.mean, scored.interval),
        AuditFigure(
            "AUROC", auroc(sure, right), None, "number", "0.5 where confidence says nothing of success"
        ),
        share("told a confidence", score_mean(*_told(played))),
    ]
    rows: list[Sequence[Cell]] = [(f"{b.low:.1f} …", b.n, b.confidence, b.right) for b in bins]
    return AuditFinding(
        figures, (AuditTable("by confidence", ("from", "runs", "confidence", "success"), rows),)
    )


def _told(played: LoggedGroups) -> tuple[list[float], list[str]]:
    every = [(episode, group.task) for group in played.groups for episode in group.episodes]
    return [float(told_confidence(one.trajectory.turns) is not None) for one, _ in every], [
        t for _, t in every
    ]


def binned(q: Sequence[float], y: Sequence[float]) -> list[ConfidenceBin]:
    """The bins of equal width that hold a run."""
    held: dict[int, list[int]] = {}
    for i, x in enumerate(q):
        held.setdefault(min(int(x * BINS), BINS - 1), []).append(i)
    return [
        ConfidenceBin(
            place / BINS,
            len(those),
            sum(q[i] for i in those) / len(those),
            sum(y[i] for i in those) / len(those),
        )
        for place, those in sorted(held.items())
    ]


def expected_error(bins: Sequence[ConfidenceBin]) -> float:
    """The mean distance of confidence from success over bins, each weighed by its runs."""
    return sum(b.n * abs(b.right - b.confidence) for b in bins) / sum(b.n for b in bins)


def brier(q: Sequence[float], y: Sequence[float]) -> float:
    """The mean of (y − q)²."""
    return sum((b - a) ** 2 for a, b in zip(q, y, strict=True)) / len(q)


def auroc(q: Sequence[float], y: Sequence[float]) -> float | None:
    """The chance that a right run told more than a wrong one; None where all are right, or all wrong."""
    place: dict[float, tuple[float, float]] = {}
    for x, won in zip(q, y, strict=True):
        right, wrong = place.get(x, (0.0, 0.0))
        place[x] = (right + won, wrong + 1 - won)
    below = above = 0.0
    for x in sorted(place):
        right, wrong = place[x]
        above += right * (below + wrong / 2)
        below += wrong
    solved = sum(y)
    return above / (solved * below) if solved * below else None
