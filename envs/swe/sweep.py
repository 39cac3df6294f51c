"""Does something with each task of suites, a line of a file for each, so that an interrupted command goes on where it was."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.levels import key_of
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.tasks.core import Json


class Swept(NamedTuple):
    """The rows of each suite that are there, in the order of its tasks, and how many tasks have none yet."""

    rows: Mapping[str, list[dict[str, Json]]]
    left: int


def sweep(
    suites: Sequence[str],
    file: Path,
    make: Callable[[Instance], Mapping[str, Json]],
    *,
    seconds: float = 1e9,
    choose: Callable[[str, Sequence[Instance]], Sequence[Instance]] = lambda suite, tasks: tasks,
) -> Swept:
    """Have a row of each task in ``file`` (JSON lines); none is begun after ``seconds``.

    Args:
        suites: names or paths of files of tasks.
        file: what earlier commands wrote; a last line that was cut short is made again.
        make: what is to be noted of a task.
        seconds: of wall time.
        choose: which tasks of a suite.
    """
    found = _read(file)
    ends, left = time.monotonic() + seconds, 0
    wanted = {suite: choose(suite, load_instances(place_of(suite))) for suite in suites}
    for suite, tasks in wanted.items():
        for task in tasks:
            key = suite, key_of(task)
            if key in found:
                continue
            if time.monotonic() > ends:
                left += 1
                continue
            found[key] = {"suite": suite, "key": key[1], **make(task)}
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(found[key]) + "\n")
            print("✓", suite, task.package, task.where, file=sys.stderr, flush=True)
    rows = {
        suite: [found[key] for task in tasks if (key := (suite, key_of(task))) in found]
        for suite, tasks in wanted.items()
    }
    return Swept(rows, left)


def _read(file: Path) -> dict[tuple[str, str], dict[str, Json]]:
    text = file.read_text("utf-8") if file.exists() else ""
    whole, torn = text.split("\n")[:-1], text.rpartition("\n")[2]
    if torn:
        file.write_text(text.removesuffix(torn), "utf-8")
    rows: list[dict[str, Json]] = [json.loads(line) for line in whole]
    return {(str(row["suite"]), str(row["key"])): row for row in rows}
