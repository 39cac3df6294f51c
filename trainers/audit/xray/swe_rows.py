"""Rows of SWE-bench's kind: what their tests and patches show by themselves, and where a clone of the repository is at hand, what their tests say."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pydantic

from turnwise.envs.swe.importers import Foreign, instance_of
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.xray.columns import file_rows
from turnwise.trainers.audit.xray.core import BrokenRow, ProbedTask, TaskSet, XTask, quoted
from turnwise.trainers.audit.xray.folder_desk import FolderDesk
from turnwise.trainers.audit.xray.folders import probe_folder, run_cost
from turnwise.trainers.audit.xray.inside.xray_hollow import all_hollow
from turnwise.trainers.audit.xray.leaks import shares, solution_lines
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.swe_tasks import clone_of, not_installed, swe_task, test_files

_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)
_SKIP = re.compile(
    r"@(?:pytest\.mark\.skip\b|unittest\.skip\b|skip\b|pytest\.mark\.skipif\(\s*True)|^\s*(?:pytest\.skip\(|raise (?:unittest\.)?SkipTest|self\.skipTest\()",
    re.MULTILINE,
)
_CHECK = re.compile(
    r"\bassert|\.raises\(|\.fail\(|\braise\b|\.warns\(|\bcheck\w*\(|\bverify\w*\(|\bexpect\w*\(|\bexit\("
)
_CHANCE = re.compile(
    r"\b(?:random\.(?!seed|Random\()\w+\(|time\.time\(|time_ns\(|datetime\.(?:datetime\.)?(?:now|today|utcnow)\(|date\.today\(|uuid4\(|os\.urandom\(|secrets\.|np\.random\.(?!seed|default_rng\(\d|RandomState\(\d)\w+\()"
)
_NETWORK = re.compile(
    r"\b(?:requests|httpx|aiohttp|urllib\.request|urllib3)\.\w+|\burlopen\(|create_connection\(\(?['\"](?!localhost|127\.)|\bsocket\.(?:gethostbyname|getaddrinfo)\("
)
_LOCAL = re.compile(
    r"mock|patch\(|responses\.|respx|localhost|127\.0\.0\.1|httpserver|httpbin\b|monkeypatch", re.IGNORECASE
)
_TIMEOUT = re.compile(
    r"except\s*\(?[^:\n]*Time(?:out|d)[^:\n]*:\s*\n?\s*(?:pass|return(?:\s+True)?\s*$|assert True|result\s*=\s*True|ok\s*=\s*True)",
    re.MULTILINE,
)
_NO_CLONE = (
    "no clone of its repository lies beside the file; play it in its image with `turnwise eval swebench:FILE`"
)
_AS_PUBLISHED = "Give JSONL as SWE-bench publishes it: instance_id, repo, patch, problem_statement, FAIL_TO_PASS, PASS_TO_PASS."


class AddedTest(NamedTuple):
    """A test function that a patch adds or changes: its file, name and text; ``whole`` where its first line is added too."""

    file: str
    name: str
    text: str
    whole: bool


def read_swe(path: Path, options: XrayOptions) -> TaskSet:
    """Rows with repositories, patches and tests."""
    tasks: list[XTask] = []
    broken: list[BrokenRow] = []
    held: dict[str, Foreign] = {}
    for place, row in file_rows(path):
        made = row if isinstance(row, BrokenRow) else _read(place, row)
        if isinstance(made, BrokenRow):
            broken.append(made)
            continue
        name = made.instance_id if made.instance_id not in held else f"{made.instance_id} ({place})"
        held[name] = made
        tasks.append(
            XTask(
                name, place, made.issue, (), made.patch, {"repo": made.repo}, {}, {"tests": made.test_patch}
            )
        )
    if not tasks:
        raise TurnwiseError(
            f"No row of {path} is an instance. {broken[0].cause if broken else ''}", _AS_PUBLISHED
        )
    clones = {name: clone for name, row in held.items() if (clone := clone_of(row, path)) is not None}
    share = len(clones) / len(tasks)
    notes = (
        [
            f"{len(tasks) - len(clones)} of {len(tasks)} rows are read, not run: put a clone of each repository beside {path.name}, under its name"
        ]
        if share < 1
        else []
    )
    return TaskSet(
        str(path), "rows of SWE-bench's kind", tasks, broken, len(tasks) + len(broken), lambda asked: _probe(asked, held, clones, options),
        lambda n: run_cost(round(n * share))._replace(tasks=n), notes, ("--with",),
    )  # fmt: skip


def _read(place: str, row: Any) -> Foreign | BrokenRow:
    try:
        made = instance_of(row)
    except (ValueError, TypeError, pydantic.ValidationError, json.JSONDecodeError) as error:
        return BrokenRow(place, f"{place} is no instance: {quoted(str(error))}.", _AS_PUBLISHED)
    if not made.issue.strip():
        return BrokenRow(place, f"{place} has an empty problem_statement.", "Write what the agent is to do.")
    return made


def _probe(
    asked: Sequence[XTask], held: Mapping[str, Foreign], clones: Mapping[str, Path], options: XrayOptions
) -> list[ProbedTask]:
    found = {one.id: ProbedTask(one, (), unjudged=_NO_CLONE) for one in asked}
    with contextlib.ExitStack() as stack:
        desk: FolderDesk | None = None
        for one in asked:
            if one.id in clones:
                desk = desk or stack.enter_context(
                    contextlib.closing(FolderDesk(options.backend, options.packages, options.seconds))
                )
                found[one.id] = _run(desk, one, held[one.id], clones[one.id], options.line)
    return [replace(found[one.id], read=dict(findings(held[one.id]))) for one in asked]


def _run(desk: FolderDesk, task: XTask, row: Foreign, clone: Path, line: float) -> ProbedTask:
    """Let agents repair the clone, unless its tests need a package that is not installed."""
    made = swe_task(row, clone)
    start = desk.start(made, clone.parent)
    if start.image is not None:
        files = " ".join(name for name in row.test_files if "'" not in name and " " not in name)
        said = desk.shell(f"python3 -m pytest --co -q {files} 2>&1", start.cwd, start.variables, 120.0)
        if missing := not_installed(said.out, clone):
            return ProbedTask(
                task, (), line, f"its tests import {missing}, which is not installed: --with {missing}"
            )
    return probe_folder(desk, task, clone.parent, made, line, test_files(row))


def findings(row: Foreign) -> Iterator[tuple[str, str]]:
    """Kinds of defect that a row shows, with what was read."""
    wanted = {re.sub(r"\[.*", "", name.rpartition("::")[2]).split(" ")[0] for name in row.fail_to_pass}
    tests = [one for one in added_tests(row.test_patch) if one.name in wanted]
    if not row.fail_to_pass:
        kind = "empty_accepted" if row.pass_to_pass else "always_one"
        yield kind, "FAIL_TO_PASS is empty: the repository as it is passes"
        if row.pass_to_pass:
            yield "always_one", "FAIL_TO_PASS is empty: no test has to change"
    yield from _of_patch(row)
    yield from _of_tests(row, wanted, tests)
    if told := _shown(row):
        yield "answer_shown", told
    if row.base_commit and not re.fullmatch(r"[0-9a-f]{7,40}", row.base_commit):
        yield "broken_setup", f"base_commit is {quoted(row.base_commit, 40)!r}, which names no commit"
    if row.test_patch and (told := malformed(row.test_patch)):
        yield "broken_setup", f"the test patch cannot be applied: {told}"


def _of_patch(row: Foreign) -> Iterator[tuple[str, str]]:
    if not row.patch.strip():
        yield "gold_refused", "its patch is empty"
    elif told := malformed(row.patch):
        yield "gold_refused", f"its patch cannot be applied: {told}"
    else:
        files = {*_FILE.findall(row.patch)}
        if files and files <= {*row.test_files}:
            yield (
                "gold_refused",
                f"its patch changes only files that are put back before judging: {', '.join(sorted(files)[:3])}",
            )


def _of_tests(row: Foreign, wanted: set[str], tests: Sequence[AddedTest]) -> Iterator[tuple[str, str]]:
    new = {*_new_files(row.test_patch)}
    for name in row.fail_to_pass:
        path, sign, rest = name.partition("::")
        if (
            sign
            and path in new
            and not any(
                one.name == re.sub(r"\[.*", "", rest.rpartition("::")[2])
                for one in added_tests(row.test_patch)
                if one.file == path
            )
        ):
            yield (
                "always_zero",
                f"{name} is demanded, and {path}, which the test patch makes, has no such test",
            )
            break
    whole = [one for one in tests if one.whole]
    marks = [found.group() for one in whole if (found := _SKIP.search(one.text))]
    if whole and len(marks) == len(whole):
        yield (
            "only_skipped",
            f"every test that is demanded is skipped: {quoted(marks[0], 60)!r} on {whole[0].name}",
        )
    elif (
        whole
        and {one.name for one in whole} >= wanted
        and not any(_CHECK.search(_body(one.text)) for one in whole)
    ):
        yield (
            "no_assertion",
            f"no test that is demanded asserts anything: {', '.join(one.name for one in whole[:3])}",
        )
    elif hollow := [one.name for one in whole if _hollow(one.text)]:
        yield (
            "no_assertion",
            f"{hollow[0]} asserts what always holds, or catches its assertion where it fails",
        )
    for one in whole:
        if re.search(
            r"^\s*(?:assert (?:False|0)\b|pytest\.fail\(|self\.fail\()", _body(one.text), re.MULTILINE
        ) and _unconditional(one.text):
            yield "always_zero", f"{one.name} fails whatever is done"
    yield from _of_calls(row.test_patch, tests)


def _of_calls(patch: str, tests: Sequence[AddedTest]) -> Iterator[tuple[str, str]]:
    for one in tests:
        if (
            (found := _CHANCE.search(one.text))
            and "seed(" not in patch
            and "freeze" not in patch
            and not _LOCAL.search(one.text)
        ):
            yield "flaky", f"{one.name} asks for chance or the time: {quoted(found.group(), 60)!r}"
        if (found := _NETWORK.search(one.text)) and not _LOCAL.search(one.text):
            yield "needs_network", f"{one.name} reaches for the network: {quoted(found.group(), 60)!r}"
        if found := _TIMEOUT.search(one.text):
            yield "time_out_passes", f"{one.name} passes when time is up: {quoted(found.group(), 80)!r}"
        if (
            re.search(r"^\s*(?:assert True\b|pass\s*$)", one.text, re.MULTILINE)
            and one.whole
            and not re.search(r"assert (?!True\b)|raises\(|self\.assert", one.text)
        ):
            yield "no_assertion", f"{one.name} asserts nothing but True"


def _hollow(text: str) -> bool:
    """Say if a test has nothing but assertions that hold whatever is done."""
    others = re.sub(r"\bassert\b|AssertionError", "", _body(text))
    return not _CHECK.search(others) and all_hollow(textwrap.dedent(text))


def _unconditional(text: str) -> bool:
    with contextlib.suppress(SyntaxError, IndexError):
        function = ast.parse(textwrap.dedent(text)).body[0]
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            plain = [node for node in function.body if isinstance(node, ast.Assert | ast.Expr)]
            return any(
                (isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value)
                or (
                    isinstance(node, ast.Expr)
                    and isinstance(node.value, ast.Call)
                    and ast.unparse(node.value.func).endswith(".fail")
                )
                for node in plain
            )
    return False


def _body(text: str) -> str:
    """A function's text without its documentation, its first line and comments."""
    kept = "\n".join(
        line.partition("#")[0]
        for line in text.split("\n")
        if not line.strip().startswith(("def ", "async def ", "@"))
    )
    return re.sub(r'"""(?:.|\n)*?"""', "", kept)


def added_tests(patch: str) -> list[AddedTest]:
    """Test functions in the new text of a patch's hunks, of which lines were added."""
    found: list[AddedTest] = []
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE):
        if (named := _FILE.search(part)) is None:
            continue
        lines: list[tuple[str, bool]] = [
            (line[1:], line[0] == "+")
            for line in part.split("\n")
            if line[:1] in ("+", " ") and not line.startswith("+++")
        ]
        found += _functions(named.group(1), lines)
    return found


def _functions(path: str, lines: Sequence[tuple[str, bool]]) -> Iterator[AddedTest]:
    for at, (line, added) in enumerate(lines):
        match = re.match(r"(\s*)(?:async )?def (test\w*)", line)
        if not match:
            continue
        depth, end = len(match.group(1)), at + 1
        while end < len(lines) and (
            not lines[end][0].strip()
            or len(lines[end][0]) - len(lines[end][0].lstrip()) > depth
            or lines[end][0].lstrip().startswith(")")
        ):
            end += 1
        begin = at
        while begin and lines[begin - 1][0].strip().startswith("@"):
            begin -= 1
        if any(new for _, new in lines[begin:end]):
            yield AddedTest(path, match.group(2), "\n".join(text for text, _ in lines[begin:end]), added)


def _new_files(patch: str) -> Iterator[str]:
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE):
        if "--- /dev/null" in part and (named := _FILE.search(part)):
            yield named.group(1)


def malformed(patch: str) -> str:
    """The fault in a patch's form; "" where nothing is."""
    if not _HUNK.search(patch):
        renamed = re.search(r"^(?:rename|new file|deleted file|Binary|GIT binary)", patch, re.MULTILINE)
        return "" if renamed else "it has no hunk"
    for match in _HUNK.finditer(patch):
        old, new = (int(count) if count is not None else 1 for count in match.groups())
        for line in patch[match.end() :].split("\n")[1:]:
            if old <= 0 and new <= 0:
                break
            if line.startswith("\\"):
                continue
            if line[:1] not in (" ", "+", "-", ""):
                return f"the hunk {quoted(match.group(), 50)} is cut"
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
        if old > 0 or new > 0:
            return f"the hunk {quoted(match.group(), 50)} has fewer lines than it says"
    return ""


def _shown(row: Foreign) -> str:
    sign = "-" if row.reverse else "+"
    lines = "\n".join(
        line[1:] for line in row.patch.split("\n") if line.startswith(sign) and not line.startswith(sign * 3)
    )
    said = solution_lines(lines)
    # A short line of code may stand in an issue by chance, and as a line of a patch it does not.
    patched = bool(said) and all(f"{sign}{line}" in row.issue for line in lines.split("\n") if line.strip())
    enough = len(said) >= 2 or any(len(line) >= 30 for line in said) or patched
    if enough and shares(lines, row.issue) >= 0.8:
        return f"the issue holds the repair: {quoted(max(said, key=len), 100)!r}"
    return ""
