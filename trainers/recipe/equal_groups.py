"""Groups whose episodes all earned the same: rules that learn from them, and filters that drop them.

A rule that compares the episodes of a group gives such a group nothing. One that compares with something else (an imagined
success, a threshold, a learned value) learns from it, and would learn something else where a filter takes it away: tried out,
as in :mod:`turnwise.trainers.recipe.no_effect`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from turnwise.errors import RecipeError
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.kit.toy_batches import toy_turns
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe


def losing_equal_groups(recipe: Recipe) -> Iterator[RecipeProblem]:
    """A rule that learns from groups which the filter drops."""
    if drops_equal_groups(recipe.filter) and learns_from_equal_groups(recipe.credit):
        yield RecipeProblem(
            f"credit {recipe.credit.name!r} learns from groups whose episodes all earned the same, and filter "
            f"{recipe.filter.name!r} drops them.",
            "Set filter: any, or informative (which drops what the rule itself gives nothing), or choose another rule.",
        )


def drops_equal_groups(part: Part) -> bool:
    """Say whether a filter drops groups in which all failed or all succeeded, though the credit rule gives them something.

    It does where it keeps the same outcome in a group whose episodes differ, and signals do not tell the groups apart.

    >>> [drops_equal_groups(Part(name=name)) for name in ("informative", "ranked", "any", "consensus", "writing_zero", "band")]
    [False, False, False, False, False, True]
    """
    batch = toy_turns(
        part.needs("filter"), drawn=[[0], [0], [1], [1], [1], [0]], group=[0, 0, 1, 1, 2, 2], alike=True
    )
    weight_B = part.build("filter")(batch, torch.ones(6, 1, dtype=torch.float64))
    *equal, solved, failed = (weight_B > 0).tolist()
    return (failed and not any(equal[:2])) or (solved and not any(equal[2:]))


def learns_from_equal_groups(part: Part) -> bool:
    """Say whether a credit rule gives something to a group in which all failed, or to one in which all succeeded.

    >>> [learns_from_equal_groups(Part(name=name)) for name in ("ngrpo", "psr_nsr", "gae", "rloo", "lite_ppo")]
    [True, True, True, False, False]
    """
    batch = toy_turns(part.needs("credit"), drawn=[[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    try:
        given_BK = on_turns(part.build("credit")(batch), batch)
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return False
    return bool((given_BK.abs() > 1e-6).any())
