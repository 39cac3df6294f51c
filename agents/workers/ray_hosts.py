"""Hosts of environments that Ray places: an actor for each worker process, wherever Ray finds a processor for it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from turnwise.agents.remote.ray_actors import LOOPBACK, RayActors, RayCluster
from turnwise.agents.workers.host import WorkerHost, open_door
from turnwise.agents.workers.hosted import WorkerHosts


class HostState(NamedTuple):
    """State of an actor's host (:class:`~turnwise.agents.remote.ray_actors.RayState`).

    Attributes:
        url: where it is, ``HOST:PORT``.
        pid: of the actor.
        node: the address of its machine in the cluster.
    """

    url: str
    pid: int
    node: str
    answers: bool = True
    failed: str = ""


class WorkerHostActor:
    """A host of one worker process, in a process of Ray's.

    Args:
        token: that it asks for.
        loopback: listen to this machine alone.
    """

    def __init__(self, token: str, loopback: bool) -> None:
        import ray

        self._node = ray.util.get_node_ip_address()
        self._door = open_door(LOOPBACK if loopback else self._node, 0)
        self._host = WorkerHost(self._door, token, 1)
        self._serving = threading.Thread(target=self._host.serve, name="host", daemon=True)
        self._serving.start()

    def state(self) -> HostState:
        """Return the state of the host."""
        host, port = self._door.getsockname()[:2]
        return HostState(f"{host}:{port}", os.getpid(), self._node)

    def close(self) -> None:
        """End its process."""
        self._host.close()


@contextlib.contextmanager
def ray_hosts(count: int, envs: Sequence[str], cluster: RayCluster) -> Iterator[WorkerHosts]:
    """So many worker processes where Ray finds room, for a while; all answer when it begins.

    Args:
        count: how many.
        envs: environments whose source must be the same there as here.
        cluster: where they are to be.

    Raises:
        EngineError: Ray has no room for them.
    """

    def make(token: str) -> list[Any]:
        actor = cluster.ray.remote(WorkerHostActor).options(num_cpus=1, max_restarts=-1)
        return [actor.remote(token, cluster.alone) for _ in range(count)]

    hosts: RayActors[HostState] = RayActors(cluster, make, "hosts of environments")
    with contextlib.closing(hosts):
        hosts.await_all()
        yield WorkerHosts((), str(hosts.urls_file), str(hosts.token_file), envs)
