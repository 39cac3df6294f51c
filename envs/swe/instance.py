"""A bug-fixing task: which repository, what was done to it, which tests say that it is repaired."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from turnwise.envs.swe.mutate import Edit
from turnwise.envs.swe.packages import Package, get_package, repository
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/SWE-v0"


@dataclass(frozen=True)
class Instance:
    """A task of ours. ``fail_to_pass`` fail with the bug, ``pass_to_pass`` pass with and without it.

    ``hidden`` are test files that the agent does not see: those that a test of ``fail_to_pass`` is in.
    """

    package: str
    version: str
    edit: Edit
    operator: str
    where: str
    issue: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    hidden: tuple[str, ...]
    seconds: float

    @property
    def source(self) -> Package:
        """The package; an error where the manifest has another version by now."""
        package = get_package(self.package)
        if package.version != self.version:
            raise TurnwiseError(
                f"The task is about {self.package} {self.version}, the manifest has {package.version}.",
                "Build the tasks anew: python -m turnwise.envs.swe.build.",
            )
        return package

    def fixed(self) -> Mapping[str, bytes]:
        """The repository as it should be, all tests included."""
        return repository(self.source)

    def broken(self) -> dict[str, bytes]:
        """The repository with the bug, all tests included."""
        files = dict(self.fixed())
        files[self.edit.path] = self.edit.apply(files[self.edit.path].decode()).encode()
        return files

    def shown(self) -> dict[str, bytes]:
        """What the agent starts from: the bug, without the tests that would show the way."""
        return {path: data for path, data in self.broken().items() if path not in self.hidden}

    def patch(self) -> str:
        """The repair as a unified diff."""
        path = self.edit.path
        before, after = self.broken()[path].decode(), self.fixed()[path].decode()
        lines = difflib.unified_diff(
            before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}"
        )
        return "".join(lines)

    def to_json(self) -> dict[str, Json]:
        """One JSON object, a line of tasks.jsonl."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.loads(json.dumps({**row, "edit": self.edit._asdict()}))

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Instance:
        """Back from :meth:`to_json`."""
        lists = {name: tuple(row[name]) for name in ("fail_to_pass", "pass_to_pass", "hidden")}
        return Instance(**{**row, **lists, "edit": Edit(**row["edit"])})

    def task(self) -> Task:
        """As the environment plays it."""
        told = f"{self.issue}\n\nThe repository is in /work; its package is in {self.source.source}."
        row = self.to_json()
        del row["issue"]
        return Task(ENV, told, row, {"patch": self.patch()})


def instance_of(task: Task) -> Instance:
    """The instance that a task was made of."""
    return Instance.from_json({**task.options, "issue": task.prompt})


@cache
def load_instances(path: Path) -> tuple[Instance, ...]:
    """The tasks of a file, one JSON object a line."""
    return tuple(_lines(path))


def in_split(instances: tuple[Instance, ...], split: Split) -> list[Instance]:
    """The tasks of a split. Functions are not shared: what was repaired in training is not in the test."""
    from turnwise.envs.worlds.knobs import in_split as belongs

    return [one for one in instances if belongs(split, "repair", one.package, one.edit.path, one.where)]


def _lines(path: Path) -> Iterator[Instance]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise TurnwiseError(
            f"There are no tasks at {path}.", "Make them: python -m turnwise.envs.swe.build."
        ) from None
    for line in text.splitlines():
        if line.strip():
            yield Instance.from_json(json.loads(line))
