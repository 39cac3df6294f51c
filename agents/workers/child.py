"""The worker process itself: environments in slots, each in a thread, and a heartbeat.

Started by :mod:`turnwise.agents.workers.worker` with the number of the socket that leads to its parent.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault, fault_of
from turnwise.agents.workers.agreement import agree
from turnwise.agents.workers.wire import (
    Ask,
    Beat,
    Bye,
    Connection,
    Hello,
    Packed,
    Parting,
    WorkerAnswer,
    WorkerFacts,
)
from turnwise.envs.baselines import moment
from turnwise.envs.core import AgentEnv, Snapshot
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import EnvEntry, env_entries, make, register
from turnwise.errors import EnvError
from turnwise.watchdog import limited

BEAT_S = 0.25
FLOOD = 1 << 20
"""Characters that an environment may print in one call."""
CLOSE_S = 10.0


class Slot(threading.Thread):
    """One environment and the thread that calls it."""

    def __init__(self, number: int, connection: Connection) -> None:
        super().__init__(name=f"slot {number}", daemon=True)
        self.inbox = queue.SimpleQueue[Ask]()
        self.asked: Ask | None = None
        self.since = 0.0
        self.printed = 0
        self.env: AgentEnv[Any] | None = None
        self._closed = threading.Lock()
        self._connection = connection

    def run(self) -> None:
        while True:
            ask = self.inbox.get()
            self.since, self.printed, self.asked = time.monotonic(), 0, ask
            answer = self._answer(ask)
            self.asked = None
            try:
                self._connection.send(answer)
            except OSError:  # the parent is gone
                return
            except Exception as error:  # noqa: BLE001 (pickle raises anything)
                self._connection.send(WorkerAnswer(ask.number, fault=_cannot_cross(ask.method, error)))
            if ask.method == "close":
                return

    def _answer(self, ask: Ask) -> WorkerAnswer:
        cls: type[AgentEnv[Any]] = type(self.env) if self.env is not None else AgentEnv
        try:
            value = limited(f"{ask.method}() of {cls.__name__}", ask.seconds, self._call, ask)
        except BaseException as error:  # noqa: BLE001 (an environment may raise anything)
            return WorkerAnswer(ask.number, fault=fault_of(error, cls))
        if self.env is None or ask.method not in _MOVES:
            return WorkerAnswer(ask.number, value)
        return WorkerAnswer(ask.number, value, facts=self._facts(self.env), checkpoint=_checkpoint(self.env))

    def _call(self, ask: Ask) -> bytes:
        args, kwargs = pickle.loads(ask.arguments)
        value = self._value(ask.method, args, kwargs)
        try:
            return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise _cannot_cross(ask.method, error) from error

    def _value(self, asked: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if asked == "make":
            entry: EnvEntry = args[0]
            if entry.name not in {
                known.name for known in env_entries()
            }:  # registered after this process began
                register(entry.name, entry.entry_point, entry.about)
            self.env = make(entry.name, **kwargs)
            return None
        if asked == "close":
            return self.close()
        if asked == "agree":
            return agree(*args)
        assert self.env is not None, "make comes first"
        match asked:
            case "snapshot":
                return _packed(self.env)
            case "restore":
                return self.env.restore(_unpacked(*args))
            case "script":
                script, observation, name = args
                return script(moment(self.env, observation, name))
            case name:
                found = getattr(self.env, name)
                return found(*args, **kwargs) if callable(found) else found

    def close(self) -> None:
        """Close the environment, once; whoever comes later waits until it is closed."""
        with self._closed:
            env, self.env = self.env, None
            if env is not None:
                env.close()

    def _facts(self, env: AgentEnv[Any]) -> WorkerFacts:
        agents = env.agents
        return WorkerFacts(
            agents, env.agent, {name: tuple(t.spec for t in env.tools_for(name)) for name in agents}
        )


_MOVES = ("reset", "restore", "step")


def _checkpoint(env: AgentEnv[Any]) -> Snapshot[Any] | None:
    """The present moment, where steps are slow enough to make packing it cheap beside them."""
    if isinstance(env, LiveEnv) or not env.blocking:
        return None
    with contextlib.suppress(Exception):  # what cannot be packed is brought back by playing again
        return _packed(env)
    return None


def _packed(env: AgentEnv[Any]) -> Snapshot[Any]:
    if isinstance(env, LiveEnv):
        raise EnvError(
            f"A moment of {type(env).__name__} cannot leave its worker process: its world is there.",
            "Set rollout.env_workers to 0, or rollout.strategy to chain.",
        )
    moment = env.snapshot()
    return moment._replace(state=Packed(pickle.dumps(moment.state, pickle.HIGHEST_PROTOCOL)))


def _unpacked(moment: Snapshot[Any]) -> Snapshot[Any]:
    if isinstance(moment.state, Packed):
        return moment._replace(state=pickle.loads(moment.state.state))
    return moment


def _cannot_cross(method: str, error: Exception) -> Fault:
    return Fault(
        Outcome.ENV_ERROR,
        f"what {method}() gives cannot leave its worker process: {type(error).__name__}: {error}"
        " → Keep to plain data, or set rollout.env_workers to 0.",
    )


class Gauge(io.TextIOBase):
    """Standard output and error of environments: counted, and passed on while it is not too much."""

    def __init__(self, under: Any) -> None:
        self._under = under

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._under.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._under.encoding

    @property
    def buffer(self) -> Any:
        return self._under.buffer

    def write(self, text: str, /) -> int:
        thread = threading.current_thread()
        if isinstance(thread, Slot):
            thread.printed += len(text)
            if thread.printed > FLOOD:
                raise EnvError(
                    f"The environment printed more than {FLOOD:,} characters in one call.",
                    "Take its debugging output out.",
                )
        with contextlib.suppress(OSError, ValueError):
            self._under.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._under.flush()


def serve(connection: Connection) -> None:
    """Answer until the parent hangs up."""
    hello: Hello = connection.receive()
    sys.path.extend(item for item in hello.path if item not in sys.path)
    os.environ.clear()  # what was for starting this process is not for those that environments start
    os.environ.update(hello.variables)
    slots: dict[int, Slot] = {}
    closing: list[Slot] = []
    _announce_exits(connection)
    threading.Thread(target=_beat, args=(connection, slots), daemon=True).start()
    while (frame := connection.receive()) is not None and not isinstance(frame, Bye):
        if frame.slot not in slots:
            slots[frame.slot] = Slot(frame.slot, connection)
            slots[frame.slot].start()
        slots[frame.slot].inbox.put(frame)
        if frame.method == "close":
            closing = [slot for slot in closing if slot.is_alive()] + [slots.pop(frame.slot)]
    _close_all([*slots.values(), *closing])


def _beat(connection: Connection, slots: dict[int, Slot]) -> None:
    while True:
        now = time.monotonic()
        asked = [(slot.asked, slot.since) for slot in list(slots.values())]
        with contextlib.suppress(OSError):
            running = {ask.number: now - since for ask, since in asked if ask is not None}
            connection.send(Beat(running, os.getpid()))
        time.sleep(BEAT_S)


def _announce_exits(connection: Connection) -> None:
    """Let ``os._exit`` say whose environment calls it, before it ends them all."""
    end, own = os._exit, os.getpid()

    def announced(code: int) -> None:
        thread = threading.current_thread()
        forked = os.getpid() != own  # a process that an environment forked ends itself alone
        if not forked and isinstance(thread, Slot) and thread.asked is not None:
            with contextlib.suppress(OSError):
                connection.send(Parting(thread.asked.number, code))
        end(code)

    os._exit = announced  # pyright: ignore[reportAttributeAccessIssue]


def _close_all(slots: Iterable[Slot]) -> None:
    """Close what can be closed in time; the keeper ends the rest."""

    def close(slot: Slot) -> None:
        with contextlib.suppress(Exception):
            slot.close()

    closing = [threading.Thread(target=close, args=(slot,), daemon=True) for slot in slots]
    until = time.monotonic() + CLOSE_S
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join(max(0.0, until - time.monotonic()))


def main(descriptor: int) -> None:
    """Serve, and end without waiting for threads that hang."""
    sys.stdout, sys.stderr = Gauge(sys.stdout), Gauge(sys.stderr)
    end = os._exit
    try:
        serve(Connection(socket.socket(fileno=descriptor)))
    finally:
        sys.stdout.flush()
        end(0)
