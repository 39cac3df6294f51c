"""Rows (JSONL, JSON, parquet) with a reward function: TRL's, verl's, or a plain one of prompt, answer and completion."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.texts import read_utf8
from turnwise.tools.sandbox.core import Root
from turnwise.trainers.audit.xray.columns import read_rows
from turnwise.trainers.audit.xray.core import TaskSet
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reward_calls import RUNNER, RewardFunction, read_files
from turnwise.trainers.audit.xray.rewarded import cost, probe_rewarded

_A_VERDICT_S = 0.0005
COMPLETION = (
    "completion",
    "completions",
    "solution_str",
    "response",
    "output",
    "prediction",
    "model_output",
    "generated",
)
"""Parameters by which a file's reward function is known where none is named."""
_HOW = "--reward FILE.py:function, which takes (prompt, answer, completion), (completions, **columns) or (data_source, solution_str, ground_truth, extra_info)."


def read_rewarded(path: Path, options: XrayOptions) -> TaskSet:
    """Rows and their reward function.

    Raises:
        TurnwiseError: no function is named, or it is not there, or no row is a task.
    """
    by = named_function(path, options)
    read = read_rows(path, options.columns)
    return TaskSet(
        str(path),
        f"rows with {by.file}:{by.function}",
        read.tasks,
        read.broken,
        read.total,
        lambda tasks: probe_rewarded(
            options.backend, Root(pip=(*_runner(by), *options.packages)), by, tasks, options.line
        ),
        partial(cost, seconds=_A_VERDICT_S),
        uses=("--reward", "--columns", "--with"),
    )


def _runner(by: RewardFunction) -> tuple[str, ...]:
    """The runner of tests, where the function's file starts it as a program."""
    return RUNNER if b"pytest" in by.files[by.file] else ()


def named_function(path: Path, options: XrayOptions) -> RewardFunction:
    """The reward function that was named, with the files beside it; nothing of it is run."""
    if not options.reward:
        raise TurnwiseError(
            f"No reward function is named that judges the rows of {path}.", f"Name it: {_HOW}"
        )
    name, _, function = options.reward.rpartition(":")
    if not name or not function.isidentifier():
        name, function = options.reward, ""
    file = Path(name).expanduser()
    if not file.is_file():
        raise TurnwiseError(f"There is no file {name} of --reward {options.reward}.", f"Write {_HOW}")
    text = read_utf8(file, "Name a Python file.")
    try:
        parsed = ast.parse(text)
    except SyntaxError as error:
        raise TurnwiseError(
            f"{file}:{error.lineno} is no Python: {error.msg}.", "Correct it, or name another file."
        ) from None
    public = [
        one
        for one in parsed.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_")
    ]
    takes = [
        one.name
        for one in public
        if {arg.arg for arg in (*one.args.args, *one.args.kwonlyargs)} & {*COMPLETION}
    ]
    there = [one.name for one in ast.walk(parsed) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not function and (len(takes) == 1 or "compute_score" in takes):
        function = "compute_score" if "compute_score" in takes else takes[0]
    if not function:
        raise TurnwiseError(
            f"--reward {options.reward} names no function.",
            f"Write {name}:{there[-1] if there else 'FUNCTION'}.",
        )
    _known(file, parsed, function)
    inside, found = read_files(file.resolve())
    return RewardFunction("function", inside, function, found, {}, options.seconds)


def _known(file: Path, parsed: ast.Module, function: str) -> None:
    """Refuse a function that the file does not name anywhere on its top level, before a sandbox is made.

    Raises:
        NotFoundError: it is not there.
    """
    names = set[str]()
    for one in ast.walk(parsed):
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name="*"):
                return  # what it brings is not known
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    if function not in names:
        raise NotFoundError(f"function of {file} called", function, names)
