"""Carry out one trial: run, let the fault happen, resume, judge."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from faulting import judge
from faulting.draw import DEADLINE, EPISODES, Trial
from faulting.power import cut
from faulting.server import serve
from faulting.worlds import PLAN, hit
from turnwise.errors import TurnwiseError

HOME = Path(__file__).parent.parent
GROUP_SIZE = 4
RECIPE = """\
suite: faults/WORLD
seed: 3
device: cpu
model: {scratch: {layers: 1, width: 64, heads: 2, init: random, vocab_size: 300, context: 128, text_episodes: 10}}
engine: {kind: torch, max_sequences: 16}
sampling: {max_tokens: 6, tools: none}
warm_start: {episodes: 24, batch_size: 8, checkpoint_every: 2}
rollout: {groups: 3, group_size: 4, concurrency: 16, step_s: 2.0, max_failed: 1.0}
loss: [clip, {name: entropy, weight: 0.001}]
optimizer: {learning_rate: 3.0e-3, minibatches: 2}
updates: 2
evaluate: {every: 2, dev: 4, test: 4}
checkpoint: {every: 1}
"""
MODULES = {
    "eval": (
        "turnwise.cli.app",
        "turnwise.agents.evaluation.folder",
        "turnwise.agents.policies.served.policy",
    ),
    "train": (
        "turnwise.cli.app",
        "torch",
        "turnwise.trainers.run.loop",
        "turnwise.trainers.report.page",
        "transformers",
    ),
}
MOST_SECONDS = {"eval": 90.0, "train": 150.0}
"""After which a process is taken to hang."""
LEFT_SECONDS = 15.0
"""How long what a process leaves behind may take to end."""
MOST_RESUMES = 8
OUTCOMES = {"same": "identical", "masked": "masked", "mistake": "agent's failure", "counted": "counted"}
PLANNED = {-signal.SIGKILL, -signal.SIGTERM, 130, 143}


class Ended(NamedTuple):
    """A process that ended: its code (None: it had to be killed), what it printed, where the fault met it."""

    code: int | None
    out: str
    err: str
    seconds: float
    place: str
    left: int = 0

    @property
    def answer(self) -> Any:
        """The one JSON value on stdout; None if it is not."""
        try:
            return json.loads(self.out)
        except ValueError:
            return None

    @property
    def named(self) -> bool:
        """Whether an error has a cause and a remedy, and is not said to be a bug of ours."""
        said = self.answer
        if "please report it" in self.out + self.err:
            return False
        whole = isinstance(said, dict) and bool(said.get("cause")) and bool(said.get("remedy"))
        return whole or "\n→ " in self.err


class Zygote:
    """The process that trials' processes are forked from."""

    def __init__(self, scope: str) -> None:
        path = os.pathsep.join((str(HOME), str(HOME.parent / "src")))
        one = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": path}
        command = [sys.executable, "-m", "faulting.child", *MODULES[scope]]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env={**os.environ, **one}, **pipes)

    def run(self, command: list[str], env: Mapping[str, str], folder: Path, limit: float, mark: str) -> Ended:
        """Run one command line in a new process and wait until it ends, or kill it."""
        out, err, place = folder / "stdout", folder / "stderr", folder / "place"
        for file in (out, err, place):
            file.unlink(missing_ok=True)
        order = {
            "command": command,
            "env": {**env, "FAULTS_TRIAL": mark},
            "stdout": str(out),
            "stderr": str(err),
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        pid, began = self._answer(60)["pid"], time.monotonic()
        status = self._answer(limit)
        if hung := not status:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            status = self._answer(30)
        code = None if hung else os.waitstatus_to_exitcode(status["status"])
        seconds = time.monotonic() - began
        said = place.read_text() if place.exists() else ""
        return Ended(code, _text(out), _text(err), seconds, said, _left(mark))

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        with self.process:  # closes its pipes, and waits
            self.process.stdin.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        there = select.poll()
        there.register(stream, select.POLLIN)
        if not there.poll(seconds * 1000):
            return {}
        return json.loads(stream.readline())


def _text(path: Path) -> str:
    return path.read_bytes()[-2_000_000:].decode("utf-8", "replace") if path.exists() else ""


def _left(mark: str) -> int:
    """Processes that a trial left behind, after the time that they may take."""
    until = time.monotonic() + LEFT_SECONDS
    wanted = f"FAULTS_TRIAL={mark}\0".encode()
    while True:
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (entry / "environ").read_bytes() + b"\0":
                        found.append(int(entry.name))
        if not found or time.monotonic() > until:
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return len(found)
        time.sleep(0.1)


# --- one trial ---------------------------------------------------------------------------------------


_references = threading.Lock()


class Runner:
    """Carries out trials in a folder of its own; references are made when they are first needed."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.zygotes: dict[str, Zygote] = {}

    def close(self) -> None:
        """End the processes that wait for orders."""
        for zygote in self.zygotes.values():
            zygote.close()

    def __call__(self, trial: Trial) -> dict[str, Any]:
        """What came of it, as one JSON object."""
        with _references:  # made once, whoever needs them
            reference = self._reference(trial)
        folder = self.work / f"trial-{trial.seed}-{trial.number}"
        shutil.rmtree(folder, ignore_errors=True)
        began = time.monotonic()
        with _disk(trial, folder) as disk, serve(trial.server) as server:
            one = _Run(self, trial, folder, disk, server.url)
            wrong = one.play(reference)
        result = {
            "number": trial.number,
            "seed": trial.seed,
            "scope": trial.scope,
            "kind": trial.kind,
            "fault": trial.fault,
            "world": trial.world,
            "expect": trial.expect,
            "outcome": "violation" if wrong else one.outcome(reference),
            "violations": wrong[:5],
            "places": [ended.place for ended in one.ended if ended.place],
            "codes": [ended.code for ended in one.ended],
            "said": one.said,
            "seconds": round(time.monotonic() - began, 1),
        }
        if not wrong:
            shutil.rmtree(folder)
        return result

    def zygote(self, scope: str) -> Zygote:
        """The process that this scope's processes are forked from."""
        if scope not in self.zygotes:
            self.zygotes[scope] = Zygote(scope)
        return self.zygotes[scope]

    def _reference(self, trial: Trial) -> Path:
        """The run that nothing happened to."""
        who = "server" if trial.server else "script"
        alone = "-alone" if trial.scope == "train" and trial.hazard else ""
        folder = self.work / f"reference-{trial.scope}-{trial.world}-{who}-{trial.task_seed}{alone}"
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            calm = Trial(0, 0, trial.scope, "none", "nothing", world=trial.world, task_seed=trial.task_seed)
            never = {"name": "", "place": "", "once": False, "share": 0.0, "salt": 0}
            calm = calm._replace(server=never if trial.server else None, hazard=never if alone else None)
            folder.mkdir(parents=True)
            with serve(None) as server:
                one = _Run(self, calm, folder, folder, server.url)
                ended = one.run(0)
            if ended.code != 0:
                raise TurnwiseError(
                    f"The reference run in {folder} failed: {ended.err[-500:]}", "Fix that first."
                )
            (folder / "done").touch()
        return folder / "run"


class _Run:
    """The processes of one trial."""

    def __init__(self, runner: Runner, trial: Trial, folder: Path, disk: Path, url: str) -> None:
        self.runner, self.trial, self.folder, self.url = runner, trial, folder, url
        self.out = disk / "run"
        self.journal = folder / "journal"
        self.ended: list[Ended] = []
        self.wrong: list[str] = []
        self.said = ""
        self.before: list[dict[str, Any]] = []  # finished before the last resume, and not to be made again
        self.checkpoint = -1
        (folder / "marks").mkdir(parents=True, exist_ok=True)

    def play(self, reference: Path) -> list[str]:
        """Run and resume until it is done; what is wrong."""
        trial = self.trial
        for number in range(len(trial.kills) + MOST_RESUMES):
            ended = self.run(number)
            self.ended.append(ended)
            self._check_end(ended, number)
            if trial.scope == "train" and number and (ended.code == 0 or "warm start, greedy" in ended.err):
                self.wrong += judge.resumed(ended.err, self.checkpoint)
            if self._done(ended):
                break
            before = self._saved()
            if trial.power:
                cut(
                    self.out,
                    self.journal,
                    Random(f"{trial.seed}/{trial.number}/{number}"),
                    names=trial.power == "names",
                )
                self._check_power(before)
            self._note()
            if trial.tmpfs:
                _room(self.out.parent, 200 << 10)
        else:
            return [
                *self.wrong,
                f"it did not come to its end in {len(self.ended)} runs: {self.ended[-1].err[-300:]}",
            ]
        self.wrong += judge.kept(self.before, self._saved())
        return self.wrong + self._verdict(reference)

    def run(self, number: int) -> Ended:
        """One process: the first run or a resume."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps(self._plan(number)))
        command = self._command() + (["--resume"] if number else [])
        zygote, limit = self.runner.zygote(self.trial.scope), MOST_SECONDS[self.trial.scope]
        mark = f"{os.getpid()}-{self.trial.seed}-{self.trial.number}"
        return zygote.run(command, {PLAN: str(path)}, self.folder, limit, mark)

    def outcome(self, reference: Path) -> str:
        """In a word, where nothing is wrong."""
        trial = self.trial
        met = any(ended.place for ended in self.ended) or len(self.ended) > 1 or not trial.kills
        full = trial.kind != "full disk" or len(self.ended) > 1
        if not (met and full and self._met(reference)):
            return "did not meet the run"
        how = "resumed: " if len(self.ended) > 1 else ""
        expect = trial.expect
        if expect == "costs":
            expect = "same" if all(judge.counts(line) for line in self._saved()) else "masked"
        return how + OUTCOMES[expect]

    # --- inside ----------------------------------------------------------------------------------

    def _plan(self, number: int) -> dict[str, Any]:
        trial = self.trial
        plan: dict[str, Any] = {**trial.plan, "out": str(self.out), "place": str(self.folder / "place")}
        if number < len(trial.kills):
            plan["kill"] = trial.kills[number]
            if trial.power:
                plan["journal"] = str(self.journal)
                self.journal.unlink(missing_ok=True)
                shutil.rmtree(self.journal.with_suffix(".kept"), ignore_errors=True)
        if number and trial.kind == "full disk":
            plan.pop("disk", None), plan.pop("size_limit", None)
        if trial.hazard is not None:
            plan["hazard"] = trial.hazard | {"marks": str(self.folder / "marks")}
        return plan

    def _command(self) -> list[str]:
        trial = self.trial
        if trial.scope == "train":
            recipe = self.folder / "recipe.yaml"
            recipe.write_text(RECIPE.replace("WORLD", trial.world))
            command = ["train", str(recipe), "--out", str(self.out), "--json"]
            if trial.expect != "same":
                command += ["--no-preflight"]
            changes = [f"rollout.env_workers={trial.workers}"]
            if "limits" in trial.plan:
                changes.append(f"rollout.reset_s={trial.plan['limits']['reset_s']}")
            if (
                trial.world == "blocking" or trial.hazard
            ):  # batches depend on time there, and rounding on them
                changes.append("rollout.concurrency=1")
            return [*command, "--set", *changes]
        policy = f"openai:letters@{self.url}" if trial.server else "scripted:gold"
        options = {
            "--policy": policy, "--episodes": EPISODES, "--k": 2, "--seed": trial.task_seed, "--concurrency": 4,
            "--step-s": DEADLINE, "--generate-s": 3, "--max-failed": 1, "--env-option": "mixed=true",
            "--env-workers": trial.workers, "--out": self.out,
        }  # fmt: skip
        return [
            "eval",
            f"faults/{trial.world}",
            *(str(x) for pair in options.items() for x in pair),
            "--json",
        ]

    def _done(self, ended: Ended) -> bool:
        answer = ended.answer
        return ended.code == 0 and isinstance(answer, dict) and not answer.get("interrupted")

    def _saved(self) -> list[dict[str, Any]]:
        """The episodes that the log holds now."""
        return judge.records(self.out / "episodes.jsonl.zst")

    def _note(self) -> None:
        """What the next process must find and keep."""
        self.before = self._saved()
        if self.trial.scope == "train":
            self.checkpoint = judge.newest(self.out / "checkpoints")
            self.before = [line for line in self.before if line["update"] <= self.checkpoint]

    def _check_end(self, ended: Ended, number: int) -> None:
        if ended.code is None:
            self.wrong.append(f"run {number + 1} did not end in {ended.seconds:.0f} s")
        if ended.left:
            self.wrong.append(f"run {number + 1} left {ended.left} processes behind")
        killed = number < len(self.trial.kills) and (ended.place or ended.code in PLANNED)
        expected = killed or (self.trial.hazard or {}).get("name") == "os_exit"
        if ended.code not in (0, None) and not expected:
            if ended.named:
                answer = ended.answer or {}
                self.said = str(answer.get("cause") or ended.err.strip())[-300:]
            else:
                self.wrong.append(
                    f"run {number + 1} ended with {ended.code} and no remedy: {(ended.out + ended.err)[-400:]}"
                )
        if ended.code == 0 and ended.answer is None:
            self.wrong.append(f"stdout is not one JSON value: {ended.out[:80]!r}")

    def _check_power(self, before: list[dict[str, Any]]) -> None:
        """At most the frame that was being written may be gone."""
        lost = len(before) - len(self._saved())
        most = 16 if self.trial.scope == "eval" else 12
        if lost > most:
            self.wrong.append(f"a power failure took {lost} finished episodes, more than the last frame")

    def _verdict(self, reference: Path) -> list[str]:
        trial = self.trial
        if trial.scope == "eval":
            return judge.evaluation(self.out, reference, trial.expect, self._hit)
        if trial.expect == "same":
            return judge.same_run(self.out, reference)
        return judge.faulty_run(self.out, trial.expect, self._hit, GROUP_SIZE)

    def _hit(self, prompt: str) -> bool:
        fault = self.trial.hazard or self.trial.server
        return fault is not None and hit(fault, prompt)

    def _met(self, reference: Path) -> bool:
        """Whether any task is one that the fault hits."""
        if self.trial.hazard is None and self.trial.server is None:
            return True
        if self.trial.hazard is not None and self.trial.hazard["once"]:
            return any((self.folder / "marks").iterdir())
        return any(self._hit(judge.prompt(line)) for line in judge.records(reference / "episodes.jsonl.zst"))


@contextlib.contextmanager
def _disk(trial: Trial, folder: Path) -> Iterator[Path]:
    """Where the run's folder goes: a small file system of its own, where the trial wants one and this is root."""
    disk = folder / "disk"
    disk.mkdir(parents=True)
    if not trial.tmpfs:
        yield disk
        return
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={trial.tmpfs}k", "turnwise-faults", str(disk)], check=True
    )
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _room(disk: Path, kib: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kib}k", str(disk)], check=True)
