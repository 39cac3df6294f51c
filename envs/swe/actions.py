"""The agent's tools, and what they do in a sandbox."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.place import SyntaxFault, parse
from turnwise.envs.swe.suite import SuiteRun, run_suite
from turnwise.texts import EditedFile, kept, lines_of, shown
from turnwise.tools.core import Tool, ToolError, tool
from turnwise.tools.sandbox.core import MIB, PathError, Sandbox

SHELL_SECONDS = 30.0
"""Most seconds that a command of the shell may take."""
_MOST_LINES = 400
_LARGEST = 2 * MIB  # of a file that is shown or edited
_READ = 256 * 1024  # bytes of each stream, before what does not help is left out
_TELLING = re.compile(r"E  |>  |FAILED |ERROR |[\w.]*(Error|Exception)\b|_{3,} .* _{3,}$|\S+:\d+: ")
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
    """Say that the bug is repaired: tests that you do not see decide."""


TOOLS: tuple[Tool, ...] = tuple(tool(each) for each in (shell, view, search, edit, create, submit))


def run_shell(sandbox: Sandbox, command: str) -> str:
    """Return a command's output, with its exit code where that is not 0; clocks and addresses are blanked."""
    result = sandbox.exec(["bash", "-c", command.replace("\0", "")], timeout=SHELL_SECONDS, output=_READ)
    text = "\n".join(part.rstrip() for part in (result.out, result.err) if part.strip())
    for pattern, blank in _UNSTEADY:
        text = pattern.sub(blank, text)
    text = shortened(text)
    if result.timed_out or result.oom:
        return f"{text}\n[{result.ended.value}]".strip()
    return f"{text}\n[exit code {result.exit_code}]".strip() if result.exit_code else text or "(no output)"


def run_view(sandbox: Sandbox, path: str, first: int, last: int) -> str:
    try:
        lines = lines_of(shown(kept(sandbox.read(path, limit=_LARGEST))))
    except PathError:
        return "\n".join(
            f"{item.path}{'/' * (item.kind == 'folder')}" for item in sandbox.list(path, depth=2)
        )
    if first < 1 or last < first:
        raise ToolError("Lines count from 1, and `last` is not before `first`.")
    asked = lines[first - 1 : min(last, first + _MOST_LINES - 1)]
    rows = [f"{first + at:>5}  {line}" for at, line in enumerate(asked)]
    return "\n".join([*rows, f"[{len(lines)} lines in all]"])


def run_search(sandbox: Sandbox, pattern: str, path: str) -> str:
    where = shlex.quote(path.replace("\0", "") or ".")
    words = shlex.quote(pattern.replace("\0", ""))
    return run_shell(
        sandbox, f"rg --no-heading -n --sort path -m 50 -M 300 -e {words} -- {where} | head -n 100"
    )


def shortened(text: str, most: int = 12_000) -> str:
    """A long output: its beginning, its end, and between them the lines that say what failed.

    What was left out is marked. A quarter of the ``most`` characters goes to the beginning, a quarter to failures.
    """
    if len(text) <= most:
        return text
    lines = [line if len(line) <= 500 else f"{line[:500]} […]" for line in lines_of(text)]
    first = _fitting(range(len(lines)), lines, most // 4)
    last = _fitting(range(len(lines) - 1, -1, -1), lines, most // 2)
    told = [at for at in range(len(lines)) if _TELLING.match(lines[at])]
    kept = sorted(
        {*first, *last, *_fitting([at for at in told if at not in {*first, *last}], lines, most // 4)}
    )
    rows: list[str] = []
    for at, after in zip([-1, *kept], [*kept, len(lines)], strict=True):
        rows += [lines[at]] if at >= 0 else []
        rows += [f"[… {after - at - 1} lines …]"] if after - at > 1 else []
    return "\n".join(rows)


def _fitting(places: Iterable[int], lines: Sequence[str], room: int) -> list[int]:
    """The first of these lines, as many as there is room for."""
    found: list[int] = []
    for at in places:
        room -= len(lines[at]) + 1
        if room < 0:
            break
        found.append(at)
    return found


def run_edit(sandbox: Sandbox, path: str, old: str, new: str) -> str:
    file = EditedFile.read(sandbox.read(path, limit=_LARGEST))
    if file.end != "\n":
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    count = file.text.count(old) if old else 0
    if count != 1:
        told = f"`old` occurs {count} times in {path}; it must occur once." if old else "`old` is empty."
        raise ToolError(f"{told} Nothing was changed. Give more lines around it, exactly as they are.")
    _check_unicode(new)
    changed = file._replace(text=file.text.replace(old, new))
    _check(path, changed.text, before=file.text)
    sandbox.write(path, changed.to_bytes())
    line = file.text[: file.text.index(old)].count("\n") + 1
    return f"Edited {path} at line {line}."


def run_create(sandbox: Sandbox, path: str, text: str) -> str:
    _check_unicode(text)
    try:
        before = kept(sandbox.read(path, limit=_LARGEST))
    except PathError:
        before = ""
    _check(path, text, before=before)
    sandbox.write(path, text.encode())
    return f"Wrote {path}, {len(lines_of(text))} lines."


def run_review(sandbox: Sandbox, instance: Instance) -> str:
    """Report what the visible tests say about the agent's change, before it is handed in for good."""
    run = run_suite(sandbox, instance.source, canaries=False, seconds=SHELL_SECONDS)
    known = [name for name in instance.pass_to_pass if name.partition("::")[0] not in instance.hidden]
    wrong = [name for name in known if name not in run.tests or run.tests[name].status != "pass"]
    told = [f"- {name}: {_first_line(run, name)}" for name in wrong[:5]]
    head = f"Of {len(known)} tests that you can see, {len(wrong)} fail that should pass"
    end = "This is not handed in yet: go on, or submit once more as it is."
    return shortened("\n".join([f"{head}{':' if told else '.'}", *told, end]))


def _first_line(run: SuiteRun, name: str) -> str:
    found = run.tests.get(name)
    return found.detail.partition("\n")[0][:200] if found and found.detail else "it did not run"


def _check(path: str, text: str, *, before: str) -> None:
    """That a Python file parses, unless it did not before: then what it has may be half of a repair."""
    if not path.endswith(".py") or not isinstance(wrong := parse(text), SyntaxFault):
        return
    if not wrong.line or isinstance(parse(before), SyntaxFault):
        return
    lines = lines_of(shown(text))
    near = range(max(wrong.line - 2, 1), min(wrong.line + 1, len(lines)) + 1)
    rows = [f"{'>' if at == wrong.line else ' '}{at:>5}  {lines[at - 1][:200]}" for at in near]
    raise ToolError(
        "\n".join([f"Nothing was changed: {path} would not parse, line {wrong.line}: {wrong.why}.", *rows])
    )


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError("The text is not valid Unicode. Nothing was changed.") from None
