"""A bug-fixing task: which repository, what was done to it, which tests say that it is repaired."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turnwise.envs.swe.mutate import Edit
from turnwise.envs.swe.packages import Package, get_package, repository
from turnwise.envs.swe.probes import Probe
from turnwise.envs.swe.twins import Twin
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Task
from turnwise.texts import as_bytes, kept

ENV = "turnwise/SWE-v0"


@dataclass(frozen=True)
class Instance:
    """A task of ours. ``fail_to_pass`` fail with the bug, ``pass_to_pass`` pass with and without it.

    ``edits`` made the bug, one in each file; ``where`` is the function that the first is in. ``origin`` is the package
    where it does not come with Turnwise.
    ``hidden`` are test files that the agent does not see: those that a test of ``fail_to_pass`` is in. ``twins`` are
    altered tests that no repair may pass, ``probes`` what the true repair makes of other inputs: both judge (docs/swe.md).
    """

    package: str
    version: str
    edits: tuple[Edit, ...]
    operator: str
    where: str
    issue: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    hidden: tuple[str, ...]
    seconds: float
    twins: tuple[Twin, ...]
    probes: tuple[Probe, ...]
    origin: Package | None = None

    @property
    def edit(self) -> Edit:
        """The first change."""
        return self.edits[0]

    @property
    def source(self) -> Package:
        """The package; an error where the manifest has another version by now."""
        if self.origin:
            return self.origin
        package = get_package(self.package)
        if package.version != self.version:
            raise TurnwiseError(
                f"The task is about {self.package} {self.version}, the manifest has {package.version}.",
                "Build the tasks anew: turnwise swe build.",
            )
        return package

    def fixed(self) -> Mapping[str, bytes]:
        """The repository as it should be, all tests included."""
        return repository(self.source)

    def broken(self) -> dict[str, bytes]:
        """The repository with the bug, all tests included."""
        files = dict(self.fixed())
        for edit in self.edits:
            after = edit.apply(kept(files[edit.path]))
            if after or not edit.old:
                files[edit.path] = as_bytes(after)
            else:
                del files[edit.path]  # a file that only the repair has
        return files

    def shown(self) -> dict[str, bytes]:
        """Return the files that the agent starts from: the bug, without the tests that would show the way."""
        return {path: data for path, data in self.broken().items() if path not in self.hidden}

    def patch(self) -> str:
        """The repair as a unified diff."""
        broken, fixed, parts = self.broken(), self.fixed(), list[str]()
        for path in (edit.path for edit in self.edits):
            before, after = kept(broken.get(path, b"")), kept(fixed[path])
            parts += difflib.unified_diff(
                before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}"
            )
        return "".join(parts)

    def to_json(self) -> dict[str, Json]:
        """One JSON object, a line of tasks.jsonl."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.loads(
            json.dumps(
                {
                    **row,
                    "edits": [edit._asdict() for edit in self.edits],
                    "origin": self.origin and self.origin._asdict(),
                }
            )
        )

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Instance:
        """Back from :meth:`to_json`."""
        lists = {name: tuple(row[name]) for name in ("fail_to_pass", "pass_to_pass", "hidden")}
        if "twins" not in row:
            raise TurnwiseError(
                f"The task about {row.get('package')} has no twins of its tests: it was made by an older version.",
                "Build the tasks anew: turnwise swe build.",
            )
        origin = row["origin"]
        made = {
            "edits": tuple(Edit(**one) for one in row["edits"]),
            "origin": Package(**{**origin, "needs": tuple(origin["needs"])}) if origin else None,
        }
        judges = {
            "twins": tuple(Twin.from_json(one) for one in row["twins"]),
            "probes": tuple(Probe(*one) for one in row["probes"]),
        }
        return Instance(**{**row, **lists, **judges, **made})

    def task(self, *, review: bool = False) -> Task:
        """As the environment plays it; ``review``: a first ``submit`` can be taken back."""
        told = f"{self.issue}\n\nThe repository is in /work; its package is in {self.source.source}."
        row = {**self.to_json(), "review": review}
        del row["issue"]
        return Task(ENV, told, row, {"patch": self.patch()})


def instance_of(task: Task) -> Instance:
    """The instance that a task was made of."""
    row = {name: task.options[name] for name in Instance.__dataclass_fields__ if name != "issue"}
    return Instance.from_json({**row, "issue": task.prompt})
