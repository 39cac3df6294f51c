"""The initial sandbox of the agent, and the functions that a bug is in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.source import SourceText
from turnwise.texts import kept, shown
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.files import Layer

_MOST = 256 * 2**10


def image_of(instance: Instance, files: Mapping[str, bytes] | None = None) -> SandboxImage:
    """The repository as it is shown (or these files), without any history; the package can be imported."""
    folders = ["/work", *([f"/work/{instance.source.path}"] if instance.source.path else [])]
    variables = {
        "PYTHONPATH": ":".join(folders),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:hypothesispytest -c /dev/null --rootdir=/work",
    }
    return SandboxImage(
        instance.source.root, (Layer.of(dict(instance.shown() if files is None else files)),), variables
    )


class SyntaxFault(NamedTuple):
    """Reason and place of a program's failure to parse; line 0 where nobody can say."""

    line: int
    why: str


def parse(text: str) -> ast.Module | SyntaxFault:
    """Anybody's program as a tree, or why it has none; what is longer than 256 KiB is not read.

    Text that is nested deep or very long would take minutes or end this process otherwise.
    """
    if len(text) > _MOST:
        return SyntaxFault(0, "it is too long")
    try:
        return ast.parse(shown(text))
    except SyntaxError as error:
        return SyntaxFault(error.lineno or 0, str(error.msg))
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxFault(0, str(error) or "it is nested too deep")


def definition(text: str, name: str) -> str:
    """A function's or class's text by its dotted name; the whole text outside of functions, nothing where it is gone."""
    node: ast.AST | SyntaxFault = parse(text)
    if isinstance(node, SyntaxFault):
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


def is_changed(before: str, after: str, name: str) -> bool:
    """Say whether a definition is another than before, in a file that still parses.

    Without a name, the whole file is compared.
    """
    return not isinstance(parse(after), SyntaxFault) and definition(before, name) != definition(after, name)


def repair_places(task: Instance) -> frozenset[tuple[str, str]]:
    """Files and functions of a repair: those that the true one changes, and ``task.where``.

    That is the first function that was changed, or one that was not told of a change: to tell it is a repair as well.
    """
    files = task.broken()
    homes = {
        path
        for path, data in files.items()
        if path.endswith(".py") and task.source.is_source(path)
        if task.where in functions_of(kept(data))
    }
    told = homes & {task.edit.path} or homes
    return changed_places(task, {edit.path for edit in task.edits}) | {(path, task.where) for path in told}


def changed_places(task: Instance, paths: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The functions of these files that the true repair changes; what is outside of functions only where that is all.

    ``task.where`` is one of them if its file is among them.
    """
    found: set[tuple[str, str]] = {(task.edit.path, task.where)} if task.edit.path in paths else set()
    broken, fixed = task.broken(), task.fixed()
    for path in paths:
        before, after = (functions_of(kept(files.get(path, b""))) for files in (broken, fixed))
        found |= {
            (path, name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        }
    return frozenset({(path, name) for path, name in found if name} or found)


@lru_cache(maxsize=512)
def functions_of(text: str) -> Mapping[str, str]:
    """The functions that are in no other, by dotted name, and under no name what is outside of them; nothing of what does not parse."""
    try:
        source = SourceText(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, str] = {"": ""}
    rest = source.text
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_inside(source, node):
            function, name = source.of(node), source.name_of(node)
            rest = rest.replace(function, "", 1)
            found[name] = f"{found.get(name, '')}{function}"
    return {**found, "": rest}


def _is_inside(source: SourceText, node: ast.AST) -> bool:
    at = source.parents.get(node)
    while at is not None:
        if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        at = source.parents.get(at)
    return False
