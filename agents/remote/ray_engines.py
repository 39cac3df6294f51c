"""Engines that Ray places: an actor for each, which stands over the same `turnwise serve-engine` as on one machine.

The actor does nothing but start the command, look after it and tell where it is. Prompts and answers go to the engine by HTTP as to any other, and weights as
to any other; nothing passes through Ray. An engine that ends is started again by its actor, an actor that ends by Ray, perhaps on
another machine; the run finds engines by a file of their addresses, which it reads again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.remote.gpus import GpuShares
from turnwise.agents.remote.local import END_S, EnginePlan, LocalEngine
from turnwise.errors import EngineError
from turnwise.extras import needing
from turnwise.tools.processes import module_path

START_S = 600.0
"""What the first start of all engines may take together, their placing included."""
LOOK_S = 0.5
ANSWER_S = 30.0
"""What an actor may take to tell how its engine is; one that ended is being placed again."""
LOOPBACK = "127.0.0.1"
ADDRESS = "RAY_ADDRESS"
_logger = logging.getLogger(__name__)


class EngineState(NamedTuple):
    """How an actor's engine is.

    Attributes:
        url: where it is.
        answers: whether it says how it is.
        failed: why it is not started any more; empty while it is.
        starts: how often it was started by this actor.
        pids: of the actor and of the engine.
        node: the address of its machine in the cluster.
        gpus: that it sees, as CUDA_VISIBLE_DEVICES names them there.
    """

    url: str
    answers: bool
    failed: str
    starts: int
    pids: tuple[int, int]
    node: str
    gpus: frozenset[str]


class EngineActor:
    """Stands over one engine, in a process of Ray's.

    Args:
        plan: what it is; its GPUs are those that Ray gives this process.
        number: of the engine, counted from 0.
        logs: the folder of its log, if this machine has it.
        token: that the engine asks for.
        loopback: listen to this machine alone.
    """

    def __init__(self, plan: EnginePlan, number: int, logs: str, token: str, loopback: bool) -> None:
        import ray

        self._own = Path(tempfile.mkdtemp(prefix="turnwise-engine-"))
        file = self._own / "token"
        file.touch(0o600)
        file.write_text(token)
        host = LOOPBACK if loopback else ray.util.get_node_ip_address()
        log = (Path(logs) if os.path.isdir(logs) else self._own) / f"engine-{number}.log"
        self._engine = LocalEngine(plan._replace(host=host, token_file=str(file)), number, log)

    def state(self) -> EngineState:
        """How it is."""
        import ray

        engine, pids = self._engine, (os.getpid(), self._engine.pid)
        gpus = frozenset(map(str, ray.get_gpu_ids()))
        node = ray.util.get_node_ip_address()
        return EngineState(engine.url, engine.answers, engine.failed, engine.starts, pids, node, gpus)

    def close(self) -> None:
        """End the engine."""
        self._engine.close()


class RayEngines:
    """Engines that Ray placed, in the cluster of RAY_ADDRESS or in one of this machine, and the file of their addresses.

    Args:
        plan: what each is.
        count: how many.
        logs: the folder of their logs.
        gpus: how many each engine has.
        shares: the GPUs of this machine that are the learners', and those that are free.

    Raises:
        MissingDependencyError: Ray is not installed.
        EngineError: there is no such cluster, or it is of this machine and too small.
    """

    def __init__(
        self,
        plan: EnginePlan,
        count: int,
        logs: Path,
        *,
        gpus: int = 0,
        shares: GpuShares | None = None,
    ) -> None:
        with needing("--on ray:…"):
            import ray
        self._ray: Any = ray
        self._shares = shares or GpuShares()
        self._own = not ray.is_initialized()
        alone = self._own and not os.environ.get(ADDRESS)
        if self._own:
            _connect(ray, alone, self._shares.free)
        try:
            if alone:
                self._check_room(count, gpus)
            self._folder = Path(tempfile.mkdtemp(prefix="turnwise-ray-"))
            self.urls_file, self.token_file = self._folder / "engines.txt", self._folder / "token"
            token = secrets.token_hex(32)
            self.token_file.touch(0o600)
            self.token_file.write_text(token)
            self.urls_file.touch()
            actor = ray.remote(EngineActor).options(num_cpus=1, num_gpus=gpus, max_restarts=-1)
            self.actors: list[Any] = [
                actor.remote(plan, number, str(logs.absolute()), token, alone) for number in range(count)
            ]
            self.host = LOOPBACK if alone else ray.util.get_node_ip_address()
        except BaseException:
            self._leave()
            raise
        self._listed: list[str] = []
        self._closing = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="turnwise-ray", daemon=True)

    @property
    def options(self) -> dict[str, object]:
        """How the engine ``remote`` finds them."""
        files = {"urls_file": str(self.urls_file), "token_file": str(self.token_file)}
        return {**files, "publish_host": self.host}

    def await_all(self) -> None:
        """Wait until every engine answers, and go on looking where they are.

        Raises:
            EngineError: one does not, and why.
        """
        until = time.monotonic() + START_S
        while True:
            states = self.states()
            found = [state for state in states if state is not None]
            if failed := [state.failed for state in found if state.failed]:
                raise EngineError(f"The engines did not start: {failed[0]}.", "Look at their logs.")
            for state in found:
                self._check_gpus(state)
            if len(found) == len(states) and all(state.answers for state in found):
                break
            if time.monotonic() > until:
                raise EngineError(
                    f"{len(states) - len(found)} of {len(states)} engines have no place after {START_S:.0f} s, "
                    f"and Ray has {_said(self._ray.available_resources())} free.",
                    "Ask for fewer, or give the cluster more.",
                )
            time.sleep(LOOK_S)
        self._list(found)
        self._watching.start()

    def states(self) -> list[EngineState | None]:
        """How each engine is; None for one that has no place at the moment."""
        asked = [actor.state.remote() for actor in self.actors]
        self._ray.wait(asked, num_returns=len(asked), timeout=ANSWER_S)
        return [self._answer(one) for one in asked]

    def close(self) -> None:
        """End them all, and the cluster, if it was made for them."""
        self._closing.set()
        if self._watching.is_alive():
            self._watching.join()
        ended = [actor.close.remote() for actor in self.actors]
        self._ray.wait(ended, num_returns=len(ended), timeout=2 * END_S)
        for actor in self.actors:
            self._ray.kill(actor)  # what it started ends with it
        self._leave()

    def _answer(self, asked: Any) -> EngineState | None:
        try:
            return self._ray.get(asked, timeout=0)
        except self._ray.exceptions.RayTaskError as error:  # of ours: it would come again
            raise EngineError(f"An engine's actor failed: {error.cause}.", "See Ray's logs.") from error
        except self._ray.exceptions.RayError:
            return None

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_S):
            with contextlib.suppress(EngineError):
                self._list([state for state in self.states() if state is not None])

    def _list(self, states: Sequence[EngineState]) -> None:
        urls = [state.url for state in states]
        if urls == self._listed or not urls:
            return
        if self._listed:
            _logger.warning("engines are at %s now", ", ".join(urls))
        aside = self.urls_file.with_suffix(".new")
        aside.write_text("".join(f"{url}\n" for url in urls))
        aside.replace(self.urls_file)
        self._listed = urls

    def _check_room(self, count: int, gpus: int) -> None:
        has = self._ray.cluster_resources()
        if has.get("CPU", 0) < count or has.get("GPU", 0) < count * gpus:
            raise EngineError(
                f"{count} engines take {count} CPUs and {count * gpus} GPUs, and Ray has {_said(has)} here.",
                "Ask for fewer, or name a larger cluster: RAY_ADDRESS.",
            )

    def _check_gpus(self, state: EngineState) -> None:
        """See that Ray has given an engine no GPU that a learner has; it knows nothing of learners."""
        if state.node == self.host and (both := state.gpus & set(self._shares.learners)):
            raise EngineError(
                f"Ray gave an engine the GPU {', '.join(sorted(both))}, which a learner has.",
                "Start Ray on the learner's machine without the learner's GPUs: CUDA_VISIBLE_DEVICES=… ray start …",
            )

    def _leave(self) -> None:
        if self._own:
            self._ray.shutdown()


def _connect(ray: Any, alone: bool, free: Sequence[str]) -> None:
    """Join a cluster, or make one of this machine, which has the GPUs that are free; signals stay ours."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    place: dict[str, Any] = {}
    if alone:  # a cluster of others has Turnwise installed; one of ours takes this process's
        place = {"include_dashboard": False, "_node_ip_address": LOOPBACK}
        place["runtime_env"] = {"env_vars": {"PYTHONPATH": module_path()}}
        place["num_gpus"] = len(free)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with _seeing(free) if free else contextlib.nullcontext():
            ray.init(**quiet, **place)
    except (ConnectionError, RuntimeError, ValueError, ImportError, OSError) as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        raise EngineError(
            f"Ray cannot be reached{'' if alone else f' at {os.environ[ADDRESS]}'}: {said}.",
            "Is the cluster up (`ray status`), and does it ask for its token (RAY_AUTH_MODE=token)?",
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def _seeing(gpus: Sequence[str]) -> Iterator[None]:
    """What is started meanwhile sees these GPUs."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def _said(resources: dict[str, float]) -> str:
    return ", ".join(f"{resources.get(name, 0):g} {name}s" for name in ("CPU", "GPU"))


@contextlib.contextmanager
def ray_engines(plan: EnginePlan, count: int, logs: Path, **given: Any) -> Iterator[RayEngines]:
    """So many engines where Ray finds room, for a while; all answer when it begins. See :class:`RayEngines`.

    Raises:
        TurnwiseError: Ray is not there, or an engine does not start.
    """
    logs.mkdir(parents=True, exist_ok=True)
    engines = RayEngines(plan, count, logs, **given)
    with contextlib.closing(engines):
        engines.await_all()
        yield engines
