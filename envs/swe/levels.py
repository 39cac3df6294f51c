"""Levels of tasks, as measured: the first script of the ladder that solves each.

The ladder is in :mod:`turnwise.envs.swe.ladder`.

``python benchmarks/swe_ladder.py … --write`` plays the scripts and writes ``levels.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from turnwise.envs.swe.instance import Instance
from turnwise.tasks.core import digest

LEVELS = Path(__file__).parent / "levels.json"
UNKNOWN = 0
"""The level of a task that the scripts have not played."""


def key_of(task: Instance) -> str:
    """Return the key of a task here: the release, and what was done to it."""
    edits = [list(edit) for edit in task.edits]
    return digest(task.package, task.version, edits, list(task.fail_to_pass))


def measured_level(task: Instance) -> int:
    """1 to 3: the number of the first script that solves it; 4: none does; 0: not measured."""
    return _measured().get(key_of(task), UNKNOWN)


@cache
def _measured() -> Mapping[str, int]:
    return json.loads(LEVELS.read_text("utf-8"))
