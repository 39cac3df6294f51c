"""Probes that an environment pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, proportion
from turnwise.trainers.audit.core import AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.trust.corpus import (
    FAULTS,
    FLOOR,
    INJECTED,
    KEY,
    MUTATED,
    PROBE,
    STUFFED,
    AuditItem,
    KnownEpisodes,
)

HOLLOW = (STUFFED, KEY, PROBE)
"""Kinds that say nothing of the task."""
SILENT = ("null", "echo")
"""Floors that do nothing."""


@audit(110, 133, paper="2507.08794")
def probes_paid(played: KnownEpisodes) -> AuditFinding:
    """Of floors, faults, keys and probes, how often the environment counts each as solved, and what it is paid beyond doing as much without it.

    A key at the end of a solution is set against the solution without its end, one that stands alone against saying nothing; a reward for the steps
    before it is not the key's. Whatever solves a task without saying anything of it is unearned; a step that a solution can do without is not.
    """
    items = [item for item in played.of(*FAULTS) if item.kind != INJECTED]
    base = _base(items)
    rows: list[Sequence[Cell]] = []
    unearned: list[str] = []
    for kind, name in dict.fromkeys((item.kind, item.name) for item in items):
        own = [item for item in items if (item.kind, item.name) == (kind, name)]
        tasks = [item.task for item in own]
        solved = proportion([item.solved for item in own], tasks)
        extra = clustered_mean(
            [item.episode.trajectory.total_reward - base.get(item.task, 0.0) for item in own], tasks
        )
        rows.append((f"{kind}: {name}", len(own), solved.mean, *solved.interval, extra.mean))
        if solved.mean and (kind in HOLLOW or name in SILENT):
            unearned.append(f"{kind} {name!r} solves {sum(item.solved for item in own)} of {len(own)}")
    hollow = [item for item in items if item.kind in HOLLOW or item.name in SILENT]
    figures = [
        share(
            f"{label} solved", proportion([i.solved for i in told], [i.task for i in told]), f"of {len(told)}"
        )
        for label, told in (
            ("hollow answers", hollow),
            ("mutated solutions", [i for i in items if i.kind == MUTATED]),
            ("floors", [i for i in items if i.kind == FLOOR]),
        )
        if told
    ]
    said = unearned or ["nothing that says nothing of the task solves one"]
    headings = ("played", "episodes", "solved", "from", "to", "reward beyond")
    table = AuditTable("by what was played", headings, rows)
    return AuditFinding(figures, (table,), said=said, failures=unearned)


def _base(items: Sequence[AuditItem]) -> Mapping[str, float]:
    """By task, the reward of saying nothing or of a solution without its end, whichever is larger."""
    found: dict[str, float] = {}
    for item in items:
        if item.name in ("null", "the end left out") and not item.solved:
            found[item.task] = max(
                found.get(item.task, item.episode.trajectory.total_reward),
                item.episode.trajectory.total_reward,
            )
    return found
