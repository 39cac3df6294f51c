"""Scripted localisers of rising strength: how soon each looks at the function that the bug is in, from the issue alone.

``named`` looks at functions whose names the issue has, ``grep`` at those whose text shares its rare words (BM25), ``calls``
at what the named ones call, and what these call, by the same words. None runs anything. A task that they find at once is
easy for anybody; suites are compared with ``python -m turnwise.envs.swe.localise small sample history``.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from turnwise.envs.swe.deep import is_joined
from turnwise.envs.swe.hunks import functions_in
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.place import changed_places, functions_of, repair_places
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.machine import describe
from turnwise.texts import kept

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
LOOKS = 5
"""In which a localiser must not find a hard bug."""
_MOST = 30  # functions that anybody would look at
_SATURATION, _LENGTH = 1.2, 0.75  # BM25


class CodePlace(NamedTuple):
    """A function that is in no other (or what a file has outside of all, without a name), and the words in it."""

    path: str
    name: str
    words: Counter[str]


class Found(NamedTuple):
    """Of a suite and a localiser: the share of tasks found at the first look and in five, and the median look (from 1)."""

    suite: str
    localiser: str
    tasks: int
    first: float
    five: float
    median_look: float


def places_of(task: Instance) -> list[CodePlace]:
    """The functions of the package as the agent finds it."""
    return [
        CodePlace(path, name, Counter(_WORD.findall(text)))
        for path, data in sorted(task.shown().items())
        if path.endswith(".py") and task.source.is_source(path)
        for name, text in functions_of(kept(data)).items()
    ]


def sites_of(task: Instance) -> frozenset[tuple[str, str]]:
    """Find the files and functions where the bug is.

    They are the files and outermost functions that the repair changes, and ``task.where``.

    Of a method that is missing, the others of its class.
    """
    return _with_neighbours(task, repair_places(task))


def parts_of(task: Instance) -> tuple[frozenset[tuple[str, str]], ...]:
    """The places of each bug, if a task has several that each break something, in the order of ``task.edits``; else all places."""
    if not is_joined(task.operator):
        return (sites_of(task),)
    return tuple(_with_neighbours(task, changed_places(task, {edit.path})) for edit in task.edits)


def _with_neighbours(task: Instance, places: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """With the other methods of a class of which one is missing."""
    shown = {(place.path, place.name) for place in places_of(task)}
    classes = {(path, name.rpartition(".")[0]) for path, name in places - shown if "." in name}
    return places | {(path, name) for path, name in shown if (path, name.rpartition(".")[0]) in classes}


def named(issue: str, places: Sequence[CodePlace]) -> list[CodePlace]:
    """Those whose names the issue has, rarer names first."""
    words = set(_WORD.findall(issue))
    names = Counter(place.name.rpartition(".")[2] for place in places)
    chosen = [place for place in places if place.name and place.name.rpartition(".")[2] in words]
    return sorted(chosen, key=lambda place: names[place.name.rpartition(".")[2]])


def grep(issue: str, places: Sequence[CodePlace]) -> list[CodePlace]:
    """All, by BM25 of the issue's words."""
    scores = _scores(issue, places)
    return sorted(places, key=lambda place: -scores[place[:2]])


def calls(issue: str, places: Sequence[CodePlace]) -> list[CodePlace]:
    """Named ones, what they call, and what these call, by the words that they share with the issue; then the rest."""
    scores, by_name = _scores(issue, places), dict[str, list[CodePlace]]()
    for place in places:
        by_name.setdefault(place.name.rpartition(".")[2], []).append(place)
    depth = {place[:2]: 0 for place in named(issue, places)}
    layer = [place for place in places if place[:2] in depth]
    for level in (1, 2):
        reached = [other for place in layer for word in place.words for other in by_name.get(word, ())]
        layer = [place for place in reached if place[:2] not in depth]
        depth.update({place[:2]: level for place in layer})
    return sorted(places, key=lambda place: -scores[place[:2]] / (1 + depth.get(place[:2], 4)))


LOCALISERS: Mapping[str, Callable[[str, Sequence[CodePlace]], list[CodePlace]]] = {
    "named": named, "grep": grep, "calls": calls,
}  # fmt: skip


def look_of(task: Instance, localiser: str) -> int:
    """The number of the look (from 1) at which a localiser has seen a place of each bug; 31 where it has not within 30."""
    ranked = LOCALISERS[localiser](task.issue, places_of(task))[:_MOST]
    return max(_first(ranked, sites) for sites in parts_of(task))


def traced_look(task: Instance, frames: Sequence[tuple[str, int]]) -> int:
    """The same for whoever has a failing test's traceback and looks at its functions, the innermost first."""
    seen: dict[tuple[str, str], None] = {}
    for path, line in reversed(frames):
        text = kept(task.broken().get(path, b"")) if task.source.is_source(path) else ""
        seen.update({(path, name): None for name, first, last in functions_in(text) if first <= line <= last})
    ranked = [CodePlace(path, name, Counter()) for path, name in seen]
    return max(_first(ranked, sites) for sites in parts_of(task))


def is_at(place: CodePlace, sites: frozenset[tuple[str, str]]) -> bool:
    """Say whether a place is one of the bug's."""
    return any(place.path == path and _fits(place.name, where) for path, where in sites)


def _first(ranked: Sequence[CodePlace], sites: frozenset[tuple[str, str]]) -> int:
    for look, place in enumerate(ranked, 1):
        if is_at(place, sites):
            return look
    return _MOST + 1


def compared(suites: Mapping[str, Sequence[Instance]]) -> list[Found]:
    """Every localiser on every suite."""
    rows: list[Found] = []
    for suite, tasks in suites.items():
        for localiser in LOCALISERS:
            looks = [look_of(task, localiser) for task in tasks]
            first, five = (sum(look <= most for look in looks) / len(looks) for most in (1, 5))
            rows.append(Found(suite, localiser, len(looks), round(first, 2), round(five, 2), median(looks)))
    return rows


def _scores(issue: str, places: Sequence[CodePlace]) -> dict[tuple[str, str], float]:
    wanted = set(_WORD.findall(issue))
    seen = Counter(word for place in places for word in place.words if word in wanted)
    length = sum(place.words.total() for place in places) / max(len(places), 1)
    found: dict[tuple[str, str], float] = {}
    for place in places:
        norm = _SATURATION * (1 - _LENGTH + _LENGTH * place.words.total() / max(length, 1))
        score = 0.0
        for word in wanted & place.words.keys():
            rarity = math.log(1 + (len(places) - seen[word] + 0.5) / (seen[word] + 0.5))
            score += rarity * place.words[word] * (_SATURATION + 1) / (place.words[word] + norm)
        found[place.path, place.name] = score
    return found


def _fits(name: str, where: str) -> bool:
    """Say whether a place is that function, or holds it; a place without a name only fits one without a name."""
    return name == where or where.startswith(f"{name}.") if name else "." not in where and not where


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m turnwise.envs.swe.localise", description="Compare suites.")
    parser.add_argument("tasks", nargs="+", help="small, history, hard, sample, built, releases, or a path")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args(arguments)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for row in compared({name: load_instances(place_of(name)) for name in asked.tasks}):
        measured = {"tasks": row.tasks, "first": row.first, "five": row.five, "median_look": row.median_look}
        figures.setdefault(row.suite, {})[row.localiser] = measured
    print(json.dumps({"name": "swe localise", "machine": describe(), "figures": figures}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
