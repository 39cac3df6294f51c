"""Tasks that training kept within reach, brought within reach, and lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import Interval, pass_at_k, wilson, within
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, count
from turnwise.trainers.audit.evaluations.shared import common_runs, shared_tasks
from turnwise.trainers.audit.reading import EvaluatedSide, EvaluatedSides


@audit(116, paper="2507.14843")
def support(played: EvaluatedSides, *, k: int = 0, zeta: float = 0.05) -> AuditFinding:
    """Tasks solved in k runs by the start and after it: kept P, gained E, lost S (Wu et al. 2025, The Invisible Leash).

    SRR = P/(P + S), NDR = E/(P + E), SDS their harmonic mean, NSCR = (E − S)/(P + E + S). A task that fails k times with chance ζ
    has a success below about ε = −ln ζ / k. Where the denominator is empty a figure is not defined. Where a task has more than k
    runs it counts with its chance of being solved in k of them, pass@k without bias, which is 0 or 1 where it has k.

    Ours: intervals. SRR and NDR have Wilson's, one task one trial; NSCR is (E − S) over all tasks, in units of the tasks that either
    solved, and takes the interval of the paired test; SDS takes its values at the ends of 97.5 % intervals of the two. The
    paper's entropy of answers beside that of tokens is the audit ``answers`` of a log.

    >>> from turnwise.trainers.audit.reading import EvaluatedSide
    >>> start = {str(i): (1.0 if i < 86 else 0.0,) for i in range(100)}
    >>> after = {str(i): (1.0 if i < 80 or i in (90, 91) else 0.0,) for i in range(100)}
    >>> found = support(EvaluatedSides("", (EvaluatedSide("a", start), EvaluatedSide("b", after))))
    >>> [round(found.value(f"{name} of b"), 4) for name in ("SRR", "NDR", "SDS", "NSCR")]
    [0.9302, 0.0244, 0.0475, -0.0455]
    >>> f"{threshold(8192, 0.05):.4g}"
    '0.0003657'

    Args:
        k: runs of each task that count; as many as every task has, if 0.
        zeta: ζ, for the threshold.
    """
    others = played.others("support that was kept, gained or lost")
    runs = common_runs(played, k)
    figures: list[AuditFigure] = [
        AuditFigure(
            "threshold", threshold(runs, zeta), about=f"success below which {runs} runs may all fail"
        ),
        count("k", runs),
    ]
    rows: list[Sequence[Cell]] = []
    said: list[str] = []
    lost: dict[str, list[str]] = {}
    for side in others:
        tasks = shared_tasks(played.start, side)
        before, after = reach(played.start, tasks, runs), reach(side, tasks, runs)
        kept, gained, gone = _sums(before, after)
        rows.append((side.label, *map(_whole, (kept, gained, gone, len(tasks) - kept - gained - gone))))
        figures += _figures(side.label, before, after)
        lost[side.label] = [task for task in tasks if before[task] > 0 and not after[task]]
        verdict = "gained more tasks than it lost" if gained > gone else "lost more tasks than it gained"
        said.append(
            f"{side.label} {verdict if gained != gone else 'gained as many tasks as it lost'}: {gained:g} against {gone:g}"
        )
    table = AuditTable(f"tasks solved in {runs} runs", ("", "kept", "gained", "lost", "never"), rows)
    return AuditFinding(figures, (table,), said=said, data={"lost": lost})


def threshold(k: int, zeta: float) -> float:
    """ε = −ln ζ / k, at most 1: the success below which all of k runs fail with a chance of at least ζ, about."""
    return min(1.0, -math.log(zeta) / k)


def reach(side: EvaluatedSide, tasks: Sequence[str], k: int) -> dict[str, float]:
    """The chance that a task is solved in k of its runs."""
    results = side.results
    return {task: pass_at_k(len(results[task]), round(sum(results[task])), k) for task in tasks}


def _sums(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, float, float]:
    kept = sum(before[t] * after[t] for t in before)
    gained = sum((1 - before[t]) * after[t] for t in before)
    return kept, gained, sum(before[t] * (1 - after[t]) for t in before)


def _figures(label: str, before: Mapping[str, float], after: Mapping[str, float]) -> list[AuditFigure]:
    kept, gained, gone = _sums(before, after)
    retained, new = _ratio(kept, kept + gone), _ratio(gained, kept + gained)
    either = kept + gained + gone
    change = _ratio(gained - gone, either)
    low_high = None
    if change is not None:
        difference = paired_difference(
            {t: (x,) for t, x in before.items()}, {t: (x,) for t, x in after.items()}
        )
        scale = len(before) / either
        ends = Interval(*(scale * end for end in difference.interval))
        low_high = within(ends, -1.0, 1.0)
    return [
        AuditFigure(
            f"SRR of {label}", retained, _wilson(kept, kept + gone), "share", "kept of what the start solved"
        ),
        AuditFigure(
            f"NDR of {label}", new, _wilson(gained, kept + gained), "share", "new among what is solved now"
        ),
        AuditFigure(f"SDS of {label}", harmonic(retained, new), _harmonic_ends(kept, gained, gone), "share"),
        AuditFigure(
            f"NSCR of {label}", change, low_high, "number", "gained less lost, of all that either solved"
        ),
    ]


def _whole(x: float) -> float | int:
    """A sum of chances; a count where all of them are 0 or 1."""
    return round(x) if abs(x - round(x)) < 1e-9 else x


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _wilson(part: float, whole: float, confidence: float = 0.95) -> Interval | None:
    return wilson(part, whole, confidence=confidence) if whole > 0 else None


def harmonic(a: float | None, b: float | None) -> float | None:
    """The harmonic mean of two shares, 0 where both are; None where one is not defined."""
    if a is None or b is None:
        return None
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def _harmonic_ends(kept: float, gained: float, gone: float) -> Interval | None:
    retained, new = _wilson(kept, kept + gone, 0.975), _wilson(gained, kept + gained, 0.975)
    if retained is None or new is None:
        return None
    low, high = (harmonic(retained[end], new[end]) for end in (0, 1))
    return Interval(low or 0.0, high or 0.0)
