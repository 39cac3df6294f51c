"""The pool of worker processes: which environment runs in which, and what happens when one ends."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Generator, Hashable, Mapping
from typing import Any, Self

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.workers.hosted import HostedWorkers, WorkerHosts
from turnwise.agents.workers.process import LocalProcess
from turnwise.agents.workers.remote import RemoteEnv
from turnwise.agents.workers.worker import Worker
from turnwise.envs.registry import env_class, env_entries
from turnwise.errors import EnvError, RunError, TurnwiseError
from turnwise.tools.processes import at_once

MAKE_S = 120.0
"""Seconds that making an environment may take once its process has started."""
CLOSE_S = 20.0
LOOK_S = 1.0


class WorkerPool:
    """Processes in which environments are made and stepped, of this machine or of other hosts; one that ends is replaced.

    Each environment has a thread of its own in its process, so a few processes serve many episodes. Which episodes
    a process holds is known by their keys, such as (seed, update, group, member): those of a process that ended go
    on in another.

    >>> import turnwise
    >>> with WorkerPool(1) as pool:
    ...     (episode,) = turnwise.rollout("calc/easy", "scripted:gold", env_workers=pool)
    >>> episode.score
    1.0

    Args:
        workers: how many processes of this machine, or the hosts that they are on.

    Raises:
        TurnwiseError: there would be none, or the hosts' token cannot be read.
    """

    def __init__(self, workers: int | WorkerHosts) -> None:
        if isinstance(workers, int) and workers < 1:
            raise TurnwiseError(f"A pool of {workers} workers can do nothing.", "Give at least 1.")
        self._workers: list[Worker] = []  # but for those that hosts have, unless they are alone
        self._numbers = itertools.count()
        self._lock = threading.Condition()
        self._closed = threading.Event()
        self._looking: threading.Thread | None = None
        self._size, self._hosted = 0, None
        if isinstance(workers, int):
            self._size = workers
        else:
            self._patience_s = workers.patience_s
            self._hosted = HostedWorkers(workers, self._stir)
            self._begin_to_look()

    def make(
        self,
        name: str,
        options: Mapping[str, Any],
        key: Hashable,
        *,
        alone: bool = False,
        seconds: float = MAKE_S,
    ) -> RemoteEnv:
        """Make an environment in the process that has the fewest; ``alone``: in a process that has no other.

        Raises:
            Fault: it cannot be made, or not in ``seconds``.
            EnvError: its class refuses the options, or is in a script or a notebook, where no other process finds it.
            RunError: the pool is closed, or no host serves.
        """
        cls = env_class(name)
        if cls.__module__ == "__main__":
            raise EnvError(
                f"{cls.__name__} is defined in a script or a notebook, where worker processes do not find it.",
                "Move it into a module of its own, or set rollout.env_workers to 0.",
            )
        worker, slot = self._place(key, alone)
        env = RemoteEnv(cls, worker, slot, self._left)
        entry = next(entry for entry in env_entries() if entry.name == name)
        try:
            worker.ask(
                slot, "make", f"making {name}", seconds, (entry,), dict(options)
            ).result().raise_fault()
        except Fault as fault:
            env.close()
            if fault.outcome is Outcome.ENV_ERROR:  # as it would be for all, and here too
                raise EnvError(
                    f"{name} cannot be made: {fault}", "Fix its options or its __init__."
                ) from fault
            raise
        except BaseException:
            env.close()
            raise
        return env

    def workers(self) -> list[Worker]:
        """Those that run."""
        hosted = self._hosted.workers() if self._hosted is not None else []
        with self._lock:
            return [worker for worker in self._workers if not worker.ended] + hosted

    def close(self) -> None:
        """End every process, and everything that they started."""
        with self._lock:
            self._closed.set()
            ending, self._workers = self._workers, []
            self._lock.notify_all()
        closing = [functools.partial(worker.close, CLOSE_S) for worker in ending]
        at_once(closing if self._hosted is None else [*closing, self._hosted.close])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------

    def _place(self, key: Hashable, alone: bool) -> tuple[Worker, int]:
        """A place for an environment, as soon as there is one."""
        until = time.monotonic() + (self._patience_s if self._hosted is not None else 0.0)
        while True:
            own = self._hosted.open_alone(self._ended) if self._hosted is not None and alone else None
            with self._lock:
                if self._closed.is_set():
                    raise RunError("The pool of worker processes is closed.", "Make a new one.")
                if own is not None:
                    self._workers.append(own)
                worker = own or self._choose(alone)
                if worker is not None:
                    return worker, worker.open_slot(key)
                assert self._hosted is not None, "processes of this machine can always be started"
                if self._hosted.hopeless or time.monotonic() > until:
                    raise RunError(
                        f"No host of environments serves. {self._hosted.why_none()}.",
                        "See to the hosts (`turnwise serve-workers`); a run goes on with --resume.",
                    )
                self._lock.wait(LOOK_S)

    def _choose(self, alone: bool) -> Worker | None:
        """The process with the fewest environments; of this machine one more while there may be more."""
        if self._hosted is not None:
            usable = [] if alone else [worker for worker in self._hosted.workers() if worker.usable]
            return min(usable, key=lambda worker: len(worker.slots), default=None)
        if alone:
            return self._start(alone=True)
        usable = [worker for worker in self._workers if worker.usable and not worker.alone]
        best = min(usable, key=lambda worker: len(worker.slots), default=None)
        if best is None or (best.slots and len(usable) < self._size):
            return self._start(alone=False)
        return best

    def _start(self, *, alone: bool) -> Worker:
        number = next(self._numbers)
        worker = Worker(number, LocalProcess(number), alone=alone, on_end=self._ended)
        self._workers.append(worker)
        self._begin_to_look()
        return worker

    def _begin_to_look(self) -> None:
        if self._looking is None:
            self._looking = threading.Thread(target=self._look, name="turnwise-workers", daemon=True)
            self._looking.start()

    def _stir(self) -> None:
        with self._lock:
            self._lock.notify_all()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_S):
            if self._hosted is not None:
                self._hosted.look()
            for worker in self.workers():
                worker.look()

    def _left(self, env: RemoteEnv) -> None:
        """An environment was closed; a process that has none left and something wrong with it goes."""
        worker = env.worker
        with self._lock:
            worker.slots.pop(env.slot, None)
            spent = not worker.slots and (worker.alone or worker.stuck or not worker.usable)
        if spent:
            threading.Thread(target=worker.close, args=(CLOSE_S,), daemon=True).start()

    def _ended(self, worker: Worker) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._workers.remove(worker)


@contextlib.contextmanager
def workers_for(workers: int | WorkerHosts) -> Generator[WorkerPool | None]:
    """A pool of so many processes, or of hosts, for a while; None for 0, where environments stay in this process."""
    if workers == 0:
        yield None
        return
    with WorkerPool(workers) as pool:
        yield pool
