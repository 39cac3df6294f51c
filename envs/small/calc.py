"""``turnwise/Calc-v0``: arithmetic of any difficulty with a calculator (RandomCalculation).

Expressions are drawn, so none of them can have been seen. The calculator takes one operation at a time
(``single``), whole expressions (``whole``) or is missing (``none``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import pydantic

from turnwise.envs.core import EndReason, RewardKind
from turnwise.envs.small.env import CallEnv, CallResult
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.calculator import Worked, read_number, shown, work_out
from turnwise.tools.core import ToolError, tool

ENV = "turnwise/Calc-v0"
Tree: TypeAlias = list[Json]  # ["+", left, right]; a leaf is a text
_NAMES = {"+": "Add", "-": "Sub", "*": "Mult", "/": "Div", "^": "Pow"}
_LARGEST = 10**12


def calculate(expression: str) -> None:
    """Compute an arithmetic expression exactly."""


def answer(value: str) -> None:
    """Give the value of the whole expression, exactly: 12, -3/4. Ends the task."""


class CalcKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of arithmetic."""

    operations: tuple[int, int] = (3, 3)  # at least and at most
    largest: int = pydantic.Field(20, ge=2, le=10**6)  # whole number that is drawn
    kinds: tuple[Literal["whole", "fraction", "square", "cube"], ...] = ("whole",)
    signs: str = pydantic.Field("+-*", pattern=r"^[-+*/]+$")
    calculator: Literal["single", "whole", "none"] = "single"
    spare: int = pydantic.Field(4, ge=0)  # turns allowed beyond those that are needed

    @pydantic.field_validator("operations")
    @classmethod
    def _range(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= value[0] <= value[1] <= 200:
            raise ValueError("1 ≤ fewest ≤ most ≤ 200")
        return value


class CalcNode(NamedTuple):
    """An operation of the expression; operands are numbers of other operations, or values."""

    sign: str
    left: int | Fraction
    right: int | Fraction
    value: Fraction
    size: int  # operations of it and below it


class CalcExpression(NamedTuple):
    """A task's expression: its operations, each after those that it needs; the last one is the whole."""

    text: str
    nodes: tuple[CalcNode, ...]
    calculator: str


class CalcState(NamedTuple):
    """Operations that have been worked out."""

    task: str
    known: frozenset[int] = frozenset()


class CalcEnv(CallEnv[CalcState]):
    """Work an expression out. ``closeness`` pays for the answer's nearness (RandomCalculation's reward)."""

    tools = (tool(calculate), tool(answer))
    system = "Compute exactly. Each turn: calculate[...] or answer[...] with one number, such as 12 or -3/4."
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"3": {}, "50": {"operations": [50, 50]}}

    def __init__(
        self, *, shaping: float = 0.0, closeness: float = 0.0, render_mode: str | None = None
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.closeness = closeness
        if closeness:
            self.reward_components = {**self.reward_components, "closeness": RewardKind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        chosen = check_knobs(CalcKnobs, knobs, "arithmetic")

        def draw(rng: Random) -> Task | None:
            tree = _grow(rng, rng.randint(*chosen.operations), chosen)
            if not in_split(split, ENV, tree):
                return None
            found = _sum(tree, chosen.calculator)
            if found is None:
                return None
            turns = {"single": len(found.nodes) + 1, "whole": 2, "none": 1}[chosen.calculator]
            options = {"tree": tree, "calculator": chosen.calculator, "turn_limit": turns + chosen.spare}
            return Task(ENV, f"Compute {found.text}", options, {"turns": turns})

        return first_drawn(draw, rng, split, "arithmetic")

    def initial(self, task: Task) -> tuple[CalcState, str]:
        how = {"single": "one operation at a time", "whole": "any expression", "none": "out of order"}
        told = f"compute {_sums(task).text} .\ncalculator : {how[task.options['calculator']]} ."
        return CalcState(task.id), told

    def do(self, state: CalcState, name: str, arguments: Mapping[str, Json]) -> CallResult[CalcState]:
        found = _sums(self.task)
        if name == "answer":
            given, right = read_number(arguments["value"]), found.nodes[-1].value
            rewards = {"closeness": self.closeness * closeness(given, right)} if self.closeness else {}
            return CallResult(
                state, "answered .", EndReason.SOLVED if given == right else EndReason.FAILED, rewards
            )
        if found.calculator == "none":
            raise ToolError("The calculator is out of order: work it out and answer.")
        worked = work_out(arguments["expression"])
        if found.calculator == "single" and worked.operations > 1:
            raise ToolError("The calculator takes one operation at a time.")
        known = state.known | {n for n in range(len(found.nodes)) if _is(found, n, worked, state.known)}
        return CallResult(state._replace(known=known), f"{shown(worked.value)} .")

    def gold(self, state: CalcState) -> str:
        found = _sums(self.task)
        last = len(found.nodes) - 1
        if found.calculator == "none" or last in state.known:
            return f"answer {shown(found.nodes[-1].value)}"
        if found.calculator == "whole":
            return f"calculate {found.text}"
        return f"calculate {_written(found, min(set(range(len(found.nodes))) - state.known))}"

    def demonstrate(self, state: CalcState, rng: Random) -> str:
        """Works out operations in any order, some of them twice, and answers too early now and then."""
        found = _sums(self.task)
        luck = rng.random()
        if found.calculator == "none" or luck < 0.05:
            return f"answer {shown(rng.choice(found.nodes).value)}"
        if luck < 0.3:
            return f"calculate {_written(found, rng.randrange(len(found.nodes)))}"
        return self.gold(state)

    def potential(self, state: CalcState) -> float:
        """The share of the operations that have been worked out."""
        return len(state.known) / len(_sums(self.task).nodes)

    def admissible(self, state: CalcState) -> Sequence[str]:
        found = _sums(self.task)
        leaves = [value for node in found.nodes for value in node[1:3] if isinstance(value, Fraction)]
        ready = [n for n, node in enumerate(found.nodes) if _ready(node, state.known)]
        said = [f"calculate {_written(found, n)}" for n in ready] if found.calculator != "none" else []
        return [*said, *(f"answer {shown(value)}" for value in leaves[:3])]

    def state_key(self, state: CalcState) -> str:
        return digest(state.task, sorted(state.known))


def closeness(given: Fraction, right: Fraction) -> float:
    """1 − ½·min(|a−b|, 1) − ½·min(|a−b| / (|b|+ε), 1) (the reward of RandomCalculation).

    >>> closeness(Fraction(98, 10), Fraction(10)), closeness(Fraction(5), Fraction(10))
    (0.89, 0.25)
    """
    off = abs(given - right)
    relative = off / (abs(right) + Fraction(1, 10**9))
    return round(1.0 - 0.5 * float(min(off, Fraction(1))) - 0.5 * float(min(relative, Fraction(1))), 9)


def _grow(rng: Random, operations: int, knobs: CalcKnobs) -> Json:
    """A random tree with exactly so many operations."""
    if operations == 0:
        return str(rng.randint(1, knobs.largest))
    kind = rng.choice(knobs.kinds) if operations == 1 else "whole"
    if kind in ("square", "cube"):
        return ["^", str(rng.randint(2, min(knobs.largest, 20))), "2" if kind == "square" else "3"]
    if kind == "fraction":
        return ["/", str(rng.randint(1, knobs.largest)), str(rng.randint(2, knobs.largest))]
    left = rng.randint(0, operations - 1)
    sides = [_grow(rng, left, knobs), _grow(rng, operations - 1 - left, knobs)]
    return [rng.choice(knobs.signs), *sides]


def _sum(tree: Tree, calculator: str) -> CalcExpression | None:
    """The tree worked out; None if it divides by zero or grows too large."""
    nodes: list[CalcNode] = []

    def visit(part: Json) -> int | Fraction:
        if isinstance(part, str):
            return Fraction(part)
        sign, left, right = part[0], visit(part[1]), visit(part[2])
        a, b = (nodes[side].value if isinstance(side, int) else side for side in (left, right))
        value = work_out(f"({a}) {sign} ({b})").value
        below = [nodes[side].size for side in (left, right) if isinstance(side, int)]
        size = sum(below) + bool(below or sign != "/")  # a fraction of two whole numbers is a number
        nodes.append(CalcNode(sign, left, right, value, size))
        return len(nodes) - 1

    try:
        visit(tree)
    except ToolError:
        return None
    if any(max(abs(node.value.numerator), node.value.denominator) > _LARGEST for node in nodes):
        return None
    return CalcExpression(_spelled(tree)[2:-2], tuple(nodes), calculator)


_sums = WorldCache(lambda task: _sum(task.options["tree"], task.options["calculator"]) or _never(task))


def _never(task: Task) -> CalcExpression:
    raise ToolError(f"The expression of task {task.id} has no value.")


def _spelled(tree: Json) -> str:
    return tree if isinstance(tree, str) else f"( {_spelled(tree[1])} {tree[0]} {_spelled(tree[2])} )"


def _written(found: CalcExpression, n: int) -> str:
    """One operation with its operands' values."""
    node = found.nodes[n]
    sides = (found.nodes[side].value if isinstance(side, int) else side for side in (node.left, node.right))
    left, right = (shown(v) if v.denominator == 1 and v >= 0 else f"({shown(v)})" for v in sides)
    return f"{left} {node.sign} {right}"


def _ready(node: CalcNode, known: frozenset[int]) -> bool:
    return all(side in known for side in (node.left, node.right) if isinstance(side, int))


def _is(found: CalcExpression, n: int, worked: Worked, known: frozenset[int]) -> bool:
    """Say whether this calculation works operation ``n`` out."""
    node = found.nodes[n]
    if worked.value != node.value:
        return False
    if worked.operations > 1:
        return worked.operations == node.size
    sides = tuple(
        found.nodes[side].value if isinstance(side, int) else side for side in (node.left, node.right)
    )
    asked = worked.last or ("", *sides)
    same = asked[1:] == sides or (node.sign in "+*" and asked[:0:-1] == sides)
    return _ready(node, known) and asked[0] == _NAMES[node.sign] and same
