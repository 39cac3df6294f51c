"""A Docker daemon of our own, where none runs: ``python -m turnwise.tools.sandbox.daemon start|stop|status``.

It has its own socket, data and containerd, no bridge and no firewall rules (sandboxes have no network), so it
touches nothing of a Docker that is there already, and works in virtual machines where iptables does not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from turnwise.cache_folder import cache_folder
from turnwise.errors import MissingDependencyError
from turnwise.tools.sandbox.core import SandboxError

_RUN = Path("/run/turnwise-docker")
SOCKET = _RUN / "docker.sock"
_PID = _RUN / "docker.pid"
_USUAL = Path("/var/run/docker.sock")


def address() -> str | None:
    """Return the address of a daemon: ``$DOCKER_HOST``, our own, or the machine's; None where there is none."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    for path in (SOCKET, _USUAL):
        if path.is_socket() and os.access(path, os.R_OK | os.W_OK) and (path != SOCKET or running()):
            return f"unix://{path}"
    return None


def running() -> int | None:
    """The process number of our own daemon, or None."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(_PID.read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd":
            return pid
    return None


def start(*, patience: float = 30.0) -> str:
    """Start our own daemon unless it runs; its address.

    Raises:
        MissingDependencyError: dockerd is not installed, or we are not root.
        SandboxError: it does not start.
    """
    if running() and SOCKET.is_socket():
        return f"unix://{SOCKET}"
    if shutil.which("dockerd") is None:
        raise MissingDependencyError("dockerd is not installed.", "apt-get install docker.io")
    if os.geteuid() != 0:
        raise MissingDependencyError(
            "Only root can start a Docker daemon.", "Ask for one, or set DOCKER_HOST to one that runs."
        )
    home = cache_folder("sandboxes", "docker")
    for folder in (home, _RUN):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _PID.unlink(missing_ok=True)
    settings = home / "daemon.json"
    settings.write_text("{}")  # so that the machine's own settings do not apply
    command = ["dockerd", "--data-root", str(home / "data"), "--exec-root", str(_RUN / "exec"), "--pidfile"]
    command += [str(_PID), "--host", f"unix://{SOCKET}", "--group", "root", "--config-file", str(settings)]
    command += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--userland-proxy=false"]
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and process.poll() is None:
        if _answers():
            return f"unix://{SOCKET}"
        time.sleep(0.05)
    last = (home / "log").read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
    raise SandboxError(f"dockerd does not start: {last[0][:300]}", f"Read {home / 'log'}.")


def stop(*, patience: float = 20.0) -> bool:
    """Stop our own daemon with all its containers; whether there was one."""
    pid = running()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while running() and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def _answers() -> bool:
    import docker
    from docker.errors import DockerException

    with contextlib.suppress(DockerException, OSError):
        client = docker.DockerClient(base_url=f"unix://{SOCKET}", timeout=5)
        try:
            return bool(client.ping())
        finally:
            client.close()
    return False


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    match arguments:
        case ["start"]:
            print(start())
        case ["stop"]:
            print("stopped" if stop() else "was not running")
        case ["status"]:
            print(address() or "no daemon")
        case _:
            print("usage: python -m turnwise.tools.sandbox.daemon start|stop|status", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
