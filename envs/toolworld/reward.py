"""Judges a conversation: the outcome, progress towards it, and the rewards of single calls.

Outcome: 1 where the database equals the goal by hash (so nothing else was changed), every fact that had to be
told was told, and no rule of the policy was broken; else 0. It is not a weighted sum: what a customer did not
ask for cannot be made up for by what he did ask for.

Step parts are ToolRL's decomposition (Qian et al. 2025, arXiv 2504.13958): a call that fits its schema, the
right tool, the right arguments. Each planned call pays once, and only what improves on before, so that calls
cannot be farmed; left out is ToolRL's scale of −3 … 3, which is one linear map away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.envs.toolworld.database import Cell, Database, changes
from turnwise.envs.toolworld.story import PlanStep
from turnwise.tasks.core import Json


class ToolWorldVerdict(NamedTuple):
    """The three things that must hold."""

    state: bool
    told: bool
    rules: bool

    @property
    def outcome(self) -> float:
        return float(all(self))


def progress(base: Database, goal: Mapping[Cell, str], now: Database, marks: int, of: int) -> float:
    """Cells of the goal that are right, less those that are wrong, with ``marks`` of ``of`` other things done."""
    done = changes(base, now)
    right = sum(done.get(cell) == value for cell, value in goal.items())
    wrong = sum(goal.get(cell) != value for cell, value in done.items())
    total = len(goal) + of
    return max(0, right - wrong + marks) / total if total else 0.0


class Worth(NamedTuple):
    """The reward of a call beyond the best earlier one for the same planned call, and the new best."""

    tool: float
    arguments: float
    best: tuple[float, ...]  # per planned call: −1 unpaid, else the best share of arguments so far


def worth(
    planned: Sequence[PlanStep], best: tuple[float, ...], name: str, given: Mapping[str, Json]
) -> Worth:
    """Compare a call with the planned ones; the one that gains most is credited."""
    gains = [
        (_share(step.arguments, given) - max(before, 0.0), before < 0, index)
        for index, (step, before) in enumerate(zip(planned, best, strict=True))
        if step.name == name and before < 1
    ]
    if not gains:
        return Worth(0.0, 0.0, best)
    gain, first, index = max(gains)
    if gain <= 0 and not first:
        return Worth(0.0, 0.0, best)
    reached = max(best[index], 0.0) + max(gain, 0.0)
    return Worth(float(first), max(gain, 0.0), (*best[:index], reached, *best[index + 1 :]))


def _share(wanted: Mapping[str, Json], given: Mapping[str, Json]) -> float:
    """The share of all argument names, wanted or given, whose values are equal and of the same type."""
    names = {*wanted, *given}
    if not names:
        return 1.0
    same = sum(name in wanted and name in given and _same(wanted[name], given[name]) for name in names)
    return same / len(names)


def _same(first: Json, second: Json) -> bool:
    """Equal as JSON texts are: 1 is neither true nor 1.0."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            _same(value, second[key]) for key, value in first.items()
        )  # pyright: ignore[reportUnknownVariableType]
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))  # pyright: ignore[reportUnknownArgumentType]
    return first == second
