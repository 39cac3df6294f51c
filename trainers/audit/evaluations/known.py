"""Tasks split by what the policy knows without its tools."""

from __future__ import annotations

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import proportion
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, audit, share
from turnwise.trainers.audit.evaluations.shared import shared_tasks
from turnwise.trainers.audit.reading import EvaluatedSides


@audit(219, paper="2505.07596", named=True)
def known(played: EvaluatedSides, *, share_known: float = 0.5) -> AuditFinding:
    """Tasks that the closed-book evaluation answers and those that it does not, and what tools change on each (IKEA).

    The first evaluation was played without tools. A task is known where its success reaches ``share_known``. Below stands the success of
    each other evaluation on both halves; ``--json`` holds as many known as unknown tasks, drawn alike, for a training set of which half
    can be answered from memory, as in the paper. The reward of the paper is that of ``envs/search``.

    By hand: of four tasks two are known; tools lose one of the known and win one of the unknown.

    >>> from turnwise.trainers.audit.reading import EvaluatedSide
    >>> closed = {"a": (1.,), "b": (1.,), "c": (0.,), "d": (0.,)}
    >>> tools = {"a": (1.,), "b": (0.,), "c": (1.,), "d": (0.,)}
    >>> found = known(EvaluatedSides("", (EvaluatedSide("closed", closed), EvaluatedSide("tools", tools))))
    >>> found.value("known"), found.value("tools on known"), found.value("tools on unknown"), len(found.data["balanced"])
    (0.5, -0.5, 0.5, 4)

    Args:
        share_known: success without tools from which a task counts as known.
    """
    closed = played.start
    if not 0 < share_known <= 1:
        raise TurnwiseError(f"share_known is {share_known:g}, and is a share.", "Write share_known=0.5, say.")
    verdicts = {task: sum(runs) / len(runs) >= share_known for task, runs in closed.results.items() if runs}
    figures: list[AuditFigure] = [share("known", proportion([*verdicts.values()], [*verdicts]))]
    rows: list[tuple[str, str, int, float, float]] = []
    for side in played.sides[1:]:
        for name, wanted in (("known", True), ("unknown", False)):
            its = [task for task in shared_tasks(closed, side) if verdicts[task] is wanted]
            if its:
                found = paired_difference(
                    {t: closed.results[t] for t in its}, {t: side.results[t] for t in its}
                )
                figures.append(
                    AuditFigure(
                        f"{side.label} on {name}", found.difference, found.interval, about="change of success"
                    )
                )
                rows.append((side.label, name, len(its), found.before, found.after))
    halves = [[task for task, knows in verdicts.items() if knows is wanted] for wanted in (True, False)]
    rng = derive_rng("known", *verdicts)
    fewest = min(map(len, halves))
    balanced = [task for half in halves for task in sorted(rng.sample(half, fewest))]
    tables = (
        (AuditTable("by what is known", ("", "tasks that are", "tasks", "closed", "with tools"), rows),)
        if rows
        else ()
    )
    return AuditFinding(
        figures, tables, data={"known": halves[0], "unknown": halves[1], "balanced": balanced}
    )
