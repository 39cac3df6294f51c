"""Share of episodes whose worst-scored turn is the last: an outcome in disguise."""

from __future__ import annotations

from turnwise.agents.evaluation.statistics import proportion, score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import turn_scores


@audit(92, paper="2501.07301")
def minima(played: LoggedGroups, *, score: str = "principle") -> AuditFinding:
    """Share of minima on the last turn, beside what chance gives (Lessons of developing process reward models).

    Of the episodes of two turns or more whose scores differ: those whose lowest score is on the last turn alone or with others
    (shared in equal parts). A scorer of turns that puts most minima there judges the outcome. Chance is the mean of 1/turns.

    >>> from turnwise.trainers.audit.by_hand import episode, logged, turn
    >>> def run(*scores): return episode([turn(signals={"principle": x}) for x in scores], solved=True)
    >>> found = minima(logged({"a": [run(.9, .8, .2), run(.1, .8, .9), run(.3, .3, .9, .3)], "b": [run(.5, .5)]}))
    >>> round(found.value("minima on the last turn"), 4), round(found.value("by chance"), 4)
    (0.4444, 0.3056)

    Args:
        score: the signal, or confidence or return.
    """
    found: list[tuple[float, float, str]] = []
    for group, rows in zip(played.groups, turn_scores(played, score), strict=True):
        for row in rows:
            if len(row) > 1 and max(row) > min(row):
                found.append((float(row[-1] == min(row)) / row.count(min(row)), 1 / len(row), group.task))
    if not found:
        raise TurnwiseError(
            f"No episode of {played.label} has two turns with different {score!r}.",
            "Score turns by another judge or signal.",
        )
    last = score_mean([x for x, _, _ in found], [task for _, _, task in found])
    if all(x in (0.0, 1.0) for x, _, _ in found):
        last = proportion([x > 0 for x, _, _ in found], [task for _, _, task in found])
    chance = sum(c for _, c, _ in found) / len(found)
    far = last.interval.low > chance
    verdict = (
        "more often than by chance the worst turn is the last: this score may be the outcome in disguise"
        if far
        else "minima are not heaped on the last turn"
    )
    return AuditFinding(
        [
            share("minima on the last turn", last),
            share("by chance", last._replace(mean=chance))._replace(interval=None),
        ],
        said=[verdict],
    )
