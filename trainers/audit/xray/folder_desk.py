"""A task folder in a sandbox: its image as far as it can be made without Docker, agents' scripts, and its tests under each condition."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnwise.envs.swe.importers import FolderTask
from turnwise.tools.core import ToolError
from turnwise.tools.sandbox.core import MIB, Backend, ExecResult, Root, Sandbox, SandboxImage, SandboxLimits
from turnwise.trainers.audit.xray.core import Attempt, Judged, Verdict, quoted
from turnwise.trainers.audit.xray.dockerfile import read_dockerfile
from turnwise.trainers.audit.xray.making import DockerfileSteps, StartedTask
from turnwise.trainers.audit.xray.reward_calls import MODES, RUNNER, archive, inside, joined_traces
from turnwise.trainers.audit.xray.stand_ins import stand_ins

LINKS = (
    "app", "workspace", "testbed", "repo", "data", "tests", "logs", "solution", "oracle", "home", "root", "srv", "opt", "mnt", "output", "outputs",
    "input", "inputs", "project", "code", "src", "task", "workdir", "results", "installed-agent", "protected", "build", "models", "config",
)  # fmt: skip
"""Folders at the top of the file system that a task may write to."""
ROOT = Root(pip=RUNNER, links=LINKS)
LIMITS = SandboxLimits(
    memory=2048 * MIB, processes=256, disk=512 * MIB, scratch=128 * MIB, seconds=300.0, flood=256 * MIB
)
SPY, LOG = "/tmp/.xray", "/dev/shm/xray.log"
_CHECKS = frozenset(
    (
        "grep",
        "egrep",
        "fgrep",
        "diff",
        "cmp",
        "jq",
        "awk",
        "sha256sum",
        "md5sum",
        "sqlite3",
        "comm",
        "xmllint",
    )
)
_RUNNERS = frozenset(
    (
        "node",
        "npm",
        "npx",
        "cargo",
        "go",
        "make",
        "cmake",
        "mvn",
        "gradle",
        "java",
        "ruby",
        "perl",
        "php",
        "dotnet",
        "ctest",
        "bats",
        "jest",
    )
)
_OF_TESTS = ("/work/tests", "/work/logs", "/work/logs/verifier", "/work/logs/agent", "/work/logs/artifacts")
_REWARDS = ("reward.txt", "reward.json")
_MARK, _MOST_LEFT, _KILLED_S = "=.xray-part.=", MIB, 4.0
_XTRACE = re.compile(r"^\++ (.*)$", re.MULTILINE)
_NUMBERS = re.compile(r"^[\[\s'\"=!\-\]]*(?:-?\d+|-eq|-ne|-gt|-lt|-ge|-le|==?|!=|[\[\]'\"\s])*$")


class FolderDesk:
    """A sandbox in which one task after another is judged."""

    def __init__(self, backend: Backend, packages: Sequence[str], seconds: float) -> None:
        root = Root(pip=(*ROOT.pip, *packages), links=ROOT.links)
        self._box: Sandbox = backend.start(SandboxImage(root), LIMITS)
        self._most = seconds
        self._box.exec(
            ["bash", "-c", f"mkdir -p {' '.join(f'/work/{name}' for name in LINKS)} /work/logs/verifier"]
        )
        self._bare = self._box.snapshot()

    def close(self) -> None:
        self._box.close()

    def start(self, task: FolderTask, folder: Path) -> StartedTask:
        """Carry out a task's Dockerfile."""
        self._box.restore(self._bare)
        self._laid_out({})
        built = read_dockerfile(task.dockerfile)
        if task.image and not task.dockerfile:
            return StartedTask(
                None,
                "",
                {},
                unjudged=f"it needs the image {task.image}, and this machine has no Docker for it",
            )
        context = folder / "environment" if (folder / "environment").is_dir() else folder
        made = DockerfileSteps(self, context, built)
        for step in built.steps:
            if said := made.carry_out(step):
                return said
        self._box.exec(["bash", "-c", f"mkdir -p {shlex.quote(made.cwd)}; rm -rf {SPY} {LOG}"])
        return StartedTask(self._box.snapshot(), made.cwd, made.variables)

    def put(self, found: Mapping[str, bytes], into: str) -> ExecResult:
        """Write files below a folder."""
        return self._box.exec(
            ["bash", "-c", f"mkdir -p {shlex.quote(into)} && tar -x -C {shlex.quote(into)}"],
            stdin=archive(found),
        )

    def shell(self, script: str, cwd: str, variables: Mapping[str, str], seconds: float) -> ExecResult:
        """Run a script as an agent would."""
        env = {
            **variables,
            "BASH_ENV": f"{SPY}/bash_env",
            "XRAY_LOG": LOG,
            "HOME": "/root",
            "DEBIAN_FRONTEND": "noninteractive",
        }
        where = f"mkdir -p {shlex.quote(cwd)}; cd {shlex.quote(cwd)} && exec bash -s"
        return self._box.exec(["bash", "-c", where], env=env, stdin=script.encode(), timeout=seconds)

    def look(self, start: StartedTask, script: str) -> str:
        """Run a script of ours in the image with which a task begins, and return what it prints."""
        assert start.image is not None
        self._box.restore(start.image)
        return self._box.exec(["bash", "-c", script], timeout=60.0, output=MIB).out

    def asked_network(self) -> list[dict[str, Any]]:
        """Notes since it was last asked."""
        log = self._box.exec(["bash", "-c", f"cat {LOG} 2>/dev/null; rm -f {LOG}"], output=8 * MIB).out
        return _json_lines(log)

    def judge(
        self, task: FolderTask, start: StartedTask, attempt: Attempt, mode: str, folder: Path
    ) -> Judged:
        """Let an agent act in a task's image and run its tests."""
        assert start.image is not None
        self._box.restore(start.image)
        given = solution_files(task, folder) if attempt.agent == "gold" else {}
        self._laid_out({"/work/solution": given, "/work/oracle": given} if given else {})
        acted = self.shell(attempt.text, start.cwd, start.variables, self._most * 3)
        return Judged(
            attempt, mode, self._tested(task, start, mode, acted if attempt.agent == "gold" else None)
        )

    def _tested(self, task: FolderTask, start: StartedTask, mode: str, acted: ExecResult | None) -> Verdict:
        told = {name: value for name, value in MODES.get(mode, {}).items() if name != "hash"}
        if mode == "killed":
            told = {"hang": True}
        told |= {"log": LOG, "only": [*start.tests], "trace": "process" if mode == "plain" else ""}
        self._laid_out({"/work/tests": task.tests}, _OF_TESTS, time_up=mode == "time up")
        env = {
            **start.variables, "XRAY": json.dumps(told), "XRAY_LOG": LOG, "BASH_ENV": f"{SPY}/bash_env", "PYTHONPATH": SPY, "HOME": "/root",
            "PYTEST_ADDOPTS": "-p xray_pytest -p no:cacheprovider", "TEST_DIR": "/tests", "PYTHONHASHSEED": str(MODES.get(mode, {}).get("hash", "0")),
            "PATH": f"{SPY}/bin:/usr/local/bin:/usr/bin:/bin", "XRAY_RANDOM": {"low": "0", "high": "32767"}.get(mode, ""),
            "XRAY_NOW": str(int(told.get("now", 0)) or ""),
        }  # fmt: skip
        script = f"cd {shlex.quote(start.cwd)} 2>/dev/null; . {SPY}/bash_env; exec 9>{SPY}/trace; export BASH_XTRACEFD=9; bash -x /tests/{task.script}"
        seconds = {"killed": _KILLED_S, "time up": self._most}.get(mode, min(task.seconds, self._most * 6))
        done = self._box.exec(["bash", "-c", script], env=env, timeout=seconds, output=256 * 1024)
        return self._verdict(task, done, mode, acted)

    def _verdict(self, task: FolderTask, done: ExecResult, mode: str, acted: ExecResult | None) -> Verdict:
        left = self._left()
        noted = _json_lines(left["log"])
        score, error = _reward(task, done, left)
        tests: dict[str, int] = {}
        for one in (line["tests"] for line in noted if "tests" in line):
            tests = {name: tests.get(name, 0) + one.get(name, 0) for name in {*tests, *one}} or {
                "collected": 0
            }
        log = f"{done.out}\n{done.err}"
        if acted is not None and not acted.ok:
            log += f"\nthe solution ended with {acted.exit_code}: {acted.err[-400:]}"
        network = [str(line["net"]) for line in noted if "net" in line]
        installs = [str(line["install"]) for line in noted if "install" in line]
        timeout = done.timed_out and mode != "killed" and score is None
        trace = _trace(noted, left["trace"]) if mode == "plain" else None
        return Verdict(score, error, timeout, network, installs, trace, log[-6000:], tests, done.seconds)

    def _left(self) -> dict[str, str]:
        """Notes, rewards and the trace that a run of tests left, by one command."""
        places = {
            "log": LOG,
            **{name: f"/work/logs/verifier/{name}" for name in _REWARDS},
            "trace": f"{SPY}/trace",
        }
        script = "; ".join(
            f"echo {_MARK}{name}; [ -f {place} ] && head -c {_MOST_LEFT} {place} && echo"
            for name, place in places.items()
        )
        told = self._box.exec(["bash", "-c", f"{script}; true"], output=4 * _MOST_LEFT).out
        parts = [part.partition("\n") for part in told.split(_MARK)[1:]]
        return {name: text for name, _, text in parts}

    def _laid_out(
        self, parts: Mapping[str, Mapping[str, bytes]], clear: Sequence[str] = (), *, time_up: bool = False
    ) -> None:
        """Lay out the programs that watch, and files below other folders, by one command: starting a process is what costs."""
        parts = {**parts, SPY: {**inside(), **stand_ins(SPY, time_up=time_up)}}
        found = {f"{into}/{path}"[1:]: data for into, files in parts.items() for path, data in files.items()}
        gone, made = " ".join([SPY, LOG, *clear]), " ".join([*parts, *clear])
        self._box.exec(
            ["bash", "-c", f"rm -rf {gone}; mkdir -p {made}; tar -x -C / --keep-directory-symlink"],
            stdin=archive(found),
        )

    def files(self, *, newer: bool = False) -> dict[str, str]:
        """Texts of the files that a task has, by their paths as it names them; ``newer``: only those made since the mark."""
        only = f"-newer {SPY}/mark" if newer else ""
        left_out = " ".join(
            f"-not -path '{one}/*'"
            for one in ("/work/tests", "/work/logs", "*/.git", "/work/solution", "/work/oracle")
        )
        listed = self._box.exec(
            ["bash", "-c", f"find /work -type f -size -64k {only} {left_out} | head -200"]
        )
        found: dict[str, str] = {}
        for path in listed.out.split("\n"):
            try:
                data = self._box.read(path, limit=64 * 1024) if path else b"\0"
            except ToolError:
                continue
            if b"\0" not in data:
                found[path.removeprefix("/work")] = data.decode("utf-8", "replace")
        return found

    def made_by_gold(
        self, task: FolderTask, start: StartedTask, folder: Path
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The files that a task begins with, and those that its solution makes or changes."""
        assert start.image is not None
        self._box.restore(start.image)
        before = self.files()
        self._laid_out({"/work/solution": solution_files(task, folder)})
        self._box.exec(["bash", "-c", f"sleep 0.02; touch {SPY}/mark; sleep 0.02"])
        self.shell(task.solution, start.cwd, start.variables, self._most * 3)
        made = self.files(newer=True)
        return before, {path: text for path, text in made.items() if before.get(path) != text}


def _json_lines(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _reward(task: FolderTask, done: ExecResult, left: Mapping[str, str]) -> tuple[float | None, str]:
    """The reward that the script wrote; terminal-bench's is its exit code."""
    for name in _REWARDS:
        text = left.get(name, "").strip()
        if not text:
            continue
        try:
            value = json.loads(text)
            if isinstance(value, dict):
                value = value.get(
                    "reward", next((v for v in value.values() if isinstance(v, int | float)), None)
                )
            return float(value), ""
        except (ValueError, TypeError):
            return None, f"{name} holds {quoted(text, 60)!r}, which is no number"
    if task.script == "run-tests.sh":
        return (float(done.exit_code == 0), "") if not done.timed_out else (None, "")
    return None, "" if done.timed_out else "it wrote no /logs/verifier/reward.txt"


def _trace(noted: Sequence[Mapping[str, Any]], told: str) -> dict[str, Any]:
    found = joined_traces([line["trace"] for line in noted if line.get("trace", {}).get("files")])
    if found is not None:
        return {**found, "tests": True}
    lines = _XTRACE.findall(told)
    names = [line.split(" ", 1)[0].strip("'") for line in lines]
    checks = sum(
        name in _CHECKS
        or (name in ("[", "[[", "test") and not _NUMBERS.match(line.partition(" ")[2]))
        or name == "case"
        for name, line in zip(names, lines, strict=True)
    )
    strange = any(name in _RUNNERS or name.startswith(("./", "/app", "python", "pytest")) for name in names)
    return {
        "had": 0,
        "reached": {"assert": 0, "compare": checks, "branch": 0, "call": 0},
        "raised": [],
        "results": {},
        "files": [],
        "tests": not strange,
    }


def solution_files(task: FolderTask, folder: Path) -> dict[str, bytes]:
    """Everything beside a task's solution."""
    place = folder / "solution"
    found = (
        {
            str(p.relative_to(place)): p.read_bytes()
            for p in sorted(place.rglob("*"))
            if p.is_file() and not p.is_symlink()
        }
        if place.is_dir()
        else {}
    )
    return found or {"solve.sh": task.solution.encode()}
