"""Absolute Zero's proposer: the policy is asked for code triples, and shown some that execution accepted."""

from __future__ import annotations

from turnwise.envs.code.triples import ASKS, ENV, SEED, Triple, propose_task
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.proposer.core import ProposerContext, TaskProposal


@component("proposer", "azr_propose", paper="2505.03335", envs=(ENV,))
def azr_propose(see: ProposerContext, *, tasks: int = 2, references: int = 3) -> list[TaskProposal]:
    """Asks for new triples of ``turnwise/Triples-v0``, for deduction and abduction in turn, and shows some that were accepted before.

    Absolute Zero (Zhao et al. 2025): a proposer is shown K triples of the buffer and writes a program with an input. The buffer is the pool, where
    `azr_solve` keeps what was accepted (`keep`); it begins with one trivial triple. Put it before `azr_solve`, pay both roles by `reward: absolute_zero`, and
    standardise by role with `credit: trr`. Left out: induction, for which a program is to be found from several inputs and a message.

    Worked by hand: with an empty pool both kinds are asked for, beside the triple of the identity.

    >>> made = azr_propose(ProposerContext(0, 0))
    >>> [one.task.options["role"] for one in made], "return x" in made[0].task.prompt
    (['propose deduction', 'propose abduction'], True)

    Raises:
        RecipeError: there are no tasks, or no references.
    """
    if tasks < 1 or references < 1:
        raise RecipeError(
            f"proposer 'azr_propose': tasks={tasks}, references={references}.", "Give 1 or more of each."
        )
    rng = see.rng("azr_propose")
    made: list[TaskProposal] = []
    for n in range(tasks):
        ask = ASKS[n % len(ASKS)]
        known = [
            Triple(*one.task.options["triple"])
            for one in see.pool
            if one.by == "azr_solve" and one.task.options["ask"] == ask
        ]
        shown = rng.sample(known, min(references, len(known))) or [SEED]
        made.append(TaskProposal(propose_task(ask, shown, see.update * tasks + n)))
    return made
