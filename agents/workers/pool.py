"""The pool of worker processes: which environment runs in which, and what happens when one ends."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Generator, Hashable, Mapping
from typing import Any, Self

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
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
    """Processes in which environments are made and stepped; a process that ends is replaced when it is needed.

    Each environment has a thread of its own in its process, so a few processes serve many episodes. Which episodes
    a process holds is known by their keys, such as (seed, update, group, member): those of a process that ended go
    on in another.

    >>> import turnwise
    >>> with WorkerPool(1) as pool:
    ...     (episode,) = turnwise.rollout("calc/easy", "scripted:gold", env_workers=pool)
    >>> episode.score
    1.0

    Args:
        workers: how many processes.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise TurnwiseError(f"A pool of {workers} workers can do nothing.", "Give at least 1.")
        self.size = workers
        self._workers: list[Worker] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._looking: threading.Thread | None = None

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
            RunError: the pool is closed.
        """
        cls = env_class(name)
        if cls.__module__ == "__main__":
            raise EnvError(
                f"{cls.__name__} is defined in a script or a notebook, where worker processes do not find it.",
                "Move it into a module of its own, or set rollout.env_workers to 0.",
            )
        with self._lock:
            if self._closed.is_set():
                raise RunError("The pool of worker processes is closed.", "Make a new one.")
            worker = self._choose(alone)
            slot = worker.open_slot(key)
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
        with self._lock:
            return [worker for worker in self._workers if not worker.ended]

    def close(self) -> None:
        """End every process, and everything that they started."""
        with self._lock:
            self._closed.set()
            ending, self._workers = self._workers, []
        at_once(functools.partial(worker.close, CLOSE_S) for worker in ending)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------

    def _choose(self, alone: bool) -> Worker:
        if alone:
            return self._start(alone=True)
        usable = [worker for worker in self._workers if worker.usable and not worker.alone]
        best = min(usable, key=lambda worker: len(worker.slots), default=None)
        if best is None or (best.slots and len(usable) < self.size):
            return self._start(alone=False)
        return best

    def _start(self, *, alone: bool) -> Worker:
        worker = Worker(next(self._numbers), alone=alone, on_end=self._ended)
        self._workers.append(worker)
        if self._looking is None:
            self._looking = threading.Thread(target=self._look, name="turnwise-workers", daemon=True)
            self._looking.start()
        return worker

    def _look(self) -> None:
        while not self._closed.wait(LOOK_S):
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
def workers_for(count: int) -> Generator[WorkerPool | None]:
    """A pool of ``count`` processes for a while; None for 0, where environments stay in this process."""
    if count == 0:
        yield None
        return
    with WorkerPool(count) as pool:
        yield pool
