"""The risk of giving up the best try after its first turns, beside what the bound on it says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import turn_scores
from turnwise.trainers.search.early_rejection import least_turns, risk


class Partial(NamedTuple):
    """The scores of a task's tries after some turns and at their ends; a try that was over by then has its end's."""

    early: list[float]
    final: list[float]


@audit(39, paper="2508.01969")
def rejection(
    played: LoggedGroups, *, score: str = "", expand: int = 4, wanted: float = 0.8, allowed: float = 0.05
) -> AuditFinding:
    """Tells how well a score after τ turns foretells the score at the end, and how often the best try would have been given up.

    Early rejection goes on with the best 1/M of N tries after τ turns. With errors of deviation σ the best is lost with a chance of at most
    (N − 1)·exp(−Δ²/4σ²), where Δ is its lead: two errors differ by σ·√2, and N − 1 others may come first. Measured here for each τ: the correlation ρ of
    both scores within tasks beside √(τ/L), which needs τ ≥ ρ²·L turns; σ, the deviation of their difference within tasks (ours); the mean bound over
    tasks, each at most 1, with Δ to the second best end; and the share of tasks whose best end is not among the ⌊N/M⌋ that are kept. Tasks on
    which all ends are scored alike have nothing to lose, and are left out. L is the mean number of turns.

    By hand: 16 tries, a lead of 1.5 and σ = ½ have a bound of 1.581, which says nothing; ρ = 0.8 of 50 turns needs 32.

    >>> round(risk(16, 1.5, 0.5), 4), least_turns(0.8, 50)
    (1.581, 32)
    >>> from turnwise.trainers.audit.by_hand import episode, logged, turn
    >>> tries = [episode([turn(signals={"v": x}) for x in row], solved=True) for row in ([.5, 1], [.6, 0])]
    >>> found = rejection(logged({"a": tries}), score="v", expand=2)
    >>> found.value("best try lost after 1 turn"), found.value("bound after 1 turn")
    (1.0, 0.6615)

    Args:
        score: what tells partial tries apart: a signal of turns, such as a judge's or `value`, or confidence.
        expand: M of the search; ⌊N/M⌋ tries are gone on with, and one at least.
        wanted: ρ for which the turns are told.
        allowed: the risk for which the turns are told.
    """
    if not score or expand < 1 or not 0 < wanted <= 1:
        raise TurnwiseError(
            f"score={score!r}, expand={expand}, wanted={wanted:g} reject nothing.",
            "`--set score=NAME`, a score of turns (`--judge NAME` labels them first); expand from 1 on, wanted up to 1.",
        )
    groups = played.of(2, "early rejection")
    every = turn_scores(played, score)
    scores = [[row for row in every[played.groups.index(group)] if row] for group in groups]
    scores = [rows for rows in scores if len({row[-1] for row in rows}) > 1]
    if not scores:
        raise TurnwiseError(
            f"All tries of a task end with one and the same {score!r} in {played.label}, so that none is the best.",
            "Name another score, or play more tasks.",
        )
    length = statistics.fmean(len(row) for rows in scores for row in rows)
    places = range(1, max(len(row) for rows in scores for row in rows))
    if not places:
        raise TurnwiseError(
            f"No try of {played.label} has a second turn, so that none can be given up early.",
            "Choose a suite whose episodes have several turns.",
        )
    return _told(scores, places, length, expand, wanted, allowed)


def _told(
    scores: Sequence[Sequence[Sequence[float]]],
    places: Sequence[int],
    length: float,
    expand: int,
    wanted: float,
    allowed: float,
) -> AuditFinding:
    figures: list[AuditFigure] = []
    kept, bounds, found = list[float](), list[float](), list[float]()
    for turns in places:
        tried = [partial(rows, turns) for rows in scores]
        noise = noise_of(tried)
        lost = score_mean([float(is_lost(one, expand)) for one in tried], range(len(tried)))
        bound = statistics.fmean(min(1.0, risk(len(one.final), lead(one.final), noise)) for one in tried)
        kept.append(correlation(tried))
        bounds.append(bound)
        found.append(lost.mean)
        after = f"after {turns} turn{'s' if turns > 1 else ''}"
        figures += [
            AuditFigure(f"ρ {after}", kept[-1], None, "number", f"√(τ/L) = {min(1.0, turns / length) ** 0.5:.3f}"),
            AuditFigure(f"σ {after}", noise),
            share(f"best try lost {after}", lost),
            AuditFigure(f"bound {after}", round(bound, 4), None, "share", "(N − 1)·exp(−Δ²/4σ²), at most 1"),
        ]  # fmt: skip
    enough = next((t for t, x in zip(places, kept, strict=True) if x >= wanted), None)
    safe = next((t for t, x in zip(places, bounds, strict=True) if x <= allowed), None)
    said = [
        f"ρ ≥ {wanted:g} needs τ ≥ {least_turns(wanted, max(1, round(length)))} of {length:.1f} turns by √(τ/L); "
        + (f"it is so from {enough} on" if enough else "it is never so before the end"),
        f"the bound allows a risk of {allowed:g} from turn {safe} on" if safe else f"the bound never allows a risk of {allowed:g}",
    ]  # fmt: skip
    curves = [
        AuditCurve("best try lost", [*places], found),
        AuditCurve("bound", [*places], bounds),
        AuditCurve("ρ", [*places], kept),
    ]
    return AuditFinding(figures, (), curves, ("turns before the choice", "share"), said)


def partial(rows: Sequence[Sequence[float]], turns: int) -> Partial:
    """The scores of tries after so many turns, and at their ends.

    >>> partial([[1, 2, 3], [4]], 2)
    Partial(early=[2, 4], final=[3, 4])
    """
    return Partial([row[min(turns, len(row)) - 1] for row in rows], [row[-1] for row in rows])


def lead(final: Sequence[float]) -> float:
    """The distance of the best end from the next that is worse: those as good as it would be no loss.

    >>> lead([0.5, 2.0, 2.0, 1.5])
    0.5
    """
    best = max(final)
    return best - max(x for x in final if x < best)


def is_lost(tried: Partial, expand: int) -> bool:
    """Say whether none of the best ends is among the tries that are kept, of equal ones the first.

    >>> is_lost(Partial([0.9, 0.1, 0.5, 0.2], [0, 1, 1, 0]), 4), is_lost(Partial([0.9, 0.1, 0.5, 0.2], [0, 1, 1, 0]), 2)
    (True, False)
    """
    order = sorted(range(len(tried.early)), key=lambda i: -tried.early[i])[
        : max(1, len(tried.early) // expand)
    ]
    return max(tried.final[i] for i in order) < max(tried.final)


def noise_of(tried: Sequence[Partial]) -> float:
    """The deviation of early less final scores about the mean of their task: √(Σ(e − ē)²/Σ(n − 1)).

    >>> noise_of([Partial([0, 2], [0, 0]), Partial([5, 5], [1, 1])])
    1.0
    """
    apart = [[e - f for e, f in zip(one.early, one.final, strict=True)] for one in tried]
    squares = sum((x - statistics.fmean(row)) ** 2 for row in apart for x in row)
    return math.sqrt(squares / sum(len(row) - 1 for row in apart))


def correlation(tried: Sequence[Partial]) -> float:
    """Pearson's correlation of early and final scores about the means of their tasks; 0 where early ones do not differ.

    >>> correlation([Partial([0, 1], [0, 2]), Partial([7, 8], [1, 3])]), correlation([Partial([1, 1], [0, 2])])
    (1.0, 0.0)
    """
    pairs = [
        (e - statistics.fmean(one.early), f - statistics.fmean(one.final))
        for one in tried
        for e, f in zip(one.early, one.final, strict=True)
    ]
    both = math.sqrt(sum(e * e for e, _ in pairs) * sum(f * f for _, f in pairs))
    return sum(e * f for e, f in pairs) / both if both else 0.0
