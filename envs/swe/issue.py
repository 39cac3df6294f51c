"""What a user would write about a bug: what was called, what came out, what should have.

Made of a failing test's source and its failure, never of the bug: it names no line and no file of the package.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.suite import TestResult

_LINES = 24
_HIDDEN = re.compile(r"0x[0-9a-f]{6,}|/work/[\w/.-]+")


def write_issue(
    package: Package, files: Mapping[str, bytes], failures: Mapping[str, TestResult], *, removed: str = ""
) -> str:
    """The text of an issue. ``removed`` is the function that was taken out, where it was."""
    names = sorted(failures, key=lambda name: (len(failures[name].detail), name))
    name = next((name for name in names if failures[name].detail), names[0])
    said = _said(failures[name].detail)
    headline = said.splitlines()[0][:100] if said else "wrong result"
    if removed:
        title = f"{package.name}: `{removed}` is not implemented"
        opening = f"`{removed}` has a signature and a description, but calling it raises NotImplementedError."
    else:
        title = f"{package.name}: {headline}"
        opening = f"Something that used to work in {package.name} {package.version} does not any more."
    parts = [f"# {title}", opening]
    if example := _example(files, name):
        parts += ["To see it:", f"```python\n{example}\n```"]
    if said:
        parts += ["What happens:", f"```\n{said}\n```"]
    if len(failures) > 1:
        parts.append(
            f"{len(failures)} checks of ours are affected; they should pass again, and no others may fail."
        )
    else:
        parts.append("This should work again, and nothing else may change.")
    return "\n\n".join(parts)


def leaks(issue: str, texts: Sequence[str]) -> bool:
    """Whether an issue shows a line of the repair: one of these texts, but for what is too short to tell anything."""
    shown = " ".join(issue.split())
    lines = (" ".join(line.split()) for text in texts for line in text.splitlines())
    return any(len(line) >= 12 and line in shown for line in lines)


def _said(detail: str) -> str:
    lines = [_HIDDEN.sub("…", line)[:160] for line in detail.strip().splitlines()]
    return "\n".join(lines[:_LINES])


def _example(files: Mapping[str, bytes], test: str) -> str:
    """The body of a test, without its name; empty where that is long or cannot be found."""
    path, *names = test.partition("[")[0].split("::")
    try:
        node: ast.AST = ast.parse(files[path])
    except (KeyError, SyntaxError):
        return ""
    for name in names:
        inside = getattr(node, "body", [])
        found = next((item for item in inside if getattr(item, "name", "") == name), None)
        if found is None:
            return ""
        node = found
    if not isinstance(node, ast.FunctionDef):
        return ""
    lines = files[path].decode("utf-8", "replace").splitlines()[node.body[0].lineno - 1 : node.end_lineno]
    case = test.partition("[")[2].removesuffix("]")
    told = [f"# case: {case}"[:120]] if case else []
    return "\n".join([*told, *textwrap.dedent("\n".join(lines)).splitlines()[:_LINES]])
