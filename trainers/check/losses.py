"""Requirements for losses: those of tokens, each row for itself, and those of whole minibatches, however their rows are arranged."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from turnwise.errors import RecipeError
from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, SEEDS, variants
from turnwise.trainers.check.tokens import same, tokens
from turnwise.trainers.core import TeacherTop, TokenBatch, TokenLoss, WholeBatch, WholeLoss

AnyBatch: TypeAlias = TokenBatch | WholeBatch
AnyLoss: TypeAlias = Callable[[Any], "TokenLoss | WholeLoss"]


def whole(seed: int, *, stale: float = 0.0, extreme: bool = False) -> WholeBatch:
    """The rows of :func:`tokens` as a minibatch: four trajectories in two groups, and one that was not read."""
    rows, g = tokens(seed, stale=stale, extreme=extreme), torch.Generator().manual_seed(seed)
    reward_BK = torch.randn(5, 3, generator=g, dtype=torch.float64)
    weight_RT = torch.rand(rows.mask_RT.shape, generator=g, dtype=torch.float64) * rows.mask_RT
    given = {field.name: getattr(rows, field.name) for field in dataclasses.fields(TokenBatch)}
    for name in ("group_R", "signals", "top", "mean_logp_RT"):
        del given[name]
    return WholeBatch(
        **given,
        weight_RT=weight_RT / weight_RT.sum(),
        group_B=torch.tensor([0, 0, 1, 1, 1]),
        reward_BK=reward_BK,
        return_B=reward_BK.sum(1),
        success_B=torch.tensor([True, False, bool(seed % 2), True, False]),
        weight_B=torch.tensor([1.0, 0.5, 1.0, 2.0, 0.0], dtype=torch.float64),
    )


def batch_for(entry: Component, seed: int, *, stale: float = 0.0, extreme: bool = False) -> AnyBatch:
    """Return a batch for the loss, with the signals of tokens that it needs.

    Each token has an advantage of its own; for a loss that refuses this, all of a trajectory have one sign.
    """
    batch = _drawn_for(entry, seed, stale=stale, extreme=extreme)
    _, loss = next(made(entry))
    try:
        loss(batch)
    except RecipeError:
        sign_R = 1 - 2 * (batch.trajectory_R % 2)
        return dataclasses.replace(batch, advantage_RT=batch.advantage_RT.abs() * sign_R[:, None])
    return batch


def _drawn_for(entry: Component, seed: int, *, stale: float, extreme: bool) -> AnyBatch:
    batch = (whole if entry.whole else tokens)(seed, stale=stale, extreme=extreme)
    g = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    names = sorted(name for name in entry.needs if name.startswith("token_"))
    batch = dataclasses.replace(
        batch, signals={name: -3 * drawn(*batch.mask_RT.shape) * batch.mask_RT for name in names}
    )
    if "teacher_top" not in entry.needs or isinstance(batch, WholeBatch):
        return batch
    theirs, ours = (drawn(*batch.mask_RT.shape, 4).log_softmax(-1) for _ in range(2))
    ids = torch.arange(3).expand(*batch.mask_RT.shape, 3)
    return dataclasses.replace(batch, top=TeacherTop(ids, theirs[..., :3], ours[..., :3]))


def made(entry: Component) -> Iterator[tuple[str, AnyLoss]]:
    """The loss in its variants; one that remembers begins anew with each batch."""
    for said, build in variants(entry):
        yield said, (lambda batch, make=build: make()(batch)) if inspect.isclass(entry.target) else build


def loss_is_finite_and_zero_off_the_mask(entry: Component) -> None:
    """Finite with finite gradients even for extreme ratios; (R, T) or a scalar; nothing from tokens that were not sampled."""
    for said, loss in made(entry):
        for seed in SEEDS:
            for extreme in (False, True):
                batch = batch_for(entry, seed, stale=0.5, extreme=extreme)
                _check_loss(loss, batch, f"({said}, batch {seed}, {extreme=})")


def _check_loss(loss: AnyLoss, batch: AnyBatch, at: str) -> None:
    found, metrics = loss(batch)
    shape = batch.mask_RT.shape if isinstance(batch, TokenBatch) else ()
    require(found.shape == shape, f"The loss is not {'(R, T)' if shape else 'a scalar'} {at}.")
    require(found.isfinite().all(), f"The loss is not finite {at}.")
    if shape:
        require(not found[~batch.mask_RT].any(), f"A token that was not sampled has a loss {at}.")
    for name, metric in metrics.items():
        plain = metric.dim() == 0 and metric.isfinite() and not metric.requires_grad
        require(plain, f"The metric {name!r} is no finite scalar without gradient {at}.")
    for slope_RT in _slopes(found, batch):
        require(slope_RT.isfinite().all(), f"A gradient is not finite {at}.")
        require(not slope_RT[~batch.mask_RT].any(), f"A token that was not sampled has a gradient {at}.")


def slope_at_zero_staleness(entry: Component) -> str:
    """On fresh samples ∂loss/∂logp is what ``slope`` says: −A, −c·A with c > 0, or its own (with the reducer's weights)."""
    found: set[str] = set()
    for _, loss in made(entry):
        for seed in SEEDS:
            batch = batch_for(entry, seed)
            twice = dataclasses.replace(batch, advantage_RT=2 * batch.advantage_RT)
            found.add(_slope(batch, _own_slopes(loss, batch), _own_slopes(loss, twice)))
    kinds = {kind.partition(":")[0] for kind in found}
    least = next(kind for kind in ("own", "-c·A", "-A") if kind in kinds)
    require(least == entry.slope, f"Declared slope {entry.slope!r}, measured {' and '.join(sorted(found))}.")
    return ", ".join(sorted(found))


def _slope(batch: AnyBatch, slopes: tuple[Tensor, ...], twice: tuple[Tensor, ...]) -> str:
    weight_RT = batch.weight_RT if isinstance(batch, WholeBatch) else batch.mask_RT.double()
    gradient_RT, on_RT = -batch.advantage_RT * weight_RT, batch.mask_RT
    if same(slopes[0], gradient_RT) and not slopes[1].any():
        return "-A"
    forward = bool((slopes[0] * gradient_RT > 0)[on_RT & (gradient_RT != 0)].all())
    if forward and same(twice[0], 2 * slopes[0]) and not slopes[1].any():
        return "-c·A"
    free = all(same(a, b) for a, b in zip(slopes, twice, strict=True))
    return "own: free of A" if free else "own: depends on A"


def _own_slopes(loss: AnyLoss, batch: AnyBatch) -> tuple[Tensor, ...]:
    return _slopes(loss(batch)[0], batch)


def _slopes(found: Tensor, batch: AnyBatch) -> tuple[Tensor, ...]:
    """∂/∂logp and ∂/∂entropy, 0 where the loss does not depend on them."""
    leaves = batch.logp_RT, batch.entropy_RT
    if not found.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    return torch.autograd.grad(found.sum(), leaves, allow_unused=True, materialize_grads=True)


def rows_do_not_matter(entry: Component) -> None:
    """A token loss gives each row what it would alone; to one of the whole, order, padding and cuts are nothing."""
    for said, loss in made(entry):
        for seed in SEEDS:
            for stale in (0.0, 0.5):
                at = f"({said}, batch {seed}, stale by {stale})"
                batch = batch_for(entry, seed, stale=stale)
                if isinstance(batch, WholeBatch):
                    _rows_are_arranged_anyhow(loss, batch, at)
                else:
                    _rows_stand_alone(loss, batch, at)


def _rows_stand_alone(loss: AnyLoss, batch: TokenBatch, at: str) -> None:
    together = loss(batch)[0]
    for row in range(len(batch.trajectory_R)):
        alone = loss(_rows(batch, torch.tensor([row])))[0]
        require(
            same(alone[0], together[row]),
            f"A row's loss depends on the rows beside it, which micro-batches part; register it with whole=True {at}.",
        )


def _rows_are_arranged_anyhow(loss: AnyLoss, batch: WholeBatch, at: str) -> None:
    value, slopes = loss(batch)[0], _own_slopes(loss, batch)
    order_R = torch.tensor([3, 1, 4, 0, 2])
    other = _rows(batch, order_R)
    moved = zip(_own_slopes(loss, other), slopes, strict=True)
    require(same(loss(other)[0], value), f"The order of rows changes the loss {at}.")
    require(all(same(a, b[order_R]) for a, b in moved), f"The order of rows changes a slope {at}.")
    padded = _padded(batch)
    require(same(loss(padded)[0], value), f"Padding changes the loss {at}.")
    cut = _cut(batch)
    require(same(loss(cut)[0], value), f"How a trajectory is cut into rows changes the loss {at}.")


def _rows(batch: Any, row_R: Tensor) -> Any:
    """Some rows, as leaves of their own."""
    return _changed(batch, lambda x: x[row_R])


def _padded(batch: WholeBatch) -> WholeBatch:
    padded = _changed(batch, lambda x: pad(x, (2, 1)) if x.dim() == 2 else x)
    return dataclasses.replace(padded, turn_RT=padded.turn_RT.masked_fill(~padded.mask_RT, -1))


def _cut(batch: WholeBatch) -> WholeBatch:
    """Each row's later turns in a row of their own."""
    late_RT = batch.turn_RT >= 1

    def part(x: Tensor) -> Tensor:
        if x.dim() == 1:
            return torch.cat([x, x])
        zero = torch.zeros_like(x)
        return torch.cat([torch.where(late_RT, zero, x), torch.where(late_RT, x, zero)])

    cut = _changed(batch, part)
    return dataclasses.replace(cut, turn_RT=cut.turn_RT.masked_fill(~cut.mask_RT, -1))


def _changed(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The batch with all that is of rows changed; log-probabilities and entropies are leaves again."""
    rows = {
        field.name: change(x.detach())
        for field in dataclasses.fields(batch)
        if field.name.endswith(("_RT", "_R")) and (x := getattr(batch, field.name)) is not None
    }
    for leaf in ("logp_RT", "entropy_RT"):
        rows[leaf].requires_grad_()
    signals = {name: change(x) if name.startswith("token_") else x for name, x in batch.signals.items()}
    top = getattr(batch, "top", None)
    kept = {} if top is None else {"top": TeacherTop(*map(change, top))}
    return dataclasses.replace(batch, **rows, signals=signals, **kept)


def goes_on_where_it_was(entry: Component) -> str:
    """Its state, put into another one of it, gives the same next loss; only losses of the whole remember."""
    if not inspect.isclass(entry.target):
        return "it keeps nothing"
    require(
        entry.whole,
        "It is a class, so that it remembers, and micro-batches would count: register it with whole=True.",
    )
    for said, build in variants(entry):
        one: Any = build()
        other: Any = build()
        for seed in SEEDS:
            one(batch_for(entry, seed, stale=0.5))
        keeps = all(hasattr(part, name) for part in (one, other) for name in ("state", "restore"))
        require(keeps, "It has no state() and restore().")
        other.restore(one.state())
        for seed in SEEDS:
            mine, theirs = (loss(batch_for(entry, seed, stale=0.3))[0] for loss in (one, other))
            require(
                torch.equal(mine, theirs),
                f"The next loss differs after its state was put into another one ({said}).",
            )
    return "the same next losses"


REQUIREMENTS: dict[str, Requirements] = {
    "loss": {
        **EVERY_PART,
        "finite, and nothing where no token was sampled": loss_is_finite_and_zero_off_the_mask,
        "the slope that it declares": slope_at_zero_staleness,
        "how rows are arranged does not matter": rows_do_not_matter,
        "goes on where it was": goes_on_where_it_was,
    }
}
