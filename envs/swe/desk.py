"""The agent's tools, and what they do in a sandbox."""

from __future__ import annotations

import re
import shlex

from turnwise.tools.core import Tool, ToolError, tool
from turnwise.tools.sandbox.core import MIB, PathError, Sandbox

_MOST_LINES = 400
_UNSTEADY = (
    (re.compile(r"\bin \d+\.\d+s\b"), "in …s"),  # pytest's clock
    (re.compile(r"0x[0-9a-f]{8,}"), "0x…"),  # addresses
)


def shell(command: str) -> None:
    """Run a bash command in the repository; what it leaves running is ended with it."""


def view(path: str, first: int = 1, last: int = 200) -> None:
    """Show lines of a file, numbered, or what is in a folder."""


def search(pattern: str, path: str = ".") -> None:
    """Find a regular expression in the files of a folder."""


def edit(path: str, old: str, new: str) -> None:
    """Replace a piece of text that occurs exactly once in a file."""


def create(path: str, text: str) -> None:
    """Write a whole file."""


def submit() -> None:
    """Say that the bug is repaired. Ends the episode; tests that you do not see decide."""


TOOLS: tuple[Tool, ...] = tuple(tool(each) for each in (shell, view, search, edit, create, submit))


def run_shell(sandbox: Sandbox, command: str, seconds: float = 30.0) -> str:
    """What a command printed, with its exit code where that is not 0; clocks and addresses are blanked."""
    result = sandbox.exec(["bash", "-c", command.replace("\0", "")], timeout=seconds)
    text = "\n".join(part.rstrip() for part in (result.out, result.err) if part.strip())
    for pattern, blank in _UNSTEADY:
        text = pattern.sub(blank, text)
    if result.timed_out or result.oom:
        return f"{text}\n[{result.ended.value}]".strip()
    return f"{text}\n[exit code {result.exit_code}]".strip() if result.exit_code else text or "(no output)"


def run_view(sandbox: Sandbox, path: str, first: int, last: int) -> str:
    try:
        lines = read_text(sandbox, path).splitlines()
    except PathError:
        return "\n".join(
            f"{item.path}{'/' * (item.kind == 'folder')}" for item in sandbox.list(path, depth=2)
        )
    if first < 1 or last < first:
        raise ToolError("Lines count from 1, and `last` is not before `first`.")
    shown = lines[first - 1 : min(last, first + _MOST_LINES - 1)]
    rows = [f"{first + at:>5}  {line}" for at, line in enumerate(shown)]
    return "\n".join([*rows, f"[{len(lines)} lines in all]"])


def run_search(sandbox: Sandbox, pattern: str, path: str) -> str:
    where = shlex.quote(path.replace("\0", "") or ".")
    words = shlex.quote(pattern.replace("\0", ""))
    return run_shell(
        sandbox, f"rg --no-heading -n --sort path -m 50 -M 300 -e {words} -- {where} | head -n 100"
    )


def run_edit(sandbox: Sandbox, path: str, old: str, new: str) -> str:
    text = read_text(sandbox, path)
    count = text.count(old) if old else 0
    if count != 1:
        told = f"`old` occurs {count} times in {path}; it must occur once." if old else "`old` is empty."
        raise ToolError(f"{told} Nothing was changed. Give more lines around it, exactly as they are.")
    sandbox.write(path, _said(text.replace(old, new)))
    line = text[: text.index(old)].count("\n") + 1
    return f"Edited {path} at line {line}."


def run_create(sandbox: Sandbox, path: str, text: str) -> str:
    sandbox.write(path, _said(text))
    return f"Wrote {path}, {len(text.splitlines())} lines."


def read_text(sandbox: Sandbox, path: str) -> str:
    """A file as text.

    Raises:
        PathError: there is none.
    """
    return sandbox.read(path, limit=2 * MIB).decode("utf-8", "replace")


def _said(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("The text is not valid Unicode. Nothing was changed.") from None
