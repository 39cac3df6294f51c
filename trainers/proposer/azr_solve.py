"""Absolute Zero's solver: the policy solves what it proposed and execution accepted, and more of the buffer."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.envs.code import induction
from turnwise.envs.code.triples import ENV, Ask, Triple, solve_task
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import Json, Task
from turnwise.trainers.proposer.core import ProposerContext, TaskProposal

PROPOSE = "propose "
"""With this begins the role of a task that asks for a triple."""


@component("proposer", "azr_solve", paper="2505.03335", envs=(ENV,))
def azr_solve(see: ProposerContext, *, fill: int = 0) -> list[TaskProposal]:
    """Hides a part of each triple that was just accepted, once however often it was proposed, and fills the batch from the buffer.

    Absolute Zero's solver: deduction hides the output, abduction the input, induction the program behind some inputs and a message. How many of a task's
    episodes are right is what its proposer is paid for. Where fewer than ``fill`` tasks were accepted, tasks of earlier updates that are kept
    (`keep`) are drawn until there are so many, as the paper fills its batches. What the policy proposes may by chance be a task on which
    the run is evaluated, such as one of ``triples:solve``; that is not played, and is paid as if nobody had solved it.

    Worked by hand: nothing was proposed, and nothing is to be solved.

    >>> azr_solve(ProposerContext(0, 0))
    []

    Raises:
        RecipeError: ``fill`` is below 0.
    """
    if fill < 0:
        raise RecipeError(f"proposer 'azr_solve': fill={fill}.", "Give 0 or more.")
    every = {task.id: task for ask, triple in _accepted(see) for task in [task_of(ask, triple)]}
    new = [task for task in every.values() if not see.held_out(task)]
    kept = [one.task for one in see.pool if one.by == "azr_solve" and one.task.id not in every]
    more = see.rng("azr_solve").sample(kept, min(len(kept), max(0, fill - len(new))))
    return [TaskProposal(task) for task in (*new, *more)]


def task_of(ask: Ask, triple: list[Json]) -> Task:
    """The task that hides a part of what was accepted."""
    if ask == "induction":
        return induction.solve_task(induction.Induction(*triple))
    return solve_task(ask, Triple(*triple))


def _accepted(see: ProposerContext) -> Iterator[tuple[Ask, list[Json]]]:
    for group in see.played:
        for one in group:
            role = str(one.task.options.get("role", ""))
            turns = one.trajectory.turns
            if one.task.env == ENV and role.startswith(PROPOSE) and one.success and turns:
                yield one.task.options["ask"], [*turns[-1].details["triple"]]
