"""What a killed process leaves is found and removed, also where it was stopped and could not end by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from turnwise.tools import owner
from turnwise.tools.sandbox.bench import leftovers
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.reap import reap, reap_all
from turnwise.tools.sandbox.registry import backend_names

HOLD = """
import sys, time
print("ready", flush=True)
time.sleep(600)
"""
SANDBOX = """
import sys, threading
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import get_backend
backend = get_backend(sys.argv[1], unsafe=True)
held = [backend.start(SandboxImage.of({"a": "1"})) for _ in range(2)]
threading.Thread(target=held[0].exec, args=(["sleep", "600"],), daemon=True).start()
while not held[1].exec(["true"]).ok: pass
"""
BROWSER = """
import socket
from turnwise.tools.browser.pool import chromium
from turnwise.tools.browser.session import lease
held = lease(chromium(), "http://127.0.0.1:9")
"""
APPLICATION = """
from pathlib import Path
from turnwise.envs.web.command import Command, CommandVisit
server = "import signal, sys; signal.signal(15, 1)\\nfrom http.server import *\\n" \\
    "HTTPServer(('127.0.0.1', int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()"
held = CommandVisit(Command((sys.executable, "-c", server, "{port}")))
(held.folder / "kept").write_text("x")
held.start()
"""
SERVER = """
from turnwise.tools.mcp_client import McpConnection, StdioServer
code = "from turnwise.tools.mcp_server import PlainToolbox, serve_stdio; import time\\n" \\
    "serve_stdio(PlainToolbox('odd', [])); time.sleep(600)"
held = McpConnection(StdioServer((sys.executable, "-c", code), cwd="/"))
"""


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that holds what the parameter says."""
    source, *arguments = request.param
    code = f"import sys\n{source}\n{HOLD}"
    paths = os.environ.get("PYTHONPATH", "")
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    ) as process:  # fmt: skip
        assert process.stdout
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def killed(worker: subprocess.Popen[str]) -> list[psutil.Process]:
    """Stop all that the worker started, so that nothing ends by itself, then kill the worker alone."""
    family = psutil.Process(worker.pid).children(recursive=True)
    for one in family:
        one.suspend()
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert any(one.is_running() for one in family)
    return family


def gone(one: psutil.Process) -> bool:
    return not one.is_running() or one.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "backend"),
    [((SANDBOX, name), name) for name in backend_names()],
    indirect=True,
    ids=backend_names(),
)
def test_a_killed_workers_sandboxes_are_removed(worker: subprocess.Popen[str], backend: Backend) -> None:
    assert reap(worker.pid) == []  # it lives
    assert leftovers(backend, worker.pid)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    reap(worker.pid)
    assert leftovers(backend, worker.pid) == set()
    assert reap(worker.pid) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "kind", "backend"),
    [((SANDBOX, "bubblewrap"), "process", "bubblewrap"), ((SANDBOX, "process"), "folder", "process")],
    indirect=["worker", "backend"],
)
def test_stopped_sandboxes_are_killed_and_told(
    worker: subprocess.Popen[str], kind: str, backend: Backend
) -> None:
    family = killed(worker)
    told = reap(worker.pid)
    kinds = (
        kind,
        "control group",
    )  # another process may have reaped some of it, when it began to use sandboxes
    assert all(line.startswith((*kinds, "process", "folder")) for line in told)
    assert all(map(gone, family))
    assert leftovers(backend, worker.pid) == set()


def profiles() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("playwright_chromiumdev_profile-*"))


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("worker", [(BROWSER,)], indirect=True)
def test_a_killed_workers_browser_ends(worker: subprocess.Popen[str]) -> None:
    family = killed(worker)
    used = {
        Path(word.partition("=")[2]) for one in family for word in one.cmdline() if "--user-data-dir=" in word
    }
    assert used & profiles()
    told = reap(worker.pid)
    assert any("chrom" in line for line in told)
    assert all(map(gone, family))
    assert not used & profiles()


@pytest.mark.slow
@pytest.mark.parametrize("worker", [(APPLICATION,), (SERVER,)], indirect=True, ids=["web", "mcp"])
def test_a_killed_workers_servers_and_folders_go(worker: subprocess.Popen[str]) -> None:
    pytest.importorskip("mcp")
    family = killed(worker)
    assert reap(worker.pid)
    assert all(map(gone, family))
    assert not owner.folders(worker.pid)


@pytest.mark.slow
@pytest.mark.parametrize("worker", [(APPLICATION,)], indirect=True)
def test_who_starts_next_cleans_up(worker: subprocess.Popen[str]) -> None:
    family = killed(worker)
    reap_all(containers=False)
    assert all(map(gone, family))
    assert not owner.folders(worker.pid)


def test_a_number_that_was_used_again_is_not_its_former_owner() -> None:
    mine = owner.name_of(os.getpid())
    assert owner.lives(mine)
    assert owner.lives(str(os.getpid()))
    assert not owner.lives(f"{os.getpid()}-1")
    assert not owner.lives("")
    with subprocess.Popen(["true"]) as process:
        while owner.lives(str(process.pid)):
            pass  # it is not waited for: a zombie does not live
        assert Path("/proc", str(process.pid)).exists()
