"""What is required of filters and shapes, on batches drawn from the small exact processes."""

from __future__ import annotations

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.credit import mapped, turns
from turnwise.trainers.check.options import EVERY_PART, SEEDS, variants
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import over_tokens


def given(batch: TurnBatch, seed: int) -> Tensor:
    """Advantages of both signs, with one group that is given nothing, (B, K)."""
    generator = torch.Generator().manual_seed(100 + seed)
    random_BK = torch.randn(batch.reward_BK.shape, generator=generator, dtype=batch.reward_BK.dtype)
    return random_BK * batch.mask_BK * (batch.group_B != 1)[:, None]


def reordered(batch: TurnBatch, order_B: Tensor) -> TurnBatch:
    """The same trajectories in another order."""
    return mapped(batch, lambda x: x[order_B], kept_B=order_B)


def filter_weighs_trajectories(entry: Component) -> None:
    """A finite weight of at least 0 for each trajectory, whatever the order; something is kept where something is given."""
    for said, keep in variants(entry):
        for seed in SEEDS:
            batch = turns(seed)
            credit_BK = given(batch, seed)
            weight_B = keep(batch, credit_BK)
            require(weight_B.shape == batch.group_B.shape, f"It gives {tuple(weight_B.shape)} ({said}).")
            require(
                bool(torch.isfinite(weight_B).all() & (weight_B >= 0).all()), f"A weight is below 0 ({said})."
            )
            require(bool((weight_B > 0).any()) or not bool(credit_BK.any()), f"It drops everything ({said}).")
            order_B = torch.randperm(len(weight_B), generator=torch.Generator().manual_seed(seed))
            again_B = keep(reordered(batch, order_B), credit_BK[order_B])
            require(torch.allclose(again_B, weight_B[order_B]), f"It depends on the order ({said}).")


def filter_reads_tokens_too(entry: Component) -> None:
    """The advantages of a rule that is about tokens are weighed as those of turns are."""
    for said, keep in variants(entry):
        batch = turns(3)
        credit_BK = given(batch, 3)
        weight_B = keep(batch, TokenCredit(over_tokens(credit_BK, batch)))
        require(torch.allclose(weight_B, keep(batch, credit_BK)), f"Tokens are weighed otherwise ({said}).")


def shape_keeps_the_form(entry: Component) -> None:
    """Advantages of the same form, finite, 0 where nothing was done, whatever the order; what it is given stays."""
    for said, shape in variants(entry):
        for seed in SEEDS:
            batch = turns(seed)
            credit_BK = given(batch, seed)
            before_BK = credit_BK.clone()
            shaped_BK = shape(credit_BK, batch)
            require(
                isinstance(shaped_BK, Tensor) and shaped_BK.shape == credit_BK.shape,
                f"Another form ({said}).",
            )
            require(torch.equal(credit_BK, before_BK), f"It changes what it is given ({said}).")
            require(bool(torch.isfinite(shaped_BK).all()), f"It is not finite ({said}).")
            require(
                not bool(shaped_BK[~batch.mask_BK].any()), f"It gives to turns that do not exist ({said})."
            )
            order_B = torch.randperm(len(credit_BK), generator=torch.Generator().manual_seed(seed))
            again_BK = shape(credit_BK[order_B], reordered(batch, order_B))
            require(torch.allclose(again_BK, shaped_BK[order_B]), f"It depends on the order ({said}).")


def shape_says_what_it_does_with_tokens(entry: Component) -> str:
    """Advantages that differ within a turn are shaped token by token, or refused with the reason."""
    batch = turns(3)
    credit = TokenCredit(over_tokens(given(batch, 3), batch))
    try:
        found = entry.build({})(credit, batch)
    except RecipeError as error:
        return f"refused: {error.cause}"
    require(isinstance(found, TokenCredit), "Of tokens it makes turns, without a word.")
    return "token by token"


REQUIREMENTS: dict[str, Requirements] = {
    "filter": {
        **EVERY_PART,
        "weighs trajectories": filter_weighs_trajectories,
        "reads tokens too": filter_reads_tokens_too,
    },
    "shape": {
        **EVERY_PART,
        "keeps the form": shape_keeps_the_form,
        "says what it does with tokens": shape_says_what_it_does_with_tokens,
    },
}
