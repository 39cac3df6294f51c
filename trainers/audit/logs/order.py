"""Agreement of a score's values with the order of turns: does progress go up where the task is solved?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnwise.agents.evaluation.statistics import clustered_mean, proportion, score_mean, within
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import turn_scores


@audit(95, paper="2509.15937")
def order(played: LoggedGroups, *, score: str = "progress", form: str = "change") -> AuditFinding:
    """Value-order correlation (VOC) on successful episodes, on the same ones shuffled, and the negative rate (VLAC).

    ``change``: the score δ of a turn, in −1 … 1, moves a value from 0 by v ← v + (1 − v)·δ (the paper's per cent). ``value``: the
    score is the value itself. VOC is Spearman's correlation of values with time, equal values sharing their ranks; the negative rate is
    the share of turns with δ < 0. Shuffled turns should give about 0 where the score reads the turn and not its place.

    The book's numbers, in per cent: δ = 20, 30, −10, 50 → 0, 20, 44, 38.4, 69.2, VOC 0.9, negative rate 0.25.

    >>> [round(100 * v, 1) for v in path([.2, .3, -.1, .5])], round(spearman(path([.2, .3, -.1, .5])), 4)
    ([0.0, 20.0, 44.0, 38.4, 69.2], 0.9)
    >>> from turnwise.trainers.audit.by_hand import episode, logged, turn
    >>> run = episode([turn(signals={"progress": d}) for d in (.2, .3, -.1, .5)], solved=True)
    >>> found = order(logged({"a": [run]}))
    >>> round(found.value("VOC"), 4), found.value("negative rate")
    (0.9, 0.25)

    Args:
        score: the signal, or confidence or return.
        form: change or value.
    """
    if form not in ("change", "value"):
        raise TurnwiseError(f"A score has no form {form!r}.", "Write form=change or form=value.")
    kept: list[tuple[str, list[float], float, float]] = []
    for group, rows in zip(played.groups, turn_scores(played, score), strict=True):
        for number, (one, row) in enumerate(zip(group.episodes, rows, strict=True)):
            values = path(row) if form == "change" else row
            if one.success and len(values) > 1:
                shuffled = [*row]
                derive_rng("order", group.task, number).shuffle(shuffled)
                kept.append(
                    (
                        group.task,
                        row,
                        spearman(values),
                        spearman(path(shuffled) if form == "change" else shuffled),
                    )
                )
    if not kept:
        raise TurnwiseError(
            f"{played.label} has no solved episode of two values or more, and order is of such.",
            "Take a log of a policy that solves some tasks, such as `turnwise eval SUITE --policy scripted:gold --out FOLDER`.",
        )
    tasks = [task for task, *_ in kept]
    figures: list[AuditFigure] = []
    for name, place in (("VOC", 2), ("VOC of shuffled turns", 3)):
        found = clustered_mean([float(row[place]) for row in kept], tasks)  # type: ignore[arg-type]
        figures.append(AuditFigure(name, found.mean, within(found.interval, -1.0, 1.0)))
    if form == "change":
        signs = [(delta < 0, task) for task, row, _, _ in kept for delta in row]
        figures.append(share("negative rate", proportion([x for x, _ in signs], [t for _, t in signs])))
    rising = score_mean([float(voc > 0) for _, _, voc, _ in kept], tasks)
    figures.append(share("episodes that rise", rising))
    return AuditFinding(figures)


def path(changes: Sequence[float]) -> list[float]:
    """Values from 0 on, each moved by its change: v ← v + (1 − v)·δ."""
    values = [0.0]
    for delta in changes:
        values.append(values[-1] + (1 - values[-1]) * delta)
    return values


def spearman(values: Sequence[float]) -> float:
    """Spearman's correlation of values with their order; 0 where all are equal."""
    x = np.asarray(values, dtype=np.float64)
    ranks = np.array([((x < v).sum() + (x <= v).sum() + 1) / 2 for v in x])
    if ranks.max() == ranks.min():
        return 0.0
    return float(np.corrcoef(ranks, np.arange(x.size))[0, 1])
