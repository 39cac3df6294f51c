"""Absolute Zero's proposer: the policy is asked for code triples, and shown some that execution accepted."""

from __future__ import annotations

from turnwise.envs.code import induction
from turnwise.envs.code.triples import ASKS, ENV, SEED, Ask, Triple, propose_task
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.proposer.core import ProposerContext, TaskProposal


@component("proposer", "azr_propose", paper="2505.03335", envs=(ENV,))
def azr_propose(
    see: ProposerContext,
    *,
    tasks: int = 3,
    references: int = 3,
    asks: tuple[Ask, ...] = ASKS,
    inputs: int = 10,
) -> list[TaskProposal]:
    """Asks for new triples of ``turnwise/Triples-v0``, for the kinds of ``asks`` in turn, and shows some that were accepted before.

    Absolute Zero (Zhao et al. 2025): a proposer is shown K triples of the buffer and writes a program with an input, for deduction or abduction; for
    induction it is shown one program and writes ``inputs`` inputs and a message. The buffer is the pool, where `azr_solve` keeps what was accepted
    (`keep`); it begins with one trivial triple. Put it before `azr_solve`, pay both roles by `reward: absolute_zero`, and standardise by role with
    `credit: trr`. A small model imitates the forms by triples:propose, triples:solve, triples:describe and triples:induce.

    Worked by hand: with an empty pool all kinds are asked for, beside the triple of the identity.

    >>> made = azr_propose(ProposerContext(0, 0))
    >>> [one.task.options["role"] for one in made], "return x" in made[0].task.prompt
    (['propose deduction', 'propose abduction', 'propose induction'], True)

    Raises:
        RecipeError: there are no tasks, no references, no kinds, or fewer than two inputs.
    """
    if min(tasks, references) < 1 or inputs < 2 or not asks:
        raise RecipeError(
            f"proposer 'azr_propose': tasks={tasks}, references={references}, asks={[*asks]}, inputs={inputs}.",
            "Give 1 or more of each, and 2 inputs or more.",
        )
    rng = see.rng("azr_propose")
    triples = [
        one.task.options
        for one in see.pool
        if one.by == "azr_solve" and one.task.options["ask"] != "induction"
    ]
    made: list[TaskProposal] = []
    for number in range(see.update * tasks, (see.update + 1) * tasks):
        ask = asks[number % len(asks)]
        known = [Triple(*one["triple"]) for one in triples if ask in ("induction", one["ask"])]
        if ask == "induction":
            task = induction.propose_task(rng.choice(known or [SEED]), number, inputs)
        else:
            shown = rng.sample(known, min(references, len(known))) or [SEED]
            task = propose_task(ask, shown, number)
        made.append(TaskProposal(task))
    return made
