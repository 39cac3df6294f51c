"""Tasks that two evaluations share, and how often all of them were played."""

from __future__ import annotations

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.reading import EvaluatedSide, EvaluatedSides


def shared_tasks(a: EvaluatedSide, b: EvaluatedSide) -> list[str]:
    """Tasks of both, in the order of the first.

    Raises:
        TurnwiseError: there is none.
    """
    found = [task for task, runs in a.results.items() if runs and b.results.get(task)]
    if not found:
        raise TurnwiseError(
            f"{a.label} and {b.label} share no task.",
            "Evaluate both on the same suite, split and number of episodes.",
        )
    return found


def common_runs(played: EvaluatedSides, k: int, least: int = 1) -> int:
    """The number of runs that every shared task has in all evaluations, or the smaller number that was asked for.

    Raises:
        TurnwiseError: a task has fewer than were asked for, or fewer than an audit needs.
    """
    tasks = {
        task: None for side in played.sides[1:] or played.sides for task in shared_tasks(played.start, side)
    }
    fewest = min(len(side.results[task]) for side in played.sides for task in tasks if side.results.get(task))
    if max(k, least) > fewest or k < 0:
        raise TurnwiseError(
            f"Some task has only {fewest} counting episodes, and k is {k or least}.",
            f"Play each task as often in every evaluation: `turnwise eval SUITE --policy … --k {max(k, least, 1)} --out FOLDER`.",
        )
    return k or fewest
