"""Running a repository's test suite in a sandbox, with an answer that the code under test cannot write.

A *warden* in the sandbox starts pytest in a process of its own and answers with a nonce that only it knows; what
is printed is never read. Tests that must fail are put between the others (*canaries*): who makes failing tests
pass makes them pass too.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import SystemRandom
from typing import Any, NamedTuple

from turnwise.envs.swe.packages import Package, repository
from turnwise.tools.sandbox.core import MIB, Backend, Sandbox, SandboxImage, SandboxLimits

LIMITS = SandboxLimits(memory=768 * MIB, processes=64, disk=96 * MIB, seconds=120.0, output=32 * 1024)

_CANARIES = (
    ("assert 1 == 2", "fail"),
    ("assert [1, 2] == [1]", "fail"),
    ("raise ValueError('no')", "fail"),
    ("assert sorted([2, 1]) == [1, 2]", "pass"),
)


class TestResult(NamedTuple):
    """Result of one test: pass, fail, error, skip, xfail, xpass; ``detail`` is the exception's message.

    ``line`` is where it failed in its own file; 0 if that is not known. ``frames`` are the file and line of each call that
    the failure came through, the innermost last.
    """

    __test__ = False
    status: str
    detail: str = ""
    line: int = 0
    frames: tuple[tuple[str, int], ...] = ()


class SuiteRun(NamedTuple):
    """One run of a suite. ``answered`` is false where the warden did not answer: nothing is known then.

    ``complete``: pytest came to its end and said so. ``tampered`` says why the results cannot be believed.
    ``lines`` (with coverage): file → line → tests that run it. ``seconds`` are of wall time, ``cpu`` of the processor.
    """

    answered: bool
    complete: bool
    tests: Mapping[str, TestResult]
    uncollected: Mapping[str, str]
    tampered: str = ""
    timed_out: bool = False
    lines: Mapping[str, Mapping[int, Sequence[str]]] = {}
    seconds: float = 0.0
    cpu: float = 0.0

    def passing(self) -> frozenset[str]:
        return frozenset(name for name, result in self.tests.items() if result.status == "pass")


NO_ANSWER = SuiteRun(False, False, {}, {})


class Canaries(NamedTuple):
    """Tests of our own in files of their own: path → text, and what each test must do."""

    files: Mapping[str, str]
    expected: Mapping[str, str]


_NO_TRAPS = Canaries({}, {})


def run_suite(
    sandbox: Sandbox,
    package: Package,
    *,
    only: Iterable[str] = (),
    cover: bool = False,
    canaries: bool = True,
    collect_only: bool = False,
    seconds: float = 60.0,
    hash_seed: int = 0,
) -> SuiteRun:
    """Run the suite (or these tests) in a sandbox that holds the repository.

    ``collect_only`` runs no test, and leaves what Python compiles of package and tests where it belongs.

    Raises:
        SandboxError: the sandbox failed.
    """
    traps = make_canaries(package) if canaries else _NO_TRAPS
    mark, chance = secrets.token_hex(8), SystemRandom()
    chosen = frozenset(only)
    spec = {
        **spec_of(package, mark, frozenset(chosen | {*traps.expected}) if chosen else chosen, traps.files),
        "places": {name: chance.random() for name in traps.expected},
        "cover": [package.source.removesuffix(".py")] if cover else [],
        "collect_only": collect_only,
        "bytecode": collect_only,
    }
    answer = ask_warden(sandbox, "suite", spec, files=traps.files, seconds=seconds, hash_seed=hash_seed)
    if answer is None:
        return NO_ANSWER
    run = read_run(answer["said"].splitlines(), mark, traps)
    complete = run.complete and answer["ended"] == "exit"
    timed_out = answer["ended"] == "timeout"
    if answer["ended"] == "flood":
        run = run._replace(tampered="the suite wrote more to its channel than is read")
    return run._replace(complete=complete, timed_out=timed_out, seconds=answer["seconds"], cpu=answer["cpu"])


def spec_of(
    package: Package, mark: str, only: frozenset[str] = frozenset(), more: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what the program in the sandbox is told of a run.

    It runs these tests (all if none is named) and those of ``more`` files.

    Where tests are in files of one name, files of ours have others, and pytest is told of these as well.
    """
    others = [] if "*" in package.pattern else [path.rpartition("/")[2] for path in more]
    targets = sorted({name.partition("::")[0] for name in only}) or [package.tests]
    if not only and package.tests.endswith(".py"):
        targets += (
            more  # a folder is searched: naming files in it as well would have pytest leave the rest out
        )
    return {
        "mark": mark,
        "only": sorted(only),
        "places": {},
        "targets": targets,
        "path": [".", *([package.path] if package.path else [])],
        "pattern": " ".join([package.pattern, *others]),
        "cover": [],
        "collect_only": False,
        "bytecode": False,
        "most_failing": 0,
        "without": _without(package),
    }


@cache
def _without(package: Package) -> list[str]:
    """Plugins of the root that take long to load and that no test of this package asks for."""
    tests = [data for path, data in repository(package).items() if package.is_test(path)]
    return [] if any(b"mocker" in data for data in tests) else ["pytest_mock"]


def ask_warden(
    sandbox: Sandbox,
    program: str,
    spec: Mapping[str, Any],
    *,
    files: Mapping[str, str],
    seconds: float,
    hash_seed: int,
) -> dict[str, Any] | None:
    """Have the warden run a program of ``inside/``: what it ``said``, how it ``ended``, its ``seconds`` and ``cpu``.

    None where the warden did not answer.
    """
    nonce = secrets.token_hex(16)
    asked = {
        "nonce": nonce,
        "child": read_program(program),
        "files": files,
        "spec": spec,
        "seconds": seconds,
        "env": {
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        },
    }
    result = sandbox.exec(
        ["python3", "-I", "-c", read_program("warden")],
        stdin=json.dumps(asked).encode(),
        timeout=seconds + 10,
        output=32 * MIB,
    )
    head, _, text = result.out.partition("{")
    if head != nonce or not result.ok:
        return None
    return {**json.loads("{" + text), "seconds": result.seconds}


def start(backend: Backend, package: Package, contents: Mapping[str, bytes]) -> Sandbox:
    """A sandbox with what the package needs, these files and nothing else."""
    return backend.start(SandboxImage.of(dict(contents), root=package.root), LIMITS)


def read_run(said: Sequence[str], mark: str, traps: Canaries = _NO_TRAPS) -> SuiteRun:
    """Read the lines of one run."""
    tests: dict[str, TestResult] = {}
    uncollected: dict[str, str] = {}
    done: Mapping[str, Any] = {}
    tampered = ""
    for line in said:
        row = _row(line, mark)
        if row is None:
            tampered = "something else than the suite wrote to its channel"
            continue
        if done:
            tampered = "results came after the end"
        match row["kind"]:
            case "test":
                if row["id"] in tests:
                    tampered = f"{row['id']} was reported twice"
                frames = tuple((path, line) for path, line in row["frames"])
                tests[row["id"]] = TestResult(row["status"], row["detail"], row["line"], frames)
            case "collect":
                uncollected[row["id"]] = row["detail"]
            case "done":
                done = row
            case _:
                pass
    seen = {name: tests.pop(name).status if name in tests else "missing" for name in traps.expected}
    wrong = [name for name, status in traps.expected.items() if seen[name] not in (status, "missing")]
    if done and (wrong or "missing" in seen.values()):
        tampered = "tests that must fail did not" if wrong else "tests of ours were left out"
    if done.get("changed"):
        tampered = f"pytest was changed: {', '.join(done['changed'])}"
    sets = [tuple(done["names"][number] for number in one) for one in done.get("sets", ())]
    lines = {
        path: {int(line): sets[number] for line, number in rows.items()}
        for path, rows in done.get("lines", {}).items()
    }
    return SuiteRun(True, bool(done), tests, uncollected, tampered, lines=lines)


def _row(line: str, mark: str) -> dict[str, Any] | None:
    """One line of the channel; None where it is not the suite's, or was cut short."""
    try:
        return json.loads(line[len(mark) :]) if line.startswith(mark) else None
    except ValueError:
        return None


def make_canaries(package: Package) -> Canaries:
    """Two files of tests under names that nobody can foresee, next to the others."""
    folder = "" if package.tests.endswith(".py") else f"{package.tests}/"
    pattern = package.pattern if "*" in package.pattern else "test_*.py"
    texts: dict[str, str] = {}
    expected: dict[str, str] = {}
    for half in (_CANARIES[:2], _CANARIES[2:]):
        path = folder + pattern.replace("*", secrets.token_hex(4))
        functions: list[str] = []
        for body, status in half:
            name = f"test_{secrets.token_hex(4)}"
            functions.append(f"def {name}():\n    {body}\n")
            expected[f"{path}::{name}"] = status
        texts[path] = "\n\n".join(functions)
    return Canaries(texts, expected)


@cache
def read_program(name: str) -> str:
    return files("turnwise.envs.swe").joinpath("inside", f"{name}.py").read_text("utf-8")
