"""Issues as a user would write them: what was called, what came out, and what should have.

Made of a failing test's source and its failure, never of the bug: it names no line and no file of the package.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.suite import TestResult
from turnwise.envs.swe.twins import function_of
from turnwise.texts import kept, lines_of, shown

_LINES = 24
_HELPER = 12  # lines of a function or class beside the tests that an example is shown with
_HIDDEN = re.compile(r"0x[0-9a-f]{6,}|/work/[\w/.-]+")


def write_issue(
    package: Package,
    files: Mapping[str, bytes],
    failures: Mapping[str, TestResult],
    *,
    removed: str = "",
    told: str | None = None,
    most: int = 1,
    first: Collection[str] = (),
) -> str:
    """The text of an issue; empty where no failing test can be shown, for then nobody could say what is wrong.

    ``removed`` is the function that was taken out, where it was. ``told``: it never worked, and this is what a changelog
    says of it, or nothing. ``most``: how many failing test functions are shown, those of ``first`` before others.
    """
    names = sorted(
        failures,
        key=lambda name: (name not in first, not failures[name].detail, len(failures[name].detail), name),
    )
    shown = ((name, _example(files, name, failures[name].line)) for name in names)
    name, example = next(((name, text) for name, text in shown if text), ("", ""))
    if not example:
        return ""
    said = said_of(failures[name].detail)
    headline = said.splitlines()[0][:100] if said else "wrong result"
    if removed:
        title = f"{package.name}: `{removed}` is not implemented"
        opening = f"`{removed}` has a signature and a description, but calling it raises NotImplementedError."
    else:
        title = f"{package.name}: {headline}"
        opening = f"Something that used to work in {package.name} {package.version} does not any more."
    if told is not None:
        opening = f"{package.name} {package.version} does not do here what it should."
        opening += f" What is wanted, in short:\n\n> {told}" if told else ""
    parts = [f"# {title}", opening, "To see it:", f"```python\n{example}\n```"]
    if said:
        parts += ["What happens:", f"```\n{said}\n```"]
    seen = {function_of(name)}
    for other in names:
        if function_of(other) in seen or len(seen) >= most:
            continue
        seen.add(function_of(other))
        if more := _example(files, other, failures[other].line):
            parts += ["And:", f"```python\n{more}\n```", f"```\n{said_of(failures[other].detail)}\n```"]
    again = " again" if told is None else ""
    if len(failures) > 1:
        parts.append(
            f"{len(failures)} checks of ours are affected; they should pass{again}, and no others may fail."
        )
    else:
        parts.append(f"This should work{again}, and nothing else may change.")
    return "\n\n".join(parts)


def leaks(issue: str, texts: Sequence[str]) -> bool:
    """Say whether an issue shows a line of these texts of the repair.

    Lines too short to tell anything do not count.
    """
    shown = " ".join(issue.split())
    lines = (" ".join(line.split()) for text in texts for line in text.splitlines())
    return any(len(line) >= 12 and line in shown for line in lines)


def said_of(detail: str) -> str:
    """Return pytest's message on a failure, without addresses and paths."""
    lines = [_HIDDEN.sub("…", line)[:160] for line in detail.strip().splitlines()]
    return "\n".join(lines[:_LINES])


def _example(files: Mapping[str, bytes], test: str, line: int) -> str:
    """The body of a test, without its name; empty where it cannot be found. What fails at ``line`` is shown in any case."""
    path, *names = test.partition("[")[0].split("::")
    found = _find(files, path, names)
    if found is None:
        return ""
    path, node = found
    begin = node.body[0]
    first = min([begin.lineno, *(mark.lineno for mark in getattr(begin, "decorator_list", []))])
    lines = lines_of(shown(kept(files[path])))[first - 1 : node.end_lineno]
    if len(lines) > _LINES and _is_in_helper(node, line):
        return ""  # it would not show what was called
    case = test.partition("[")[2].removesuffix("]")
    told = [f"# case: {case}"[:120]] if case else []
    ends = [
        item.end_lineno or 0 for item in ast.walk(node) if isinstance(item, ast.stmt) and item.lineno == line
    ]
    last = (min(ends) if ends else line) - first + 1  # of the statement that fails, from the body's beginning
    window = _window(textwrap.dedent("\n".join(lines)).splitlines(), last, _LINES - len(told))
    return "\n".join([*helpers_of(files[path], "\n".join(window)), *told, *window])


def helpers_of(data: bytes, example: str) -> list[str]:
    """Lines of the short functions and classes of a test file that an example names, so that it can be run; no fixtures."""
    lines, found = lines_of(shown(kept(data))), list[str]()
    for node in _tree(data).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.decorator_list:
            continue
        is_test = node.name.lower().startswith("test") or node.name.endswith(("Test", "Tests"))
        body = lines[node.lineno - 1 : node.end_lineno]
        if not is_test and len(body) <= _HELPER and re.search(rf"\b{node.name}\b", example):
            found += [*body, "", ""]
    return found


def _is_in_helper(node: ast.FunctionDef, line: int) -> bool:
    """Say whether a line is in a function inside of this one."""
    inner = (item for item in ast.walk(node) if item is not node and isinstance(item, ast.FunctionDef))
    return any(item.lineno <= line <= (item.end_lineno or 0) for item in inner)


def _window(lines: Sequence[str], last: int, most: int) -> list[str]:
    """At most so many lines, of which the ``last`` that must be seen is one; what is left out is marked."""
    if len(lines) <= most:
        return list(lines)
    if last < most:
        return [*lines[: most - 1], "# …"]
    begin = last - most + 2
    return ["# …", *lines[begin:last], *(["# …"] if last < len(lines) else [])]


def _find(files: Mapping[str, bytes], path: str, names: Sequence[str]) -> tuple[str, ast.FunctionDef] | None:
    """The function of a test and the file it is in: of its class, or of one that this one inherits from by name."""
    node: ast.AST | None = _tree(files.get(path, b""))
    *classes, name = names
    for part in classes:
        node = _inside(node, part)
    found = _inside(node, name)
    if isinstance(found, ast.FunctionDef):
        return path, found
    if not isinstance(node, ast.ClassDef):
        return None
    bases = {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}
    for other in [path, *sorted(files)]:
        if PurePosixPath(other).parent != PurePosixPath(path).parent or not other.endswith(".py"):
            continue
        for item in ast.walk(_tree(files[other])):
            if isinstance(item, ast.ClassDef) and item.name in bases:
                found = _inside(item, name)
                if isinstance(found, ast.FunctionDef):
                    return other, found
    return None


def _inside(node: ast.AST | None, name: str) -> ast.AST | None:
    return next((item for item in getattr(node, "body", []) if getattr(item, "name", "") == name), None)


@lru_cache(maxsize=64)
def _tree(data: bytes) -> ast.Module:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError):
        return ast.Module([], [])
