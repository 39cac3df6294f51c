"""Findings of one kind of defect: the share of tasks that have it, and each with what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from turnwise.agents.evaluation.statistics import Estimate, wilson
from turnwise.tasks.core import Json
from turnwise.trainers.audit.core import AuditFinding, AuditTable, share
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, XTask

Detector = Callable[[ProbedTask], Evidence | None]


def defects(probed: ProbedSet, detect: Detector, *, unjudged: bool = False) -> AuditFinding:
    """Hold a detector against every task that was judged; ``unjudged``: against those too that could not be."""
    kind = detect.__module__.rpartition(".")[2]
    tasks = [one for one in probed.tasks if unjudged or not one.unjudged or one.read is not None]
    return listed([one.task for one in tasks], [_evidence(kind, detect, one) for one in tasks])


def _evidence(kind: str, detect: Detector, one: ProbedTask) -> Evidence | None:
    if one.read and kind in one.read:
        return Evidence(one.read[kind])
    return detect(one)


def listed(tasks: Sequence[XTask], found: Sequence[Evidence | None]) -> AuditFinding:
    """A finding of evidence task by task."""
    seen = [(task, one) for task, one in zip(tasks, found, strict=True) if one is not None]
    hard = sum(one.severity == "defect" for _, one in seen)
    if not tasks:
        return AuditFinding(said=("no task could be asked",), data={"tasks": []})
    figures = [share("tasks with it", _share(hard, len(tasks)), f"{hard} of {len(tasks)}")]
    if len(seen) > hard:
        figures.append(
            share("worth a look", _share(len(seen) - hard, len(tasks)), f"{len(seen) - hard} of {len(tasks)}")
        )
    rows = [(task.id, task.place, one.severity, one.seen) for task, one in seen]
    tables = (AuditTable("tasks", ("task", "place", "severity", "seen"), rows),) if rows else ()
    told: list[Json] = [_told(task, one) for task, one in seen]
    return AuditFinding(
        figures,
        tables,
        data={"tasks": told},
        pressing=hard + (len(seen) - hard) / (1 + len(tasks)),
        clear=not seen,
    )


def _told(task: XTask, one: Evidence) -> Mapping[str, Json]:
    return {"id": task.id, "place": task.place, "severity": one.severity, "seen": one.seen}


def _share(hits: int, n: int) -> Estimate:
    return Estimate(hits / n, wilson(hits, n), n, n)
