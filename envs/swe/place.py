"""Where tasks come from, what the agent's sandbox starts as, and which part of a file a bug is in."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from turnwise.envs.swe.guard import parse
from turnwise.envs.swe.instance import Instance, in_split, load_instances
from turnwise.envs.swe.packages import ROOT, tasks_file
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task
from turnwise.tools.sandbox.core import Image
from turnwise.tools.sandbox.files import Layer

_HERE = Path(__file__).parent


def draw(
    rng: Random,
    split: Split,
    *,
    tasks: str = "small",
    packages: Sequence[str] = (),
    operators: Sequence[str] = (),
    failing: Sequence[int] = (1, 1_000_000),
) -> Task:
    """One of the tasks of a file: ``small`` (comes with Turnwise), ``sample`` (a few of PyPI packages), ``built``, ``adopted``,
    or a path.

    ``failing``: how many tests fail, at least and at most: few are harder to find.

    Raises:
        EnvError: none is as it should be.
    """
    own = {
        "small": _HERE / "small.jsonl",
        "sample": _HERE / "sample.jsonl",
        "built": tasks_file(),
        "adopted": tasks_file("adopted"),
    }
    found = [
        one
        for one in in_split(load_instances(own.get(tasks) or Path(tasks)), split)
        if (not packages or one.package in packages)
        and (not operators or one.operator in operators)
        and failing[0] <= len(one.fail_to_pass) <= failing[1]
    ]
    if not found:
        raise EnvError(f"No task of {tasks!r} fits, in {split.value}.", "Build more, or ask for less.")
    return rng.choice(found).task()


def image_of(instance: Instance, files: Mapping[str, bytes] | None = None) -> Image:
    """The repository as it is shown (or these files), without any history; the package can be imported."""
    folders = ["/work", *([f"/work/{instance.source.path}"] if instance.source.path else [])]
    variables = {
        "PYTHONPATH": ":".join(folders),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:hypothesispytest -c /dev/null --rootdir=/work",
    }
    return Image(ROOT, (Layer.of(dict(instance.shown() if files is None else files)),), variables)


def narrowed(instance: Instance, text: str) -> tuple[str, str]:
    """The repair as text that occurs once in the broken file: whole lines, as many around it as that takes."""
    edit = instance.edit
    start, end = edit.start, edit.start + len(edit.new)
    while True:
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1
        after = text.find("\n", end)
        end = len(text) if after < 0 else after + 1
        old = text[start:end]
        if text.count(old) == 1 or len(old) == len(text):
            at = edit.start - start
            return old, old[:at] + edit.old + old[at + len(edit.new) :]


def definition(text: str, name: str) -> str:
    """A function's or class's text by its dotted name; the whole text outside of functions, nothing where it is gone."""
    node: ast.AST | None = parse(text)
    if node is None:
        return ""
    for part in name.split(".") if name else ():
        found = [
            item for item in ast.walk(node) if getattr(item, "name", "") == part and hasattr(item, "body")
        ]
        if not found:
            return ""
        node = found[0]
    try:
        return ast.dump(node)
    except RecursionError:
        return ""
