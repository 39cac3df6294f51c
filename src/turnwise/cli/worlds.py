"""The commands for worlds of others here, and for ours elsewhere: worlds add, worlds list, worlds remove; tasks, panel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from turnwise.cli.answer import VerbResult, table

if TYPE_CHECKING:
    from turnwise.envs.foreign.named import NamedWorld

ACTIONS = ("add", "list", "remove")


def worlds(
    action: str,
    /,
    name: str = "",
    *,
    requires: tuple[str, ...] = (),
    lock: Path | None = None,
    python: str = "",
) -> VerbResult:
    """Keep packages of others, each in an interpreter of its own: `worlds add NAME`, `worlds list`, `worlds remove NAME`.

    For example: `turnwise worlds add reasoning-gym`.

    Args:
        action: add, list or remove.
        name: add, remove: which world, as `turnwise worlds list` has it, or a name of your own with --requires.
        requires: add: what it holds, as pip takes it (gem-llm==0.1.0); the catalogue's packages if not given.
        lock: add: a lock file of another machine; exactly what it lists is installed.
        python: add: the interpreter that it is made from; Turnwise's own if not given.
    """
    from turnwise.envs.foreign import named
    from turnwise.errors import NotFoundError, TurnwiseError

    if action not in ACTIONS:
        raise NotFoundError("action", action, ACTIONS)
    if action == "list":
        rows = [_row(each) for each in named.worlds()]
        return VerbResult(rows, table(rows))
    if not name:
        raise TurnwiseError(f"Which world shall worlds {action}?", f"turnwise worlds {action} NAME")
    if action == "remove":
        folder = named.remove(name)
        return VerbResult(
            {"removed": name, "folder": str(folder)}, lambda console: console.print(f"removed {folder}")
        )
    made = named.add(
        name, requires=requires, lock=lock, python=python, told=lambda line: print(line, file=sys.stderr)
    )
    row = _row(made) | {"lock": str(made.folder / named.LOCK)}
    return VerbResult(
        row, lambda console: console.print(f"✓ {made.name}: {made.megabytes} MB, {row['lock']}")
    )


def _row(world: NamedWorld) -> dict[str, Any]:
    state = "ready" if world.ready else "not added"
    return {
        "name": world.name,
        "state": f"{state}; lacks {world.needs}" if world.needs else state,
        "requires": " ".join(world.requires),
        "python": world.python,
        "megabytes": world.megabytes,
        "folder": str(world.folder) if world.ready else "",
    }


def tasks(
    suite: str,
    /,
    *,
    out: Path,
    n: int = 100,
    split: Literal["train", "dev", "test"] = "train",
    start: int = 0,
    form: Literal["rows", "verifiers", "harbor"] = "rows",
) -> VerbResult:
    """Write tasks of a suite for other trainers: as rows, one JSON object a line (prompt, tools, index, seed, and a hash of
    what is asked), or as a package of theirs.

    For example: `turnwise tasks shop/easy --out tasks.jsonl --n 200`.

    Args:
        suite: Its name (`turnwise list suites`).
        out: The file that is written; with another form than rows, the folder.
        n: How many tasks.
        split: train, dev or test.
        start: The number of the first.
        form: rows; verifiers, a package for verifiers v1, in which Turnwise plays in a process of its own; or harbor, a folder of
            task folders, in which the world is a container of its own.
    """
    from turnwise.envs.offered.harbor_folders import write_harbor_folders
    from turnwise.envs.offered.rows import write_rows
    from turnwise.envs.offered.verifiers_package import write_verifiers_package
    from turnwise.errors import TurnwiseError
    from turnwise.tasks.core import Split

    if n < 1 or start < 0:
        raise TurnwiseError(
            f"--n {n} --start {start} names no task.", "Give --n 1 or more, --start 0 or more."
        )
    writers = {"rows": write_rows, "verifiers": write_verifiers_package, "harbor": write_harbor_folders}
    writers[form](suite, out, n, split=Split(split), start=start)
    return VerbResult(
        {"suite": suite, "tasks": n, "out": str(out)},
        lambda console: console.print(f"{n} tasks in {out}", soft_wrap=True),
    )


def panel(
    name: str,
    /,
    *suites: str,
    out: Path,
    n: int = 20,
    split: Literal["train", "dev", "test"] = "test",
    version: int = 1,
    about: str = "",
) -> VerbResult:
    """Write a panel: the first tasks of several suites, with a hash of each, which `turnwise eval panel/FILE.json` plays as long as none has changed.

    For example: `turnwise panel mine shop/easy lab/easy --n 50 --out mine-1.json`.

    Args:
        name: What it is called.
        suites: Their names (`turnwise list suites`).
        out: The file that is written.
        n: How many tasks of each.
        split: train, dev or test.
        version: Of the panel: whatever changes in it makes a new one.
        about: A sentence on what it is for.
    """
    from turnwise.envs.panels import make_panel, write_panel
    from turnwise.tasks.core import Split

    made = make_panel(name, suites, n, split=Split(split), version=version, about=about)
    write_panel(made, out)
    tasks = sum(len(part.tasks) for part in made.parts)
    return VerbResult(
        {"panel": str(made), "suites": len(made.parts), "tasks": tasks, "out": str(out)},
        lambda console: console.print(f"{made}: {tasks} tasks in {out}", soft_wrap=True),
    )


VERBS: dict[str, Callable[..., VerbResult]] = {"worlds": worlds, "tasks": tasks, "panel": panel}
