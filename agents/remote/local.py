"""Engines of this machine, as processes that are started, watched, and started again when they end.

Each is `turnwise serve-engine` on a port that it keeps, so that whoever uses it finds it again. They end with the process
that started them, however it does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from turnwise.agents.remote.client import Address, RemoteServer
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.own_token import write_token
from turnwise.errors import EngineError
from turnwise.tools.processes import at_once, module_path

START_S = 600.0
"""Seconds that the first start of all engines may take together."""
LOOK_S = 0.2
FIRST_REST_S, LONGEST_REST_S = 0.5, 30.0
"""Seconds before an engine that ended is started again: twice as long each time that it ends without having answered."""
MOST_STARTS = 5
"""So often in a row an engine may end without having answered."""
END_S = 10.0
_logger = logging.getLogger(__name__)


class EnginePlan(NamedTuple):
    """Settings with which every engine is started.

    Attributes:
        model: a folder or a Hugging Face id.
        kind: vllm or torch.
        context_length: the longest prompt plus answer, in tokens.
        max_sequences: how many are decoded at a time.
        device: of all of them.
        options: further options of the engine.
        gpus: of each, where they have GPUs (:func:`turnwise.agents.remote.gpus.share_gpus`).
        host: where they listen.
        token_file: holds the token that they ask for; one is made for them if none is given.
    """

    model: str
    kind: str
    context_length: int
    max_sequences: int
    device: str = "auto"
    options: Mapping[str, object] = {}
    gpus: Sequence[Sequence[str]] = ()
    host: str = "127.0.0.1"
    token_file: str = ""

    def environment(self, number: int) -> dict[str, str]:
        """The variables by which the engine of this number sees its GPUs and no others."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus[number])} if self.gpus else {}

    def command(self, port: int) -> list[str]:
        """The command of one on this port."""
        own = [f"{name}={json.dumps(value)}" for name, value in self.options.items()]
        return [
            sys.executable, "-P", "-c", "from turnwise.cli import main; main()", "serve-engine", self.model,
            "--kind", self.kind, "--port", str(port), "--context-length", str(self.context_length),
            "--max-sequences", str(self.max_sequences), "--device", self.device, "--with-parent", "--host", self.host,
            *(["--token-file", self.token_file] if self.token_file else []), *(["--option", *own] if own else []),
        ]  # fmt: skip


class LocalEngine:
    """One engine's process, and the thread that starts it, and starts it again.

    Args:
        plan: what it is.
        number: of the engine, counted from 0.
        log: the file that takes what it prints.
    """

    def __init__(self, plan: EnginePlan, number: int, log: Path) -> None:
        self.number, self.starts, self.failed = number, 0, ""
        with socket.create_server((plan.host, 0)) as door:
            self._port = door.getsockname()[1]
        self.url = f"http://{plan.host}:{self._port}"
        self._command = plan.command(self._port)
        self._log = log
        self._environment = {**os.environ, **plan.environment(number), "PYTHONPATH": module_path()}
        self._server = RemoteServer(Address(self.url, read_token(plan.token_file)))
        self._ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        # One thread for all starts: a process that is to end with its parent ends with the thread that started it.
        self._thread = threading.Thread(target=self._run, name=f"engine {number}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the process that runs now; 0 where none does."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    @property
    def answers(self) -> bool:
        """True if it says how it is."""
        with contextlib.suppress(EngineError):
            self._server.look()
            return True
        return False

    def close(self) -> None:
        """End it, and all that it started."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        unanswered = 0
        while not self._ending.is_set():
            code, answered = self._once()
            if self._ending.is_set():
                return
            unanswered = 0 if answered else unanswered + 1
            said = f"engine {self.number} ({self.url}) {_ended(code)}"
            if unanswered >= MOST_STARTS:
                self.failed = f"{said}, {MOST_STARTS} times before it answered: {self._last_words()}"
                _logger.error("%s; it is not started again", self.failed)
                return
            _logger.warning("%s and is started again: %s", said, self._last_words())
            self._ending.wait(min(LONGEST_REST_S, FIRST_REST_S * 2**unanswered))

    def _once(self) -> tuple[int, bool]:
        """Run the engine until it ends; its exit code, and whether it had answered."""
        answered = False
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for whoever uses it
            )
        self._process = process
        self.starts += 1
        while process.poll() is None:
            if self._ending.wait(LOOK_S):
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(END_S)
                if process.poll() is None:
                    process.kill()
            elif not answered:
                answered = self.answers
        return process.wait(), answered

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return f"{' '.join(lines[-2:])[:400]} ({self._log})" if lines else f"it said nothing ({self._log})"


@contextlib.contextmanager
def local_engines(plan: EnginePlan, count: int, logs: Path) -> Iterator[LocalEngines]:
    """So many engines on this machine for a while; all answer when it begins.

    Args:
        plan: what each is.
        count: how many.
        logs: the folder of their logs, ``engine-N.log``.

    Raises:
        EngineError: one does not start.
    """
    logs.mkdir(parents=True, exist_ok=True)
    with LocalEngines(plan, count, logs) as engines:
        engines.await_all()
        yield engines


class LocalEngines:
    """Engines of this machine.

    Attributes:
        engines: each of them.
    """

    def __init__(self, plan: EnginePlan, count: int, logs: Path) -> None:
        self._own = None if plan.token_file else tempfile.TemporaryDirectory(prefix="turnwise-engines-")
        if self._own is not None:
            file = Path(self._own.name) / "token"
            write_token(file)
            plan = plan._replace(token_file=str(file))
        self.token_file = plan.token_file
        self.engines = [LocalEngine(plan, n, logs / f"engine-{n}.log") for n in range(count)]

    @property
    def urls(self) -> list[str]:
        return [engine.url for engine in self.engines]

    @property
    def options(self) -> dict[str, object]:
        """Options with which the engine ``remote`` finds them."""
        return {"urls": self.urls, "token_file": self.token_file}

    def await_all(self) -> None:
        """Wait until every engine answers.

        Raises:
            EngineError: one does not, and why.
        """
        until = time.monotonic() + START_S
        while not all(engine.answers for engine in self.engines):
            failed = [engine.failed for engine in self.engines if engine.failed]
            if failed or time.monotonic() > until:
                said = failed[0] if failed else f"they do not answer after {START_S:.0f} s"
                raise EngineError(f"The engines did not start: {said}.", "Look at their logs.")
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End them all."""
        at_once(engine.close for engine in self.engines)
        if self._own is not None:
            self._own.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
