"""Accuracy and capability beside each other, by the start's success on a task; the tasks that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import pass_at_k, score_mean
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.evaluations.shared import common_runs, shared_tasks
from turnwise.trainers.audit.reading import EvaluatedSide, EvaluatedSides

BINS = ("never", "up to ¼", "up to ½", "up to ¾", "below 1", "always")


@audit(180, paper="2505.14216")
def moves(played: EvaluatedSides, *, k: int = 0) -> AuditFinding:
    """Accuracy (mean c/n) and capability (pass@K), and the tasks that moved between bins of the start's success.

    RL against distillation (row 180 of the book): reinforcement may raise accuracy and lose capability. Both stand side by side,
    with a table from the start's bin of a task to its bin afterwards, and the tasks that were lost.

    Ours: intervals over tasks; and since a task that was lucky falls back by itself, the table by bins takes the bin from the
    start's odd runs and its success from the even ones, where a task has two or more.

    >>> from turnwise.trainers.audit.reading import EvaluatedSide
    >>> a = {"x": (1.,) * 8, "y": (1.,) * 4 + (0.,) * 4, "z": (1.,) + (0.,) * 7}
    >>> b = {"x": (1.,) * 8, "y": (1.,) * 8, "z": (0.,) * 8}
    >>> sides = EvaluatedSides("", (EvaluatedSide("a", a), EvaluatedSide("b", b)))
    >>> for n in (4, 8):
    ...     found = moves(sides, k=n)
    ...     print([round(found.value(f"{what} of {side}"), 4) for what in ("accuracy", f"pass@{n}") for side in "ab"])
    [0.5417, 0.6667, 0.8286, 0.6667]
    [0.5417, 0.6667, 1.0, 0.6667]
    >>> found.data["lost"]
    {'b': ['z']}

    Args:
        k: K of the capability; as many runs as every task has, if 0.
    """
    others = played.others("a table of tasks that moved")
    most = common_runs(played, k)
    figures = [figure for side in played.sides for figure in _both(side, most)]
    tables: list[AuditTable] = []
    lost: dict[str, list[str]] = {}
    said: list[str] = []
    for side in others:
        tasks = shared_tasks(played.start, side)
        before, after = played.start.results, side.results
        lost[side.label] = [t for t in tasks if sum(before[t]) and not sum(after[t])]
        won = [t for t in tasks if sum(after[t]) and not sum(before[t])]
        tables += [_transitions(played.start, side, tasks), _by_bin(played.start, side, tasks)]
        said.append(
            f"{side.label}: {len(won)} tasks are solved that never were, {len(lost[side.label])} never again that once were"
        )
    return AuditFinding(figures, tables, said=said, data={"lost": lost})


def bin_of(runs: Sequence[float]) -> str:
    """The bin of a task by its success.

    >>> [bin_of(runs) for runs in ((0,), (0, 1), (1, 1, 1, 0), (1,))]
    ['never', 'up to ½', 'up to ¾', 'always']
    """
    rate = sum(runs) / len(runs)
    if rate in (0.0, 1.0):
        return BINS[5 if rate else 0]
    return BINS[1 + min(3, int(4 * rate - 1e-9))]


def _both(side: EvaluatedSide, k: int) -> list[AuditFigure]:
    runs = side.results.values()
    accuracy, capability = (
        [sum(x) / len(x) for x in runs],
        [pass_at_k(len(x), round(sum(x)), k) for x in runs],
    )
    tasks = range(len(accuracy))
    return [
        share(f"accuracy of {side.label}", score_mean(accuracy, tasks)),
        share(f"pass@{k} of {side.label}", score_mean(capability, tasks), "capability"),
    ]


def _transitions(start: EvaluatedSide, side: EvaluatedSide, tasks: Sequence[str]) -> AuditTable:
    found = Counter((bin_of(start.results[t]), bin_of(side.results[t])) for t in tasks)
    rows: list[Sequence[Cell]] = [
        (f"was {a}", *(found[a, b] for b in BINS)) for a in BINS if any(found[a, b] for b in BINS)
    ]
    return AuditTable(f"tasks of {start.label} (rows) after {side.label} (columns)", ("", *BINS), rows)


def _by_bin(start: EvaluatedSide, side: EvaluatedSide, tasks: Sequence[str]) -> AuditTable:
    binned: dict[str, list[str]] = {name: [] for name in BINS}
    for task in tasks:
        binned[bin_of(start.results[task][::2])].append(task)
    rows: list[Sequence[Cell]] = []
    for name, its in binned.items():
        if its:
            found = paired_difference(
                {t: start.results[t][1::2] or start.results[t] for t in its},
                {t: side.results[t] for t in its},
            )
            low, high = found.interval
            ends = f"{low:+.3f} … {high:+.3f}" if len(its) > 1 else "one task"
            rows.append((name, len(its), found.before, found.after, found.difference, ends))
    return AuditTable(
        f"{side.label} by the start's success",
        ("start solved", "tasks", "start", "after", "difference", "95 % interval"),
        rows,
    )
