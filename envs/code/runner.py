"""Runs programs in sandboxes: a few long-lived ones per process, cleaned after every run.

A run is a function of the program and its inputs: files that it leaves are removed, processes killed, so nothing of
one run reaches another. That makes an environment's state plain text and its fork free. What was run
lately is remembered, so the same program on the same inputs runs once.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple, cast

from turnwise.envs.code.expression import ExpressionError, evaluate
from turnwise.envs.code.kernel import NotPlain, decode, encode
from turnwise.envs.code.problem import Mode
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, digest
from turnwise.tools.sandbox.core import MIB, Backend, Ended, Root, Sandbox, SandboxImage, SandboxLimits
from turnwise.tools.sandbox.registry import get_backend, isolated_backend

LIMITS = SandboxLimits(
    memory=256 * MIB, processes=32, disk=16 * MIB, scratch=16 * MIB, inodes=5000, seconds=10.0, flood=8 * MIB
)
_ANSWERS = 4 * MIB  # bytes of answers that are read; more is no answer
_SHOWN = 4000  # bytes of a program's output that an agent is shown, of each stream
_REMEMBERED = 4096
_VARIABLES = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class RunAnswer(NamedTuple):
    """A program's answer to one input: a plain value, or why there is none."""

    value: object = None
    error: str = ""


class Ran(NamedTuple):
    """Answers of a program to all its inputs. ``error`` says why it did not get to them."""

    compiled: bool
    error: str
    answers: tuple[RunAnswer, ...]


class Printed(NamedTuple):
    """Text that a script printed, and whether it ended well."""

    text: str
    ok: bool


class Runner:
    """Programs in the sandboxes of one backend, safe to use from many threads.

    At most ``at_once`` run at a time, by default as many as there are cores, and four at least.
    """

    def __init__(self, backend: Backend, *, at_once: int = 0, limits: SandboxLimits = LIMITS) -> None:
        self.backend, self.limits = backend, limits
        self._gate = threading.Semaphore(at_once or max(4, os.cpu_count() or 1))
        self._idle: list[Sandbox] = []
        self._known: OrderedDict[str, Ran | Printed] = OrderedDict()
        self._lock = threading.Lock()

    def answers(
        self,
        source: str,
        entry: str,
        inputs: Sequence[object],
        mode: Mode,
        seconds: float,
        processor: int = 0,
    ) -> Ran:
        """Return a program's answers to each of the inputs.

        Args:
            source: the program; any text.
            entry: the function to be called (mode ``calls``).
            inputs: tuples of plain arguments, or texts for stdin.
            mode: ``calls`` or ``stdin``.
            seconds: for all inputs together.
            processor: seconds of processor time for all of them, where other work here is not to count; 0 for any.

        Raises:
            InfraError: the sandbox failed, twice.
        """
        given = [[encode(item) for item in _arguments(one)] if mode == "calls" else one for one in inputs]
        asked = {"mode": mode, "source": source, "entry": entry, "inputs": given}
        if processor:
            asked["processor"] = processor
        found = self._recall(
            digest(json.dumps(asked), seconds), lambda: self._answers(asked, len(given), seconds)
        )
        return cast(Ran, found)

    def script(self, source: str, seconds: float) -> Printed:
        """Return what a program prints, for an agent that wants to see it.

        Raises:
            InfraError: the sandbox failed, twice.
        """
        asked = {"mode": "script", "source": source}
        return cast(
            Printed, self._recall(digest(json.dumps(asked), seconds), lambda: self._script(asked, seconds))
        )

    def close(self) -> None:
        """Close the sandboxes that wait; later runs start others."""
        with self._lock:
            waiting, self._idle = self._idle, []
        for sandbox in waiting:
            sandbox.close()

    def _answers(self, asked: dict[str, Json], count: int, seconds: float) -> Ran:
        nonce = secrets.token_hex(16)
        ended, out, _ = self._exec({**asked, "nonce": nonce}, seconds, _ANSWERS)
        return _read(out, nonce, count, ended)

    def _script(self, asked: dict[str, Json], seconds: float) -> Printed:
        ended, out, err = self._exec(asked, seconds, _SHOWN)
        parts = [part.decode("utf-8", "replace").rstrip() for part in (out, err)]
        if ended is not Ended.EXIT:
            parts.append(_why(ended))
        return Printed("\n".join(part for part in parts if part), ended is Ended.EXIT and not err)

    def _exec(self, asked: dict[str, Json], seconds: float, output: int) -> tuple[Ended, bytes, bytes]:
        command = ["python3", "-s", "-S", "-c", _kernel()]
        with self._gate:
            for last in (False, True):
                try:
                    sandbox = self._take()
                    try:
                        done = sandbox.exec(
                            command,
                            env=_VARIABLES,
                            stdin=json.dumps(asked).encode(),
                            timeout=seconds,
                            output=output,
                        )
                        sandbox.restore(_EMPTY)
                    except BaseException:
                        sandbox.close()  # whatever was left in it goes with it
                        raise
                    with self._lock:
                        self._idle.append(sandbox)
                    ended = Ended.FLOOD if done.truncated and output == _ANSWERS else done.ended
                    return ended, done.stdout, done.stderr
                except InfraError:
                    if last:
                        raise
        raise AssertionError("unreachable")

    def _take(self) -> Sandbox:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self.backend.start(_EMPTY, self.limits)

    def _recall(self, key: str, run: object) -> Ran | Printed:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = cast("Ran | Printed", run())  # pyright: ignore
        with self._lock:
            self._known[key] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found


_EMPTY = SandboxImage(Root())


def get_runner(backend: str, *, unsafe: bool = False) -> Runner:
    """The runner of a backend, one per process.

    ``auto`` is the first one here that isolates: bubblewrap, then docker. ``process`` isolates nothing; with it goes
    ``unsafe=True``, which says that whatever the policy writes is trusted.

    Raises:
        MissingDependencyError: no backend that isolates works here.
        NotFoundError: there is no backend of this name.
        TurnwiseError: it isolates nothing, and ``unsafe`` was not said.
    """
    return _runner(backend, unsafe, os.getpid())


@cache
def _runner(backend: str, unsafe: bool, pid: int) -> Runner:
    """A forked child's runner is another: its parent's sandboxes listen to the parent."""
    return Runner(isolated_backend() if backend == "auto" else get_backend(backend, unsafe=unsafe))


def evaluated(source: str, inputs: Sequence[object]) -> Ran:
    """Evaluate an expression of the small language on each input.

    Nothing is executed, so no sandbox is needed.
    """
    answers: list[RunAnswer] = []
    for one in inputs:
        try:
            answers.append(RunAnswer(evaluate(source, _arguments(one)[0])))
        except ExpressionError as error:
            if error.compile:
                return Ran(False, str(error), ())
            answers.append(RunAnswer(error=str(error)))
    return Ran(True, "", tuple(answers))


def _arguments(one: object) -> tuple[object, ...]:
    assert isinstance(one, tuple)
    return cast("tuple[object, ...]", one)


def _why(ended: Ended) -> str:
    texts = {
        Ended.TIMEOUT: "it took too long and was ended",
        Ended.MEMORY: "it used too much memory and was ended",
        Ended.FLOOD: "it wrote too much and was ended",
    }
    return texts.get(ended, "it ended without an answer")


def _read(out: bytes, nonce: str, count: int, ended: Ended) -> Ran:
    """The kernel's lines. Whatever else a solver wrote between them is not read."""
    compiled, error, found = False, "", dict[int, RunAnswer]()
    for line in out.split(b"\n"):
        if not line.startswith(nonce.encode()):
            continue
        try:
            said: Json = json.loads(line[len(nonce) :])
            if "stage" in said:
                compiled = compiled or said["stage"] != "compile"
                error = error or str(said.get("error", ""))[:300]
            elif type(said["index"]) is int and said["index"] not in found:
                found[said["index"]] = _answer(said)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, NotPlain):
            continue
    if not compiled and not error:
        error = _why(ended)
    missing = RunAnswer(error=error or _why(ended))
    return Ran(compiled, error, tuple(found.get(index, missing) for index in range(count)))


def _answer(said: dict[str, Json]) -> RunAnswer:
    if "error" in said:
        return RunAnswer(error=str(said["error"])[:300])
    try:
        return RunAnswer(decode(said["value"]))
    except (NotPlain, RecursionError):
        return RunAnswer(error="the value is not plain")


@cache
def _kernel() -> str:
    return files("turnwise.envs.code").joinpath("kernel.py").read_text("utf-8") + "\nmain()\n"
