"""Refuse settings that would silently change nothing.

Parts are tried out on a small batch instead of being known by name: an option that changes neither a loss
nor its gradient there, a filter that keeps nothing and a credit rule that gives nothing are found for every
part there is and will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.by_hand import episode, token_batch, turn_batch
from turnwise.trainers.schema import Optimizer, Part, Recipe
from turnwise.trainers.token_credit import on_turns


def check_effects(recipe: Recipe) -> None:
    """Refuse what can have no effect.

    Raises:
        RecipeError: naming the setting and the remedy.
    """
    for cause, remedy in _useless(recipe):
        raise RecipeError(cause, remedy)


def _useless(recipe: Recipe) -> Iterator[tuple[str, str]]:
    yield from _losses(recipe)
    yield from _groups(recipe)
    yield from _schedule(recipe)
    for key in ("value_weight", "value_learning_rate"):
        given = getattr(recipe.optimizer, key) != Optimizer.model_fields[key].default
        if given and not recipe.needs & {"value", "last_value", "token_value", "progress"}:
            yield (
                f"optimizer.{key} can have no effect: no part needs values.",
                "Remove it, or use credit: gae.",
            )
    rate = recipe.optimizer.implicit_learning_rate
    given = rate != Optimizer.model_fields["implicit_learning_rate"].default
    if given and not recipe.needs & {"implicit", "token_implicit"}:
        yield (
            "optimizer.implicit_learning_rate can have no effect: no part needs implicit rewards.",
            "Remove it, or use credit: istar.",
        )


def _losses(recipe: Recipe) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for part in recipe.loss:
        if part.weight == 0:
            yield f"loss {part.name!r} has weight 0.", "Remove it from the recipe."
        if part.name in seen:
            yield f"loss {part.name!r} stands twice.", "Keep one of them."
        seen.add(part.name)
        idle = idle_options(part) if recipe.steps == 1 else []
        if idle:
            yield (
                f"loss {part.name!r}: {', '.join(idle)} can have no effect with one optimizer step per batch.",
                "Set optimizer.minibatches or optimizer.epochs above 1, or remove the option.",
            )


def _groups(recipe: Recipe) -> Iterator[tuple[str, str]]:
    size, total = recipe.rollout.group_size, recipe.rollout.groups * recipe.rollout.group_size
    above = "Set rollout.group_size above 1, or choose another."
    if drops_everything(recipe.filter, size):
        yield f"filter {recipe.filter.name!r} drops every group of {size}.", above
    if size == 1 and gives_nothing_alone(recipe.credit):
        yield f"credit {recipe.credit.name!r} gives nothing to a group of one.", above
    if recipe.optimizer.minibatches > total:
        yield (
            f"optimizer.minibatches {recipe.optimizer.minibatches} is more than the {total} episodes of an update.",
            f"Set it to at most {total}.",
        )


def _schedule(recipe: Recipe) -> Iterator[tuple[str, str]]:
    updates, warm = recipe.updates, recipe.warm_start
    if updates == 0 and warm is None:
        yield "Nothing would be trained: no updates and no warm start.", "Set updates above 0."
    if updates and recipe.evaluate.every > updates:
        yield (
            f"evaluate.every {recipe.evaluate.every} leaves no checkpoints to choose from in {updates} updates.",
            f"Set evaluate.every to at most {updates}.",
        )
    if updates and recipe.optimizer.warmup >= updates * recipe.steps:
        yield (
            f"optimizer.warmup {recipe.optimizer.warmup} never ends: there are {updates * recipe.steps} steps.",
            "Lower it.",
        )
    if warm is not None and warm.episodes < warm.batch_size:
        yield (
            f"warm_start.episodes {warm.episodes} is less than one batch of {warm.batch_size}.",
            "Raise it, or lower warm_start.batch_size.",
        )


def idle_options(part: Part) -> list[str]:
    """Options of a loss that differ from their default and change nothing while π = π_old.

    >>> idle_options(Part.model_validate({"name": "clip", "high": 0.3, "low": 0.2}))
    ['high']
    >>> idle_options(Part.model_validate({"name": "kl", "estimator": "k2"}))
    []
    """
    entry = part.component("loss")
    changed = [name for name, value in part.options.items() if value != entry.options[name]]
    found = _on_policy(entry.build(part.options)) if changed else None
    idle: list[str] = []
    for name in changed:
        fewer = {key: value for key, value in part.options.items() if key != name}
        if found is not None and _equal(found, _on_policy(entry.build(fewer))):
            idle.append(name)
    return idle


def _on_policy(loss: Callable[..., Any]) -> tuple[Tensor, ...] | None:
    """The loss and its gradients on a batch without staleness; None where it cannot be tried alone."""
    rng = derive_rng("on policy")
    lengths, trajectory, group = (3, 5, 2, 4, 1, 6, 3, 2), (0, 1, 2, 2, 3, 4, 5, 6), (0, 0, 0, 0, 1, 1, 1, 1)

    def numbers(low: float, high: float) -> list[list[float]]:
        return [[rng.uniform(low, high) for _ in range(n)] for n in lengths]

    logp = numbers(-4, -0.01)
    near = [[x + rng.gauss(0, 0.3) for x in row] for row in logp]
    batch = token_batch(
        logp,
        numbers(-3, 3),
        old_logp=logp,
        behaviour_logp=near,
        reference_logp=numbers(-4, -0.01),
        entropy=numbers(0.01, 3),
        turn=[[t // 2 for t in range(n)] for n in lengths],
        trajectory=trajectory,
        group=group,
    )
    try:
        loss_RT = loss(batch).loss_RT
        gradients = torch.autograd.grad(
            loss_RT.sum(), [batch.logp_RT, batch.entropy_RT], allow_unused=True, materialize_grads=True
        )
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return None
    return loss_RT.detach(), *gradients


def _equal(a: tuple[Tensor, ...], b: tuple[Tensor, ...] | None) -> bool:
    return b is not None and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def drops_everything(part: Part, size: int) -> bool:
    """Whether a filter keeps no group of this size, whatever its episodes came to.

    >>> drops_everything(Part(name="informative"), 1), drops_everything(Part(name="informative"), 2)
    (True, False)
    """
    keep = part.build("filter")
    lost, won, half = (episode([0.0, outcome]) for outcome in (0.0, 1.0, 0.5))
    groups: list[list[Episode]] = [
        [lost] * size,
        [won] * size,
        [won] + [lost] * (size - 1),
        [won] * (size - 1) + [lost],
        ([won, half, lost] * size)[:size],
    ]
    return not any(keep(group) for group in groups)


def gives_nothing_alone(part: Part) -> bool:
    """Whether a credit rule gives a trajectory without siblings an advantage of 0, whatever it earned.

    >>> gives_nothing_alone(Part(name="rloo")), gives_nothing_alone(Part(name="gae"))
    (True, False)
    """
    entry = part.component("credit")
    rng = derive_rng("alone")
    rewards = [[rng.uniform(-1, 1) for _ in range(n)] for n in (1, 2, 3, 4, 2, 3)]
    measured = {name: [[rng.uniform(-1, 0) for _ in row] for row in rewards] for name in entry.needs}
    batch = turn_batch(
        rewards,
        range(len(rewards)),
        signals={name: x for name, x in measured.items() if not name.startswith("token_")},
        tokens=[[[k] for k in range(len(row))] for row in rewards],
        token_signals={name: x for name, x in measured.items() if name.startswith("token_")},
    )
    try:
        advantage_BK = on_turns(entry.build(part.options)(batch), batch)
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return False
    return not bool(advantage_BK.abs().max() > 1e-9)
