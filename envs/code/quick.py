"""Tasks in the small language: one expression over a list of numbers, described in few words.

Whether "beyond 4" takes 4 itself is left open by the words and told by the visible tests, so that testing a draft
is worth a turn.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.code.expression import ExpressionError, evaluate
from turnwise.envs.code.problem import CodeCase, CodeProblem

SYSTEM = "each turn : test EXPRESSION . or submit EXPRESSION . or submit ."
_TAKES = {
    "sum": "total",
    "len": "count",
    "max": "largest",
    "min": "smallest",
    "sorted": "order",
    "list": "list",
}
_CHANGES = {"": "", "+": "plus", "*": "times", "-": "minus"}
_CHOOSES = {"": "numbers", "even": "even numbers", "odd": "odd numbers", ">": "numbers beyond", ">=": "numbers beyond",
            "<": "numbers below", "<=": "numbers below"}  # fmt: skip
_OTHER = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}
_TRIES = 60


class Wish(NamedTuple):
    """A task's request: which numbers to select, how to change each, and what to compute from them."""

    take: str
    change: str
    by: int
    choose: str
    bound: int

    @property
    def words(self) -> str:
        """The task as an English sentence; it is ambiguous whether a bound such as "beyond 4" includes 4."""
        bound = f" {self.bound}" if self.choose in _OTHER else ""
        change = f" {_CHANGES[self.change]} {self.by}" if self.change else ""
        return f"write f ( xs ) : {_TAKES[self.take]} of {_CHOOSES[self.choose]}{bound}{change} ."

    @property
    def expression(self) -> str:
        """The task as an expression."""
        change = f"x {self.change} {self.by}" if self.change else "x"
        tests = {"": "", "even": " if x % 2 == 0", "odd": " if x % 2 == 1"}
        test = tests.get(self.choose, f" if x {self.choose} {self.bound}")
        return f"{self.take} ( [ {change} for x in xs{test} ] )"

    def turned(self) -> Wish:
        """The same request with its ambiguous bound read the other way."""
        return self._replace(choose=_OTHER.get(self.choose, self.choose))


def draw_wish(rng: Random) -> Wish:
    """A random request; most have a bound that can be read in two ways."""
    while True:
        choose = rng.choice((">", ">=", "<", "<=")) if rng.random() < 0.6 else rng.choice(("", "even", "odd"))
        change = rng.choice(("", "+", "*", "-"))
        by = rng.randint(2, 9) if change else 0
        bound = rng.randint(2, 8) if choose in _OTHER else 0
        wish = Wish(rng.choice(tuple(_TAKES)), change, by, choose, bound)
        if not _empty(wish):
            return wish


def _empty(wish: Wish) -> bool:
    """Say whether a part of it changes nothing.

    Such parts are all numbers as they are, counting changed ones, the largest of the large.
    """
    if wish.take == "len" and (wish.change or not wish.choose):
        return True
    if (wish.take, wish.choose[:1]) in (("max", ">"), ("min", "<")):
        return True
    return not wish.change and not wish.choose


def slipped(wish: Wish, rng: Random) -> Wish:
    """The request as an imperfect reader misunderstands it: one part is changed."""
    other = draw_wish(rng)
    match rng.randrange(3):
        case 0:
            return wish._replace(take=other.take)
        case 1:
            return wish._replace(change=other.change, by=other.by)
        case _:
            return wish._replace(choose=other.choose, bound=other.bound)


def build_expression_problem(wish: Wish, rng: Random, *, visible: int, hidden: int) -> CodeProblem:
    """The problem of a wish. Wherever its bound has two readings, visible and hidden tests tell them apart."""
    shown = _cases(wish, rng, visible, 4)
    seen = {repr(case.given) for case in shown}
    unseen = [case for case in _cases(wish, rng, hidden + visible, 6) if repr(case.given) not in seen]
    return CodeProblem(wish.words, "f", tuple(shown), tuple(unseen[:hidden]), wish.expression, "expression")


def shown(value: object) -> str:
    """A value in words of its own: ``[3, 1]`` is ``3 1``."""
    if isinstance(value, list):
        return " ".join(str(item) for item in value) or "nothing"  # pyright: ignore
    return str(value)


def _cases(wish: Wish, rng: Random, count: int, longest: int) -> list[CodeCase]:
    """Cases with different inputs; the first one has a number at the bound that makes a difference.

    For some wishes it never does (the largest of what is beyond 4): there both readings are right.
    """
    found: dict[str, CodeCase] = {}
    tries = 0
    while len(found) < count:
        tries += 1
        xs = [rng.randint(0, 12) for _ in range(rng.randint(3, longest))]
        if wish.choose in _OTHER and not found and tries < _TRIES:
            xs[rng.randrange(len(xs))] = wish.bound
            if _value(wish, xs) == _value(wish.turned(), xs):
                continue
        value = _value(wish, xs)
        if value is not None:
            found.setdefault(repr(xs), CodeCase((xs,), value))
    return list(found.values())


def _value(wish: Wish, xs: list[int]) -> object:
    """The wish's answer; None where it has none (the largest of nothing)."""
    try:
        return evaluate(wish.expression, xs)
    except ExpressionError:
        return None
