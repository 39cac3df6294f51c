"""A credit rule's expected update against the exact policy gradient, as it declares."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch

from turnwise.registry import Component, get_component
from turnwise.requirements import NotTested, require
from turnwise.trainers.core import Credit
from turnwise.trainers.lab.exact import Bias, compare, expected_update, in_words, paths
from turnwise.trainers.lab.processes import OBJECTIVES, PROCESSES, ProcessObjective, lopsided, signals

EXACT = 1e-9
NOTABLE = 1e-4
SIZES = (2, 3)
_BIASED = (
    "Its expected update over groups of {n} is not the policy gradient: {off}. Correct the rule, or declare "
    'bias="biased: why".'
)
_NO_BIAS = (
    "On the small processes its expected update is the policy gradient, up to a factor at most. Declare "
    'bias="unbiased", or "unbiased: up to the factor …".'
)
SMALL = ("chain", "stopping", "puzzle")  # few enough trajectories to list batches of two groups


def measure(credit: Credit, n: int, groups: int = 1, sure: float = 1.0) -> dict[str, Bias]:
    """The bias on each process, for batches of ``groups`` groups of ``n``; ``sure`` times the usual logits."""
    found = {}
    for process in PROCESSES:
        if groups == 1 or process.name in SMALL:
            p = paths(process, sure * lopsided(process))
            update = expected_update(credit, p, n, signals(p), groups=groups)
            found[process.name] = compare(update.mean_SA, p.policy_gradient())
    return found


@functools.cache
def measured(name: str) -> dict[tuple[int, int, float], dict[str, Bias]]:
    """By group size, number of groups, and how sure the policy is: some actions are all but certain."""
    credit = get_component("credit", name).build({})
    return {key: measure(credit, *key) for key in ((2, 1, 1.0), (3, 1, 1.0), (2, 2, 1.0), (2, 1, 2.0))}


def spread(found: Mapping[str, Bias]) -> float:
    """Return how much the scale differs between processes, relative to the largest: 0 for a rule that is right up to a factor."""
    scales = [bias.scale for bias in found.values()]
    return (max(scales) - min(scales)) / max(map(abs, scales))


def bias_is_as_declared(entry: Component) -> str:
    """The expected update, exact on five small processes, is what ``bias`` says of it."""
    _check_measurable(entry)
    kind, _, why = entry.bias.partition(":")
    crooked = False
    for (n, groups, _), found in measured(entry.name).items():
        worst = max(found.values(), key=lambda bias: bias.error)
        if entry.bias == "unbiased":
            require(worst.error < EXACT, _BIASED.format(n=n, off=in_words(found)))
        elif kind == "unbiased":
            require("factor" in why, "Say up to which factor it is unbiased.")
            straight = all(bias.angle < EXACT and bias.scale > 0 for bias in found.values())
            require(straight, _BIASED.format(n=n, off=in_words(found)))
            require(spread(found) < EXACT, _BIASED.format(n=n, off=in_words(found)))
            require(worst.error > NOTABLE, "It is unbiased without any factor: declare that.")
        elif kind == "changes the objective":
            _check_ascends(entry, n, groups)
        else:
            require(why.strip(), "Say why it is biased.")
            crooked |= any(bias.angle > NOTABLE for bias in found.values()) or spread(found) > NOTABLE
    require(crooked == (kind == "biased"), _NO_BIAS)
    return f"{kind}, as declared"


def _check_measurable(entry: Component) -> None:
    p = paths(PROCESSES[0], lopsided(PROCESSES[0]))
    unknown = sorted(entry.needs_with({}) - signals(p).keys())
    if unknown:
        raise NotTested(f"It needs {', '.join(unknown)}, which the exact processes do not have.")
    if entry.bias.startswith("changes the objective") and entry.name not in OBJECTIVES:
        raise NotTested("No formula of the objective that it ascends is known (trainers/lab/processes.py).")


def _check_ascends(entry: Component, n: int, groups: int) -> None:
    """The expected update is the exact gradient of the stated objective, not of the expected return."""
    objective: ProcessObjective = OBJECTIVES[entry.name]
    differs = False
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        if objective.solvable and set(p.return_N.tolist()) != {0.0, 1.0}:
            continue
        if groups > 1 and process.name not in SMALL:
            continue
        update = expected_update(entry.build({}), p, n, signals(p), groups=groups).mean_SA
        gradient = p.gradient(objective.value(p, n))
        ascends = torch.allclose(update, gradient, atol=EXACT)
        require(ascends, f"It does not ascend {objective.formula}, groups of {n}, {process.name}.")
        differs |= compare(update, p.policy_gradient()).error > NOTABLE
    require(differs or n < max(SIZES), "That is the expected return: it is unbiased.")


def unbiased_within_turns(entry: Component) -> None:
    """Two steps of the process make a turn; the gradient is that of every step's action."""
    if entry.bias != "unbiased":
        raise NotTested("It does not declare to be unbiased.")
    _check_measurable(entry)
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        update = expected_update(entry.build({}), p, 2, signals(p), per_turn=2)
        error = compare(update.mean_SA, p.policy_gradient()).error
        require(error < EXACT, f"It is biased on {process.name}, by {error:.2g}.")


def points_uphill(entry: Component) -> None:
    """Whatever its bias, a rule improves the expected return on the process that has no trick to it."""
    _check_measurable(entry)
    require(
        measured(entry.name)[3, 1, 1.0]["puzzle"].scale > 0,
        "Its update makes the return smaller on 'puzzle'.",
    )
