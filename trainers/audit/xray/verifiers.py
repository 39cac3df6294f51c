"""Environments of verifiers: a Python module with load_environment, which has rows and a rubric. It is loaded in a sandbox alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from turnwise.errors import TurnwiseError
from turnwise.texts import read_utf8
from turnwise.tools.sandbox.core import Root
from turnwise.trainers.audit.xray.columns import rows_as_tasks
from turnwise.trainers.audit.xray.core import ProbedTask, TaskSet, XTask
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reward_calls import RewardDesk, RewardFunction, read_files
from turnwise.trainers.audit.xray.rewarded import cost, probe_rewarded

_MOST = 20_000


def read_environment(path: Path, options: XrayOptions) -> TaskSet:
    """The rows of an environment, and its rubric as the judge.

    Raises:
        TurnwiseError: the module has no load_environment, cannot be loaded, or has no rows.
    """
    if "def load_environment" not in read_utf8(path, "Name a Python file."):
        raise TurnwiseError(
            f"{path} has no function load_environment.",
            "Name a verifiers environment, or rows with --reward FILE.py:function.",
        )
    inside, found = read_files(path.resolve())
    by = RewardFunction("verifiers", inside, "", found, options.arguments, options.seconds)
    root = Root(pip=tuple(options.packages))
    with closing(RewardDesk(options.backend, root, by)) as desk:
        rows = desk.rows(_MOST)
    if not rows:
        raise TurnwiseError(
            f"load_environment of {path} has no rows.", "Give it what it needs: --args NAME=VALUE."
        )
    read = rows_as_tasks(
        str(path), [(f"{path.name}[{at}]", row) for at, row in enumerate(rows)], options.columns
    )

    def probe(tasks: Sequence[XTask]) -> list[ProbedTask]:
        return probe_rewarded(options.backend, root, by, tasks, options.line)

    return TaskSet(
        str(path), f"verifiers environment {path.name}", read.tasks, read.broken, read.total, probe, partial(cost, seconds=0.001),
        ("an answer is one message; turns with an environment that answers are not played",), ("--columns", "--with", "--args"),
    )  # fmt: skip
