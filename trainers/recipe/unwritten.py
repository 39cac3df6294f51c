"""Refuse settings about what a policy writes down where its context manager has it write nothing.

Managers and shapes are tried out instead of being known by name, so that this holds for a stranger's too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from turnwise.agents.contexts.core import Exchange, TalkSoFar, TokenCounter
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RecipeError
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.kit.toy_batches import toy_turns
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe


def written_in_vain(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Settings that look at what is written down, in a recipe that has nothing written."""
    context, warm = recipe.sampling.context, recipe.warm_start
    writes = context is not None and has_it_write(context)
    remedy = "Remove it, or set sampling.context to a manager that has the policy write, such as summary"
    if warm is not None and warm.forgets and (warm.chats or not writes):
        yield RecipeProblem(
            "warm_start.forgets can have no effect: no demonstration writes anything down.",
            f"{remedy}, and no chats.",
        )
    if writes or recipe.agent is not None:  # a program may write by itself
        return
    for part in recipe.shape:
        if changes_memories_alone(part):
            yield RecipeProblem(
                f"shape {part.name!r} can have no effect: it changes the credit of what is written down, and nothing is.",
                f"{remedy}.",
            )


def has_it_write(part: Part) -> bool:
    """Say whether a context manager ever asks the policy to write, or gives it a tool to.

    >>> [has_it_write(Part(name=name)) for name in ("summary", "workspace", "notes", "fold", "window", "clear")]
    [True, True, True, True, False, False]
    """
    endless = TokenCounter(lambda messages: len(messages) << 30, lambda tools: 0)
    said = Exchange(Message("assistant", "look"), Messages([Message("user", "A room.")]))
    shown = part.build("context")(TalkSoFar(Messages([Message("user", "Go.")]), (said, said), (), endless))
    return bool(shown.ask or shown.tools)


def changes_memories_alone(part: Part) -> bool:
    """Say whether a shape changes the credit of turns of kind ``memory``, and leaves all credit as it is where there are none.

    >>> changes_memories_alone(Part(name="memory_turns")), changes_memories_alone(Part(name="clamp"))
    (True, False)
    """
    batch = toy_turns(
        part.needs("shape"),
        group=[0, 0, 0],
        drawn=[[0.3, -0.2, 1.0], [0.1, 0.4], [0.0, 0.7, -0.5]],
        memory=[[0, 1, 0], [1, 0], [0, 0, 1]],
    )
    shape = part.build("shape")

    def moved(batch: TurnBatch) -> Tensor:
        return on_turns(shape(batch.reward_BK, batch), batch) - batch.reward_BK

    try:
        return not moved(replace(batch, memory_BK=None)).any() and bool(moved(batch).any())
    except (RecipeError, RuntimeError, KeyError):  # it needs more than this batch has
        return False
