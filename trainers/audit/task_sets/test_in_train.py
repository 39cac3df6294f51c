"""Tasks of a test set that are in the training set."""

from __future__ import annotations

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import listed
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet
from turnwise.trainers.audit.xray.likeness import Likeness


@audit()
def test_in_train(probed: ProbedSet) -> AuditFinding:
    """Tasks that are in the set named by --against too, exactly or nearly."""
    if not probed.against_name:
        raise TurnwiseError(
            "No other set is named to hold these tasks against.", "Name the training set: --against PATH."
        )
    known = Likeness()
    for task in probed.against:
        known.add(task)
    tasks = [one.task for one in probed.tasks]
    likes = [known.find(task) for task in tasks]
    return listed(
        tasks,
        [Evidence(f"{like.how} {like.other.id} of {like.other.place}") if like else None for like in likes],
    )
