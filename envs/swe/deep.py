"""Bugs of several places: what a caller was not told of, a wrong helper, a case nobody thought of, order and state.

Each kind reads the package as a whole and yields changes as people make them when they move code about; none is one
expression turned round (those are :mod:`turnwise.envs.swe.operators`). :func:`deep_bugs` draws of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from random import Random
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from turnwise.envs.swe.deepcases import fewer_cases, lost_overrides, skipped_supers
from turnwise.envs.swe.deepdrift import (
    drifted_arguments,
    drifted_defaults,
    drifted_results,
    mistaken_helpers,
    skipped_helpers,
)
from turnwise.envs.swe.deepstate import cached, other_order, shared, stale, swapped_steps
from turnwise.envs.swe.hunks import edits_of
from turnwise.envs.swe.mutate import Bug, Edit, LineSpan, bugs_of
from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.whole import Spot, WholePackage

_MOST = 400  # changes of one kind that are listed
_SMALL = (
    "fewer_cases",
    "lost_override",
    "skipped_super",
    "other_order",
    "swapped_steps",
    "stale",
    "cached",
    "shared",
)  # of which one is the first of several
_JOINED = "several"
Lines: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]


class DeepChange(NamedTuple):
    """What is replaced, and the dotted name of the function or class that it is about."""

    where: str
    spots: tuple[Spot, ...]


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
    texts: Mapping[str, str], lines: Lines, rng: Random, *, used: frozenset[str] = frozenset()
) -> Iterator[Bug]:
    """Bugs of all kinds, a kind at random each time; ``several`` joins two in different files that one test runs.

    ``texts``: the package's files; ``lines``: file → line → tests that run it. What no test runs is left out. ``used``:
    names whose interface stays as it is, since tests use them.
    """
    package = WholePackage(texts, used=used)
    of: dict[str, list[DeepChange]] = {}
    for kind, make in KINDS.items():
        found = [DeepChange(where, tuple(spots)) for where, spots in islice(make(package), _MOST)]
        found = [one for one in found if _tests(package, one, lines)]
        if found:
            of[kind] = rng.sample(found, len(found))
    if any(kind in of for kind in _SMALL):
        of[_JOINED] = []
    pool = {kind: list(of[kind]) for kind in _SMALL if kind in of}
    while of:
        kind = rng.choice(sorted(of))
        bug = (
            _several(package, texts, pool, lines, rng)
            if kind == _JOINED
            else _bug(package, kind, of[kind].pop())
        )
        if bug:
            yield bug
        if kind != _JOINED and not of[kind]:
            del of[kind]
            if of.keys() <= {_JOINED}:
                return


def is_joined(operator: str) -> bool:
    """Whether bugs of this kind are several, each edit one that breaks something by itself."""
    return operator == _JOINED


def _several(
    package: WholePackage,
    texts: Mapping[str, str],
    pool: Mapping[str, list[DeepChange]],
    lines: Lines,
    rng: Random,
) -> Bug | None:
    """A change of one of the small kinds in one file, and another or an ordinary bug in another that some test runs as well."""
    first = rng.choice(pool[rng.choice(sorted(pool))])
    tests, here = _tests(package, first, lines), {spot.path for spot in first.spots}
    others = [path for path in sorted(lines) if path not in here and path in package.sources]
    if not others or len(here) > 1:
        return None
    path = rng.choice(others)
    second = _second(package, texts, pool, lines, path, tests, rng)
    if second is None:
        return None
    made = _bug(package, _JOINED, DeepChange(first.where, (*first.spots, *second.spots)))
    pieces = [package.after(one.spots) for one in (first, second)]
    if made is None or not all(pieces):
        return None
    where = next(one.where for one in (first, second) if one.spots[0].path == made.edit.path)
    return made._replace(where=where, pieces=tuple(_edits(package, piece) for piece in pieces))


def _second(
    package: WholePackage,
    texts: Mapping[str, str],
    pool: Mapping[str, list[DeepChange]],
    lines: Lines,
    path: str,
    tests: frozenset[str],
    rng: Random,
) -> DeepChange | None:
    """A change of this file that some of these tests run: a small one if there is any, else an ordinary bug."""
    small = [
        one
        for kind in sorted(pool)
        for one in pool[kind]
        if {spot.path for spot in one.spots} == {path} and _tests(package, one, lines) & tests
    ]
    if small:
        return rng.choice(small)
    near = frozenset(line for line, run in lines.get(path, {}).items() if run & tests)
    bug = next((bug for bug in bugs_of(path, texts[path], rng, lines=near) if bug.where), None)
    if bug is None:
        return None
    edit = bug.edit
    return DeepChange(bug.where, (Spot(path, Replacement(edit.start, edit.start + len(edit.old), edit.new)),))


def _bug(package: WholePackage, kind: str, change: DeepChange) -> Bug | None:
    after = package.after(change.spots)
    if not after:
        return None
    edits = _edits(package, after)
    return Bug(kind, edits, change.where, tuple(_spans(package, change)))


def _edits(package: WholePackage, after: Mapping[str, str]) -> tuple[Edit, ...]:
    return edits_of({path: package.sources[path].text for path in after}, after)


def _spans(package: WholePackage, change: DeepChange) -> Iterator[LineSpan]:
    for path, made in change.spots:
        source = package.sources[path]
        yield LineSpan(path, source.line_at(made.start), source.line_at(max(made.end - 1, made.start)))


def _tests(package: WholePackage, change: DeepChange, lines: Lines) -> frozenset[str]:
    """The tests that run any line of a change."""
    return frozenset[str]().union(
        *(
            lines.get(span.path, {}).get(line, frozenset())
            for span in _spans(package, change)
            for line in range(span.first, span.last + 1)
        )
    )
