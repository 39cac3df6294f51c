"""The commands for worlds of others here, and for ours elsewhere: worlds add, worlds list, worlds remove; tasks."""

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
) -> VerbResult:
    """Write tasks of a suite as rows, one JSON object a line: prompt, tools, index, seed and a hash of what is asked.

    For example: `turnwise tasks shop/easy --out tasks.jsonl --n 200`.

    Args:
        suite: Its name (`turnwise list suites`).
        out: The file that is written.
        n: How many tasks.
        split: train, dev or test.
        start: The number of the first.
    """
    from turnwise.durable import write_whole
    from turnwise.envs.offered.rows import task_rows
    from turnwise.errors import TurnwiseError
    from turnwise.tasks.core import Split, canonical

    if n < 1 or start < 0:
        raise TurnwiseError(
            f"--n {n} --start {start} names no task.", "Give --n 1 or more, --start 0 or more."
        )
    lines = [canonical(row.to_json()) for row in task_rows(suite, n, split=Split(split), start=start)]
    write_whole(out, "\n".join(lines).encode() + b"\n")
    return VerbResult(
        {"suite": suite, "tasks": n, "out": str(out)},
        lambda console: console.print(f"{n} tasks in {out}", soft_wrap=True),
    )


VERBS: dict[str, Callable[..., VerbResult]] = {"worlds": worlds, "tasks": tasks}
