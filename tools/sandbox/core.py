"""Sandboxes: places where a model's commands run and can do no harm, and whose files are values.

A :class:`Backend` starts a :class:`Sandbox` from an :class:`SandboxImage`: a read-only root and layers of files.
Three rules hold in every backend, and make snapshots exact and forks cheap:

* files are all the state there is: what a command leaves running is killed when the command ends;
* what a sandbox may write to is its working folder, ``/tmp`` and ``/dev/shm``, all of limited size;
* a snapshot is an image: any sandbox of the backend can start from it, or return to it.

Everything here is synchronous; a sandbox may be used from any thread, by one at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import ClassVar, NamedTuple, Self

from turnwise.errors import InfraError
from turnwise.tools.core import ToolError
from turnwise.tools.sandbox.files import Layer, digest_of

MIB = 2**20
DOOR = "/dev/turnwise"
"""Path at which commands find the socket of ``SandboxLimits.door``."""


class SandboxError(InfraError):
    """The sandbox itself failed (not what ran in it): it could not start, or it is gone."""


class PathError(ToolError):
    """A file operation that cannot be done; the text is written for the model."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of a sandbox. Bytes are bytes, seconds are of wall time; ``cpus`` may be a fraction.

    ``memory`` is that of processes; files lie in memory too, but count against ``disk`` (working folder) and
    ``scratch`` (``/tmp`` and ``/dev/shm``, each). ``output`` is how much of each stream is kept per
    command; a command that writes ``flood`` bytes is killed. There is no network unless ``network`` is true
    (docker only, with a daemon that has one). ``door`` is the path of a Unix socket of this machine's that commands may
    connect to, as :data:`DOOR`; it leads where its owner says, and nowhere else.
    """

    memory: int = 512 * MIB
    cpus: float = 1.0
    processes: int = 64
    disk: int = 128 * MIB
    scratch: int = 32 * MIB
    inodes: int = 50_000
    file_size: int = 64 * MIB
    seconds: float = 30.0
    output: int = 64 * 1024
    flood: int = 64 * MIB
    network: bool = False
    door: str = ""


@dataclass(frozen=True, slots=True)
class Root:
    """A read-only root file system: Debian's Python and basic tools, and these packages beside them.

    ``reference`` names a Docker image to use instead (docker only); it must have ``python3``. ``workdir`` is where its working
    folder lies, over what the image has there. ``links`` are folders at the top of a root of packages that lead into the working
    folder, so that programs may write to ``/app``, say; one that is there and not empty stays.
    """

    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    reference: str = ""
    workdir: str = "/work"
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class SandboxImage:
    """Root and files from which a sandbox starts; immutable, and what a snapshot is.

    ``env`` is all that commands see of an environment beside ``PATH``, ``HOME``, ``USER`` and ``LANG``.
    """

    root: Root = field(default_factory=Root)
    layers: tuple[Layer, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, files: Mapping[str, str | bytes], *, root: Root | None = None) -> SandboxImage:
        """An image with these files in its working folder."""
        return cls(root or Root(), (Layer.of(files),))

    @cached_property
    def digest(self) -> str:
        """A hash of names, modes and contents of all files (not of times), for state keys."""
        return digest_of(self.layers)

    def with_files(self, files: Mapping[str, str | bytes]) -> SandboxImage:
        """This image with more files in its working folder, or others in their place."""
        return SandboxImage(self.root, (*self.layers, Layer.of(files)), self.env)


class Ended(StrEnum):
    """The end of a command."""

    EXIT = "it exited, or a signal ended it"
    TIMEOUT = "its time was up, and it was killed with all its children"
    MEMORY = "memory ran out, and the kernel killed a process of it"
    FLOOD = "it wrote too much, and was killed with all its children"


class ExecResult(NamedTuple):
    """The result of a command. ``exit_code`` is 128 + n where signal n ended it, 127 where there is no such command.

    ``stdout`` and ``stderr`` are their first and last bytes with a marker between where they were cut;
    ``stdout_bytes`` and ``stderr_bytes`` count what was written.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    ended: Ended
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    seconds: float

    @property
    def ok(self) -> bool:
        """True if it ended by itself, with exit code 0."""
        return self.exit_code == 0 and self.ended is Ended.EXIT

    @property
    def timed_out(self) -> bool:
        return self.ended is Ended.TIMEOUT

    @property
    def oom(self) -> bool:
        return self.ended is Ended.MEMORY

    @property
    def out(self) -> str:
        """Standard output as text; bytes that are no UTF-8 are shown as �."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")


class FileInfo(NamedTuple):
    """An entry of a folder. ``kind`` is file, folder, link or other; ``size`` is in bytes."""

    path: str
    kind: str
    size: int
    mode: int


class Sandbox(ABC):
    """A running sandbox. Relative paths start in ``workdir``; use ``with``, or call :meth:`close`."""

    image: SandboxImage
    limits: SandboxLimits
    workdir: str
    """The working folder's path as commands see it: ``/work``, but for the process backend."""

    @abstractmethod
    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        output: int | None = None,
    ) -> ExecResult:
        """Run a command to its end, then kill what it left running.

        Args:
            argv: the program and its arguments; for a shell, ``["bash", "-c", text]``.
            cwd: where, relative to the working folder.
            env: variables beside the image's.
            stdin: all of its standard input.
            timeout: seconds, at most ``limits.seconds`` (the default).
            output: bytes kept of each stream, instead of ``limits.output``.

        Raises:
            SandboxError: the sandbox failed; what the command does never raises.
        """

    @abstractmethod
    def read(self, path: str, *, limit: int = 16 * MIB) -> bytes:
        """At most ``limit`` bytes of a regular file.

        Raises:
            PathError: there is no such file, or it may not be read.
        """

    @abstractmethod
    def write(self, path: str, data: str | bytes, *, mode: int | None = None) -> None:
        """Replace a file, making the folders it lies in. Never writes through a link at ``path``.

        Raises:
            PathError: it may not be written there, or does not fit.
        """

    @abstractmethod
    def list(self, path: str = "", *, depth: int = 1, limit: int = 1000) -> tuple[FileInfo, ...]:
        """List the contents of a folder, sorted, ``depth`` levels deep; links are not followed.

        Raises:
            PathError: there is no such folder.
        """

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, a link or a folder with all in it.

        Raises:
            PathError: there is none, or it may not be removed.
        """

    @abstractmethod
    def snapshot(self) -> SandboxImage:
        """The files as they are now, as an image. Costs what changed since the last snapshot."""

    @abstractmethod
    def restore(self, image: SandboxImage) -> None:
        """Make the files what they are in ``image``, which must have the same root."""

    @abstractmethod
    def fork(self) -> Sandbox:
        """A second sandbox with the same files, limits and root."""

    @abstractmethod
    def close(self) -> None:
        """End everything in it and free what it took. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Status(NamedTuple):
    """Status of a backend on this machine: if it does not work, what to do."""

    ok: bool
    detail: str
    remedy: str = ""


class Backend(ABC):
    """A way of running sandboxes."""

    name: ClassVar[str]
    has_doors: ClassVar[bool] = False
    """True if its sandboxes have no network and may have a ``SandboxLimits.door``."""
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Checks of the conformance suite that it does not claim to pass, each with the reason."""

    @abstractmethod
    def status(self) -> Status:
        """Say whether it works here; quick, and changes nothing."""

    def sweep(self, pid: int | None = None) -> list[str]:
        """Remove what it keeps outside of this machine's processes for a dead process (for any); the names of it."""
        return []

    @abstractmethod
    def start(self, image: SandboxImage, limits: SandboxLimits | None = None) -> Sandbox:
        """A sandbox with the files of ``image``.

        Raises:
            SandboxError: it could not be started.
            MissingDependencyError: this machine lacks what the backend needs.
        """
