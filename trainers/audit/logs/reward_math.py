"""One success among failures: does a score of turns tell it, and folded in which way?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from turnwise.agents.evaluation.statistics import proportion, score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, count, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import turn_scores

_EDGE = 1e-6  # so that odds of 0 and 1 are numbers


def _inside(scores: Sequence[float]) -> list[float]:
    return [min(1 - _EDGE, max(_EDGE, p)) for p in scores]


def _logit(scores: Sequence[float]) -> float:
    mean = sum(math.log(p / (1 - p)) for p in _inside(scores)) / len(scores)
    return 1 / (1 + math.exp(-mean))


WAYS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "product": math.prod,
    "max": max,
    "geometric mean": lambda x: math.exp(sum(map(math.log, _inside(x))) / len(x)),
    "mean": lambda x: sum(x) / len(x),
    "mean logit": _logit,
    "mean odds": lambda x: sum(p / (1 - p) for p in _inside(x)) / len(x),
    "last": lambda x: x[-1],
}
"""From the scores of turns, which are chances, to the score of an episode."""


@audit(115, paper="2410.01729")
def reward_math(played: LoggedGroups, *, score: str = "principle", failures: int = 9) -> AuditFinding:
    """Accuracy and mean reciprocal rank of a success among failures of its task, for eight ways to fold turns (RewardMATH).

    Right where the success is scored above every failure; a tie loses. The rank is one more than the failures that are scored as high or higher. Each
    success of a task meets the same failures, the first ``failures`` of its log (the paper has nine); tasks with none of either say
    nothing. Before a score is paid, this is what it can tell, and folded in which way.

    The book's numbers: .7 against .2, .5 and .9 is wrong with 1/2; .9 .8 .5 fold to .5 .36 .9 .7114 .7333 .7675 4.6667 .5.

    >>> among(0.7, [0.2, 0.5, 0.9]), among(0.9, [0.2, 0.9]), among(0.9, [0.1])
    ((False, 0.5), (False, 0.5), (True, 1.0))
    >>> [round(fold([0.9, 0.8, 0.5]), 4) for fold in WAYS.values()]
    [0.5, 0.36, 0.9, 0.7114, 0.7333, 0.7675, 4.6667, 0.5]

    Args:
        score: the signal, or confidence or return.
        failures: the most that a success is compared with.
    """
    if failures < 1:
        raise TurnwiseError(
            f"failures={failures} leaves nothing to compare with.", "Give 1 or more; the paper has 9."
        )
    sides: list[tuple[str, list[list[float]], list[list[float]]]] = []
    for group, scored in zip(played.groups, turn_scores(played, score), strict=True):
        told = [(one.success, row) for one, row in zip(group.episodes, scored, strict=True) if row]
        right, wrong = ([row for solved, row in told if solved is side] for side in (True, False))
        if right and wrong:
            sides.append((group.task, right, wrong[:failures]))
    if not sides:
        raise TurnwiseError(
            f"No task of {played.label} has a success and a failure.", "Play each task more often: `--k 10`."
        )
    rows: list[Sequence[Cell]] = []
    figures: list[AuditFigure] = [count("tasks with both", len(sides))]
    for name, fold in WAYS.items():
        found = [
            (task, among(fold(one), [*map(fold, wrong)])) for task, right, wrong in sides for one in right
        ]
        tasks = [task for task, _ in found]
        accuracy = proportion([is_first for _, (is_first, _) in found], tasks)
        rank = score_mean([reciprocal for _, (_, reciprocal) in found], tasks)
        figures.append(share(f"accuracy by {name}", accuracy))
        rows.append((name, accuracy.mean, rank.mean))
    chance = score_mean([1 / (1 + len(wrong)) for _, _, wrong in sides], [task for task, _, _ in sides])
    figures.append(share("accuracy by chance", chance)._replace(interval=None))
    table = AuditTable("one success among failures", ("fold", "accuracy", "mean reciprocal rank"), rows)
    return AuditFinding(figures, [table])


def among(right: float, wrong: Sequence[float]) -> tuple[bool, float]:
    """Say whether a success is scored above all failures, and one over its rank."""
    above = sum(score >= right for score in wrong)
    return above == 0, 1 / (1 + above)
