"""Tasks that are the same, exactly or nearly: found by their rare words, without comparing all with all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from turnwise.tasks.core import digest
from turnwise.trainers.audit.xray.core import XTask

_NEAR = 0.72
_FILES = 0.5
_WORD = re.compile(r"\w+")
_EXACT = re.compile(
    r"\d+(?:\.\d+)?|[\"'“‘`]([^\"'”’`\n]{1,60})[\"'”’`]|\b[A-Z]{2,}\b|\S*[/_]\S+|\b\w+\.\w+\b"
)
_NUMBERED = re.compile(
    r"^\W*(?:(?:exercise|problem|task|question|item|puzzle|no|nr|q)\W{0,3}\d+\w?|\d+\w?[.):])\W+|[\[(](?:exercise|problem|task|question|id|no|nr)\W{0,3}\d+[\])]",
    re.IGNORECASE,
)
"""A task's number in its list is no part of it."""
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_OPTIONS = re.compile(r"^[ \t]*\(?([A-H])[).:][ \t]*(\S[^\n]*)$", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_RARE = 6
"""So many digits, or half as many numbers, say with the answer that two questions are one in other words."""
_MOST = 400


class Like(NamedTuple):
    """An earlier task that is alike, and in how far."""

    other: XTask
    how: str


class _Print(NamedTuple):
    words: frozenset[str]
    shingles: frozenset[str]
    exact: frozenset[str]
    gold: str
    files: frozenset[str]
    numbers: tuple[str, ...]
    said: tuple[str, ...]


class Likeness:
    """Tasks that were added, by which those like them are found."""

    def __init__(self) -> None:
        self._same: dict[str, XTask] = {}
        self._judged: dict[str, XTask] = {}
        self._by: dict[str, list[int]] = defaultdict(list)
        self._known: list[tuple[XTask, _Print]] = []
        self._numbered: dict[tuple[str, ...], list[int]] = defaultdict(list)

    def add(self, task: XTask) -> None:
        self._same.setdefault(_key(task), task)
        if judged := _judged_by(task):
            self._judged.setdefault(judged, task)
        made = _print(task)
        for shingle in made.shingles:
            if len(self._by[shingle]) <= _MOST:
                self._by[shingle].append(len(self._known))
        self._numbered[made.numbers].append(len(self._known))
        self._known.append((task, made))

    def find(self, task: XTask) -> Like | None:
        """The first task that was added and is the same or nearly so."""
        if (other := self._same.get(_key(task))) is not None:
            return Like(
                other,
                "the same words as"
                if other.truth == task.truth
                else "the same words, but another answer, as",
            )
        if (other := self._judged.get(_judged_by(task))) is not None:
            return Like(other, "in other words, with the same files, tests and solution,")
        made = _print(task)
        counts: dict[int, int] = defaultdict(int)
        for shingle in made.shingles:
            places = self._by.get(shingle, ())
            if len(places) <= _MOST:
                for place in places:
                    counts[place] += 1
        for place, _ in sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:20]:
            other, its = self._known[place]
            if (near := _near(made, its)) >= _NEAR:
                return Like(other, f"nearly ({near:.0%}) the same as")
        for place in self._numbered.get(made.numbers, ())[:_MOST] if _telling(made) else ():
            other, its = self._known[place]
            if made.gold == its.gold and made.words != its.words and not made.files | its.files:
                return Like(other, "in other words, with the same numbers and answer,")
        return None


def _telling(one: _Print) -> bool:
    """Say if a task's numbers are rare enough to tell it from others."""
    several = len(one.numbers) >= _RARE // 2 or (len(one.numbers) == 2 and len("".join(one.numbers)) >= _RARE)
    return several and len({*one.numbers}) > 1 and len(one.gold) > 0


def _told(task: XTask) -> tuple[str, str]:
    """A prompt and an answer without what tells nothing of them: thousands separators, a function's name, the order of options."""
    prompt = _THOUSANDS.sub(lambda found: found.group().replace(",", ""), task.prompt)
    gold = str(task.truth if task.truth is not None else "")
    gold = _THOUSANDS.sub(lambda found: found.group().replace(",", ""), gold)
    for name in {*re.findall(r"`([A-Za-z_]\w*)`", prompt)}:  # a function by another name is the same task
        own = re.compile(rf"(?<!\w){name}(?!\w)")
        if own.search(gold):
            prompt, gold = own.sub("it", prompt), own.sub("it", gold)
    options = dict(_OPTIONS.findall(prompt))
    if len(options) < 3:
        return prompt, gold
    order = iter(sorted(options.values()))
    return _OPTIONS.sub(lambda _: next(order, ""), prompt), options.get(task.core.strip(), gold)


def _key(task: XTask) -> str:
    return digest(
        " ".join(_WORD.findall(_told(task)[0].casefold())),
        _flat(task.visible),
        str(task.row.get("repo", "")),
    )


def _judged_by(task: XTask) -> str:
    """A key of a task's files, image, tests and solution; "" where it lacks tests or a solution."""
    if not task.truth or not task.hidden:
        return ""
    solution = " ".join(str(task.truth).split())
    image = [str(task.row.get(name, "")) for name in ("repo", "dockerfile")]
    return digest(_flat(task.visible), _flat(task.hidden), solution, image)


def _flat(files: Mapping[str, str]) -> list[list[str]]:
    return [[path, " ".join(text.split())] for path, text in sorted(files.items())]


def _print(task: XTask) -> _Print:
    prompt, truth = _told(task)
    prompt = _NUMBERED.sub(" ", prompt)
    words = _WORD.findall(prompt.casefold())
    shingles = frozenset(" ".join(pair) for pair in pairwise(words)) or frozenset(words)
    exact = frozenset(match.group(1) or match.group() for match in _EXACT.finditer(prompt))
    gold = " ".join(truth.casefold().split())
    said = tuple(_NUMBER.findall(prompt))
    files = frozenset(digest(path, text) for path, text in task.visible.items())
    exacts = frozenset(one.strip(".,;:!?()").casefold() for one in exact)
    return _Print(frozenset(words), shingles, exacts, gold, files, tuple(sorted(said)), said)


def _near(one: _Print, other: _Print) -> float:
    """Likeness of two tasks: 0 where a number, a name in quotes or the answer differs, else the words that they share."""
    if one.exact != other.exact or one.gold != other.gold or min(len(one.words), len(other.words)) < 5:
        return 0.0
    if one.files and other.files and len(one.files & other.files) < _FILES * len(one.files | other.files):
        return 0.0
    if one.words == other.words and one.said != other.said:
        return 0.0
    words = len(one.words & other.words) / len(one.words | other.words)
    pairs = len(one.shingles & other.shingles) / max(min(len(one.shingles), len(other.shingles)), 1)
    return max(words, (words + pairs) / 2)
