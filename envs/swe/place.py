"""The initial sandbox of the agent, and the part of a file that a bug is in."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
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
    """Why and where a program does not parse; line 0 where nobody can say."""

    line: int
    why: str


def parse(text: str) -> ast.Module | SyntaxFault:
    """Anybody's program as a tree, or why it has none; what is longer than 256 KiB is not read.

    Text that is nested deep or very long would take minutes or end this process otherwise.
    """
    if len(text) > _MOST:
        return SyntaxFault(0, "it is too long")
    try:
        return ast.parse(text)
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
