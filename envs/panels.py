"""Panels: named lists of tasks of several suites that stay as they are, so that results of months apart compare.

A panel has, of each task, its id and a hash of what is shown before the first action (prompt and tools). Whoever plays one makes
the tasks anew and compares: where one is another task by now, the panel is refused, and its tasks make a new version.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pydantic

from turnwise.durable import write_whole
from turnwise.envs.offered.rows import task_rows
from turnwise.envs.registry import get_suite
from turnwise.errors import EnvError, NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, digest
from turnwise.texts import read_utf8

MARK = "panel/"
_OWN = Path(__file__).parent.parent / "tasks" / "panels"


class PanelTask(pydantic.BaseModel, extra="forbid", frozen=True):
    """A task: its id, and a hash of prompt and tools."""

    id: str
    hash: str


class PanelPart(pydantic.BaseModel, extra="forbid", frozen=True):
    """The first tasks of a suite's split, in their order."""

    suite: str
    split: Split
    tasks: tuple[PanelTask, ...] = pydantic.Field(min_length=1)


class TaskPanel(pydantic.BaseModel, extra="forbid", frozen=True):
    """A list that does not change; a change is a new version."""

    name: str = pydantic.Field(pattern=r"^[A-Za-z0-9_-]+$")
    version: int = pydantic.Field(ge=1)
    about: str = ""
    parts: tuple[PanelPart, ...] = pydantic.Field(min_length=1)

    @property
    def hash(self) -> str:
        """Of all tasks, in their order: the same hash is the same panel."""
        return digest([part.model_dump(mode="json") for part in self.parts])

    def __str__(self) -> str:
        return f"{self.name}-{self.version}:{self.hash}"


class PanelShare(NamedTuple):
    """Share of one suite in a panel: its tasks, and the panel's name with its hash."""

    panel: str
    split: str
    tasks: int


def make_panel(
    name: str, suites: Sequence[str], n: int, *, split: Split = Split.TEST, version: int = 1, about: str = ""
) -> TaskPanel:
    """The first ``n`` tasks of each suite, all of it where it is a shorter list.

    Raises:
        NotFoundError: there is no such suite.
        EnvError: several agents play in one.
        TurnwiseError: a suite is named twice, none is, or a name is none of a panel.
    """
    if len(set(suites)) < len(suites) or not suites or n < 1:
        raise TurnwiseError(
            "A panel has one or more suites, each once, and tasks of each.",
            "Name each suite once; --n is 1 or more.",
        )
    parts = [PanelPart(suite=suite, split=split, tasks=_tasks(suite, n, split)) for suite in suites]
    try:
        return TaskPanel(name=name, version=version, about=about, parts=tuple(parts))
    except pydantic.ValidationError as error:
        raise TurnwiseError(
            _first(error), "A name has letters, digits, - and _; versions count from 1."
        ) from None


def write_panel(panel: TaskPanel, file: Path) -> None:
    """Write a panel, with its hash."""
    write_whole(file, json.dumps(panel.model_dump(mode="json") | {"hash": panel.hash}, indent=1) + "\n")


def panels() -> list[str]:
    """Return the names of the panels that come with Turnwise."""
    return sorted(file.stem for file in _OWN.glob("*.json"))


def read_panel(name: str) -> TaskPanel:
    """The panel that comes with Turnwise under this name (``small-1``), or that of a file (``my.json``).

    Raises:
        NotFoundError: there is none.
        TurnwiseError: the file is none, or not as it was written.
    """
    file = Path(name) if name.endswith(".json") else _OWN / f"{name}.json"
    if not name.endswith(".json") and name not in panels():
        raise NotFoundError("panel", name, panels())
    remedy = "turnwise panel writes such files."
    try:
        data = json.loads(read_utf8(file, remedy))
        stated = data.pop("hash", "")
        panel = TaskPanel.model_validate(data)
    except (ValueError, AttributeError, TypeError) as error:
        told = _first(error) if isinstance(error, pydantic.ValidationError) else f"{error}."
        raise TurnwiseError(f"{file} is no panel: {told}", remedy) from None
    if stated != panel.hash:
        raise TurnwiseError(
            f"{file} was changed: it says hash {stated!r}, and its tasks have {panel.hash}.",
            "A panel that changes is a new version: make it with turnwise panel.",
        )
    return panel


def check_panel(panel: TaskPanel) -> None:
    """Make all tasks anew, and compare.

    Raises:
        EnvError: one is another task than when the panel was made.
    """
    for part in panel.parts:
        made = _tasks(part.suite, len(part.tasks), part.split)
        changed = [n for n, (then, now) in enumerate(zip(part.tasks, made, strict=False)) if then != now]
        if changed or len(made) < len(part.tasks):
            first = changed[0] if changed else len(made)
            raise EnvError(
                f"Panel {panel} is not what it was: {len(part.tasks) - len(made) + len(changed)} of {len(part.tasks)} tasks of "
                f"{part.suite} ({part.split}) have changed, first task {first}.",
                "Play it with the Turnwise it was made with, or make a new version: turnwise panel.",
            )


def with_panels(names: Sequence[str]) -> tuple[list[str], dict[str, PanelShare]]:
    """Put the suites of each ``panel/NAME`` in its place, and say what is asked of them.

    Raises:
        TurnwiseError: there is no such panel, or its tasks have changed since it was made.
    """
    suites, shares = list[str](), dict[str, PanelShare]()
    for name in names:
        if not name.startswith(MARK):
            suites.append(name)
            continue
        panel = read_panel(name.removeprefix(MARK))
        check_panel(panel)
        suites += [part.suite for part in panel.parts]
        shares |= {
            part.suite: PanelShare(str(panel), str(part.split), len(part.tasks)) for part in panel.parts
        }
    return suites, shares


def _tasks(suite: str, n: int, split: Split) -> tuple[PanelTask, ...]:
    n = min(n, get_suite(suite).length(split) or n)
    return tuple(PanelTask(id=row.task, hash=row.hash) for row in task_rows(suite, n, split=split))


def _first(error: pydantic.ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}."
