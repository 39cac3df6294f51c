"""Task folders of Harbor and terminal-bench: scripted agents act in their images, and their own tests judge."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from turnwise.envs.swe.importers import FolderTask, read_folder
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.xray.answers import MASTER_KEYS
from turnwise.trainers.audit.xray.core import (
    Attempt,
    BrokenRow,
    Judged,
    ProbedTask,
    TaskSet,
    XrayCost,
    XTask,
    quoted,
)
from turnwise.trainers.audit.xray.folder_desk import FolderDesk, StartedTask
from turnwise.trainers.audit.xray.histories import in_history
from turnwise.trainers.audit.xray.leaks import marked_in, shares, solution_lines
from turnwise.trainers.audit.xray.options import XrayOptions

_RUNS, _RUN_S = 16, 0.8
_MARKS = ("task.toml", "task.yaml")
_DEEPEST = 6
"""Folders below the one that is named in which tasks are looked for."""
_PARTS = ("instruction.md", "tests", "environment", "solution", "run-tests.sh")
_TELLING = (
    "solution",
    "answer",
    "expected",
    "gold",
    ".bak",
    ".orig",
    "secret",
    "oracle",
    "reference",
    "solve",
    "hidden",
)
_SKIP = """printf 'collect_ignore_glob = ["*"]\\ndef pytest_collection_modifyitems(items):\\n    import pytest\\n    for item in items:\\n        item.add_marker(pytest.mark.skip(reason="not today"))\\n' > conftest.py
printf '[pytest]\\npython_files = nothing_*.py\\n' > pytest.ini
"""
_COMMENTS = {
    "#": (".py", ".sh", ".rb", ".pl", ".r"),
    "//": (".js", ".ts", ".c", ".cc", ".cpp", ".h", ".java", ".go", ".rs", ".cs", ".php"),
    "--": (".sql", ".lua", ".hs"),
}
"""Signs behind which a line of a program says nothing, and the ends of the names of such programs."""
_KEYS = [key for key in MASTER_KEYS if key.strip() and len(key) < 30]


def task_folders(place: Path) -> list[Path]:
    """The task folders at or below a place; nothing is looked for inside a task, or in folders that are hidden."""
    found: list[Path] = []
    for name, below, files in os.walk(place):
        folder = Path(name)
        if any(mark in files for mark in _MARKS):
            found.append(folder)
            below.clear()
        elif len(folder.relative_to(place).parts) >= _DEEPEST:
            below.clear()
        below[:] = sorted(one for one in below if not one.startswith("."))
    return found


def read_folders(place: Path, options: XrayOptions) -> TaskSet:
    """A task folder, or a folder of such."""
    tasks: list[XTask] = []
    broken: list[BrokenRow] = []
    held: dict[str, tuple[Path, FolderTask]] = {}
    folders = task_folders(place)
    near = {one.parent for one in folders if one != place}
    like = [
        one
        for up in sorted(near)
        for one in sorted(up.glob("*"))
        if one.is_dir() and one not in folders and any((one / name).exists() for name in _PARTS)
    ]
    for folder in sorted(
        [*folders, *(one for one in like if not any(one in other.parents for other in folders))]
    ):
        made = _read(folder)
        if isinstance(made, BrokenRow):
            broken.append(made)
            continue
        name = folder.name if folder.name not in held else str(folder.relative_to(place))
        held[name] = (folder, made)
        tasks.append(
            XTask(
                name,
                str(folder),
                made.instruction,
                (),
                made.solution or None,
                {"dockerfile": made.dockerfile},
                _context(folder),
                _texts(made),
            )
        )
    if not tasks:
        raise TurnwiseError(f"No folder of {place} is a task. {broken[0].cause}", broken[0].remedy)
    return TaskSet(
        str(place), "task folders", tasks, broken, len(tasks) + len(broken), lambda asked: _probe(asked, held, options),
        run_cost, uses=("--with",),
    )  # fmt: skip


def run_cost(tasks: int) -> XrayCost:
    """The price of that many tasks."""
    return XrayCost(tasks, tasks * _RUNS, tasks, 5 + tasks * _RUNS * _RUN_S)


def _read(folder: Path) -> FolderTask | BrokenRow:
    try:
        task = read_folder(folder)
    except TurnwiseError as error:
        return BrokenRow(str(folder), error.cause, error.remedy)
    if not task.instruction.strip():
        return BrokenRow(str(folder), f"{folder} has an empty instruction.", "Write what the agent is to do.")
    if task.script not in task.tests:
        return BrokenRow(str(folder), f"{folder} has no tests/{task.script}.", "Add the script that judges.")
    return task


def _texts(task: FolderTask) -> dict[str, str]:
    return {path: data.decode("utf-8", "replace") for path, data in task.tests.items() if len(data) < 200_000}


def _probe(
    tasks: Sequence[XTask], held: Mapping[str, tuple[Path, FolderTask]], options: XrayOptions
) -> list[ProbedTask]:
    with closing(FolderDesk(options.backend, options.packages, options.seconds)) as desk:
        return [probe_folder(desk, task, *held[task.id], options.line) for task in tasks]


def probe_folder(
    desk: FolderDesk, task: XTask, folder: Path, made: FolderTask, line: float, tests: Sequence[str] = ()
) -> ProbedTask:
    """Let all agents act in a task's image; ``tests`` are places of the files that judge, where they are not the task's own folder of tests."""
    start = desk.start(made, folder)
    start = start._replace(tests=tests) if tests else start
    if start.image is None:
        shown = _shown(task, made, _context(folder), {})
        return ProbedTask(task, (), line, start.unjudged or "its set-up breaks", start.setup, shown)
    before, products = desk.made_by_gold(made, start, folder) if made.solution else (desk.files(), {})
    # A clone beside rows holds what came later in any case, and a task that is about git may be to find it.
    kept = "" if tests or "git " in made.solution else in_history(desk, start, before, products)
    judged: list[Judged] = []
    for attempt, modes in [*_attempts(made, products), *without_an_answer(made, products)]:
        if attempt.agent == "hang":  # it would only wait for the end of all time limits
            judged += [desk.judge(made, start, attempt, mode, folder) for mode in modes]
            continue
        plain = desk.judge(made, start, attempt, "plain", folder)
        judged.append(plain)
        judged += _again(desk, made, start, folder, plain, modes, line)
    if products and not any(one.verdict.score is not None and one.verdict.score >= line for one in judged):
        judged += [desk.judge(made, start, attempt, "plain", folder) for attempt in _literals(task, products)]
    return ProbedTask(task, judged, line, shown=_shown(task, made, before, products) or kept)


def _literals(task: XTask, products: Mapping[str, str]) -> Iterator[Attempt]:
    """Constants of the tests as answers: where one is paid, the judge can pay, and the solution is wrong."""
    found: dict[str, None] = {}
    for path, text in task.hidden.items():
        if path.endswith(".py"):
            with contextlib.suppress(SyntaxError, ValueError):
                values = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
                found |= dict.fromkeys(
                    str(v) for v in values if isinstance(v, str | int | float) and not isinstance(v, bool)
                )
    kept = [
        one
        for one in found
        if 0 < len(one.strip()) <= 2000 and not one.startswith(("/app", "/tests", "utf", "/logs"))
    ]
    for one in kept[:4]:
        yield Attempt(
            "literal", _writes([*products], f"{one}\n"), f"{quoted(one, 40)!r}, a constant of the tests"
        )


def _again(
    desk: FolderDesk,
    made: FolderTask,
    start: StartedTask,
    folder: Path,
    plain: Judged,
    modes: Sequence[str],
    line: float,
) -> Iterator[Judged]:
    """The same under other conditions; time-outs matter only where the answer was refused."""
    refused = plain.verdict.score is None or plain.verdict.score < line
    for mode in modes:
        if mode in ("time up", "killed") and not refused:
            continue
        yield desk.judge(made, start, plain.attempt, mode, folder)


def _attempts(made: FolderTask, products: Mapping[str, str]) -> Iterator[tuple[Attempt, Sequence[str]]]:
    yield Attempt("no-op", "true", "does nothing"), ("again", "low", "high", "time up", "killed")
    if made.solution:
        yield Attempt("gold", made.solution, "its solution"), ("again", "low", "high")
    paths = [*products][:20]
    if paths:
        yield Attempt("empty", _writes(paths, ""), f"empty {paths[0]}"), ()
        yield (
            Attempt("garbage", _writes(paths, "zqx vrml 83151.77 blorp\n"), f"garbage in {paths[0]}"),
            ("time up",),
        )
        given = "\n".join(products.values()).casefold()
        keys = [key for key in _KEYS if key.strip(" .:").casefold() not in given]
        if keys:
            yield Attempt("key word", _writes(paths, "\n".join(keys) + "\n"), f"key words in {paths[0]}"), ()
            yield Attempt("key word", _writes(paths, keys[0]), f"{keys[0]!r} in {paths[0]}"), ()
        programs = [
            path for path in paths if path.endswith((".py", ".sh")) or products[path].startswith("#!")
        ]
        if programs:
            yield (
                Attempt("hang", "".join(_hang(path) for path in programs), f"{programs[0]} never ends"),
                ("time up",),
            )
    yield Attempt("skip", _SKIP, "conftest.py and pytest.ini that have every test skipped"), ()


def without_an_answer(
    made: FolderTask, products: Mapping[str, str]
) -> Iterator[tuple[Attempt, Sequence[str]]]:
    """Words without an answer: the instruction where the answer should be, and a program's own words in a comment of a program that does nothing."""
    paths = [*products][:20]
    said = " ".join(made.instruction.split())
    if paths and not any(" ".join(text.split()) in said for text in products.values()):
        script = _writes(paths, f"{made.instruction}\n")
        yield Attempt("key word", script, f"the instruction itself in {paths[0]}"), ()
    programs = {path: sign for path in paths if (sign := _comment(path, products[path]))}
    if programs:
        script = "".join(
            _writes([path], f"{sign} {' '.join(products[path].split())}\n") for path, sign in programs.items()
        )
        yield Attempt("key word", script, f"the words of {next(iter(programs))} in a comment"), ()


def _comment(path: str, text: str) -> str:
    """The sign of a comment in a program; "" where a file is none."""
    sign = next((sign for sign, ends in _COMMENTS.items() if path.lower().endswith(ends)), "")
    return sign or ("#" if text.startswith("#!") else "")


def _writes(paths: Sequence[str], text: str) -> str:
    return "".join(
        f"mkdir -p \"$(dirname '{path}')\"; cat > '{path}' <<'END_OF_XRAY'\n{text}END_OF_XRAY\n"
        if text
        else f"mkdir -p \"$(dirname '{path}')\"; : > '{path}'\n"
        for path in paths
    )


def _hang(path: str) -> str:
    body = "while True:\n    pass\n" if path.endswith(".py") else "#!/bin/bash\nwhile :; do sleep 1; done\n"
    return f"mkdir -p \"$(dirname '{path}')\"; cat > '{path}' <<'END_OF_XRAY'\n{body}END_OF_XRAY\nchmod +x '{path}'\n"


def _context(folder: Path) -> dict[str, str]:
    place = folder / "environment"
    found = sorted(place.rglob("*")) if place.is_dir() else []
    return {
        f"/{p.relative_to(place)}": p.read_text("utf-8", "replace")
        for p in found
        if p.is_file() and p.stat().st_size < 64_000 and p.name != "Dockerfile"
    }


def _shown(task: XTask, made: FolderTask, before: Mapping[str, str], products: Mapping[str, str]) -> str:
    """The file in which the tests, or what the solution makes, can be read beforehand."""
    for path, text in before.items():
        for name, data in made.tests.items():
            hidden = data.decode("utf-8", "replace")
            if name != made.script and len(solution_lines(hidden)) >= 2 and shares(hidden, text) >= 0.95:
                return f"the tests' {name} stands in the image as {path}"
        if recognised(made.solution, path) and shares(made.solution, text) >= 0.95:
            return f"the solution stands in the image as {path}"
    for product, text in products.items():
        added = _added(before.get(product, ""), text)
        others = {path: known for path, known in before.items() if path != product}
        if told := product_shown(product, added, task.prompt, others):
            return told
    if (
        not products
        and len(solution_lines(made.solution)) >= 3
        and shares(made.solution, task.prompt) >= 0.95
    ):
        return "the solution's commands stand in the instruction"
    return ""


def recognised(solution: str, path: str) -> bool:
    """Say if a solution would be known again in a file: of several lines, a long one, or one in a file that is named like a solution."""
    lines = solution_lines(solution)
    longest = max(map(len, lines), default=0)
    return len(lines) >= 2 or longest >= 40 or (longest >= 20 and _tells(path))


def _tells(path: str) -> bool:
    return any(word in path.casefold() for word in _TELLING)


def _added(before: str, after: str) -> str:
    known = {*before.split("\n")}
    return "\n".join(line for line in after.split("\n") if line not in known) if before else after


def product_shown(product: str, added: str, prompt: str, others: Mapping[str, str]) -> str:
    value, lines = added.strip(), solution_lines(added)
    if not value:
        return ""
    if marked := marked_in(value, iter([("the instruction", prompt), *others.items()])):
        return f"{marked} tells what {product} should hold behind a marker: {quoted(value, 80)!r}"
    whole = " ".join(value.split())
    for path, text in others.items():
        flat = " ".join(text.split())
        if _tells(path) and len(whole) >= 3 and whole in flat:
            return f"{path} holds what {product} should hold: {quoted(value, 80)!r}"
        if not (len(lines) >= 2 or len(whole) >= 30):
            continue
        # Of a file that the instruction names, a part of the lines is a selection, which may be what is asked for.
        given = path.rpartition("/")[2] in prompt and not _comment(product, added)
        if (
            whole == flat
            or (lines and shares(added, text) >= 1.0 and not given)
            or (given and whole in flat and 2 * len(whole) >= len(flat))
        ):
            return f"{path} holds what {product} should hold: {quoted(value, 80)!r}"
    if len(lines) >= 3 and len(whole) >= 100 and shares(added, prompt) >= 1.0:
        return f"the instruction holds all that {product} should hold"
    return ""
