"""Three scripts of rising strength that play episodes through the tools: what a suite asks beyond them is its difficulty.

``guess`` searches the rare words of the issue and turns one expression near the best hit round. ``follow`` runs the issue's
example, follows its traceback (or the names in the issue) and tries such changes until the example passes. ``localise`` looks
at five functions in the order of the strongest localiser, and repairs the bug as the true repair does if it sees its place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from random import Random
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.hunks import functions_in
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.localise import LOOKS, calls, is_at, parts_of, places_of
from turnwise.envs.swe.mutate import Bug, Edit, bugs_of
from turnwise.envs.swe.solver import SweCall, narrowed
from turnwise.tasks.core import derive_rng
from turnwise.texts import kept

Script: TypeAlias = Callable[[Instance, Random], Generator[SweCall, str, None]]
_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_FRAME = re.compile(r'File "/work/(\S+\.py)", line (\d+)')
_WORD = re.compile(r"[A-Za-z_]{4,}")
_COMMON = frozenset(
    [
        "assert", "that", "this", "with", "from", "what", "used", "work", "does", "more", "python", "should",
        "check", "checks", "ours",
    ]
)  # fmt: skip
_TRIED, _FUNCTIONS = 24, 3  # changes that are tried, functions that they are tried in
_TRY = """import json, subprocess, sys
bytes_kept = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
for at, (path, start, old, new) in enumerate(json.load(open("changes.json"))):
    text = open(path, **bytes_kept).read()
    open(path, "w", **bytes_kept).write(text[:start] + new + text[start + len(old):])
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "test_issue.py"], capture_output=True, timeout=4)
        good = done.returncode == 0
    except subprocess.TimeoutExpired:
        good = False
    if good:
        print("GOOD", at, flush=True)
        break
    open(path, "w", **bytes_kept).write(text)
"""


class PlayedScript(NamedTuple):
    """An episode: whether the bug was repaired, and how many calls it took."""

    resolved: bool
    calls: int


def play(env: SweEnv, task: Instance, script: str) -> PlayedScript:
    """Play a task with a script of :data:`LADDER`."""
    env.reset(seed=0, options={"task": task.task()})
    acting, said, count = LADDER[script](task, derive_rng("swe ladder", script, task.issue)), "", 0
    next_call = next(acting)
    while True:
        count += 1
        step = env.step(env.call(*next_call))
        if step.terminated or step.truncated:
            return PlayedScript(step.info.get("end") == "solved", count)
        said = str(step.observation[-1].content)
        next_call = acting.send(said)


def guess(task: Instance, rng: Random) -> Generator[SweCall, str, None]:
    """Search, view the best hit, change one expression near it, submit."""
    words = [word for word in Counter(_WORD.findall(task.issue)) if word.lower() not in _COMMON]
    pattern = rf"\b({'|'.join(words[:12])})\b"
    said = yield SweCall("search", {"pattern": pattern, "path": task.source.source})
    hits = [
        (path, int(line), text)
        for path, line, text in re.findall(r"^(\S+\.py):(\d+):(.*)$", said, re.MULTILINE)
    ]
    if hits:
        path, line, _ = max(hits, key=lambda hit: sum(word in hit[2] for word in words))
        said = yield SweCall("view", {"path": path, "first": max(line - 5, 1), "last": line + 20})
        near = frozenset(range(max(line - 5, 1), line + 20))
        for bug in islice(bugs_of(path, _shown(task, path), rng, lines=near), 1):
            yield _edited(task, bug)
    yield SweCall("submit")


def follow(task: Instance, rng: Random) -> Generator[SweCall, str, None]:
    """Run the example, follow its traceback, try changes until it passes, submit."""
    found = _EXAMPLE.search(task.issue)
    if found is None:
        yield SweCall("submit")
        return
    yield SweCall("create", {"path": "test_issue.py", "text": _as_test(task, found[1])})
    said = yield SweCall(
        "shell", {"command": "python3 -m pytest -q -x --tb=native test_issue.py 2>&1 | tail -n 60"}
    )
    bugs = list(islice(_changes(task, said, rng), _TRIED))
    rows = [(bug.edit.path, bug.edit.start, bug.edit.old, bug.edit.new) for bug in bugs]
    yield SweCall("create", {"path": "changes.json", "text": json.dumps(rows)})
    yield SweCall("create", {"path": "attempt.py", "text": _TRY})
    said = yield SweCall("shell", {"command": "timeout 28 python3 attempt.py"})
    yield SweCall("submit")


def localise(task: Instance, rng: Random) -> Generator[SweCall, str, None]:
    """Look at five functions; whoever sees a place of a bug repairs that bug."""
    left = dict(enumerate(parts_of(task)))
    for place in calls(task.issue, places_of(task))[:LOOKS]:
        lines = next(
            (row[1:] for row in functions_in(_shown(task, place.path)) if row[0] == place.name), (1, 100)
        )
        yield SweCall("view", {"path": place.path, "first": lines[0], "last": lines[1]})
        seen = [at for at, sites in left.items() if is_at(place, sites)]
        for at in seen:
            for edit in task.edits[at : at + 1] if len(parts_of(task)) > 1 else task.edits:
                yield _repaired(task, edit)
            del left[at]
        if not left:
            break
    yield SweCall("submit")


def _repaired(task: Instance, edit: Edit) -> SweCall:
    """One file as the true repair makes it."""
    if edit.path not in task.shown():
        return SweCall("create", {"path": edit.path, "text": kept(task.fixed()[edit.path])})
    old, new = narrowed(edit, _shown(task, edit.path))
    return SweCall("edit", {"path": edit.path, "old": old, "new": new})


LADDER: Mapping[str, Script] = MappingProxyType({"guess": guess, "follow": follow, "localise": localise})


def level_of(resolved: Mapping[str, bool]) -> int:
    """Return the level of a task: the number of the first script that solves it, from 1; 4 where none does."""
    return next((at for at, name in enumerate(LADDER, 1) if resolved[name]), len(LADDER) + 1)


def _changes(task: Instance, said: str, rng: Random) -> Iterator[Bug]:
    """Changes of functions of the traceback, the innermost first; then of functions that the issue names."""
    places: dict[tuple[str, int, int], None] = {}
    for path, line in reversed(_FRAME.findall(said)):
        if task.source.is_source(path) and path in task.shown():
            inside = (row for row in functions_in(_shown(task, path)) if row[1] <= int(line) <= row[2])
            places.update({(path, first, last): None for _, first, last in inside})
    words = set(_WORD.findall(task.issue))
    for path in sorted(path for path in task.shown() if path.endswith(".py") and task.source.is_source(path)):
        named = (row for row in functions_in(_shown(task, path)) if row[0].rpartition(".")[2] in words)
        places.update({(path, first, last): None for _, first, last in named})
    chosen: Sequence[tuple[str, int, int]] = list(places)[:_FUNCTIONS]
    for path, first, last in chosen:
        lines = frozenset(range(first, last + 1))
        yield from islice(bugs_of(path, _shown(task, path), rng, lines=lines), _TRIED // len(chosen))


def _as_test(task: Instance, example: str) -> str:
    name = PurePosixPath(task.source.source).name.removesuffix(".py")
    head = f"import pytest, unittest\nimport {name}\nfrom {name} import *\n\n\ndef test_issue():\n"
    return head + "".join(f"    {line}\n" if line else "\n" for line in example.splitlines())


def _shown(task: Instance, path: str) -> str:
    return kept(task.shown()[path])


def _edited(task: Instance, bug: Bug) -> SweCall:
    text = bug.edit.apply(_shown(task, bug.edit.path))
    return SweCall("create", {"path": bug.edit.path, "text": text})
