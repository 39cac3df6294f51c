"""Engines that Ray places: an actor for each, which stands over the same `turnwise serve-engine` as on one machine.

The actor does nothing but start the command, look after it and tell where it is. Prompts and answers go to the engine by HTTP as to any other, and weights as
to any other; nothing passes through Ray. An engine that ends is started again by its actor, an actor that ends by Ray, perhaps on
another machine; the run finds engines by a file of their addresses, which it reads again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.remote.gpus import GpuShares
from turnwise.agents.remote.local import EnginePlan, LocalEngine
from turnwise.agents.remote.ray_actors import LOOPBACK, RayActors, RayCluster, said
from turnwise.errors import EngineError


class EngineState(NamedTuple):
    """State of an actor's engine.

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
        """Return the state of the engine."""
        import ray

        engine, pids = self._engine, (os.getpid(), self._engine.pid)
        gpus = frozenset(map(str, ray.get_gpu_ids()))
        node = ray.util.get_node_ip_address()
        return EngineState(engine.url, engine.answers, engine.failed, engine.starts, pids, node, gpus)

    def close(self) -> None:
        """End the engine."""
        self._engine.close()


class RayEngines(RayActors[EngineState]):
    """Engines that Ray placed, in the cluster of RAY_ADDRESS or in one of this machine, and the file of their addresses.

    Args:
        plan: what each is.
        count: how many.
        logs: the folder of their logs.
        gpus: how many each engine has.
        shares: the GPUs of this machine that are the learners', and those that are free.
        cluster: where they are to be; None: one is joined for them.

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
        cluster: RayCluster | None = None,
    ) -> None:
        self._shares = shares or GpuShares()
        joined = None if cluster is not None else RayCluster.join(count, self._shares.free)
        self._joined = joined  # here, to be left with the engines
        place = cluster or joined
        assert place is not None

        def make(token: str) -> list[Any]:
            if place.alone:
                _check_room(place, count, gpus)
            actor = place.ray.remote(EngineActor).options(num_cpus=1, num_gpus=gpus, max_restarts=-1)
            told = str(logs.absolute()), token, place.alone
            return [actor.remote(plan, number, *told) for number in range(count)]

        try:
            super().__init__(place, make, "engines")
        except BaseException:
            self._leave()
            raise

    @property
    def options(self) -> dict[str, object]:
        """Options with which the engine ``remote`` finds them."""
        files = {"urls_file": str(self.urls_file), "token_file": str(self.token_file)}
        return {**files, "publish_host": self.cluster.host}

    def close(self) -> None:
        """End them all, and the cluster, if it was made for them."""
        super().close()
        self._leave()

    def _leave(self) -> None:
        if self._joined is not None:
            self._joined.leave()

    def check_gpus(self, state: EngineState) -> None:
        """See that Ray has given an engine no GPU that a learner has; it knows nothing of learners.

        Raises:
            EngineError: it has.
        """
        if state.node == self.cluster.host and (both := state.gpus & set(self._shares.learners)):
            raise EngineError(
                f"Ray gave an engine the GPU {', '.join(sorted(both))}, which a learner has.",
                "Start Ray on the learner's machine without the learner's GPUs: CUDA_VISIBLE_DEVICES=… ray start …",
            )


def _check_room(cluster: RayCluster, count: int, gpus: int) -> None:
    has = cluster.ray.cluster_resources()
    if has.get("CPU", 0) < count or has.get("GPU", 0) < count * gpus:
        raise EngineError(
            f"{count} engines take {count} CPUs and {count * gpus} GPUs, and Ray has {said(has)} here.",
            "Ask for fewer, or name a larger cluster: RAY_ADDRESS.",
        )


@contextlib.contextmanager
def ray_engines(plan: EnginePlan, count: int, logs: Path, **given: Any) -> Iterator[RayEngines]:
    """So many engines where Ray finds room, for a while; all answer when it begins. See :class:`RayEngines`.

    Raises:
        TurnwiseError: Ray is not there, or an engine does not start.
    """
    logs.mkdir(parents=True, exist_ok=True)
    engines = RayEngines(plan, count, logs, **given)
    with contextlib.closing(engines):
        engines.await_all(engines.check_gpus)
        yield engines
