"""Changes of a package with the tests that run them: one as a bug, and two of different files joined into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from turnwise.envs.swe.hunks import edits_of
from turnwise.envs.swe.mutate import Bug, Edit, LineSpan, bugs_of
from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.whole import Spot, WholePackage

Lines: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]


class DeepChange(NamedTuple):
    """Replaced spots, and the dotted name of the function or class that they are about."""

    where: str
    spots: tuple[Spot, ...]

    @property
    def paths(self) -> set[str]:
        """The files that it is in."""
        return {spot.path for spot in self.spots}


class TestedPackage(NamedTuple):
    """A package, and which tests run which line of it: file → line → tests."""

    __test__ = False
    whole: WholePackage
    lines: Lines

    def tests_of(self, change: DeepChange) -> frozenset[str]:
        """The tests that run any line of a change."""
        return frozenset[str]().union(
            *(
                self.lines.get(span.path, {}).get(line, frozenset())
                for span in self._spans(change)
                for line in range(span.first, span.last + 1)
            )
        )

    def bug_of(self, kind: str, change: DeepChange) -> Bug | None:
        """A change as a bug; None where it changes nothing, or leaves something that does not parse."""
        edits = self.edits_of(change)
        return Bug(kind, edits, change.where, tuple(self._spans(change))) if edits else None

    def edits_of(self, change: DeepChange) -> tuple[Edit, ...]:
        """Return a change's edits of each file."""
        after = self.whole.after(change.spots)
        return edits_of({path: self.whole.sources[path].text for path in after}, after)

    def _spans(self, change: DeepChange) -> Iterator[LineSpan]:
        for path, made in change.spots:
            source = self.whole.sources[path]
            yield LineSpan(path, source.line_at(made.start), source.line_at(max(made.end - 1, made.start)))


def joined(
    package: TestedPackage, kind: str, parts: Mapping[str, Sequence[DeepChange]], rng: Random
) -> Bug | None:
    """One of ``parts`` (by kind) and another change of another file that some test runs as well, as pieces of one bug."""
    first = rng.choice(parts[rng.choice(sorted(parts))])
    others = [
        path for path in sorted(package.lines) if path not in first.paths and path in package.whole.sources
    ]
    if not others or len(first.paths) > 1:
        return None
    second = _beside(package, rng.choice(others), parts, package.tests_of(first), rng)
    made = second and package.bug_of(kind, DeepChange(first.where, (*first.spots, *second.spots)))
    if made is None or second is None:
        return None
    pieces = tuple(package.edits_of(one) for one in (first, second))
    if not all(pieces):
        return None
    where = next(one.where for one in (first, second) if made.edit.path in one.paths)
    return made._replace(where=where, pieces=pieces)


def _beside(
    package: TestedPackage,
    path: str,
    parts: Mapping[str, Sequence[DeepChange]],
    tests: frozenset[str],
    rng: Random,
) -> DeepChange | None:
    """A change of this file that some of these tests run: one of ``parts`` if there is any, else an ordinary bug."""
    fitting = [
        one
        for kind in sorted(parts)
        for one in parts[kind]
        if one.paths == {path} and package.tests_of(one) & tests
    ]
    if fitting:
        return rng.choice(fitting)
    near = frozenset(line for line, run in package.lines.get(path, {}).items() if run & tests)
    text = package.whole.sources[path].text
    bug = next((bug for bug in bugs_of(path, text, rng, lines=near) if bug.where), None)
    if bug is None:
        return None
    edit = bug.edit
    return DeepChange(bug.where, (Spot(path, Replacement(edit.start, edit.start + len(edit.old), edit.new)),))
