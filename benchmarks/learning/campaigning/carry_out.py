"""A cell is carried out in a process of its own; what it took is written down while it runs."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from campaigning.plan import Cell, Plan, overrides_of
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError

POLL_S = 0.5
NOTE_S = 5.0  # a campaign that is killed forgets no more of its time than this
DONE, STOPPED, FAILED, REFUSED = "done", "stopped", "failed", "refused"
REFUSED_CODE = 2
_CODES = {
    0: DONE,
    130: STOPPED,
    REFUSED_CODE: REFUSED,
    -signal.SIGINT: STOPPED,
}  # the last: before the run could listen


class Sessions:
    """The times in which a cell's run was at work, in a file beside its folder."""

    def __init__(self, run: Path) -> None:
        self.path = run.with_name(f"{run.name}.sessions.json")
        self.rows: list[dict[str, Any]] = (
            json.loads(self.path.read_text("utf-8")) if self.path.exists() else []
        )

    def begin(self) -> None:
        self.rows.append(
            {
                "began": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
                "commit": commit(),
                "load_before": [round(load, 2) for load in os.getloadavg()],
                "load_during": {"mean": None, "max": None, "samples": 0},
                "seconds": 0.0,
                "ended": "killed",  # until it is known better
            }
        )
        self.write()

    def note(self, seconds: float, ended: str = "killed") -> None:
        load, row = os.getloadavg()[0], self.rows[-1]
        known, samples = row["load_during"], row["load_during"]["samples"]
        row["load_during"] = {
            "mean": round(((known["mean"] or 0.0) * samples + load) / (samples + 1), 2),
            "max": round(max(known["max"] or 0.0, load), 2),
            "samples": samples + 1,
        }
        row |= {"seconds": round(seconds, 1), "ended": ended}
        self.write()

    def spent(self, cpu_seconds: float) -> None:
        """Note what the session's process took of processors, which a busy machine does not lengthen."""
        self.rows[-1]["cpu_seconds"] = round(cpu_seconds, 1)
        self.write()

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps(self.rows, indent=1) + "\n")

    @property
    def seconds(self) -> float:
        return sum(row["seconds"] for row in self.rows)


def carry_out(cell: Cell, command: Sequence[str], runs: Path, seconds: float) -> str:
    """Train until the cell is done or the time is spent; returns how it ended.

    The run saves itself and stops when the time is spent, on Ctrl-C, and when this process dies.
    """
    folder = cell.folder(runs)
    folder.mkdir(parents=True, exist_ok=True)
    hear_interrupts()
    wait_until_free(folder)
    sessions, began, spent = Sessions(folder), time.monotonic(), cpu_of_children()
    sessions.begin()
    with open(folder.with_name(f"{folder.name}.log"), "a", encoding="utf-8") as log:
        # OpenMP threads that spin ruin an engine that shares its cores with a trainer.
        quiet = {"OMP_WAIT_POLICY": "passive", **os.environ}
        child = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=quiet,
        )
        asked_to_stop, noted = False, began
        try:
            while child.poll() is None:
                time.sleep(POLL_S)
                now = time.monotonic()
                if now - noted > NOTE_S:
                    sessions.note(now - began)
                    noted = now
                if now - began > seconds and not asked_to_stop:
                    child.send_signal(signal.SIGINT)
                    asked_to_stop = True
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            sessions.note(time.monotonic() - began, STOPPED)
            raise
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            sessions.spent(cpu_of_children() - spent)
    ended = _CODES.get(child.returncode, FAILED)
    sessions.note(time.monotonic() - began, ended)
    return ended


def cpu_of_children() -> float:
    """Seconds of processors that the children of this process took, those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hear_interrupts() -> None:
    """A shell's background jobs ignore SIGINT, and so would whatever they start; what is caught here, a new program does not ignore.

    Nothing else is done on the way to it (``preexec_fn``): Python's own hooks run after such a fork, and an interrupt that comes in one of them is lost.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until_free(folder: Path, patience_s: float = 600.0) -> None:
    """Wait for the run of a campaign that was killed: it finishes its update and saves.

    Raises:
        TurnwiseError: it takes too long.
    """
    try:
        with FileLock(folder / ".lock").acquire(timeout=patience_s):
            pass
    except Timeout:
        raise TurnwiseError(
            f"Another process still trains in {folder}.", "Wait until it ends, or stop it, then go on."
        ) from None


def train_cell(plan: Plan, cell: Cell, runs: Path) -> int:
    """Train a cell in this process, which is its own; the exit code says how it ended."""
    from campaigning.after import ask
    from turnwise.trainers.run.loop import train

    _stop_with_parent()
    recipe, folder = plan.settings[cell.setting].recipe, cell.folder(runs)
    place = plan.placement.get(cell.method, "")
    result = train(recipe, out=folder, resume=True, on=place, **overrides_of(plan, cell, runs))
    if result.interrupted:
        return 130
    ask(plan, cell, runs)
    return 0


def _stop_with_parent() -> None:
    """Stop as if asked to when the campaign that started this process is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_S)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def commit() -> str:
    """The commit of the working folder; with ``+`` where sources differ from it."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "HEAD")[:12] + ("+" if changed else "")


def command_of(plan: Path, cell: Cell, runs: Path) -> list[str]:
    """How a cell's own process is started."""
    script = Path(__file__).parents[1] / "campaign.py"
    named = [cell.setting, cell.method, str(cell.seed)]
    return [sys.executable, str(script), "one", str(plan), *named, "--runs", str(runs)]
