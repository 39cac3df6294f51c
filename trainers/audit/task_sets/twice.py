"""Tasks that are in a set twice."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import listed
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet
from turnwise.trainers.audit.xray.likeness import Likeness


@audit()
def twice(probed: ProbedSet) -> AuditFinding:
    """Tasks that repeat an earlier one, word for word but for case and marks, or nearly so with the same numbers, names and answer."""
    tasks = [one.task for one in probed.tasks]
    known = Likeness()
    found: list[Evidence | None] = []
    for task in tasks:
        like = known.find(task)
        found.append(Evidence(f"{like.how} {like.other.id} ({like.other.place})") if like else None)
        known.add(task)
    return listed(tasks, found)
