"""Sandboxes made of Linux namespaces by bubblewrap: no daemon, tens of milliseconds to start.

Commands run as a user of their own (not as root with a smaller view), in new pid, network, ipc, uts and mount
namespaces, on a read-only root, under a filter of system calls and in a control group. The writable folders lie
on one tmpfs of limited size that belongs to the sandbox's mount namespace: it is gone when the last process is.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from turnwise.errors import MissingDependencyError
from turnwise.registry import component
from turnwise.tools.sandbox import cgroups
from turnwise.tools.sandbox.backends.process import end_process, environment_of, launch
from turnwise.tools.sandbox.channel import BOOT, Channel, Supervisor
from turnwise.tools.sandbox.core import DOOR, Backend, SandboxError, SandboxImage, SandboxLimits, Status
from turnwise.tools.sandbox.live import LiveSandbox, settings, start_live
from turnwise.tools.sandbox.reap import reap_all
from turnwise.tools.sandbox.roots import build_root, group_file, passwd
from turnwise.tools.sandbox.uids import Uid, take_uid

FOLDERS = {"work": "/work", "tmp": "/tmp", "shm": "/dev/shm"}
_REMEDY = "apt-get install bubblewrap (needs root); `turnwise doctor` says more."


@component(
    "sandbox", "bubblewrap", about="Namespaces by bwrap: starts in milliseconds, needs root.", isolates=True
)
class BubblewrapBackend(Backend):
    """Needs ``bwrap``, and root on the machine that it protects."""

    name: ClassVar[str] = "bubblewrap"
    has_doors: ClassVar[bool] = True

    def __init__(self) -> None:
        self._swept = False

    def status(self) -> Status:
        if shutil.which("bwrap") is None:
            return Status(False, "bwrap is not installed", _REMEDY)
        if os.geteuid() != 0:
            return Status(False, "not root, so commands cannot be given a user of their own", "Run as root.")
        probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False)
        if done.returncode:
            return Status(
                False, f"bwrap fails: {done.stderr.strip()[:120]}", "Allow namespaces on this machine."
            )
        groups = "control groups" if cgroups.available() else "rlimits only: no control groups here"
        return Status(True, f"works, {groups}")

    def start(self, image: SandboxImage, limits: SandboxLimits | None = None) -> LiveSandbox:
        chosen = limits or SandboxLimits()
        if chosen.network:
            raise SandboxError(
                "bubblewrap has no network of its own to give: commands would reach the host's services.",
                "Use the docker backend with a daemon that has a bridge.",
            )
        if shutil.which("bwrap") is None or os.geteuid() != 0:
            status = self.status()
            raise MissingDependencyError(
                f"The bubblewrap backend does not work here: {status.detail}.", status.remedy
            )
        if not self._swept:
            reap_all(containers=False)
            self._swept = True
        root = build_root(image.root)
        return start_live(self, image, chosen, lambda: self._make(image, chosen, root))

    def _make(self, image: SandboxImage, limits: SandboxLimits, root: Path) -> LiveSandbox:
        group = cgroups.make_group(uuid.uuid4().hex[:12], limits) if cgroups.available() else None
        uid = take_uid()
        rlimits = {} if group else {"RLIMIT_NPROC": limits.processes, "RLIMIT_DATA": limits.memory}
        told = settings(FOLDERS, limits, isolated=True, uid=uid.number, rlimits=rlimits)
        process, channel = _launch(root, limits, group, uid.number, told)
        destroy = _destroyer(process, group, uid)
        try:
            supervisor = Supervisor(channel)
        except SandboxError:
            destroy()
            raise
        return LiveSandbox(
            self,
            image,
            limits,
            supervisor,
            environment=environment_of(FOLDERS["tmp"]),
            workdir=FOLDERS["work"],
            destroy=destroy,
        )


def _launch(
    root: Path, limits: SandboxLimits, group: cgroups.Group | None, uid: int, told: str
) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start bubblewrap in a mount namespace of its own, where the tmpfs for the writable folders is."""
    here = "/run/turnwise-sandbox"
    options = f"size={limits.disk},nr_inodes={limits.inodes},mode=0755"
    small = f"size={limits.scratch},nr_inodes={max(limits.inodes // 4, 64)},mode=0755"
    lines = [
        "set -e",
        *(group.join_commands() if group else []),
        f"mkdir -p {here}",
        f"mount -t tmpfs -o mode=0700 turnwise {here}",
        f"mkdir {here}/work {here}/tmp {here}/shm",
        f"printf '%s' {shlex.quote(passwd(uid))} > {here}/passwd",
        f"printf '%s' {shlex.quote(group_file(uid))} > {here}/group",
        f"mount -t tmpfs -o {options},uid={uid},gid={uid} turnwise {here}/work",
        f"mount -t tmpfs -o {small},uid={uid},gid={uid} turnwise {here}/tmp",
        f"mount -t tmpfs -o {small},uid={uid},gid={uid} turnwise {here}/shm",
        f"exec {shlex.join(_arguments(root, here, group, told, limits.door))}",
    ]
    command = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "\n".join(lines)]
    return launch(command, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def _arguments(root: Path, here: str, group: cgroups.Group | None, told: str, door: str) -> list[str]:
    spaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    command = ["bwrap", *spaces, "--new-session", "--as-pid-1", "--hostname", "sandbox", "--clearenv"]
    command += ["--cap-drop", "ALL"]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):  # the supervisor drops them with root
        command += ["--cap-add", capability]
    command += ["--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc"]
    for name, folder in FOLDERS.items():
        command += ["--bind", f"{here}/{name}", folder]
    for name in ("passwd", "group"):  # so that the sandbox's own number has the name of agent
        command += ["--ro-bind", f"{here}/{name}", f"/etc/{name}"]
    if door:
        command += ["--ro-bind", door, DOOR]
    if group:
        inside = (
            "/sys/fs/cgroup" if group.memory.name and len(group.folders) == 1 else "/sys/fs/cgroup/memory"
        )
        command += ["--tmpfs", "/sys", "--ro-bind", str(group.memory), inside, "--remount-ro", "/sys"]
    return [*command, "--chdir", "/", "/usr/bin/python3", "-I", "-S", "-c", BOOT, told]


def _destroyer(process: subprocess.Popen[bytes], group: cgroups.Group | None, uid: Uid) -> Callable[[], None]:
    def destroy() -> None:
        end_process(process)
        if group:
            group.remove()
        uid.release()

    return destroy
