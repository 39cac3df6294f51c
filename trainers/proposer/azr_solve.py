"""Absolute Zero's solver: the policy solves what it proposed and execution accepted."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.envs.code.triples import ENV, Ask, Triple, solve_task
from turnwise.registry import component
from turnwise.trainers.proposer.core import ProposerContext, TaskProposal

PROPOSE = "propose "
"""With this begins the role of a task that asks for a triple."""


@component("proposer", "azr_solve", paper="2505.03335", envs=(ENV,))
def azr_solve(see: ProposerContext) -> list[TaskProposal]:
    """Hides a part of each triple that was just accepted, once however often it was proposed.

    Absolute Zero's solver: deduction hides the output, abduction the input. How many of a task's episodes are right is what its proposer is paid for.
    What the policy proposes may by chance be a task on which the run is evaluated, such as one of ``triples:solve``; that is not played, and
    is paid as if nobody had solved it.

    Worked by hand: nothing was proposed, and nothing is to be solved.

    >>> azr_solve(ProposerContext(0, 0))
    []
    """
    tasks = {task.id: task for ask, triple in _accepted(see) for task in [solve_task(ask, triple)]}
    return [TaskProposal(task) for task in tasks.values() if not see.held_out(task)]


def _accepted(see: ProposerContext) -> Iterator[tuple[Ask, Triple]]:
    for group in see.played:
        for one in group:
            role = str(one.task.options.get("role", ""))
            turns = one.trajectory.turns
            if one.task.env == ENV and role.startswith(PROPOSE) and one.success and turns:
                yield one.task.options["ask"], Triple(*turns[-1].details["triple"])
