"""Sandboxes that are plain processes in a folder of their own: for trusted code only.

Nothing here keeps a command from the network, from the host's files or from other processes; what holds are
deadlines, caps on output, and the limits that the kernel puts on single processes. Its use is to run
what one wrote oneself (gold solutions, tests of environments) where nothing else works.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.channel import BOOT, Channel, Supervisor
from turnwise.tools.sandbox.core import Backend, Image, Limits, SandboxError, Status
from turnwise.tools.sandbox.live import PATHS, LiveSandbox, settings, start_live

_OPEN = "it does not isolate: commands are processes of the host"
_USER = "commands run as whoever started Turnwise"
_UNBOUND = "limits are those of single processes, and root has none on their number"
_LACKS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("tcp", "udp", "ipv6", "dns", "icmp", "metadata", "host_loopback", "host_abstract_socket",
             "host_unix_sockets", "vsock", "interfaces", "ports_apart"),
            "it has the host's network",
        ),
        **dict.fromkeys(
            ("namespaces", "mounts", "kernel_doors", "state_outside_of_files", "supervisor_closed",
             "processes_apart", "root_read_only", "devices", "kernel_settings", "control_groups",
             "kernel_messages", "exec_root_programs", "kill_everything", "other_processes", "host_files",
             "canary_search", "host_identity", "fresh"),
            _OPEN,
        ),
        **dict.fromkeys(("no_privileges", "real_user", "no_setuid", "file_unreadable"), _USER),
        **dict.fromkeys(
            ("memory_bomb", "memory_bomb_children", "fork_bomb", "process_limit", "thread_limit", "cpu_share"),
            _UNBOUND,
        ),
        **dict.fromkeys(
            ("disk_fill", "scratch_fill", "inode_storm", "archive_bomb", "file_too_large"),
            "its folders are ordinary ones, of no limited size",
        ),
    }
)  # fmt: skip


class ProcessBackend(Backend):
    """``trusted=True`` says that what will run is trusted; without it nothing starts."""

    name: ClassVar[str] = "process"
    lacks: ClassVar[Mapping[str, str]] = _LACKS

    def __init__(self, *, trusted: bool = False) -> None:
        self.trusted = trusted
        self._swept = False

    def status(self) -> Status:
        if sys.platform != "linux":
            return Status(False, f"not on {sys.platform}", "Use a Linux machine.")
        return Status(True, "for trusted code only: it isolates nothing")

    def start(self, image: Image, limits: Limits | None = None) -> LiveSandbox:
        if not self.trusted:
            raise TurnwiseError(
                "The process back end isolates nothing: what runs in it can do whatever you can.",
                "Use bubblewrap or docker for a model's code; for your own, ProcessBackend(trusted=True).",
            )
        if not self._swept:
            self._swept = True
            _sweep()
        chosen = limits or Limits()
        return start_live(self, image, chosen, lambda: self._make(image, chosen))

    def _make(self, image: Image, limits: Limits) -> LiveSandbox:
        base = Path(tempfile.mkdtemp(prefix=f"turnwise-process-{os.getpid()}-"))
        folders = {name: str(base / name) for name in ("work", "tmp", "shm")}
        for folder in folders.values():
            os.mkdir(folder, 0o700)
        told = settings(folders, limits, isolated=False, rlimits={"RLIMIT_DATA": limits.memory})
        command = [sys.executable, "-I", "-S", "-c", BOOT, told]
        process, channel = launch(command, {"PATH": PATHS})
        destroy = _destroyer(process, base)
        try:
            supervisor = Supervisor(channel)
        except SandboxError:
            destroy()
            raise
        environment = environment_of(folders["tmp"], path=f"{Path(sys.executable).parent}:{PATHS}")
        return LiveSandbox(
            self, image, limits, supervisor, environment=environment, workdir=folders["work"], destroy=destroy
        )


def environment_of(home: str, *, path: str = PATHS) -> dict[str, str]:
    """All variables that a command gets from us; nothing of the host's environment is among them."""
    return {
        "PATH": path,
        "HOME": home,
        "TMPDIR": home,
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",  # stale bytecode would survive an edit within the same second
    }


def launch(command: Sequence[str], environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start what becomes a supervisor, in a session of its own, with a socket as its stdin and stdout."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            command,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=dict(environment),
        )
    return process, Channel(ours)


def end_process(process: subprocess.Popen[bytes], *, patience: float = 2.0) -> None:
    """Wait for a supervisor whose stdin was closed; kill its session where it does not end."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def _sweep() -> None:
    """Remove the folders of owners that no longer live."""
    for folder in Path(tempfile.gettempdir()).glob("turnwise-process-*-*"):
        owner = folder.name.split("-")[2]
        if owner.isdigit() and not Path("/proc", owner).exists():
            _remove_folder(folder)


def _remove_folder(base: Path) -> None:
    for here, names, _ in os.walk(base):
        for name in names:
            path = os.path.join(here, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(base, ignore_errors=True)


def _destroyer(process: subprocess.Popen[bytes], base: Path) -> Callable[[], None]:
    def destroy() -> None:
        end_process(process)
        _remove_folder(base)

    return destroy
