"""Contest problems: a story, limits, a fast and a naive solution, and inputs of any size."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import NamedTuple, TypeAlias

from turnwise.envs.code.families.core import Arguments, expected, reference
from turnwise.envs.code.problem import CodeCase, CodeProblem, LargeTest
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json, Split, derive_rng, digest

SECONDS = 5
"""Of processor time, for the largest tests of a problem together, the start of Python and reading included."""
_LARGE = 2  # such tests of a problem
_TRIES = 40
TOPICS = ("arrays", "intervals", "texts", "networks", "numbers")


Draw: TypeAlias = Callable[[Random, int], Arguments]


class Contest(NamedTuple):
    """One draw of a family. ``draw`` makes an input of about a size; ``naive`` is right too, and too slow at ``large``."""

    signature: str
    story: str
    limits: str
    solution: str
    naive: str
    draw: Draw
    large: int
    small: int = 8

    @property
    def entry(self) -> str:
        return self.signature.partition("(")[0]


Builder: TypeAlias = Callable[..., Contest]


class ContestFamily(NamedTuple):
    """A kind of contest problem. The builder takes one value of each parameter."""

    name: str
    topic: str
    params: Mapping[str, tuple[Json, ...]]
    build: Builder

    def sample(self, rng: Random) -> dict[str, Json]:
        return {name: rng.choice(values) for name, values in self.params.items()}

    def every(self) -> list[dict[str, Json]]:
        """All draws of the parameters: as many different problems."""
        return [
            dict(zip(self.params, values, strict=True)) for values in itertools.product(*self.params.values())
        ]


_families: dict[str, ContestFamily] = {}


def contest(topic: str, **params: tuple[Json, ...]) -> Callable[[Builder], Builder]:
    """Declare a function of the parameters as a family of contest problems."""

    def declare(build: Builder) -> Builder:
        _families[build.__name__] = ContestFamily(build.__name__, topic, params, build)
        return build

    return declare


@functools.cache
def contests() -> Mapping[str, ContestFamily]:
    """All families by name."""
    for topic in TOPICS:
        import_module(f"turnwise.envs.code.contest.{topic}")
    return dict(sorted(_families.items()))


@functools.cache
def held_out(split: Split) -> tuple[ContestFamily, ...]:
    """The families of a split: of each topic two are test's and one is dev's, chosen by a hash."""
    found: list[ContestFamily] = []
    for topic in TOPICS:
        own = [family for family in contests().values() if family.topic == topic]
        own.sort(key=lambda family: digest("contest", family.name))
        found += {Split.TEST: own[:2], Split.DEV: own[2:3], Split.TRAIN: own[3:]}[split]
    return tuple(found)


@functools.lru_cache(512)
def _built(name: str, params: tuple[tuple[str, Json], ...]) -> Contest:
    if name not in contests():
        raise NotFoundError("family of contest problems", name, contests())
    return contests()[name].build(**dict(params))


def contest_of(name: str, params: Mapping[str, Json]) -> Contest:
    """The problem of a family with these parameters.

    Raises:
        NotFoundError: there is no such family.
    """
    return _built(name, tuple(sorted(params.items())))


def small_inputs(drawn: Contest, rng: Random, count: int) -> list[Arguments]:
    """``count`` different inputs of sizes from one on, as far as there are so many."""
    found: dict[str, Arguments] = {}
    for attempt in range(_TRIES * count):
        if len(found) >= count:
            break
        made = drawn.draw(rng, 1 + attempt % drawn.small)
        found.setdefault(repr(made), made)
    return list(found.values())


def build_contest(
    name: str, params: Mapping[str, Json], *, visible: int, hidden: int, variant: int
) -> CodeProblem:
    """The problem with small tests, which are written down, and large ones, which are made when they are needed."""
    drawn = contest_of(name, params)
    solve = reference(drawn.solution, drawn.entry)
    rng = derive_rng("contest", name, dict(params), variant)
    made = small_inputs(drawn, rng, visible + hidden)
    shown = sorted(made[-visible:], key=lambda one: len(repr(one)))
    cases = [CodeCase(given, expected(solve, given)) for given in made[:-visible]]
    return CodeProblem(
        f"Write {drawn.signature}.\n\n{drawn.story}\n\nLimits: {drawn.limits}. All large tests together: {SECONDS} seconds of processor time.",
        drawn.entry,
        tuple(CodeCase(given, expected(solve, given)) for given in shown),
        tuple(cases),
        drawn.solution,
        large=tuple(LargeTest(name, dict(params), f"{variant} {n}") for n in range(_LARGE)),
    )


def large_input(test: LargeTest) -> Arguments:
    """The input of a large test: a function of the test."""
    drawn = contest_of(test.family, test.params)
    return drawn.draw(derive_rng("contest", test.family, dict(test.params), test.seed), drawn.large)


def large_case(test: LargeTest) -> CodeCase:
    """A large test with what the solution answers."""
    drawn, given = contest_of(test.family, test.params), large_input(test)
    return CodeCase(given, expected(reference(drawn.solution, drawn.entry), given))


def counted(n: int, noun: str) -> str:
    """A number of things: ``1 letter``, ``3 letters``."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def plus(n: int) -> str:
    """Write the summand behind a formula: ``' + 3'``, and nothing for 0."""
    return f" + {n}" if n else ""


def times(n: int) -> str:
    """A factor before a formula: ``'3 · '``, and nothing for 1."""
    return f"{n} · " if n != 1 else ""


def nth(n: int) -> str:
    """A number that says which: ``2nd``, ``11th``. Up to 20."""
    return str(n) + {1: "st", 2: "nd", 3: "rd"}.get(n, "th")


def whole(rng: Random, n: int, low: int = 1, high: int = 1_000_000_000) -> list[int]:
    """``n`` whole numbers; of a small range where there are few, so that small tests have ties."""
    return [rng.randint(low, min(high, low + 12) if n < 12 else high) for _ in range(n)]
