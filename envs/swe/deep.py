"""Bugs of several places: what a caller was not told of, a wrong helper, a case nobody thought of, order and state.

Each kind reads the package as a whole and yields changes as people make them when they move code about; none is one
expression turned round (those are :mod:`turnwise.envs.swe.operators`). :func:`deep_bugs` draws of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from random import Random
from types import MappingProxyType

from turnwise.envs.swe.deepcases import fewer_cases, lost_overrides, skipped_supers
from turnwise.envs.swe.deepdrift import (
    drifted_arguments,
    drifted_defaults,
    drifted_results,
    mistaken_helpers,
    skipped_helpers,
)
from turnwise.envs.swe.deepjoin import DeepChange, Lines, TestedPackage, joined
from turnwise.envs.swe.deepstate import cached, other_order, shared, stale, swapped_steps
from turnwise.envs.swe.mutate import Bug
from turnwise.envs.swe.whole import Spot, WholePackage

_MOST = 400  # changes of one kind that are listed
_PARTS = (
    "fewer_cases",
    "lost_override",
    "skipped_super",
    "other_order",
    "swapped_steps",
    "stale",
    "cached",
    "shared",
)  # kinds of which one is the first part of several
_JOINED = "several"


KINDS: Mapping[str, Callable[[WholePackage], Iterator[tuple[str, list[Spot]]]]] = MappingProxyType(
    {
        "drifted_arguments": drifted_arguments,
        "drifted_results": drifted_results,
        "drifted_defaults": drifted_defaults,
        "mistaken_helper": mistaken_helpers,
        "skipped_helper": skipped_helpers,
        "fewer_cases": fewer_cases,
        "lost_override": lost_overrides,
        "skipped_super": skipped_supers,
        "other_order": other_order,
        "swapped_steps": swapped_steps,
        "shared": shared,
        "stale": stale,
        "cached": cached,
    }
)


def deep_bugs(
    texts: Mapping[str, str],
    lines: Lines,
    rng: Random,
    *,
    used: frozenset[str] = frozenset(),
    kinds: Collection[str] = (*KINDS, _JOINED),
) -> Iterator[Bug]:
    """Bugs of all kinds, a kind at random each time; ``several`` joins two in different files that one test runs.

    ``texts``: the package's files; ``lines``: file → line → tests that run it. What no test runs is left out. ``used``:
    names whose interface stays as it is, since tests use them. ``kinds``: of which only those are drawn.
    """
    package = TestedPackage(WholePackage(texts, used=used), lines)
    of: dict[str, list[DeepChange]] = {}
    for kind, make in KINDS.items():
        listed = (DeepChange(where, tuple(spots)) for where, spots in islice(make(package.whole), _MOST))
        if found := [one for one in listed if package.tests_of(one)]:
            of[kind] = rng.sample(found, len(found))
    parts = {kind: list(of[kind]) for kind in _PARTS if kind in of and _JOINED in kinds}
    of = {kind: listed for kind, listed in of.items() if kind in kinds}
    while of:
        kind = rng.choice(sorted([*of, _JOINED] if parts else of))
        bug = (
            joined(package, _JOINED, parts, rng) if kind == _JOINED else package.bug_of(kind, of[kind].pop())
        )
        if bug:
            yield bug
        of = {kind: left for kind, left in of.items() if left}


def is_joined(operator: str) -> bool:
    """Say whether bugs of this kind are several, each edit one that breaks something by itself."""
    return operator == _JOINED
