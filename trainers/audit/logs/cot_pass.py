"""Success that counts only where the reasoning is right too."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import pass_at_k, score_mean
from turnwise.trainers.audit.core import AuditCurve, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import episode_scores


@audit(143)
def cot_pass(
    played: LoggedGroups, *, score: str = "", fold: str = "min", threshold: float = 0.5, k: int = 0
) -> AuditFinding:
    """CoT-pass@k beside pass@k: 1 − C(n − D, k)/C(n, k), with D the runs that succeed and whose reasoning a score calls right.

    The reasoning is right where the fold over turns of ``score`` is at least ``threshold``: a judge's signal in the log, or one that
    `--judge` writes. The paper's votes over several judgements are those of the judge `critic` (intersection, majority), whose
    ``wrong`` is scored by `score=-1*wrong threshold=-0.5`; of `rlbff`, P(yes). What only pass@k counts are right answers for no right reason.

    >>> round(pass_at_k(10, 2, 2), 4)
    0.3778

    Args:
        score: what says that the reasoning is right: a signal or a weighted sum.
        fold: from turns to an episode: min, mean, product, last, sum.
        threshold: the score from which it is right.
        k: the largest k; as many runs as every task has, if 0.
    """
    groups = played.of(max(2, k), "a choice among runs")
    every = episode_scores(played, score, fold)
    sound = [[s >= threshold for s in every[played.groups.index(group)]] for group in groups]
    won = [[e.success for e in group.episodes] for group in groups]
    both = [[a and b for a, b in zip(y, s, strict=True)] for y, s in zip(won, sound, strict=True)]
    most, tasks = k or min(map(len, won)), range(len(groups))
    ks = [n for n in range(1, most + 1) if n & (n - 1) == 0 or n == most]
    curves: list[AuditCurve] = []
    rows: list[list[Cell]] = [[n] for n in ks]
    for name, right in (("pass@k", won), ("CoT-pass@k", both)):
        found = [score_mean([pass_at_k(len(y), sum(y), n) for y in right], tasks) for n in ks]
        curves.append(AuditCurve(name, ks, [e.mean for e in found], [e.interval for e in found]))
        for row, e in zip(rows, found, strict=True):
            row += [e.mean, f"{e.interval.low:.3f} … {e.interval.high:.3f}"]
    only = sum(map(sum, won)) - sum(map(sum, both))
    figures = [
        share(f"{name} of {n}", score_mean([pass_at_k(len(y), sum(y), n) for y in right], tasks))
        for n in dict.fromkeys((1, most))
        for name, right in (("pass", won), ("CoT-pass", both))
    ]
    shown: Sequence[Sequence[Cell]] = rows
    table = AuditTable("k", ("k", "pass@k", "95 % interval", "CoT-pass@k", "95 % interval"), shown)
    said = f"{only} of {sum(map(sum, won))} successes have no right reasoning by this score"
    return AuditFinding(figures, (table,), curves, ("k", "success"), said=[said])
