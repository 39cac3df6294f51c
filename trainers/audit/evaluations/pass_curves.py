"""Success in k runs over k, the start against what came of it: where the curves cross."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import score_mean
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.evaluations.shared import common_runs, shared_tasks
from turnwise.trainers.audit.evaluations.support import reach
from turnwise.trainers.audit.reading import EvaluatedSide, EvaluatedSides

_MOST = 64  # points of a curve


@audit(160, paper="2504.13837")
def pass_curves(played: EvaluatedSides, *, k: int = 0) -> AuditFinding:
    """Curves of pass@k of every evaluation, the crossover k*, the gap of sampling efficiency (Yue et al. 2025).

    pass@k = mean over tasks of 1 − C(n−c, k)/C(n, k) for k up to the runs that every task has; nothing is extrapolated. k* is
    the first k from which the start solves more tasks although it solved fewer at k = 1. The gap is pass@K of the start − pass@1
    after training: what training could at most have made certain, of what the start already had.

    Ours: intervals clustered by task, and the paired interval of after − start at each k; guessable tasks must be read by hand.

    By hand, n = 4: c = 1, 1 for the start and 4, 0 after: pass@1 ¼ against ½; pass@2 ½ against ½; pass@3 ¾ against ½, so k* = 3.

    >>> from turnwise.trainers.audit.reading import EvaluatedSide
    >>> a, b = {"x": (1., 0., 0., 0.), "y": (0., 0., 0., 1.)}, {"x": (1.,) * 4, "y": (0.,) * 4}
    >>> found = pass_curves(EvaluatedSides("", (EvaluatedSide("a", a), EvaluatedSide("b", b))))
    >>> [*found.curves[0].y], [*found.curves[1].y], found.value("crossover of b"), found.value("gap of b")
    ([0.25, 0.5, 0.75, 1.0], [0.5, 0.5, 0.5, 0.5], 3.0, 0.5)

    Args:
        k: the largest k; as many runs as every task has, if 0.
    """
    others = played.others("a curve against the start")
    most = common_runs(played, k, least=2)
    ks = (
        [*range(1, most + 1)]
        if most <= _MOST
        else sorted({round(most ** (i / (_MOST - 1))) for i in range(_MOST)})
    )
    curves = [_curve(side, ks) for side in played.sides]
    figures: list[AuditFigure] = []
    said: list[str] = []
    rows: list[Sequence[Cell]] = []
    for side in others:
        tasks = shared_tasks(played.start, side)
        pairs = {n: (reach(played.start, tasks, n), reach(side, tasks, n)) for n in ks}
        means = {n: tuple(sum(x.values()) / len(tasks) for x in pair) for n, pair in pairs.items()}
        crossed = crossover([means[n][0] for n in ks], [means[n][1] for n in ks], ks)
        gap = paired_difference(_rows(pairs[1][1]), _rows(pairs[most][0]))
        figures += [
            AuditFigure(
                f"crossover of {side.label}", crossed, about="first k at which the start solves more"
            ),
            AuditFigure(
                f"gap of {side.label}",
                gap.difference,
                gap.interval,
                "number",
                f"pass@{most} of the start − pass@1",
            ),
        ]
        for n in _shown(ks):
            found = paired_difference(_rows(pairs[n][0]), _rows(pairs[n][1]))
            low, high = found.interval
            rows.append((side.label, n, *means[n], found.difference, f"{low:+.3f} … {high:+.3f}"))
        where = (
            f"the start solves more tasks from k = {crossed:g} on"
            if crossed
            else f"the curves do not cross up to k = {most}"
        )
        said.append(f"{side.label}: {where}")
    figures += [
        share(f"pass@{most} of {c.name}", score_mean(_of(s, most), range(len(s.results))))
        for c, s in zip(curves, played.sides, strict=True)
    ]
    headings = ("", "k", played.start.label, "after", "difference", "95 % interval")
    return AuditFinding(figures, (AuditTable("pass@k", headings, rows),), curves, ("k", "pass@k"), said)


def crossover(start: Sequence[float], after: Sequence[float], ks: Sequence[int]) -> float | None:
    """The first k at which the start is ahead, where it was not at the first k; None where that does not happen.

    >>> crossover([0.2, 0.6], [0.4, 0.5], [1, 2]), crossover([0.5, 0.6], [0.4, 0.5], [1, 2])
    (2.0, None)
    """
    if start[0] > after[0]:
        return None
    return next((float(k) for k, a, b in zip(ks, start, after, strict=True) if a > b + 1e-12), None)


def _curve(side: EvaluatedSide, ks: Sequence[int]) -> AuditCurve:
    estimates = [score_mean(_of(side, k), range(len(side.results))) for k in ks]
    return AuditCurve(side.label, ks, [e.mean for e in estimates], [e.interval for e in estimates])


def _of(side: EvaluatedSide, k: int) -> list[float]:
    return [*reach(side, [*side.results], k).values()]


def _rows(values: dict[str, float]) -> dict[str, tuple[float, ...]]:
    return {task: (value,) for task, value in values.items()}


def _shown(ks: Sequence[int]) -> list[int]:
    """Powers of two, and the last."""
    return [k for k in ks if k & (k - 1) == 0 or k == ks[-1]]
