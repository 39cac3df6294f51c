"""An agent's program in a sandbox: it sees the files that it was given, and reaches its session and nothing else."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.execution.threads import in_thread
from turnwise.agents.gateway import port_forward
from turnwise.agents.gateway.launching import FLOOD, GRACE_S, KEPT, Exited, ProgramJob
from turnwise.errors import TurnwiseError
from turnwise.registry import get_component
from turnwise.tools.sandbox.core import DOOR, MIB, Backend, Ended, Root, Sandbox, SandboxImage, SandboxLimits
from turnwise.tools.sandbox.files import Layer
from turnwise.tools.sandbox.registry import get_backend, isolated_backend

START_S = 300.0
"""Seconds that a sandbox may take to start; the first one builds its root file system."""
_LEFT_OUT = {".git", "__pycache__"}


class SessionDoor(NamedTuple):
    """Address of a session: the path of a Unix socket, and the port that leads to it inside a sandbox."""

    path: str
    port: int


@dataclass(frozen=True)
class ProgramSandbox:
    """The sandbox in which an agent's program runs; a new one for each episode.

    Attributes:
        backend: a sandbox that isolates; the first that works on this machine unless given.
        files: what the program finds in its working folder: files and folders of ``workdir``.
        apt, pip: packages beside Debian's Python.
        image: a Docker image to run in instead, which must have ``python3``.
        memory: of its processes, in MiB.
        processes: how many it may have, threads counted.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    backend: str = ""
    files: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    image: str = ""
    memory: int = 512
    processes: int = 64

    def check(self, command: Sequence[str], folder: Path) -> None:
        """Refuse what could never run.

        Raises:
            TurnwiseError: with the remedy.
        """
        if not (self.memory > 0 and self.processes > 1):
            raise TurnwiseError(
                f"The agent's sandbox has {self.memory} MiB and {self.processes} processes.",
                "Give more than 0 MiB and at least 2 processes.",
            )
        backend = backend_of(self)
        if self.image and backend.name != "docker":
            raise TurnwiseError(
                f"The agent's sandbox {backend.name} cannot run the image {self.image}.",
                "Say backend: docker, or name packages with apt and pip.",
            )
        status = backend.status()
        if not status.ok:
            raise TurnwiseError(
                f"The sandbox {backend.name} does not work here: {status.detail}.", status.remedy
            )
        given = dict(files_of(folder, self.files))
        for word in command:
            if word not in given and not os.path.isabs(word) and (folder / word).is_file():
                raise TurnwiseError(
                    f"The agent's command names the file {word}, which its sandbox does not have.",
                    f"List it: sandbox: {{files: [{word}]}}.",
                )


def backend_of(given: ProgramSandbox) -> Backend:
    """The backend that a program runs in.

    Raises:
        TurnwiseError: it isolates nothing or has no door, or none works here.
    """
    name = given.backend or ("docker" if given.image else "")
    if not name:
        return isolated_backend()
    if get_component("sandbox", name).isolates and get_backend(name).has_doors:
        return get_backend(name)
    raise TurnwiseError(
        f"The sandbox {name!r} does not shut an agent's program in.",
        "Use bubblewrap or docker, or leave sandbox out: then the program runs as you.",
    )


def files_of(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The regular files that are given, by their paths in the working folder. Links are not followed.

    Raises:
        TurnwiseError: there is no such file, or it is not in the folder.
    """
    for name in names:
        path = Path(os.path.normpath(folder / name))
        if not path.is_relative_to(folder) or path.is_symlink() or not path.exists():
            raise TurnwiseError(
                f"The agent's sandbox is given {name!r}, which is no file of {folder}.",
                "Give paths of files and folders inside `workdir`.",
            )
        for one in sorted(path.rglob("*")) if path.is_dir() else (path,):
            inside = one.relative_to(folder)
            if one.is_file() and not one.is_symlink() and not _LEFT_OUT & {*inside.parts}:
                yield inside.as_posix(), one


def image_of(given: ProgramSandbox, folder: Path) -> SandboxImage:
    """Make the image from which a program's sandbox starts."""
    files = dict(files_of(folder, given.files))
    runs = [name for name, path in files.items() if os.access(path, os.X_OK)]
    layer = Layer.of({name: path.read_bytes() for name, path in files.items()}, executable=runs)
    return SandboxImage(Root(given.apt, given.pip, given.image), (layer,) if files else ())


async def run_contained(
    given: ProgramSandbox, job: ProgramJob, told: bytes, timeout: float, door: SessionDoor
) -> Exited:
    """Run a program to its end in a sandbox of its own; whatever it left is gone with that.

    Raises:
        Fault: the sandbox could not be started, or failed.
    """
    limits = SandboxLimits(
        memory=given.memory * MIB,
        processes=given.processes,
        seconds=timeout,
        output=KEPT,
        flood=FLOOD,
        door=door.path,
    )
    argv = ["python3", "-I", "-S", "-c", inspect.getsource(port_forward), DOOR, str(door.port), *job.argv]

    def start() -> Sandbox:
        return backend_of(given).start(image_of(given, Path(job.cwd)), limits)

    try:
        sandbox = await in_thread("the start of the agent's sandbox", START_S, start)
        try:
            done = await in_thread(
                "the agent's program", timeout + GRACE_S, sandbox.exec, argv, env=job.env, stdin=told
            )
        finally:
            await in_thread("the end of the agent's sandbox", GRACE_S, sandbox.close)
    except TurnwiseError as error:
        raise Fault(Outcome.INFRA_ERROR, f"the agent's sandbox failed: {error.cause}") from error
    why = "timeout" if done.timed_out else "flood" if done.ended is Ended.FLOOD else "exit"
    return Exited(done.exit_code, why, done.out, done.err)
