"""Asks a stranger's reward function in a sandbox: batches of answers under each condition, with limits, and what was seen of it."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.tools.sandbox.core import MIB, Backend, ExecResult, Root, Sandbox, SandboxImage, SandboxLimits
from turnwise.trainers.audit.xray.core import AGAIN, HASHES, PATIENT, Attempt, Judged, Verdict, XTask, quoted

SPY = "/work/.xray"
LIMITS = SandboxLimits(
    memory=2048 * MIB, processes=128, disk=256 * MIB, scratch=128 * MIB, seconds=900.0, flood=512 * MIB
)
_LONGER, _PATIENCE = 20.0, 4.0
"""A patient condition makes a judge's own limits so many times longer, and that of a verdict."""
_MODES: Mapping[str, Mapping[str, Json]] = {
    "plain": {},
    "trace": {"trace": "process"},
    "again": {"hash": "7"},
    "low": {"rng": "low", "now": 1773544440.0, "hash": "1"},
    "high": {"rng": "high", "now": 1949758001.0, "hash": "2"},
    "time up": {"time_up": True},
    "elsewhere": {"system": "Windows"},
    **{f"hash {seed}": {"hash": seed} for seed in HASHES},
}
MODES = {
    **_MODES,
    **{f"{mode}{PATIENT}": {**_MODES[mode], "patience": _LONGER} for mode in ("plain", *AGAIN)},
}
"""Conditions under which a judge is asked: as it is, with checks traced, once more in another order, by chance's lowest and highest draw and at
other dates, with every time limit passed, on another system, and in fresh processes whose hashes are seeded otherwise; and patiently."""
RUNNER = ("pytest==8.4.2", "pytest-json-ctrf==0.3.5")
"""Packages of the runner by which most task folders and many reward functions judge."""
_BATCH = 3000
_LATE = 3
"""A task that was late so often is not asked any more under that condition."""


class RewardFunction(NamedTuple):
    """A reward function or a verifiers environment: its folder's files, and how it is called."""

    kind: str
    file: str
    function: str
    files: Mapping[str, bytes]
    arguments: Mapping[str, Json] = {}
    seconds: float = 10.0


def read_files(path: Path) -> tuple[str, dict[str, bytes]]:
    """A module's path below the folder that its package lies in, and the files beside it that it may import or read."""
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    found: dict[str, bytes] = {}
    room = 24 * MIB
    for one in (
        sorted(path.parent.rglob("*"))
        if top == path.parent
        else sorted((top / path.relative_to(top).parts[0]).rglob("*"))
    ):
        hidden = any(
            part.startswith(".") or part in ("__pycache__", "node_modules")
            for part in one.relative_to(top).parts
        )
        if hidden or not one.is_file() or one.is_symlink() or one.stat().st_size > MIB or len(found) > 2000:
            continue
        room -= one.stat().st_size
        if room > 0 or one == path:
            found[str(one.relative_to(top))] = one.read_bytes()
    found[str(path.relative_to(top))] = path.read_bytes()
    return str(path.relative_to(top)), found


def archive(found: Mapping[str, bytes]) -> bytes:
    """Files as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for path, data in sorted(found.items()):
            about = tarfile.TarInfo(path)
            about.size, about.mode = len(data), 0o755
            made.addfile(about, io.BytesIO(data))
    return buffer.getvalue()


def inside() -> dict[str, bytes]:
    """The programs that run in the sandbox."""
    folder = files("turnwise.trainers.audit.xray") / "inside"
    return {
        one.name: one.read_bytes()
        for one in folder.iterdir()
        if one.name.endswith(".py") and one.name != "__init__.py"
    }


class RewardDesk:
    """A sandbox with a reward function in it."""

    def __init__(self, backend: Backend, root: Root, judged_by: RewardFunction) -> None:
        self._box: Sandbox = backend.start(SandboxImage(root), LIMITS)
        self._by = judged_by
        packed = {f"code/{path}": data for path, data in judged_by.files.items()}
        packed |= {f".xray/{path}": data for path, data in inside().items()}
        self._box.exec(["tar", "-x", "-C", self._box.workdir], stdin=archive(packed))

    def close(self) -> None:
        self._box.close()

    def rows(self, most: int) -> list[dict[str, Any]]:
        """The rows of a verifiers environment."""
        done = self._run("plain", {"list": most, "rows": [], "jobs": []}, 300.0)
        return [line["row"] for line in self._lines(done) if "row" in line]

    def ask(
        self, tasks: Sequence[XTask], jobs: Sequence[tuple[int, Attempt]], mode: str
    ) -> list[tuple[int, Judged]]:
        """Judge attempts at tasks, by their number, under one condition."""
        found: list[tuple[int, Judged]] = []
        late: dict[int, int] = {}
        jobs, at = [*jobs], 0
        while at < len(jobs):
            batch = jobs[at : at + _BATCH]
            places = sorted({number for number, _ in batch})
            rows = [{"row": tasks[n].row, "prompt": tasks[n].prompt, "gold": tasks[n].truth} for n in places]
            index = {n: place for place, n in enumerate(places)}
            request = {
                "rows": rows,
                "jobs": [[index[n], attempt.text] for n, attempt in batch],
                "trace": mode == "trace",
            }
            done = self._run(mode, request, min(LIMITS.seconds, 60.0 + self._seconds(mode) * len(batch)))
            verdicts = self._verdicts(done, len(batch))
            for (n, attempt), said in zip(batch, verdicts, strict=False):
                found.append((n, Judged(attempt, mode, said)))
                late[n] = late.get(n, 0) + said.timeout
            at += max(len(verdicts), 1)
            if verdicts[-1].timeout and late[batch[len(verdicts) - 1][0]] >= _LATE:
                jobs[at:] = [one for one in jobs[at:] if late.get(one[0], 0) < _LATE]
        return found

    def _run(self, mode: str, request: Mapping[str, Any], seconds: float) -> ExecResult:
        told = {k: v for k, v in MODES[mode].items() if k != "hash"} | {"log": f"{self._box.workdir}/log"}
        env = {
            "XRAY": json.dumps(told),
            "PYTHONHASHSEED": str(MODES[mode].get("hash", "0")),
            "PYTHONPATH": f"{self._box.workdir}/.xray",
            "XRAY_DRIVER": "1",
            "PYTEST_ADDOPTS": "-p xray_pytest -p no:cacheprovider",
        }
        asked = {**request, "kind": self._by.kind, "file": f"{self._box.workdir}/code/{self._by.file}", "function": self._by.function,
                 "arguments": self._by.arguments, "seconds": self._seconds(mode)}  # fmt: skip
        self._box.exec(["rm", "-f", f"{self._box.workdir}/log"])
        code = f"{self._box.workdir}/code"
        return self._box.exec(
            ["python3", f"{self._box.workdir}/.xray/driver.py"],
            cwd=code,
            env=env,
            stdin=json.dumps(asked).encode(),
            timeout=seconds,
            output=64 * MIB,
        )

    def _seconds(self, mode: str) -> float:
        """Seconds that a verdict may take under a condition."""
        return self._by.seconds * (_PATIENCE if mode.endswith(PATIENT) else 1)

    def _lines(self, done: ExecResult) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in done.stdout.split(b"\n"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
        if found and "fatal" in found[0]:
            self._refuse(found[0])
        return found

    def _refuse(self, told: Mapping[str, Any]) -> None:
        said = str(told["fatal"])
        missing = said.startswith(("ModuleNotFoundError", "ImportError"))
        remedy = (
            "Name the packages that it imports: --with PACKAGE …"
            if missing
            else "Run it by itself first; it is loaded without a network."
        )
        if "relative import" in said:
            remedy = "Name the file within its package, beside its __init__.py, or a file of your own that imports the function."
        if said.startswith("AttributeError"):
            remedy = f"Name a function of the file: --reward {Path(self._by.file).name}:FUNCTION."
        raise TurnwiseError(f"{self._by.file} cannot be loaded: {said} ({told.get('place')}).", remedy)

    def _verdicts(self, done: ExecResult, asked: int) -> list[Verdict]:
        noted, lines = self._noted(), self._lines(done)
        if not lines and not done.ok and not any(job >= 0 for job in noted):
            raise TurnwiseError(
                f"The process that judges broke off: {quoted(done.err[-300:]) or done.ended.value}.",
                "Run the reward function by itself first.",
            )
        found: list[Verdict] = []
        for line in lines:
            if line.get("job") != len(found):
                continue
            seen = noted.get(len(found), [])
            network = [str(one["net"]) for one in seen if "net" in one]
            traces = [one["trace"] for one in seen if "trace" in one]
            tests: dict[str, int] = {}
            for one in (one["tests"] for one in seen if "tests" in one):
                tests = {name: tests.get(name, 0) + one.get(name, 0) for name in {*tests, *one}} or {
                    "collected": 0
                }
            error = f"{line['error']} ({line['place']})" if line.get("error") else ""
            trace = joined_traces([line.get("trace"), *traces])
            if trace is not None:
                trace["children"] = len(traces)
            took = line.get("seconds", 0.0)
            late = bool(line.get("timeout"))
            found.append(Verdict(line.get("score"), error, late, network, (), trace, "", tests, took))
        if len(found) < asked and not (found and found[-1].timeout):
            why = "" if done.timed_out else f"it ended its process (exit code {done.exit_code})"
            found.append(Verdict(None, why, timeout=done.timed_out))
        return found

    def _noted(self) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        log = self._box.exec(["cat", f"{self._box.workdir}/log"], output=64 * MIB).out
        job = -1
        for line in log.split("\n"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if "job" in value:
                job = value["job"]
                found.setdefault(job, [])
            else:
                found.setdefault(job, []).append(value)
        return found


def joined_traces(traces: Sequence[Any]) -> dict[str, Any] | None:
    """Traces of several processes as one."""
    every = [one for one in traces if one]
    if not every:
        return None
    return {
        "had": sum(one["had"] for one in every),
        "reached": {name: sum(one["reached"][name] for one in every) for name in every[0]["reached"]},
        "raised": [row for one in every for row in one["raised"]],
        "results": {
            name: sum(one["results"].get(name, 0) for one in every)
            for one in every
            for name in one["results"]
        },
        "optimized": max(one.get("optimized", 0) for one in every),
        "files": sorted({name for one in every for name in one["files"]}),
    }
