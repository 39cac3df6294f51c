"""Probes that an environment pays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, proportion
from turnwise.trainers.audit.core import AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.trust.corpus import (
    FAULTS,
    FLOOR,
    INJECTED,
    KEY,
    LEFT_OUT,
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
    before it is not the key's. Whatever solves a task without saying anything of it is unearned, unless the task is solved with nothing in that place; a step
    that a solution can do without is not.
    """
    items = [item for item in played.of(*FAULTS) if item.kind != INJECTED]
    base = _base(items)
    needless = {item.task for item in items if item.name == LEFT_OUT and item.solved}
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
        if paid := sum(_unearned(item, needless) for item in own):
            unearned.append(f"{kind} {name!r} solves {paid} of {len(own)}")
    hollow = [
        i for i in items if (i.kind in HOLLOW or i.name in SILENT) and not (_at_end(i) and i.task in needless)
    ]
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
    if needless:
        said = [
            *said,
            f"{len(needless)} tasks are solved with nothing in the place of the last fact: a word there earns nothing, and was not counted",
        ]
    headings = ("played", "episodes", "solved", "from", "to", "reward beyond")
    table = AuditTable("by what was played", headings, rows)
    return AuditFinding(figures, (table,), said=said, failures=unearned)


def _at_end(item: AuditItem) -> bool:
    """Say whether an item stands at the end of a solution, not alone."""
    return item.kind in HOLLOW and len(item.episode.trajectory.turns) > 1


def _unearned(item: AuditItem, needless: Collection[str]) -> bool:
    if item.name in SILENT:
        return item.solved
    return item.kind in HOLLOW and item.solved and not (_at_end(item) and item.task in needless)


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
