"""Sandboxes that are plain processes in a folder of their own: for trusted code only.

Nothing here keeps a command from the network, from the host's files or from other processes; what holds are
deadlines, caps on output, and the limits that the kernel puts on single processes. Its use is to run
what one wrote oneself (gold solutions, tests of environments) where nothing else works. Started by root, commands run
as a user who owns nothing and can gain nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from turnwise.errors import TurnwiseError
from turnwise.registry import component
from turnwise.tools.owner import make_folder, remove_folder
from turnwise.tools.sandbox.channel import BOOT, Channel, Supervisor
from turnwise.tools.sandbox.core import Backend, SandboxError, SandboxImage, SandboxLimits, Status
from turnwise.tools.sandbox.live import PATHS, LiveSandbox, settings, start_live
from turnwise.tools.sandbox.reap import reap_all
from turnwise.tools.sandbox.uids import Uid, take_uid

_OPEN = "it does not isolate: commands are processes of the host"
_USER = "unless root started Turnwise, commands run as whoever did; setuid programs of the host are there"
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
        "restore_exact": "the working folder itself begins closed to others and is open after a restore; all in it is exact",
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


@component("sandbox", "process", about="Plain processes: for trusted code only, isolates nothing.")
class ProcessBackend(Backend):
    """``unsafe=True`` says that one knows it: what runs here is not isolated. Without it there is no such backend.

    Raises:
        TurnwiseError: ``unsafe`` is not True.
    """

    name: ClassVar[str] = "process"
    lacks: ClassVar[Mapping[str, str]] = _LACKS

    def __init__(self, *, unsafe: bool = False) -> None:
        if unsafe is not True:
            raise TurnwiseError(
                "The process backend isolates nothing: what runs in it can do almost whatever you can.",
                "Use bubblewrap or docker for a model's code; if all that will run is your own, say unsafe=True "
                "(in a recipe: env_options: {backend: process, unsafe: true}).",
            )
        self._swept = False

    def status(self) -> Status:
        if sys.platform != "linux":
            return Status(False, f"not on {sys.platform}", "Use a Linux machine.")
        return Status(True, "for trusted code only: it isolates nothing")

    def start(self, image: SandboxImage, limits: SandboxLimits | None = None) -> LiveSandbox:
        if not self._swept:
            self._swept = True
            warnings.warn(
                "The process backend isolates nothing; what runs in it is trusted.",
                RuntimeWarning,
                stacklevel=2,
            )
            reap_all(containers=False)
        chosen = limits or SandboxLimits()
        return start_live(self, image, chosen, lambda: self._make(image, chosen))

    def _make(self, image: SandboxImage, limits: SandboxLimits) -> LiveSandbox:
        base = make_folder("process")
        folders = {name: str(base / name) for name in ("work", "tmp", "shm")}
        python = _reachable_python() if os.geteuid() == 0 else sys.executable
        uid = take_uid() if os.geteuid() == 0 else None
        for folder in folders.values():
            os.mkdir(folder, 0o700)
            if uid:
                os.chown(folder, uid.number, uid.number)
        base.chmod(0o711 if uid else 0o700)
        number = uid.number if uid else None
        told = settings(folders, limits, isolated=False, uid=number, rlimits={"RLIMIT_DATA": limits.memory})
        command = [python, "-I", "-S", "-c", BOOT, told]
        process, channel = launch(command, {"PATH": PATHS})
        destroy = _destroyer(process, base, uid)
        try:
            supervisor = Supervisor(channel)
        except SandboxError:
            destroy()
            raise
        environment = environment_of(folders["tmp"], path=f"{Path(python).parent}:{PATHS}")
        return LiveSandbox(
            self, image, limits, supervisor, environment=environment, workdir=folders["work"], destroy=destroy
        )


def _reachable_python() -> str:
    """A Python that a user without rights can start: ours, or the system's where ours lies in root's home folder.

    Raises:
        SandboxError: there is none.
    """
    for found in (sys.executable, shutil.which("python3", path=PATHS)):
        if found and all(
            path.stat().st_mode & 0o001
            for way in (Path(found), Path(found).resolve())
            for path in (way, *way.parents)
        ):
            return found
    raise SandboxError(
        f"Programs would not run as root, and others cannot reach {Path(sys.executable).resolve()}.",
        "Install Python where everybody can reach it (apt-get install python3), or do not start as root.",
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


def _destroyer(process: subprocess.Popen[bytes], base: Path, uid: Uid | None) -> Callable[[], None]:
    def destroy() -> None:
        end_process(process)
        remove_folder(base)
        if uid:
            uid.release()

    return destroy
