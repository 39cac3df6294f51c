"""The bias of a whole recipe: what its first step does on average, beside the exact policy gradient.

A rule may be unbiased and the recipe around it not: the filter, the shapes and the denominator act on the same
update. Here they act together, on batches that can all be listed: the first minibatch's expected gradient, before AdamW
and the clipping of its norm, with engine and trainer in agreement, on each small process and on two tasks at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.tasks.core import Json
from turnwise.trainers.core import Credit, Filter, Loss, Reduce, RowMask, Shape, TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens
from turnwise.trainers.kit.toy_batches import token_batch
from turnwise.trainers.lab.exact import Bias, Paths, Update, compare, expected_update, paths, step_gradient
from turnwise.trainers.lab.processes import PROCESSES, PUZZLE, lopsided, made_up, signals

BATCHES = 2000
"""Of so many batches at most an expectation is formed; groups are made smaller until it fits."""
TWO_TASKS = "two tasks"
OFF = 0.3
"""By how much learned signals are wrong where they are perturbed, in units of the return."""


Signals: TypeAlias = Mapping[str, Tensor]


class Composition(NamedTuple):
    """The parts of a recipe that decide its first step.

    Attributes:
        credit, filter, shapes, reduce: built.
        needs: the signals that they ask for.
        learned: those of them that are learned in the run, so that they are never exact there.
        not_measurable: other parts that change the update in ways which cannot be enumerated here.
        left_out: parts that have an objective of their own beside the return, or say what the return is.
    """

    credit: Credit
    filter: Filter
    shapes: Sequence[Shape]
    reduce: Reduce
    needs: frozenset[str] = frozenset()
    learned: frozenset[str] = frozenset()
    not_measurable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __call__(self, batch: TurnBatch) -> TokenCredit:
        """What multiplies ∇log π of each token, times the number of trajectories."""
        assert batch.tokens is not None
        credit = self.credit(batch)
        weight_B = self.filter(batch, credit)
        for shape in self.shapes:
            credit = shape(credit, batch)
        view = batch.tokens
        reduce_RT = self.reduce(RowMask(view.mask_RT, view.turn_RT, view.trajectory_R))
        of_row_R = weight_B.to(reduce_RT.dtype)[view.trajectory_R, None]
        return TokenCredit(on_tokens(credit, batch) * reduce_RT * of_row_R * len(batch.group_B))


@dataclass(frozen=True)
class ProcessBias:
    """What the first step does on one process.

    Attributes:
        degrees: the angle between the expected step and the exact gradient; None where nothing can be said.
        scale: its length along the gradient, relative to that on the first process.
        group_size: of the groups that were listed (smaller than the recipe's where these would be too many).
        exact_signals: those that had their exact values.
        perturbed_degrees: the angle with learned signals that are wrong; None where none is learned.
        not_measurable: the signals and parts because of which nothing can be said.
        left_out: parts that add an objective of their own, or say what the return is: the figures are without them.
        help: by guide, source or loss that follows a teacher, the angles of the step with it (each by itself): to the exact
            gradient, and to the gradient of what it declares (:mod:`turnwise.trainers.lab.help_bias`).
    """

    degrees: float | None
    scale: float | None
    group_size: int
    exact_signals: tuple[str, ...] = ()
    perturbed_degrees: float | None = None
    not_measurable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    help: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ProcessBias:
        """The inverse of :meth:`to_json`."""
        kept: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in row.items()}  # pyright: ignore
        return cls(
            **{**kept, "help": {part: (first, second) for part, (first, second) in row["help"].items()}}
        )

    def to_json(self) -> dict[str, Json]:
        plain = {name: [*x] if isinstance(x, tuple) else x for name, x in asdict(self).items()}
        return {**plain, "help": {part: [*angles] for part, angles in self.help.items()}}


def recipe_bias(parts: Composition, group_size: int) -> dict[str, ProcessBias]:
    """The bias on each process and on two tasks, by name."""
    unknown = sorted(parts.needs - signals(_paths()[0]).keys())
    hidden = (*sorted(parts.needs & made_up()), *unknown, *parts.not_measurable)
    names = [*(process.name for process in PROCESSES), TWO_TASKS]
    if hidden:
        return {name: ProcessBias(None, None, group_size, (), None, hidden, parts.left_out) for name in names}
    found: dict[str, ProcessBias] = {}
    for p in _paths():
        n = fitting(len(p.reward_NK), group_size, 1)
        found[p.process.name] = _compared(
            parts,
            n,
            lambda given, p=p, n=n: expected_update(parts, p, n, given).mean_SA,
            p,
            p.policy_gradient(),
        )
    found[TWO_TASKS] = _two_tasks(parts, group_size)
    base = next((bias.scale for bias in found.values() if bias.scale), None)
    return {
        name: replace(b, scale=b.scale / base if base and b.scale is not None else b.scale)
        for name, b in found.items()
    }


def _two_tasks(parts: Composition, group_size: int) -> ProcessBias:
    """A group of each of two tasks, one mostly solved and one mostly failed, with a policy of their own each.

    Where no part looks beyond its group they are listed apart, in groups as large as the recipe's.
    """
    first, second = (paths(PUZZLE, x * lopsided(PUZZLE)) for x in (1.0, -1.5))
    both, size = joined(first, second), len(first.reward_NK)
    exact_SA = torch.cat([first.policy_gradient(), second.policy_gradient()]) / 2
    small, large = (fitting(size, group_size, groups) for groups in (2, 1))

    def together(given: Signals) -> Tensor:
        return two_tasks_update(parts, both, size, small, given).mean_SA

    def apart(n: int, given: Signals) -> Tensor:
        own = ({name: x[:size] for name, x in given.items()}, {name: x[size:] for name, x in given.items()})
        means = [expected_update(parts, p, n, g).mean_SA for p, g in zip((first, second), own, strict=True)]
        return torch.cat(means) / 2

    try:
        alone = torch.allclose(together(signals(both)), apart(small, signals(both)), atol=1e-9)
    except RecipeError:
        alone = False
    return _compared(
        parts,
        large if alone else small,
        (lambda given: apart(large, given)) if alone else together,
        both,
        exact_SA,
    )


def _paths() -> list[Paths]:
    return [paths(process, lopsided(process)) for process in PROCESSES]


def fitting(trajectories: int, group_size: int, groups: int) -> int:
    """The largest group size up to the recipe's of which all batches can be listed."""
    n = group_size
    while n > 1 and math.comb(trajectories + n - 1, n) ** groups > BATCHES:
        n -= 1
    return n


def _compared(
    parts: Composition, n: int, update: Callable[[Signals], Tensor], p: Paths, exact_SA: Tensor
) -> ProcessBias:
    given = signals(p)
    try:
        bias = compare(update(given), exact_SA)
        perturbed = None
        if parts.learned:
            off = {name: _off(x, p) if name in parts.learned else x for name, x in given.items()}
            perturbed = degrees(compare(update(off), exact_SA))
    except RecipeError as error:
        return ProcessBias(None, None, n, (), None, (error.cause,), parts.left_out)
    exact = tuple(sorted(parts.needs - parts.learned))
    return ProcessBias(degrees(bias), bias.scale, n, exact, perturbed, (), parts.left_out)


def _off(x: Tensor, p: Paths) -> Tensor:
    wave_NK = OFF * torch.cos(2.0 * p.state_NK + 1.0) * p.mask_NK
    return x + (wave_NK if x.dim() == 2 else OFF)


def degrees(bias: Bias) -> float:
    angle = math.degrees(math.asin(min(bias.angle, 1.0)))
    return round(angle if bias.scale > 0 else 180 - angle, 4) + 0.0


def changes_objective(loss: Loss) -> bool:
    """Whether a loss pulls at the policy where no advantage does: what it adds is not the return's gradient."""
    batch = token_batch(
        [[-1.0, -2.0], [-0.5]], reference_logp=[[-1.5, -1.0], [-0.7]], entropy=[[1.0, 0.5], [0.3]]
    )
    try:
        loss_RT = loss(batch).loss_RT
    except RecipeError:  # it looks at something beside the return, such as a teacher
        return True
    if not loss_RT.requires_grad:
        return False
    slopes = torch.autograd.grad(loss_RT.sum(), [batch.logp_RT, batch.entropy_RT], allow_unused=True)
    return any(slope is not None and bool(slope.abs().max() > 1e-9) for slope in slopes)


def joined(first: Paths, second: Paths) -> Paths:
    """Two tasks with a policy of their own each, as one: the states of the second come after those of the first."""
    S = len(first.logits_SA)
    leaf = torch.cat([first.logits_SA, second.logits_SA]).detach().requires_grad_()

    def both(name: str) -> Tensor:
        return torch.cat([getattr(first, name), getattr(second, name)])

    return Paths(
        process=first.process,
        logits_SA=leaf,
        logp_NK=both("logp_NK"),
        chance_N=both("chance_N"),
        reward_NK=both("reward_NK"),
        mask_NK=both("mask_NK"),
        state_NK=torch.cat([first.state_NK, second.state_NK + S]),
        action_NK=both("action_NK"),
        cut_N=both("cut_N"),
        value_NK=both("value_NK"),
        last_value_N=both("last_value_N"),
    )


def two_tasks_update(parts: Composition, p: Paths, first: int, n: int, given: Mapping[str, Tensor]) -> Update:
    """The mean step over batches of a group of each task; ``first`` trajectories of ``p`` are the first task's."""
    combos = [
        torch.tensor(list(itertools.combinations_with_replacement(range(*ends), n)))
        for ends in ((0, first), (first, len(p.reward_NK)))
    ]
    choice_C2 = torch.cartesian_prod(torch.arange(len(combos[0])), torch.arange(len(combos[1])))
    index_CB = torch.cat([combos[0][choice_C2[:, 0]], combos[1][choice_C2[:, 1]]], 1)
    return step_gradient(parts, p, index_CB, n, given)


def shown(found: Mapping[str, ProcessBias]) -> list[str]:
    """Lines for people: what holds of the whole recipe."""
    lines = ["Bias of the whole recipe: its first step, on average, beside the exact policy gradient"]
    left_out = next((bias.left_out for bias in found.values()), ())
    if left_out:
        lines.append(f"  (of the return that is learned from, without {', '.join(left_out)})")
    for name, bias in found.items():
        if bias.degrees is None:
            lines.append(f"  {name:10} not measurable here: {', '.join(bias.not_measurable)}")
            continue
        wrong = (
            f"; {bias.perturbed_degrees:.1f}° with learned signals off by {OFF:g}"
            if bias.perturbed_degrees is not None
            else ""
        )
        lines.append(
            f"  {name:10} {bias.degrees:5.1f}°  scale {bias.scale:.2f}  (groups of {bias.group_size}{wrong})"
        )
        lines += [
            f"  {'':10} {angle:5.1f}° with {part}; {declared:.1f}° to what it declares"
            for part, (angle, declared) in bias.help.items()
        ]
    return lines
