"""``turnwise/Sort-v0``: Sort-k, putting hidden values in order by comparing and swapping (ExpA)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

import pydantic

from turnwise.envs.core import EndReason, RewardKind
from turnwise.envs.small.env import CallEnv, CallResult
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import ToolError, tool

ENV = "turnwise/Sort-v0"
_PERMUTATIONS_SPLIT = 5  # items from which on splits share no permutation; fewer have too few of them


def compare(first: int, second: int) -> None:
    """Ask which of the values at two places is smaller. Places are numbered from 1."""


def swap(first: int, second: int) -> None:
    """Exchange the values at two places."""


def done() -> None:
    """Say that the values stand in order, the smallest first. Ends the task."""


class SortKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of sorting."""

    items: tuple[int, int] = (5, 5)  # at least and at most
    shown: bool = False  # whether the values are told
    spare: int = pydantic.Field(8, ge=0)  # turns allowed beyond those of binary insertion sort

    @pydantic.field_validator("items")
    @classmethod
    def _range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 3 <= value[0] <= value[1] <= 40:
            raise ValueError("3 ≤ fewest ≤ most ≤ 40")
        return value


class SortState(NamedTuple):
    """The values as they stand, and which pairs (smaller, larger) the agent has compared."""

    order: tuple[int, ...]
    seen: frozenset[tuple[int, int]] = frozenset()


class SortEnv(CallEnv[SortState]):
    """Sort by comparisons. ``cost`` is charged for each turn, so that fewer are better."""

    tools = (tool(compare), tool(swap), tool(done))
    system = "Put the values in order, the smallest first. Each turn: compare[i, j], swap[i, j] or done[]."
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"k_5": {}, "k_20": {"items": [20, 20]}}

    def __init__(self, *, shaping: float = 0.0, cost: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.cost = cost
        if cost:
            self.reward_components = {**self.reward_components, "cost": RewardKind.COST}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        chosen = check_knobs(SortKnobs, knobs, "sorting")

        def draw(rng: Random) -> Task | None:
            n = rng.randint(*chosen.items)
            values = rng.sample(range(1, 100), n)
            places = sorted(range(n), key=values.__getitem__)
            if places == list(range(n)) or not in_split(
                split, ENV, places if n >= _PERMUTATIONS_SPLIT else values
            ):
                return None
            turns = _turns(SortState(tuple(values)), known_all=chosen.shown)
            options = {"values": values, "shown": chosen.shown, "turn_limit": turns + chosen.spare}
            return Task(ENV, f"Sort {n} values.", options, {"turns": turns})

        return first_drawn(draw, rng, split, "sorting")

    def initial(self, task: Task) -> tuple[SortState, str]:
        values = task.options["values"]
        told = " ".join(map(str, values)) if task.options["shown"] else f"{len(values)} values , hidden"
        return SortState(tuple(values)), f"sort : {told} ."

    def do(self, state: SortState, name: str, arguments: Mapping[str, Json]) -> CallResult[SortState]:
        costs = {"cost": -self.cost} if self.cost else {}
        if name == "done":
            right = list(state.order) == sorted(state.order)
            end = EndReason.SOLVED if right else EndReason.FAILED
            return CallResult(state, "in order ." if right else "not in order .", end, costs)
        order, n = state.order, len(state.order)
        i, j = int(arguments["first"]) - 1, int(arguments["second"]) - 1
        if not (0 <= i < n and 0 <= j < n) or i == j:
            raise ToolError(f"Give two different places from 1 to {n}.")
        if name == "compare":
            low, high = min(order[i], order[j]), max(order[i], order[j])
            text = f"{i + 1} {'<' if order[i] < order[j] else '>'} {j + 1} ."
            return CallResult(SortState(order, state.seen | {(low, high)}), text, None, costs)
        swapped = list(order)
        swapped[i], swapped[j] = order[j], order[i]
        return CallResult(state._replace(order=tuple(swapped)), f"swapped {i + 1} {j + 1} .", None, costs)

    def gold(self, state: SortState) -> str:
        return _next(state, known_all=self.task.options["shown"])

    def demonstrate(self, state: SortState, rng: Random) -> str:
        """Does a third of what it does at random, and stops too early now and then."""
        if rng.random() < 0.3:
            return rng.choice(self.admissible(state))
        return "done" if rng.random() < 0.02 else self.gold(state)

    def potential(self, state: SortState) -> float:
        """The share of pairs that stand in order."""
        n = len(state.order)
        right = sum(state.order[i] < state.order[j] for i in range(n) for j in range(i + 1, n))
        return 2.0 * right / (n * (n - 1))

    def admissible(self, state: SortState) -> Sequence[str]:
        pairs = [(i + 1, j + 1) for j in range(len(state.order)) for i in range(j)]
        return [f"{verb} {i} {j}" for verb in ("compare", "swap") for i, j in pairs] + ["done"]

    def state_key(self, state: SortState) -> str:
        return digest(list(state.order), sorted(state.seen), self.task.options["shown"])


class _UnknownError(Exception):
    """Two values whose order does not follow from what was compared."""


def _next(state: SortState, *, known_all: bool) -> str:
    """The next turn of binary insertion sort that uses nothing but what was compared."""
    below = _below(state.seen)

    def order(a: int, b: int) -> int:
        if known_all or b in below.get(a, ()):
            return -1 if a < b else 1
        if a in below.get(b, ()):
            return 1
        raise _UnknownError(a, b)

    try:
        target = sorted(state.order, key=functools.cmp_to_key(order))
    except _UnknownError as unknown:
        a, b = unknown.args
        i, j = sorted((state.order.index(a) + 1, state.order.index(b) + 1))
        return f"compare {i} {j}"
    for i, value in enumerate(target):
        if state.order[i] != value:
            return f"swap {i + 1} {state.order.index(value) + 1}"
    return "done"


def _below(seen: frozenset[tuple[int, int]]) -> dict[int, set[int]]:
    """For each value, those known to be larger, by transitivity."""
    larger: dict[int, set[int]] = {}
    for low, high in sorted(seen, reverse=True):  # larger values first, so their sets are complete
        larger.setdefault(low, set()).update({high}, larger.get(high, ()))
    return larger


def _turns(state: SortState, *, known_all: bool) -> int:
    """Count the turns that :func:`_next` takes in all."""
    env: Any = SortEnv()
    turns = 0
    while (said := _next(state, known_all=known_all)) != "done":
        verb, first, second = said.split()
        state = env.do(state, verb, {"first": first, "second": second}).state
        turns += 1
    return turns + 1
