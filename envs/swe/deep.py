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

from turnwise.envs.swe.deepcases import fewer_cases
from turnwise.envs.swe.deepdrift import drifted_arguments, drifted_results, mistaken_helpers, skipped_helpers
from turnwise.envs.swe.deepstate import cached, other_order, shared, stale
from turnwise.envs.swe.hunks import edits_of
from turnwise.envs.swe.mutate import Bug, Edit, LineSpan, bugs_of
from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.whole import Spot, WholePackage

_MOST = 400  # changes of one kind that are listed
_SMALL = ("fewer_cases", "other_order", "stale", "cached", "shared")  # kinds of which two make several
Lines: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]


class DeepChange(NamedTuple):
    """What is replaced, and the dotted name of the function or class that it is about."""

    where: str
    spots: tuple[Spot, ...]


KINDS: Mapping[str, Callable[[WholePackage], Iterator[tuple[str, list[Spot]]]]] = MappingProxyType(
    {
        "drifted_arguments": drifted_arguments,
        "drifted_results": drifted_results,
        "mistaken_helper": mistaken_helpers,
        "skipped_helper": skipped_helpers,
        "fewer_cases": fewer_cases,
        "other_order": other_order,
        "shared": shared,
        "stale": stale,
        "cached": cached,
    }
)


def deep_bugs(
    texts: Mapping[str, str], lines: Lines, rng: Random, *, used: frozenset[str] = frozenset()
) -> Iterator[Bug]:
    """Bugs of all kinds, a kind at random each time; ``several`` joins two in different functions that one test runs.

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
        of["several"] = []
    pool = {kind: list(of[kind]) for kind in _SMALL if kind in of}
    while of:
        kind = rng.choice(sorted(of))
        bug = (
            _several(package, texts, pool, lines, rng)
            if kind == "several"
            else _bug(package, kind, of[kind].pop())
        )
        if bug:
            yield bug
        if kind != "several" and not of[kind]:
            del of[kind]
            if of.keys() <= {"several"}:
                return


def _several(
    package: WholePackage,
    texts: Mapping[str, str],
    pool: Mapping[str, list[DeepChange]],
    lines: Lines,
    rng: Random,
) -> Bug | None:
    """A change of one of the small kinds, and another or an ordinary bug elsewhere, which some test runs as well."""
    first = rng.choice(pool[rng.choice(sorted(pool))])
    tests = _tests(package, first, lines)
    spots = list(first.spots)
    here = {spot.path for spot in spots}
    others = [path for path in sorted(lines) if path not in here and path in package.sources] or sorted(here)
    path = rng.choice(others)
    near = frozenset(line for line, run in lines.get(path, {}).items() if run & tests)
    ordinary = (
        bug for bug in bugs_of(path, texts[path], rng, lines=near) if bug.where not in ("", first.where)
    )
    second = next(ordinary, None)
    if second is None:
        return None
    edit = second.edit
    more = Spot(path, Replacement(edit.start, edit.start + len(edit.old), edit.new))
    made = _bug(package, "several", DeepChange(first.where, (*spots, more)))
    one, two = package.after(spots), package.after([more])
    if made is None or not one or not two:
        return None
    return made._replace(pieces=(_edits(package, one), _edits(package, two)))


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
