"""Engines' servers killed and stopped while they sample: what becomes of the answers.

``python benchmarks/engine_kills.py ROLE [--kills N] [--minutes M]`` with a role ``torch`` or ``vllm`` (servers that are killed by
SIGKILL, one after the other, while three or two of them answer), ``stopped`` (torch servers that are stopped by SIGSTOP until they
are taken for wedged, and go on afterwards) or ``partition`` (each torch server in a network namespace of its own, whose cable is pulled until
it is taken for wedged; needs root and ``ip``). Prints JSON like ``turnwise bench``; the code is 1 where something was lost, changed or left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.remote.client import Address, RemoteServer
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.orphan import descendants
from turnwise.errors import EngineError
from turnwise.machine import describe

CONTEXT = 256
GONE_S = 300.0
"""What a server and all that it started may take to be gone: on a machine at load 25 a minute was not enough for vLLM's."""
BACK_S = 600.0
"""What a server that was struck may take to serve again: vLLM's takes two to four minutes on two quiet cores, while the other samples."""
STARTED = "--max-sequences", "16", "--with-parent"

_forks = multiprocessing.get_context("forkserver")
"""Servers of torch engines are forked from a process that has loaded the libraries: half of what a start costs else."""
_forks.set_forkserver_preload(["torch", "transformers.models.llama.modeling_llama", "turnwise.cli.app"])


def end_with_benchmark() -> None:
    """Have this process told to end when the benchmark ends, however it does: its parent is the server of forks, which lives on."""

    def wait() -> None:
        whole = multiprocessing.parent_process()
        assert whole is not None
        whole.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _command(arguments: Sequence[str]) -> None:
    with open(os.devnull, "w") as nowhere:  # what the benchmark prints is one JSON value
        os.dup2(nowhere.fileno(), 1)
    end_with_benchmark()
    from turnwise.cli import main

    sys.argv[1:] = arguments
    main()


class Cable:
    """A network namespace of this machine, and the cable to it, which can be pulled: what is sent then is lost without a word.

    Args:
        number: of the namespace, below 250.
        folder: for the token, which is the same for all.
        apart: share no memory either, so that weights take the cable; it then carries 40 Mbit a second.
    """

    def __init__(self, number: int, folder: Path, *, apart: bool = False) -> None:
        self.name, self.host = f"turnwise{os.getpid()}-{number}", f"10.213.{number}.2"
        self.gate = f"10.213.{number}.1"
        own_memory = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
        self.inside = ["ip", "netns", "exec", self.name]
        self.inside += ["unshare", "--mount", "sh", "-c", own_memory, "sh"] if apart else []
        self.token_file = folder / "token"  # one for all
        if not self.token_file.exists():
            self.token_file.write_text(secrets.token_hex(16))
        self.token = self.token_file.read_text()
        ours, self._theirs = f"tw{os.getpid()}-{number}", f"te{os.getpid()}-{number}"
        self._ip("netns", "add", self.name)
        self._ip("link", "add", ours, "type", "veth", "peer", "name", self._theirs, "netns", self.name)
        self._counted = Path(f"/sys/class/net/{ours}/statistics/tx_bytes")
        self._ip("addr", "add", f"{self.gate}/30", "dev", ours)
        self._ip("link", "set", ours, "up")
        if apart:
            slow = "rate", "40mbit", "burst", "64kb", "latency", "1s"
            subprocess.run(["tc", "qdisc", "add", "dev", ours, "root", "tbf", *slow], check=True)
        self._ip("-n", self.name, "addr", "add", f"{self.host}/30", "dev", self._theirs)
        self._ip("-n", self.name, "link", "set", "lo", "up")
        self.plug()

    @property
    def sent(self) -> int:
        """Bytes that went in so far."""
        return int(self._counted.read_text())

    def pull(self) -> None:
        """From now on nothing passes. Our end stays up, so that nothing finds another way."""
        self._ip("-n", self.name, "link", "set", self._theirs, "down")

    def plug(self) -> None:
        """Everything passes again."""
        self._ip("-n", self.name, "link", "set", self._theirs, "up")
        self._ip("-n", self.name, "route", "replace", "default", "via", self.gate)

    def close(self) -> None:
        """Remove namespace and cable."""
        self._ip("netns", "del", self.name)

    def _ip(self, *arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Server:
    """``turnwise serve-engine`` in a process of its own, on a port that it keeps over restarts."""

    def __init__(
        self, model: Path, kind: str, *options: str, context: int = CONTEXT, cable: Cable | None = None
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            port = door.getsockname()[1]
        host = cable.host if cable else "127.0.0.1"
        place = "--host", host, "--port", str(port), "--context-length", str(context)
        self._given = ["serve-engine", str(model), "--kind", kind, *place, *STARTED, *options]
        self._forked = kind == "torch" and cable is None
        self._inside = cable.inside if cable else []
        self._cable = cable
        self.url = f"http://{host}:{port}"
        self.name = f"{host}:{port}"
        self.start()

    def start(self) -> None:
        """Start it, after it was killed too; it does not answer yet."""
        if self._forked:
            self._process = _forks.Process(target=_command, args=(self._given,))
            self._process.start()
        else:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            code = "from turnwise.cli import main; main()"
            started = [*self._inside, sys.executable, "-c", code, *self._given]
            self._process = subprocess.Popen(started, env=environment, stdout=subprocess.DEVNULL)

    @property
    def answers(self) -> bool:
        """Whether it says how it is."""
        with contextlib.suppress(EngineError):
            RemoteServer(Address(self.url, self._cable.token if self._cable else "")).look()
            return True
        return False

    def hold(self) -> None:
        """Let nothing come from it: by its cable, where it has one, else by stopping it."""
        if self._cable:
            self._cable.pull()
        else:
            self.send(signal.SIGSTOP)

    def let_go(self) -> None:
        """End that."""
        if self._cable:
            self._cable.plug()
        else:
            self.send(signal.SIGCONT)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.pid is not None and runs(self._process.pid)

    def send(self, how: int) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, how)

    def end(self, how: int = signal.SIGKILL) -> int:
        """Send it a signal and wait until it and all that it started have ended; its exit code, −9 where it was killed.

        Raises:
            AssertionError: something of it is left.
        """
        assert self._process.pid is not None
        family = [self._process.pid, *descendants(self._process.pid)]
        self.send(how)
        if isinstance(self._process, subprocess.Popen):
            code = self._process.wait(GONE_S)
        else:
            self._process.join(GONE_S)
            code = self._process.exitcode
        wait_for(lambda: not any(map(runs, family)), GONE_S)
        assert code is not None
        return code


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Round(NamedTuple):
    """What is asked again and again, and what is answered if nothing happens."""

    prompts: Sequence[Sequence[int]]
    sampling: Sampling
    expected: Sequence[Completion]


def sample(engine: Any, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Completion]:
    """All at once."""

    async def together() -> list[Completion]:
        jobs = (engine.generate(p, sampling, stop_ids=(), seed=i) for i, p in enumerate(prompts))
        return list(await asyncio.gather(*jobs))

    return asyncio.run(together())


def make_round(engine: Any, answers: int = 24, tokens: int = 150) -> Round:
    """The prompts and what an engine answers that nothing happens to."""
    rng = Random(0)
    prompts = [[rng.randrange(5, 300) for _ in range(20)] for _ in range(answers)]
    sampling = Sampling(max_tokens=tokens)
    return Round(prompts, sampling, sample(engine, prompts, sampling))


def judged(given: Round, answers: Sequence[Completion]) -> Counter[str]:
    """How many answers are those that would have been, and how many have another number of tokens."""
    found: Counter[str] = Counter()
    for mine, other in zip(answers, given.expected, strict=True):
        found["answers"] += 1
        found["not whole"] += len(mine.token_ids) != len(other.token_ids)
        found["identical"] += (mine.token_ids, mine.versions) == (other.token_ids, other.versions)
    return found


def wait_for(holds: Callable[[], bool], seconds: float = 300) -> None:
    """Wait until something holds."""
    pause = threading.Event()
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise AssertionError("it never came to hold")
        pause.wait(0.02)


def serving(fleet: RemoteFleet) -> int:
    """How many engines serve."""
    return sum(row.serving for row in fleet.health())


def kill_engines(
    model: Path,
    kind: str,
    kills: int,
    *,
    engines: int,
    minutes: float = 1e9,
    stop: bool = False,
    given: Round | None = None,
    options: Sequence[str] = (),
    cables: Sequence[Cable] = (),
) -> dict[str, Any]:
    """Kill servers, one after the other, in the middle of answers; with ``stop`` hold them until they are missed.

    With ``cables`` each server is at the other end of one.
    """
    token = ["--token-file", str(cables[0].token_file)] if cables else []
    servers = [
        Server(model, kind, *options, *token, cable=cables[number] if cables else None)
        for number in range(engines)
    ]
    wait_for(lambda: all(server.answers for server in servers))
    fleet = RemoteFleet(
        [server.url for server in servers],
        context_length=CONTEXT,
        options=RemoteOptions(
            token=cables[0].token if cables else "", silence_s=2.0 if stop else 600.0, patience_s=600
        ),
    )
    try:
        given = given or make_round(fleet)
        return _under_kills(servers, fleet, given, kills, time.monotonic() + 60 * minutes, stop)
    finally:
        fleet.close()
        for server in servers:
            if server.running:
                server.end(signal.SIGTERM)


def _under_kills(
    servers: list[Server], fleet: RemoteFleet, given: Round, kills: int, until: float, stop: bool
) -> dict[str, Any]:
    """Strike from this thread, for a server that it starts ends with the thread; the answers are asked for in another."""
    done, found, broken, over = list[float](), Counter[str](), list[BaseException](), threading.Event()

    def ask() -> None:
        try:
            while not over.is_set() or not found:
                found.update(judged(given, sample(fleet, given.prompts, given.sampling)))
        except BaseException as error:  # noqa: BLE001 (told by the thread that waits)
            broken.append(error)

    thread = threading.Thread(target=ask)
    began = time.monotonic()
    thread.start()
    try:
        for number in range(kills):
            if broken or time.monotonic() > until:
                break
            done.append(_strike(servers[number % len(servers)], fleet, len(servers), stop))
            print(f"{len(done)} of {kills}: back after {done[-1]:.0f} s", file=sys.stderr, flush=True)
    finally:
        over.set()
        thread.join()
    if broken:
        raise broken[0]
    failures = sum((Counter(row.failures) for row in fleet.health()), Counter[str]())
    return {
        "kills": len(done),
        "engines": len(servers),
        "seconds": round(time.monotonic() - began, 1),
        "answers": found["answers"],
        "identical": found["identical"],
        "not_whole": found["not whole"],
        "failures": dict(failures),
        "seconds_until_back_mean": round(sum(done) / max(1, len(done)), 2),
    }


def _strike(victim: Server, fleet: RemoteFleet, engines: int, stop: bool) -> float:
    """Strike one in the middle of answers and bring it back; seconds until all serve."""
    wait_for(lambda: any(row.name == victim.name and row.in_flight for row in fleet.health()))
    began = time.monotonic()
    if stop:
        victim.hold()
        wait_for(lambda: not next(row for row in fleet.health() if row.name == victim.name).serving)
        victim.let_go()
    else:
        victim.end()
        victim.start()
    wait_for(lambda: serving(fleet) == engines, BACK_S)
    return time.monotonic() - began


def small_model(folder: Path) -> Path:
    """A checkpoint with which sampling costs little."""
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=CONTEXT, initializer_range=0.2, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).eval().save_pretrained(folder)
    return folder


def alone(model: Path) -> Round:
    """What an engine in this process answers."""
    from turnwise.agents.engines.torch import TorchEngine

    engine = TorchEngine(str(model), context_length=CONTEXT, max_sequences=16)
    try:
        return make_round(engine)
    finally:
        engine.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("torch", "vllm", "stopped", "partition"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    kind = "vllm" if asked.role == "vllm" else "torch"
    engines = 2 if kind == "vllm" else 3
    with tempfile.TemporaryDirectory(prefix="turnwise-kills-") as folder, contextlib.ExitStack() as stack:
        model = small_model(Path(folder))
        cables: list[Cable] = []
        for number in range(engines if asked.role == "partition" else 0):
            cables.append(stack.enter_context(contextlib.closing(Cable(number, Path(folder)))))
        found = kill_engines(
            model,
            kind,
            asked.kills,
            engines=engines,
            minutes=asked.minutes,
            stop=asked.role in ("stopped", "partition"),
            cables=cables,
            given=alone(model) if kind == "torch" else None,
            options=["--option", "kv_cache_gib=0.25"] if kind == "vllm" else [],
        )
    print(
        json.dumps({"name": f"engine kills {asked.role}", "machine": describe(), "figures": found}, indent=2)
    )
    whole = found["identical"] == found["answers"] or (kind == "vllm" and not found["not_whole"])
    return 0 if whole else 1


if __name__ == "__main__":
    raise SystemExit(main())
