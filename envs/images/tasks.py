"""Rows of SWE-bench's kind and folders of Harbor's and Terminal-Bench's as tasks, and suites of them that a command names.

``swebench:FILE.jsonl`` is the suite of a file's rows, ``harbor:FOLDER`` that of a task folder or of all in a folder: the whole
list, in order, the same in each split.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from turnwise.envs.swe.importers import FolderTask, Foreign, judge_script, read_folder, read_instances
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "turnwise/Image-v0"
_TESTBED = "/testbed"
_SETUP = """set -e
rm -rf .git
{bug}
git init -q . && git add -A -f . && git commit -q -m "as it is"
"""
_APPLY = "git apply {reverse}--whitespace=nowarn - <<'END_OF_THE_PATCH'\n{patch}\nEND_OF_THE_PATCH"
_JUDGE = """
if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate; conda activate testbed; fi
{tests}
{command} 2>&1
"""


class ImageTask(NamedTuple):
    """Parts of a task and its image.

    ``context`` is a folder with a Dockerfile, or empty: then ``reference`` is an image that is there.

    ``workdir``: the image's own if empty. ``setup`` runs before the agent, ``judge`` afterwards with ``tests`` at /tests; both
    are bash. ``fail_to_pass`` and ``pass_to_pass`` are looked up in what ``judge`` prints; without them its last line is the
    reward. ``seconds`` are the judge's.
    """

    reference: str
    context: str
    workdir: str
    setup: str
    tests: Mapping[str, bytes]
    judge: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    seconds: float
    solution: str

    def task(self, prompt: str) -> Task:
        tests = {path: base64.b64encode(data).decode() for path, data in self.tests.items()}
        row: dict[str, Json] = {**self._asdict(), "tests": tests}
        return Task(ENV, prompt, row, {"solution": row.pop("solution")})


@lru_cache(maxsize=64)
def _of(text: str) -> ImageTask:
    row = json.loads(text)
    tests = {path: base64.b64decode(data) for path, data in row["tests"].items()}
    lists = {name: tuple(row[name]) for name in ("fail_to_pass", "pass_to_pass")}
    return ImageTask(**{**row, **lists, "tests": tests})


def image_task_of(task: Task) -> ImageTask:
    """Return the parts that a task was made of."""
    return _of(json.dumps({**{name: task.options[name] for name in ImageTask._fields[:-1]}, **task.gold}))


def draw_task(
    rng: Random, split: Split, *, kind: Literal["rows", "folders"], path: str, index: int = -1
) -> Task:
    """Task ``index`` of a file of rows or of task folders; any where it is not given. Splits are the same.

    Raises:
        TurnwiseError: it is no such file or folder; says what it is.
    """
    found = _tasks(kind, path)
    return found[index] if index >= 0 else rng.choice(found)


def rows_suite(path: str) -> Suite:
    """The suite ``swebench:PATH``: rows as SWE-bench, SWE-smith and SWE-Gym publish them, as JSONL."""
    about = f"The instances of {path}, each in its own image."
    return Suite(
        f"swebench:{path}", ENV, about, {"kind": "rows", "path": path}, len(_tasks("rows", path)), listed=True
    )


def folders_suite(path: str) -> Suite:
    """The suite ``harbor:PATH``: a task folder of Harbor or Terminal-Bench, or a folder of such."""
    about, knobs = f"The task folders of {path}, each in its own image.", {"kind": "folders", "path": path}
    return Suite(f"harbor:{path}", ENV, about, knobs, len(_tasks("folders", path)), listed=True)


@lru_cache(maxsize=8)
def _tasks(kind: Literal["rows", "folders"], path: str) -> tuple[Task, ...]:
    where = Path(path).expanduser().resolve()
    if kind == "rows":
        if where.is_dir():
            raise TurnwiseError(
                f"{path} is a folder, not a file of rows.", f"For task folders write harbor:{path}"
            )
        return tuple(of_row(row).task(_told(row)) for row in read_instances(where))
    return tuple(of_folder(each, task).task(task.instruction) for each, task in _folders(where))


def _folders(where: Path) -> list[tuple[Path, FolderTask]]:
    if where.is_file():
        raise TurnwiseError(
            f"{where} is a file, not a task's folder.", f"For JSONL of rows write swebench:{where}"
        )
    chosen = [each for each in (where, *sorted(where.glob("*"))) if _is_task(each)]
    if not chosen:
        there = (
            ", ".join(sorted(path.name for path in where.glob("*"))[:6])
            if where.is_dir()
            else "it does not exist"
        )
        raise TurnwiseError(
            f"{where} is no task and holds none: a task's folder has task.toml (Harbor) or task.yaml (Terminal-Bench); "
            f"here: {there or 'nothing'}.",
            "Name a task's folder, or the folder that tasks' folders are in.",
        )
    return [(each, read_folder(each)) for each in chosen]


def _is_task(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("task.toml", "task.yaml"))


def of_folder(folder: Path, task: FolderTask) -> ImageTask:
    """A task folder: its Dockerfile's image, its tests as they are, the reward that its script writes."""
    nested = folder / "environment"
    context = "" if task.image else str(nested if nested.is_dir() else folder)
    return ImageTask(
        task.image, context, "", "", task.tests, judge_script(task), (), (), task.seconds, task.solution
    )  # fmt: skip


def of_row(row: Foreign) -> ImageTask:
    """A row: the repository in the image's ``/testbed``, without its history, which may hold the repair."""
    bug = _APPLY.format(reverse="", patch=row.patch) if row.reverse else ""
    tests: dict[str, bytes] = {}
    put = "" if row.reverse else _APPLY.format(reverse="", patch=row.test_patch)
    files = " ".join(path for path in row.test_files if path.endswith(".py"))
    command = row.test_command or f"python -m pytest -rA --tb=no -p no:cacheprovider {files}"
    return ImageTask(
        reference=row.image,
        context="",
        workdir=_TESTBED,
        setup=_SETUP.format(bug=bug),
        tests=tests,
        judge=_JUDGE.format(tests=_put_back(row) + put, command=command),
        fail_to_pass=row.fail_to_pass,
        pass_to_pass=row.pass_to_pass,
        seconds=1800.0,
        solution=_APPLY.format(reverse="--reverse " if row.reverse else "", patch=row.patch),
    )


def _put_back(row: Foreign) -> str:
    """Test files as they were in the first commit, which is the image's; a new one is removed."""
    return "".join(
        f"git checkout -q $(git rev-list --max-parents=0 HEAD) -- {path} 2>/dev/null || rm -f {path}\n"
        for path in row.test_files
    )


def _told(row: Foreign) -> str:
    return f"{row.issue}\n\nThe repository is in {_TESTBED}. Change its code, not its tests; then submit."
