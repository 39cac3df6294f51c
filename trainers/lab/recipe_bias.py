"""The bias of a whole recipe: what its first step does on average, beside the exact policy gradient.

A rule may be unbiased and the recipe around it not: the filter, the shapes, the denominator and the losses act on the same
update. Here they act together, on batches that can all be listed: the first minibatch's expected gradient, before AdamW
and the clipping of its norm, with engine and trainer in agreement, on each small process and on two tasks at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.tasks.core import Json
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch
from turnwise.trainers.lab.exact import Bias, Paths, compare, paths
from turnwise.trainers.lab.first_step import Composition, MeasuredLoss, expected_step, groups_stand_alone
from turnwise.trainers.lab.processes import PROCESSES, PUZZLE, lopsided, made_up, signals

BATCHES = 2000
"""Of so many batches at most an expectation is formed; groups are made smaller until it fits."""
MORE_BATCHES = 100_000
"""The same where batches can be evaluated side by side, since no part looks beyond its group."""
TWO_TASKS = "two tasks"
OFF = 0.3
"""By how much learned signals are wrong where they are perturbed, in units of the return."""
NOTHING = 1e-12
"""Relative to the exact gradient, the length below which there is no step."""
SEEN = 0.05
"""The angle in degrees from which on it is asked what it comes from."""
KNOWN = frozenset({"reference"})
"""Needs of losses beside signals that are exact here: the reference is the policy itself at the first step."""


Signals: TypeAlias = Mapping[str, Tensor]
Changes: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Changes that a recipe might have: in words, and the fields of its :class:`Composition` as they would be then."""


@dataclass(frozen=True)
class ProcessBias:
    """Bias of the first step on one process.

    Attributes:
        degrees: the angle between the expected step of all losses and the exact gradient; None where nothing can be said.
        scale: its length along the gradient, relative to that on the first process.
        group_size: of the groups that were listed (smaller than the recipe's where these would be too many).
        exact_signals: those that had their exact values.
        perturbed_degrees: the angle with learned signals that are wrong; None where none is learned.
        not_measurable: the signals and parts because of which nothing can be said.
        left_out: parts whose effect is shown apart, or that say what the return is: the figures are without them.
        objectives: losses that pull where no advantage does, so that they have an objective of their own.
        instead: by what might be otherwise, the angle that the step would have then: what it comes from, or what is known
            where ``degrees`` is not.
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
    objectives: tuple[str, ...] = ()
    instead: Mapping[str, float] = field(default_factory=dict[str, float])
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


def recipe_bias(
    parts: Composition, group_size: int, changes: Changes | None = None
) -> dict[str, ProcessBias]:
    """The bias on each process and on two tasks, by name.

    Args:
        parts: of the recipe.
        group_size: its group size.
        changes: what might be otherwise; measured where the step is off, as losses with an objective of their own are left out then.
    """
    names = [*(process.name for process in PROCESSES), TWO_TASKS]
    hidden = (*_unknown(parts.needs), *parts.not_measurable)
    why = {loss.name: _unseen(loss) for loss in parts.losses}
    lost = [loss for loss in parts.losses if why[loss.name]]
    rest = parts._replace(losses=[loss for loss in parts.losses if not why[loss.name]])
    reasons = (*(f"loss {loss.name} {why[loss.name]}" for loss in lost), *parts.beside)
    own = tuple(loss.name for loss in parts.losses if pulls_alone(loss))
    blank = ProcessBias(None, None, group_size, (), None, (*hidden, *reasons), parts.left_out, own)
    if hidden or not rest.losses:
        return dict.fromkeys(names, blank)
    found = {name: replace(bias, objectives=own) for name, bias in _measured(rest, group_size).items()}
    if reasons:
        said = ", ".join([*(f"loss {loss.name}" for loss in lost), *parts.beside])
        return {name: unknown(bias, ", ".join(reasons), said) for name, bias in found.items()}
    if all((bias.degrees or 0.0) <= SEEN for bias in found.values()):
        return found
    return _asked(parts, group_size, found, {**_without(parts, own), **(changes or {})})


def unknown(bias: ProcessBias, reason: str, without: str) -> ProcessBias:
    """The same of a recipe with parts that cannot be listed: what was found is known of it without them alone."""
    kept = {} if bias.degrees is None else {f"without {without}": bias.degrees}
    return replace(
        bias,
        degrees=None,
        scale=None,
        perturbed_degrees=None,
        not_measurable=(reason, *bias.not_measurable),
        instead={**kept, **bias.instead},
    )


def _unknown(needs: AbstractSet[str]) -> list[str]:
    """Those signals that have no exact value on the processes."""
    return sorted(needs - (KNOWN | signals(_paths()[0]).keys()) | needs & made_up()) if needs else []


def _unseen(loss: MeasuredLoss) -> str:
    """Why a loss cannot be measured on the processes; empty if it can."""
    if missing := _unknown(loss.needs):
        return f"needs {', '.join(missing)}"
    return "looks within turns, and here each has one token" if looks_within_turns(loss) else ""


def _without(parts: Composition, own: tuple[str, ...]) -> Changes:
    """That losses with objectives of their own be left out, if any other is left."""
    left = [loss for loss in parts.losses if loss.name not in own]
    if not left or not own:
        return {}
    return {f"without {', '.join(f'loss {name}' for name in dict.fromkeys(own))}": {"losses": left}}


def _asked(
    parts: Composition, group_size: int, found: Mapping[str, ProcessBias], changes: Changes
) -> dict[str, ProcessBias]:
    """Return the biases found, with the angles that there would be with each change, and with all of them."""
    every = {key: value for one in changes.values() for key, value in one.items()}
    asked = {**changes, **({" and ".join(changes): every} if len(changes) > 1 else {})}
    instead: dict[str, dict[str, float]] = {name: {} for name in found}
    for said, change in asked.items():
        for name, bias in _measured(parts._replace(**change), group_size).items():
            if bias.degrees is not None:
                instead[name][said] = bias.degrees
    return {name: replace(bias, instead=instead[name]) for name, bias in found.items()}


def _measured(parts: Composition, group_size: int) -> dict[str, ProcessBias]:
    """The bias of parts of which all signals are known."""
    found: dict[str, ProcessBias] = {}
    for p in _paths():
        n = fitting(len(p.reward_NK), group_size, 1, _most(parts, p))
        found[p.process.name] = _compared(
            parts, n, lambda given, p=p, n=n: step_of_groups(parts, p, n, given), p, p.policy_gradient()
        )
    found[TWO_TASKS] = _two_tasks(parts, group_size)
    base = next((bias.scale for bias in found.values() if bias.scale), None)
    return {
        name: replace(b, scale=b.scale / base if base and b.scale is not None else b.scale)
        for name, b in found.items()
    }


def _most(parts: Composition, p: Paths) -> int:
    """Of how many batches an expectation is formed."""
    try:
        return MORE_BATCHES if groups_stand_alone(parts, p, signals(p)) else BATCHES
    except RecipeError:
        return BATCHES


def step_of_groups(parts: Composition, p: Paths, n: int, given: Signals) -> Tensor:
    """The expected step over minibatches of one group of ``n``, (S, A)."""
    index_Cn = torch.tensor([*itertools.combinations_with_replacement(range(len(p.reward_NK)), n)])
    return expected_step(parts, p, index_Cn, n, given)


def _two_tasks(parts: Composition, group_size: int) -> ProcessBias:
    """A group of each of two tasks, one mostly solved and one mostly failed, with a policy of their own each.

    Where no part looks beyond its group they are listed apart, in groups as large as the recipe's.
    """
    first, second = (paths(PUZZLE, x * lopsided(PUZZLE)) for x in (1.0, -1.5))
    both, size = joined(first, second), len(first.reward_NK)
    exact_SA = torch.cat([first.policy_gradient(), second.policy_gradient()]) / 2
    small, large = (fitting(size, group_size, groups) for groups in (2, 1))

    def together(given: Signals) -> Tensor:
        return two_tasks_step(parts, both, size, small, given)

    def apart(n: int, given: Signals) -> Tensor:
        own = ({name: x[:size] for name, x in given.items()}, {name: x[size:] for name, x in given.items()})
        means = [step_of_groups(parts, p, n, g) for p, g in zip((first, second), own, strict=True)]
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


def fitting(trajectories: int, group_size: int, groups: int, most: int = BATCHES) -> int:
    """The largest group size up to the recipe's of which all batches can be listed."""
    n = group_size
    while n > 1 and math.comb(trajectories + n - 1, n) ** groups > most:
        n -= 1
    return n


def _compared(
    parts: Composition, n: int, update: Callable[[Signals], Tensor], p: Paths, exact_SA: Tensor
) -> ProcessBias:
    given = signals(p)
    blank = ProcessBias(None, None, n, left_out=parts.left_out)
    try:
        step_SA = update(given)
        if step_SA.norm() < NOTHING * exact_SA.norm():
            return replace(blank, not_measurable=("the expected first step is 0",))
        bias, perturbed = compare(step_SA, exact_SA), None
        if parts.learned:
            off = {name: _off(x, p) if name in parts.learned else x for name, x in given.items()}
            perturbed = degrees(compare(update(off), exact_SA))
    except RecipeError as error:
        return replace(blank, not_measurable=(error.cause,))
    exact = tuple(sorted(parts.all_needs - parts.learned))
    return ProcessBias(degrees(bias), bias.scale, n, exact, perturbed, (), parts.left_out)


def _off(x: Tensor, p: Paths) -> Tensor:
    wave_NK = OFF * torch.cos(2.0 * p.state_NK + 1.0) * p.mask_NK
    return x + (wave_NK if x.dim() == 2 else OFF)


def degrees(bias: Bias) -> float:
    angle = math.degrees(math.asin(min(bias.angle, 1.0)))
    return round(angle if bias.scale > 0 else 180 - angle, 4) + 0.0


def pulls_alone(loss: MeasuredLoss) -> bool:
    """Say whether a loss pulls at the policy where no advantage does: what it ascends then is not the return."""
    try:
        return any(bool(slope.abs().max() > 1e-9) for slope in _slopes(loss, 0.0, tokens=2))
    except (
        RecipeError,
        RuntimeError,
        KeyError,
        TypeError,
    ):  # it looks at something beside the return, such as a teacher
        return True


def looks_within_turns(loss: MeasuredLoss) -> bool:
    """Say whether the slope of a loss depends on which tokens are of one turn; on the processes each token is a turn."""
    try:
        alone, together = (_slopes(loss, 1.0, tokens=tokens) for tokens in (1, 2))
    except (RecipeError, RuntimeError, KeyError, TypeError):
        return False
    return any(bool((a - b).abs().max() > 1e-9) for a, b in zip(alone, together, strict=True))


def _slopes(loss: MeasuredLoss, advantage: float, *, tokens: int) -> tuple[Tensor, Tensor]:
    """The slopes of a loss in log-probabilities and entropies, on a success and a failure with so many tokens to a turn."""
    width = 4
    rows: dict[str, Any] = {
        "logp": [[-1.0, -2.0, -0.7, -1.4], [-0.5, -0.9, -1.6, -0.3]],
        "reference_logp": [[-1.5, -1.0, -0.8, -1.1], [-0.7, -0.4, -1.2, -0.6]],
        "entropy": [[1.0, 0.5, 0.9, 0.7], [0.3, 0.8, 0.4, 0.6]],
        "advantage": [[advantage] * width, [-advantage] * width],
        "turn": [[t // tokens for t in range(width)]] * 2,
    }
    batch = whole_batch(**rows, success=[1, 0]) if loss.whole else token_batch(**rows)
    of_tokens = torch.tensor([[-2.0, -3.0, -2.5, -3.5]] * 2, dtype=torch.float64)
    of_turns = torch.full((2, 1), 0.5, dtype=torch.float64)
    given = {
        name: of_tokens if name.startswith("token_") else of_turns
        for name in loss.needs
        if not _unknown({name})
    }
    batch = replace(batch, signals=given)
    found = loss.make()(batch)[0]
    if not found.requires_grad:
        return torch.zeros_like(batch.logp_RT), torch.zeros_like(batch.entropy_RT)
    leaves = [batch.logp_RT, batch.entropy_RT]
    first, second = torch.autograd.grad(found.sum(), leaves, allow_unused=True, materialize_grads=True)
    return first, second


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
        fork_value_NK=both("fork_value_NK"),
        memory_NK=both("memory_NK"),
    )


def two_tasks_step(parts: Composition, p: Paths, first: int, n: int, given: Mapping[str, Tensor]) -> Tensor:
    """The mean step over minibatches of a group of each task; ``first`` trajectories of ``p`` are the first task's."""
    combos = [
        torch.tensor(list(itertools.combinations_with_replacement(range(*ends), n)))
        for ends in ((0, first), (first, len(p.reward_NK)))
    ]
    choice_C2 = torch.cartesian_prod(torch.arange(len(combos[0])), torch.arange(len(combos[1])))
    index_CB = torch.cat([combos[0][choice_C2[:, 0]], combos[1][choice_C2[:, 1]]], 1)
    return expected_step(parts, p, index_CB, n, given)


def shown(found: Mapping[str, ProcessBias]) -> list[str]:
    """Lines for people: what holds of the whole recipe."""
    lines = ["Bias of the whole recipe: its first step, on average, beside the exact policy gradient"]
    some = next(iter(found.values()), None)
    if some and some.left_out:
        lines.append(f"  (of the return that is learned from, without {', '.join(some.left_out)})")
    if some and some.objectives:
        several = len(some.objectives) > 1
        lines.append(
            f"  ({'losses' if several else 'loss'} {', '.join(some.objectives)} {'pull' if several else 'pulls'} where no "
            f"advantage does, by {'objectives' if several else 'an objective'} of {'their' if several else 'its'} own)"
        )
    if any("reference" in bias.exact_signals for bias in found.values()):
        lines.append("  (the reference is the policy itself at the first step)")
    for name, bias in found.items():
        lines.append(f"  {name:10} {_figure(bias)}")
        lines += [
            f"  {'':10} {angle:5.1f}° with {part}; {declared:.1f}° to what it declares"
            for part, (angle, declared) in bias.help.items()
        ]
    return lines


def _figure(bias: ProcessBias) -> str:
    """Say in a line what is known of one process."""
    would = [
        f"{angle:.1f}° {said}"
        for said, angle in bias.instead.items()
        if bias.degrees is None or angle < bias.degrees - SEEN / 2
    ]
    if bias.degrees is None:
        return f"not measurable here: {', '.join(bias.not_measurable)}" + (
            f" ({'; '.join(would)})" if would else ""
        )
    wrong = (
        [f"{bias.perturbed_degrees:.1f}° with learned signals off by {OFF:g}"]
        if bias.perturbed_degrees is not None
        else []
    )
    beside = "; ".join([f"groups of {bias.group_size}", *wrong, *would])
    return f"{bias.degrees:5.1f}°  scale {bias.scale:.2f}  ({beside})"
