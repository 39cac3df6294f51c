"""Runs in every Python process of a sandbox in which a stranger's tests or reward function judge: it notes and plays tricks.

It is copied into the sandbox and imported by Python itself. The variable XRAY holds JSON: ``log`` (a file that lines are added to),
``rng`` (low or high: what the global generator draws), ``now`` (seconds since 1970 at which the clock stands), ``time_up`` (each time limit
has passed), ``patience`` (each time limit is so many times longer), ``hang`` (nothing ever ends) and ``trace`` (which checks were reached) and
``system`` (the name that the operating system gives itself). Nothing is imported from Turnwise.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
import time as _time
from collections.abc import Iterator, Sequence
from typing import Any

MONOTONIC = _time.monotonic
TOLD = json.loads(os.environ.get("XRAY") or "{}")
_LOCAL = ("127.", "localhost", "::1", "0.0.0.0", "/")
_BUSY = [False]


def note(**what: Any) -> None:
    """Add a line to the log."""
    if not TOLD.get("log") or _BUSY[0]:
        return
    _BUSY[0] = True
    try:
        file = os.open(TOLD["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(file, (json.dumps(what, default=str)[:2000] + "\n").encode())
        os.close(file)
    except OSError:
        pass
    finally:
        _BUSY[0] = False


def _watch_network() -> None:
    def hook(event: str, args: Any) -> None:
        if event == "socket.getaddrinfo" or event == "socket.gethostbyname":
            place = str(args[0])
        elif event == "socket.connect":
            place = str(args[1][0] if isinstance(args[1], tuple) else "/")
        elif event == "urllib.Request":
            place = str(args[0])
            if "://127." in place or "://localhost" in place or place.startswith("file:"):
                return
        else:
            return
        if not place.startswith(_LOCAL) and place not in ("None", "b''", ""):
            note(net=place)

    sys.addaudithook(hook)


_MISUSED = 4
"""The exit code of a pytest whose arguments or settings are wrong: it ends before it loads any plugin."""
_INSTALLERS = ("pip", "pip3", "uv", "conda", "mamba", "apt", "apt-get", "npm", "cargo", "gem")


def _limited(words: Sequence[Any]) -> Iterator[str]:
    """The arguments of the program timeout, its first length as it is told: at once, or many times longer."""
    done = False
    for word in map(str, words):
        length = not done and word[:1].isdigit()
        done = done or length
        if length and TOLD.get("time_up"):
            yield "0.01"
        elif length and TOLD.get("patience"):
            number = word.rstrip("smhd")
            yield f"{float(number) * TOLD['patience']}{word[len(number) :]}"
        else:
            yield word


def _watch_children() -> None:
    """Let Python processes that this one starts be watched too, also those that are started apart from their surroundings."""
    import subprocess

    start = subprocess.Popen.__init__

    def started(self: Any, args: Any, *more: Any, **options: Any) -> None:
        if isinstance(args, (list, tuple)) and args and "python" in os.path.basename(str(args[0])):
            kept = [word for word in args[1:] if word not in ("-I", "-E", "-S", "-IS")]
            args = [args[0], *kept]
            told_of_install(args)
            if options.get("env") is not None:
                told = {
                    name: os.environ[name]
                    for name in ("XRAY", "PYTHONPATH", "PYTEST_ADDOPTS")
                    if name in os.environ
                }
                options["env"] = {**options["env"], **told}
        elif isinstance(args, (list, tuple)) and args:
            told_of_install(args)
            if os.path.basename(str(args[0])) in ("timeout", "gtimeout"):
                args = [args[0], *_limited(args[1:])]
        start(self, args, *more, **options)

    def told_of_install(args: Any) -> None:
        words = [str(word) for word in args]
        if "install" in words and any(os.path.basename(one) in _INSTALLERS for one in words):
            note(net="a package index ({})".format(" ".join(words)[:100]))

    subprocess.Popen.__init__ = started
    end = subprocess.Popen._handle_exitstatus

    def ended(self: Any, *given: Any, **named: Any) -> None:
        end(self, *given, **named)
        words = self.args if isinstance(self.args, (list, tuple)) else str(self.args).split()
        if self.returncode == _MISUSED and any(
            os.path.basename(str(word)) in ("pytest", "py.test") for word in words
        ):
            note(tests={"error": 1}, exit=_MISUSED)

    subprocess.Popen._handle_exitstatus = ended


def _set_system(name: str) -> None:
    import platform

    platform.system = lambda: name
    platform.platform = lambda *a, **k: name


def begin() -> None:
    """Do what XRAY says."""
    _watch_network()
    if TOLD.get("hang"):
        import time

        time.sleep(3600)
    if any(TOLD.get(name) for name in ("rng", "now", "time_up", "patience")):
        import xray_tricks

        if TOLD.get("rng"):
            xray_tricks.set_chance(TOLD["rng"] == "high")
        if TOLD.get("now"):
            xray_tricks.set_clock(TOLD["now"])
        if TOLD.get("time_up"):
            xray_tricks.end_time()
        if TOLD.get("patience"):
            xray_tricks.lengthen_time(TOLD["patience"])
    if TOLD.get("system"):
        _set_system(TOLD["system"])
    _watch_children()
    if os.environ.pop("XRAY_DRIVER", ""):
        return
    if TOLD.get("trace") == "process":
        import xray_checks

        xray_checks.trace_whole_process()


if TOLD:
    begin()
