"""Draw of the tests that run as they are or as their twins, and in which process, for each verdict.

Rounds come in pairs. In each pair every test that has a twin is run as it is in one process and altered in the other; a
coin that only the judge sees says in which. Code that cheats cannot know when not to: a guess is right once in four.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.twins import Twin, altered, function_of
from turnwise.texts import kept

_BITS = 6
"""Whoever cheats by chance passes once in 2 to this power, where nothing else than twins judges."""


class SuiteRound(NamedTuple):
    """One process. ``texts`` are altered files; ``only`` these tests are run (all if none is named).

    ``expected``: id in this run → the test's own id, and whether it must fail.
    """

    texts: Mapping[str, str]
    only: frozenset[str]
    expected: Mapping[str, tuple[str, bool]]


def draw_rounds(
    twins: Sequence[Twin],
    failing: Sequence[str],
    passing: Sequence[str],
    texts: Mapping[str, bytes],
    chance: Random,
    *,
    bits: int = _BITS,
) -> list[SuiteRound]:
    """The rounds of one verdict: the whole suite, then tests with twins as what they were not before, and so on.

    ``failing`` are the tests that show the bug, ``passing`` those that must go on passing, ``texts`` the files of tests.
    """
    of: dict[str, list[Twin]] = {}
    for twin in twins:
        of.setdefault(twin.function, []).append(twin)
    shown = {function_of(test) for test in failing}
    told = [name for name in of if name in shown]
    tests = [*failing, *passing]
    rounds: list[SuiteRound] = []
    for number in range(math.ceil(bits / (2 * len(told))) if told else 0):
        names = told if number else list(of)
        drawn = {name: chance.choice(of[name]) for name in names}
        first = {name for name in names if chance.random() < 0.5}
        for half in (first, set(names) - first):
            chosen = tests if not rounds else [test for test in tests if function_of(test) in drawn]
            rounds.append(_round([drawn[name] for name in sorted(half)], chosen, texts, whole=not rounds))
    return rounds or [_round([], tests, texts, whole=True)]


def _round(
    twins: Sequence[Twin], tests: Sequence[str], texts: Mapping[str, bytes], *, whole: bool
) -> SuiteRound:
    known = {test: (name, fails) for twin in twins for test, name, fails in twin.cases}
    expected = {}
    for test in tests:
        name, fails = known.get(test, (test, False))
        expected[name] = (test, fails)
    paths = {twin.path for twin in twins}
    files = {
        path: altered(kept(texts[path]), [twin for twin in twins if twin.path == path])
        for path in sorted(paths)
    }
    return SuiteRound(files, frozenset() if whole else frozenset(expected), expected)
