"""Sandboxes in Docker containers: a read-only root, no network, no capabilities, a user who is not root.

The supervisor is the container's process 1 and speaks over its attached stdin and stdout, so a command costs
milliseconds instead of a ``docker exec``. The container ends when that connection does, also when this
process is killed; it is labelled with its owner, and what dead owners left is swept at the first start.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from turnwise.errors import MissingDependencyError
from turnwise.extras import needing
from turnwise.registry import component
from turnwise.tools import owner
from turnwise.tools.sandbox import daemon
from turnwise.tools.sandbox.backends.process import environment_of
from turnwise.tools.sandbox.channel import BOOT, Channel, Supervisor
from turnwise.tools.sandbox.core import (
    DOOR,
    MIB,
    Backend,
    Root,
    SandboxError,
    SandboxImage,
    SandboxLimits,
    Status,
)
from turnwise.tools.sandbox.files import Layer
from turnwise.tools.sandbox.live import PATHS, LiveSandbox, settings, start_live
from turnwise.tools.sandbox.roots import build_root, root_name
from turnwise.tools.sandbox.uids import Uid, take_uid

FOLDERS = {"work": "/work", "tmp": "/tmp", "shm": "/dev/shm"}
LABEL = "turnwise.sandbox"
_OWNER = "turnwise.owner"
_OVERHEAD = 64 * MIB
_REMEDY = (
    "python3 scripts/sandboxes.py installs and starts a private one (root on Debian); or set DOCKER_HOST."
)
# State outside of files is forbidden: it would survive a command, and no snapshot would hold it.
_SYSCTLS = {
    "kernel.shmmni": "0",
    "kernel.msgmni": "0",
    "kernel.sem": "0 0 0 0",
    "fs.mqueue.queues_max": "0",
}


@component("sandbox", "docker", about="Containers of a Docker daemon.", isolates=True)
class DockerBackend(Backend):
    """Needs a daemon: ``address``, ``$DOCKER_HOST``, the machine's, or a private one (see ``daemon``)."""

    name: ClassVar[str] = "docker"
    has_doors: ClassVar[bool] = True

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._client: Any = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._references: dict[Root, tuple[str, str]] = {}

    def status(self) -> Status:
        try:
            version = self._connect().version()["Version"]
        except (MissingDependencyError, SandboxError) as error:
            return Status(False, error.cause, error.remedy)
        except OSError as error:  # docker's and requests' errors are both of this kind
            return Status(False, f"the daemon does not answer: {error}"[:200], _REMEDY)
        return Status(True, f"daemon {version}")

    def start(self, image: SandboxImage, limits: SandboxLimits | None = None) -> LiveSandbox:
        chosen = limits or SandboxLimits()
        return start_live(self, image, chosen, lambda: self._make(image, chosen))

    def sweep(self, pid: int | None = None) -> list[str]:
        """Remove the containers whose owner (this one) is dead; their names."""
        removed: list[str] = []
        if self._address is None and daemon.address() is None:
            return removed
        for container in _sandboxes(self._connect()):
            whose = container.labels.get(_OWNER, "")
            if pid in (None, int(whose.partition("-")[0] or -1)) and not owner.lives(whose):
                _remove(container)
                removed.append(container.name)
        return removed

    def leftovers(self) -> list[str]:
        """The names of all sandboxes' containers that exist now, of whatever process."""
        return [container.name for container in _sandboxes(self._connect())]

    def resources(self) -> set[str]:
        """Networks, volumes and unnamed images of the daemon, whoever made them."""
        client = self._connect()
        found = {f"network {one.name}" for one in client.networks.list()}
        found |= {f"volume {one.name}" for one in client.volumes.list()}
        return found | {f"image {one.id}" for one in client.images.list(filters={"dangling": True})}

    def files_of(self, root: Root, folder: str) -> Layer:
        """Read an image's files in a folder, as a layer for the working folder (``/testbed`` of SWE-bench)."""
        reference, _ = self._reference(root)
        with self.container(reference) as container, tempfile.TemporaryDirectory() as temporary:
            stream, _ = container.get_archive(folder)
            archive = Path(temporary, "files.tar")
            with archive.open("wb") as file:
                file.writelines(stream)
            with tarfile.open(archive) as opened:
                return Layer.from_tar(opened)

    def client(self) -> Any:
        """The connection to the daemon (``docker.DockerClient``).

        Raises:
            MissingDependencyError, SandboxError: there is none.
        """
        return self._connect()

    @contextlib.contextmanager
    def container(self, reference: str) -> Iterator[Any]:
        """A container of an image that never runs, to look into it or to add files; removed afterwards."""
        made = self._connect().containers.create(reference, command=["true"], labels=_labels("files"))
        try:
            yield made
        finally:
            _remove(made)

    def _connect(self) -> Any:
        with needing("the sandbox 'docker'"):
            import docker
            from docker.errors import DockerException

        with self._lock:
            if self._pid != os.getpid():  # a forked child must not talk on its parent's connections
                self._client, self._pid = None, os.getpid()
            if self._client is None:
                address = self._address or daemon.address()
                if address is None:
                    raise MissingDependencyError("No Docker daemon runs here.", _REMEDY)
                try:
                    client = docker.DockerClient(base_url=address, timeout=60, max_pool_size=64)
                    client.ping()
                except DockerException as error:
                    raise SandboxError(f"Docker does not answer: {error}"[:300], _REMEDY) from None
                self._client = client
                fresh = True
            else:
                fresh = False
        if fresh:
            self.sweep()
        return self._client

    def _reference(self, root: Root) -> tuple[str, str]:
        """The image of a root and its ``PATH``; imported where the daemon does not have it."""
        from docker.errors import ImageNotFound

        client = self._connect()
        with self._lock:
            if root in self._references:
                return self._references[root]
            reference = root.reference or f"turnwise-root:{root_name(root)}"
            try:
                about = client.images.get(reference)
            except ImageNotFound:
                about = client.images.pull(reference) if root.reference else _import(client, root, reference)
            words = dict(word.split("=", 1) for word in about.attrs["Config"].get("Env") or ())
            self._references[root] = (about.id, words.get("PATH", PATHS))
            return self._references[root]

    def _make(self, image: SandboxImage, limits: SandboxLimits) -> LiveSandbox:
        from docker.errors import DockerException

        uid, folders = take_uid(), {**FOLDERS, "work": image.root.workdir}
        try:
            reference, path = self._reference(image.root)
            container = self._connect().api.create_container(
                reference,
                **_description(self._connect(), limits, uid.number, folders),
                name=f"turnwise-{os.getpid()}-{uuid.uuid4().hex[:12]}",
            )
        except DockerException as error:
            uid.release()
            raise _failed("created", error) from None
        handle = self._connect().containers.get(container["Id"])
        destroy = _destroyer(handle, uid)
        try:
            channel = Channel(_attach(self._connect(), container["Id"]), marked=True)
            self._connect().api.start(container["Id"])
            supervisor = Supervisor(channel)
        except DockerException as error:
            destroy()
            raise _failed("started", error) from None
        except BaseException:
            destroy()
            raise
        environment = environment_of(folders["tmp"], path=path)
        return LiveSandbox(
            self,
            image,
            limits,
            supervisor,
            environment=environment,
            workdir=folders["work"],
            destroy=destroy,
        )


def _sandboxes(client: Any) -> list[Any]:
    # Many end by themselves at any moment, also between being listed and being looked at.
    return client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)


def _description(client: Any, limits: SandboxLimits, uid: int, folders: dict[str, str]) -> dict[str, Any]:
    """Return the settings that make the container a sandbox."""
    memory = limits.memory + limits.disk + 2 * limits.scratch + _OVERHEAD
    how = f"uid={uid},gid={uid},mode=0755,exec,nosuid,nodev"
    small = f"size={limits.scratch},nr_inodes={max(limits.inodes // 4, 64)},{how}"
    api = client.api
    host = api.create_host_config(
        network_mode="bridge" if limits.network else "none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={
            folders["work"]: f"size={limits.disk},nr_inodes={limits.inodes},{how}",
            folders["tmp"]: small,
            folders["shm"]: small,
        },
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=limits.processes + 1,
        nano_cpus=int(limits.cpus * 1e9),
        ipc_mode="private",
        binds={limits.door: {"bind": DOOR, "mode": "ro"}} if limits.door else {},
        sysctls=_SYSCTLS,
        auto_remove=True,
        log_config={"type": "none", "config": {}},
        init=False,
    )
    told = settings(folders, limits, isolated=True)
    return {
        "command": ["-I", "-S", "-c", BOOT, told],
        "entrypoint": ["python3"],
        "host_config": host,
        "user": f"{uid}:{uid}",
        "hostname": "sandbox",
        "stdin_open": True,
        "labels": _labels("1"),
        "working_dir": "/",
    }


def _labels(kind: str) -> dict[str, str]:
    return {LABEL: kind, _OWNER: owner.name_of(os.getpid())}


def _attach(client: Any, container: str) -> socket.socket:
    """The connection to a container's stdin and stdout; made before it starts, so that nothing is missed."""
    wrapped = client.api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stream": 1})
    attached = socket.socket(fileno=os.dup(wrapped.fileno()))
    # Ours is a copy, so that closing it closes it: the client keeps references to its own.
    wrapped._response.close()
    wrapped.close()
    return attached


def _import(client: Any, root: Root, reference: str) -> Any:
    """Hand a root to the daemon as an image."""
    from docker.errors import DockerException

    repository, tag = reference.split(":")
    with subprocess.Popen(["tar", "-C", str(build_root(root)), "-c", "."], stdout=subprocess.PIPE) as archive:
        try:
            client.api.import_image_from_stream(archive.stdout, repository=repository, tag=tag)
        except DockerException as error:
            raise _failed("imported", error) from None
    return client.images.get(reference)


def _destroyer(container: Any, uid: Uid) -> Callable[[], None]:
    def destroy() -> None:
        _remove(container)
        uid.release()

    return destroy


def _remove(container: Any) -> None:
    """Remove a container, and wait until it is gone; that it goes by itself is no error."""
    from docker.errors import DockerException, NotFound

    for _ in range(200):
        try:
            container.remove(force=True)
            return
        except NotFound:
            return
        except DockerException:  # already being removed
            time.sleep(0.01)


def _failed(what: str, error: Exception) -> SandboxError:
    said = str(getattr(error, "explanation", None) or error)
    remedy = "Run `turnwise doctor`."
    if "address pool" in said:
        remedy = "Docker has no addresses left: `docker network prune`."
    elif "bridge" in said:
        remedy = "This daemon has no network for sandboxes; leave Limits.network off, or use another."
    return SandboxError(f"A container could not be {what}: {said[:300]}", remedy)
