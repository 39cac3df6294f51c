"""The other learners of a run (``scale.learners``): processes that learn each update beside this one.

Each takes the run's newest checkpoint and then, update by update, the episodes that were played; it computes its share of
every pass over rows, and all take the same steps (:mod:`turnwise.trainers.learn.team`). They write nothing: log and
checkpoints are the first learner's. One that ends or is wedged ends the run with an error that names it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnwise.agents.remote.gpus import share_gpus
from turnwise.envs.registry import EnvEntry, env_entries, get_suite
from turnwise.errors import RunError, TurnwiseError
from turnwise.registry import modules_of_others
from turnwise.tasks.core import Suite
from turnwise.tools.processes import module_path
from turnwise.trainers.learn.group import process_group
from turnwise.trainers.learn.mesh import Mesh, SharedCall
from turnwise.trainers.learn.model import choose_device
from turnwise.trainers.learn.ranks import PATIENCE_S, Meeting, Rank, gone
from turnwise.trainers.run.collect import CollectedGroups
from turnwise.trainers.run.world import Follower, Gathering

START_S = 300.0
"""Seconds that a learner may take to load the model and the checkpoint."""
END_S = 5.0
READY = "ready"


class RankStart(NamedTuple):
    """First message to a learner's process.

    Attributes:
        rank: its number, of ``size``.
        threads: of torch.
        meeting: the file by which learners find one another.
        patience_s: how long they wait for each other.
        recipe: as YAML.
        run: the run's folder.
        source: where its model is.
        checkpoint: where it begins.
        envs: environments that this process knows.
        suites: those of the recipe.
        modules: that register components of others.
        gpu: its own, as CUDA_VISIBLE_DEVICES names it; empty: it has none.
    """

    rank: int
    size: int
    threads: int
    meeting: Path
    patience_s: float
    recipe: str
    run: Path
    source: str
    checkpoint: Path
    envs: tuple[EnvEntry, ...]
    suites: tuple[Suite, ...]
    modules: tuple[str, ...]
    gpu: str = ""


class RunRecipe(NamedTuple):
    """The run's recipe, as far as other learners need it: all of it as YAML, and what starting them takes.

    ``divided``: each learner holds a part of the weights.
    """

    text: str
    learners: int
    device: str
    suites: Sequence[str]
    divided: bool = False


class RankOrder(NamedTuple):  # any other order is a SharedCall
    """An update to learn from, and the metrics of the one before it, by which schedules may go."""

    update: int
    played: CollectedGroups
    seen: Mapping[str, object] | None


class RankProcess:
    """One learner's process."""

    def __init__(self, start: RankStart) -> None:
        self.number = start.rank
        self._log = start.run / f"learner-{start.rank}.log"
        ours, theirs = multiprocessing.Pipe()
        gpu = {"CUDA_VISIBLE_DEVICES": start.gpu} if start.gpu else {}
        command = [sys.executable, "-P", "-m", "turnwise.trainers.run.rank", str(theirs.fileno())]
        with theirs, self._log.open("wb") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, **gpu, "PYTHONPATH": module_path()},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the first learner, which tells the others
            )
        self._connection: Connection = ours
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Thread(target=self._send, name=f"learner {start.rank}", daemon=True)
        self._sending.start()
        self.tell(start)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, message: object) -> None:
        """Send it a message; that it cannot take it shows when it is waited for."""
        self._outbox.put(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def await_ready(self, seconds: float) -> None:
        """Wait until it has loaded everything.

        Raises:
            RunError: it ends first, or takes too long.
        """
        with contextlib.suppress(EOFError, OSError):
            if self._connection.poll(seconds) and self._connection.recv() == READY:
                return
        raise RunError(
            f"A learner did not start: {self.ended(END_S) or f'nothing came for {seconds:.0f} s'}",
            f"Look at {self._log}.",
        )

    def ended(self, seconds: float) -> str:
        """Say how it ended, if it does so within ``seconds``; empty if not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
            if code < 0:
                return f"learner {self.number} was ended by {signal.Signals(-code).name}"
            said = self._log.read_text("utf-8", "replace").strip().splitlines()
            return f"learner {self.number} ended with {code}: {said[-1][:300] if said else 'it said nothing'}"
        return ""

    def close(self) -> None:
        """End it."""
        self._outbox.put(None)
        self._sending.join(END_S)
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._sending.join()

    def _send(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # it is gone, or let go
            while (message := self._outbox.get()) is not None:
                self._connection.send_bytes(message)


class Ranks:
    """This process's part in a team, and the processes of the others.

    Attributes:
        team: for this process's learner.
        processes: of the others.
        mesh: the learners' devices, where each holds a part of the weights; else None.
    """

    def __init__(
        self,
        processes: Sequence[RankProcess | Follower],
        team: Rank,
        mesh: Mesh | None = None,
        why: Callable[[], str] = lambda: "",
    ) -> None:
        self.processes, self.team, self.mesh, self._why = processes, team, mesh, why
        self._seen: Mapping[str, object] | None = None

    def learn(self, update: int, played: CollectedGroups) -> None:
        """Have the others learn from these episodes too; this process's learner must do so next."""
        for process in self.processes:
            process.tell(RankOrder(update, played, self._seen))

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the learner that is gone, where what is done together fails for that.

        Raises:
            RunError: one is gone.
        """
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, TurnwiseError) or not (why := self._why()):
                raise
            raise gone(0, self.team.size, why) from error

    def seen(self, metrics: Mapping[str, Any]) -> None:
        """The metrics of the update that was learned."""
        self._seen = dict(metrics)


def share_of_threads(learners: int) -> int:
    """Threads of torch for each of so many learners on this machine."""
    return max(1, torch.get_num_threads() // learners)


@contextlib.contextmanager
def divided_among(
    team: Rank,
    meeting: Meeting,
    whole: RunRecipe,
    patience_s: float,
    tell: Callable[[SharedCall], None] = lambda call: None,
) -> Iterator[Mesh | None]:
    """Be one of the learners that hold a part of the weights each; None where each holds all of them."""
    if not whole.divided:
        yield None
        return
    device = choose_device(whole.device)
    with process_group(team.rank, team.size, meeting, device, patience_s):
        yield Mesh(device, team.rank, tell)


@contextlib.contextmanager
def other_learners(
    whole: RunRecipe,
    run: Path,
    source: str,
    checkpoint: Path,
    *,
    gathering: Gathering | None = None,
    patience_s: float = PATIENCE_S,
) -> Iterator[Ranks | None]:
    """Run all learners but this one until the end; yield None where there is one.

    They are processes that are started here, or those of ``gathering``.

    Raises:
        RunError: one cannot start, or there are fewer GPUs than learners.
    """
    size = whole.learners
    if size == 1 and not whole.divided:
        yield None
        return
    here = gathering.world.local_size if gathering is not None else size
    gpus = share_gpus(whole.device, learners=here).learners
    before = torch.get_num_threads()
    torch.set_num_threads(share_of_threads(here))
    folder = Path(tempfile.mkdtemp(prefix="turnwise-learners-"))
    started: list[RankProcess] = []
    others: Sequence[RankProcess | Follower] = started

    def why() -> str:
        until = time.monotonic() + 2.0  # a process ends a moment after its connections
        while time.monotonic() < until:
            if found := next((said for one in others if (said := one.ended(0.05))), ""):
                return found
        return ""

    def tell(call: SharedCall) -> None:
        for one in others:
            one.tell(call)

    def start_of(rank: int) -> RankStart:
        return RankStart(
            rank, size, torch.get_num_threads(), folder / "meeting", patience_s, whole.text, run.absolute(),
            source, checkpoint.absolute(), tuple(env_entries()), tuple(map(get_suite, whole.suites)),
            tuple(modules_of_others()), gpus[rank] if gpus and gathering is None else "",
        )  # fmt: skip

    try:
        if gathering is not None:
            others = gathering.all()
            for other in others:
                other.tell(start_of(other.number))
        else:
            for rank in range(1, size):
                started.append(RankProcess(start_of(rank)))
        for other in others:
            other.await_ready(START_S)
        meeting = Meeting.in_file(folder / "meeting", size) if gathering is None else gathering.meeting
        team = Rank(0, size, meeting, patience_s=patience_s, why=why)
        with divided_among(team, meeting, whole, patience_s, tell) as mesh:
            yield Ranks(others, team, mesh, why)
    finally:
        for other in others:
            other.close()
        shutil.rmtree(folder, ignore_errors=True)
        torch.set_num_threads(before)
