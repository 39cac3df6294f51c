"""Requirements for filters and shapes, on batches drawn from the small exact processes."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import Component, get_component
from turnwise.requirements import NotTested, Requirements, require
from turnwise.trainers.check.bias import NOTABLE, SMALL
from turnwise.trainers.check.credit import mapped, turns
from turnwise.trainers.check.options import EVERY_PART, SEEDS, variants
from turnwise.trainers.core import Shape, TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_turns, over_tokens
from turnwise.trainers.lab.contexts import managed
from turnwise.trainers.lab.exact import Process, compare, expected_update, paths
from turnwise.trainers.lab.processes import PROCESSES, lopsided, made_up, signals


def given(batch: TurnBatch, seed: int) -> Tensor:
    """Advantages of both signs, with one group that is given nothing, (B, K)."""
    generator = torch.Generator().manual_seed(100 + seed)
    random_BK = torch.randn(batch.reward_BK.shape, generator=generator, dtype=batch.reward_BK.dtype)
    return random_BK * batch.mask_BK * (batch.group_B != 1)[:, None]


def reordered(batch: TurnBatch, order_B: Tensor) -> TurnBatch:
    """The same trajectories in another order."""
    return mapped(batch, lambda x: x[order_B], kept_B=order_B)


def filter_weighs_trajectories(entry: Component) -> None:
    """A finite weight of at least 0 for each trajectory, whatever the order; something is kept of all batches where something is given."""
    for said, keep in variants(entry):
        kept = False
        for seed in SEEDS:
            batch = turns(seed)
            credit_BK = given(batch, seed)
            weight_B = keep(batch, credit_BK)
            require(weight_B.shape == batch.group_B.shape, f"It gives {tuple(weight_B.shape)} ({said}).")
            require(
                bool(torch.isfinite(weight_B).all() & (weight_B >= 0).all()), f"A weight is below 0 ({said})."
            )
            kept |= bool((weight_B > 0).any()) or not bool(credit_BK.any())
            order_B = torch.randperm(len(weight_B), generator=torch.Generator().manual_seed(seed))
            again_B = keep(reordered(batch, order_B), credit_BK[order_B])
            require(torch.allclose(again_B, weight_B[order_B]), f"It depends on the order ({said}).")
        require(kept, f"It drops everything ({said}).")


def filter_reads_tokens_too(entry: Component) -> None:
    """The advantages of a rule that is about tokens are weighed as those of turns are."""
    for said, keep in variants(entry):
        batch = turns(3)
        credit_BK = given(batch, 3)
        weight_B = keep(batch, TokenCredit(over_tokens(credit_BK, batch)))
        require(torch.allclose(weight_B, keep(batch, credit_BK)), f"Tokens are weighed otherwise ({said}).")


def shaped(shape: Shape, credit_BK: Tensor, batch: TurnBatch) -> Tensor:
    """Return the advantages that a shape makes of those of turns; where it gives tokens advantages of their own, their means."""
    found = shape(credit_BK, batch)
    if isinstance(found, TokenCredit):
        assert batch.tokens is not None
        off_RT = found.advantage_RT[~batch.tokens.mask_RT]
        require(not bool(off_RT.any()), "A token that was not sampled gets some.")
    return on_turns(found, batch)


def shape_keeps_the_form(entry: Component) -> None:
    """Advantages of turns or of tokens, finite, 0 where nothing was done, whatever the order; what it is given stays."""
    for said, shape in variants(entry):
        for seed in SEEDS:
            batch = turns(seed)
            credit_BK = given(batch, seed)
            before_BK = credit_BK.clone()
            shaped_BK = shaped(shape, credit_BK, batch)
            require(shaped_BK.shape == credit_BK.shape, f"Another form ({said}).")
            require(torch.equal(credit_BK, before_BK), f"It changes what it is given ({said}).")
            require(bool(torch.isfinite(shaped_BK).all()), f"It is not finite ({said}).")
            require(
                not bool(shaped_BK[~batch.mask_BK].any()), f"It gives to turns that do not exist ({said})."
            )
            order_B = torch.randperm(len(credit_BK), generator=torch.Generator().manual_seed(seed))
            again_BK = shaped(shape, credit_BK[order_B], reordered(batch, order_B))
            require(torch.allclose(again_BK, shaped_BK[order_B]), f"It depends on the order ({said}).")


def shape_is_as_biased_as_declared(entry: Component) -> str:
    """Laid over ``rloo``, which is unbiased, it pulls the expected update off the exact gradient, or not, as ``bias`` says.

    On the small processes and one whose policy writes a summary; groups of two and three, two groups at once, and two steps
    to a turn.
    """
    p = paths(PROCESSES[0], lopsided(PROCESSES[0]))
    unknown = sorted(entry.needs_with({}) - signals(p).keys())
    if unknown:
        raise NotTested(f"It needs {', '.join(unknown)}, which the exact processes do not have.")
    declared = entry.bias.partition(":")[0]
    crooked = any(_crooked(entry, *size) for size in SIZES)
    if declared == "unbiased":
        require(not crooked, "It is biased.")
    elif declared == "biased":
        require(crooked, "It is unbiased, on all processes.")
    return (
        f"{declared}, as declared"
        if declared != "changes the objective"
        else "crooked"
        if crooked
        else "straight"
    )


SIZES = ((2, 1, 1), (3, 1, 1), (2, 2, 1), (2, 1, 2))  # of groups, how many of them, steps of a turn


def _crooked(entry: Component, n: int, groups: int, per_turn: int) -> bool:
    """Say whether more than one factor for all processes is lost, for groups of ``n``."""
    rloo, shape = get_component("credit", "rloo").build({}), entry.build({})
    processes = [one for one in PROCESSES if (groups == 1 and n == 2) or one.name in SMALL]
    if (n, groups, per_turn) == SIZES[0]:
        processes.append(_summarised())
    found = []
    for process in processes:
        p = paths(process, lopsided(process))
        given = signals(p)
        update = expected_update(
            lambda batch: shape(rloo(batch), batch), p, n, given, groups=groups, per_turn=per_turn
        )
        found.append(compare(update.mean_SA, p.policy_gradient()))
    scales = [bias.scale for bias in found]
    return max(bias.angle for bias in found) > NOTABLE or max(scales) - min(scales) > NOTABLE * max(scales)


@functools.cache
def _summarised() -> Process:
    """A process whose policy is shown the summary that it wrote."""
    return managed(get_component("context", "summary"))


def shape_points_uphill(entry: Component) -> None:
    """Whatever its bias, over an unbiased rule the expected return still improves on the process without a trick."""
    if entry.needs_with({}) & made_up():
        raise NotTested("It needs a signal that means nothing on a process.")
    process = next(process for process in PROCESSES if process.name == "puzzle")
    p, rloo, shape = (
        paths(process, lopsided(process)),
        get_component("credit", "rloo").build({}),
        entry.build({}),
    )
    update = expected_update(lambda batch: shape(rloo(batch), batch), p, 3, signals(p))
    scale = compare(update.mean_SA, p.policy_gradient()).scale
    require(scale > 0, "Its update makes the return smaller on 'puzzle'.")


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
        "the bias is as declared": shape_is_as_biased_as_declared,
        "an update points uphill": shape_points_uphill,
    },
}
