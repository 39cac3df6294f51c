"""Shares of tasks whose judges pay what is wrong and refuse what is right."""

from __future__ import annotations

from turnwise.agents.evaluation.statistics import Estimate, wilson
from turnwise.trainers.audit.core import AuditFinding, AuditTable, audit, count, share
from turnwise.trainers.audit.xray.core import ProbedSet

AGENTS = (
    "empty",
    "no-op",
    "garbage",
    "formed",
    "wrong",
    "copy",
    "key word",
    "leak",
    "skip",
    "repeat",
    "hedge",
)
NEVER = ("empty", "no-op", "garbage", "formed", "wrong", "key word", "skip")


@audit()
def bounds(probed: ProbedSet) -> AuditFinding:
    """Shares of tasks that pay a wrong answer and that refuse the right one, and each scripted agent's share.

    The share of false accepts is a lower bound: an answer that nobody tried may be paid too. Copies, leaks, repetitions and all answers at once
    hold the right answer, so that they are shown and not counted.
    """
    tasks = probed.of_judged
    figures = [count("tasks judged", len(tasks), f"of {probed.source.total} rows or folders")]
    if not tasks:
        return AuditFinding(figures, said=("no task could be judged here",))
    false = sum(one.paid(*NEVER) is not None for one in tasks)
    figures.append(
        share(
            "false accepts, at least", _share(false, len(tasks)), "tasks that pay some answer that is wrong"
        )
    )
    golds = [one for one in tasks if one.gold is not None]
    if golds:
        refused = sum(not any(one.accepts(s.verdict) for s in one.of("gold")) for one in golds)
        figures.append(
            share(
                "false rejects",
                _share(refused, len(golds)),
                "tasks that refuse their own answer in every form",
            )
        )
    rows: list[tuple[str, int, str, str]] = []
    for agent in ("gold", *AGENTS):
        asked = [one for one in tasks if any(one.of(agent))]
        if asked:
            paid = sum(one.paid(agent) is not None for one in asked)
            low, high = wilson(paid, len(asked))
            rows.append((agent, len(asked), f"{paid / len(asked):.1%}", f"{low:.1%} … {high:.1%}"))
    said = (
        [f"{len(probed.source.tasks)} of {probed.source.total} rows or folders could be read"]
        if probed.source.broken
        else []
    )
    return AuditFinding(
        figures,
        (AuditTable("scripted agents", ("agent", "tasks", "paid", "95 % interval"), rows),),
        said=said,
    )


def _share(hits: int, n: int) -> Estimate:
    return Estimate(hits / n, wilson(hits, n), n, n)
