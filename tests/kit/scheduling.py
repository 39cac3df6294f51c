"""pytest-xdist's distribution by groups, for workers that end unexpectedly: the run goes on, and ends."""

from __future__ import annotations

import contextlib

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class GroupScheduling(LoadGroupScheduling):
    """What a worker that ended had finished is not handed out again, nor is the test that ended it.

    pytest-xdist 3.8 hands out all of it: of a group that is finished no worker reports anything, and the run waits for ever.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """Hand out what the worker left; the test that it ended with, or None."""
        units = self.assigned_work.pop(node)
        left = [(unit, name) for unit in units.values() for name, done in unit.items() if not done]
        if not left:
            return None
        unit, ended_with = left[0]
        unit[ended_with] = True  # it is reported as failed, and would end the next worker too
        self.workqueue.update({name: unit for name, unit in units.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return ended_with

    def _assign_work_unit(self, node: WorkerController) -> None:
        """As ever; a worker that is gone, of which nobody has heard yet, keeps its work until it is removed."""
        with contextlib.suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """As ever, but at least two tests each: a worker begins its last one when it is told what comes after it.

        One that took another's place and does not know the tests yet gets its own when it does.
        """
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while not node.shutting_down and self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
