#!/usr/bin/env python3
"""Get this machine ready for sandboxes: bubblewrap, Docker, a private daemon, the root that tests use.

`make test` runs it. What is there already is left alone; what cannot be had is said, with the reason, and the
tests that need it are skipped (they fail instead where TURNWISE_REQUIRE_SANDBOXES is set, as on CI).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox import daemon
from turnwise.tools.sandbox.core import Root, SandboxImage
from turnwise.tools.sandbox.registry import get_backend
from turnwise.tools.sandbox.roots import build_root

_PACKAGES = {"bwrap": "bubblewrap", "dockerd": "docker.io"}


def main() -> int:
    ready = [
        step("packages", install),
        step("root file system", lambda: str(build_root(Root()))),
        step("docker daemon", lambda: daemon.address() or daemon.start()),
    ]
    ready += [step(f"{name} sandbox", lambda name=name: probe(name)) for name in ("bubblewrap", "docker")]
    return 0 if all(ready) or "TURNWISE_REQUIRE_SANDBOXES" not in os.environ else 1


def step(title: str, action: Callable[[], str]) -> bool:
    """Do one thing; say what came of it."""
    since = time.monotonic()
    try:
        said = action()
    except TurnwiseError as error:
        print(f"– {title}: {error.cause}\n  → {error.remedy}", file=sys.stderr, flush=True)
        return False
    if time.monotonic() - since > 1:
        said = f"{said} {time.monotonic() - since:.0f} s"
    print(f"✓ {title} {said}", file=sys.stderr, flush=True)
    return True


def install() -> str:
    """Install what is missing with apt, where that is allowed."""
    missing = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return "bubblewrap, docker.io"
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise TurnwiseError(f"{' and '.join(missing)} not installed.", f"sudo {' '.join(command)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["apt-get", "update", "-qq"], command):
        done = subprocess.run(words, capture_output=True, text=True, env=quiet, check=False)
    if done.returncode:
        raise TurnwiseError(f"apt-get failed: {done.stderr.strip()[-200:]}", "Run it by hand, then again.")
    return f"installed {' and '.join(missing)}"


def probe(name: str) -> str:
    """Run a command in a sandbox of this backend."""
    with get_backend(name).start(SandboxImage.of({"a.py": "print('works')"})) as sandbox:
        result = sandbox.exec(["python3", "a.py"])
    if result.out != "works\n":
        raise TurnwiseError(f"A command failed in it: {result}"[:300], "Please report this.")
    return "works"


if __name__ == "__main__":
    raise SystemExit(main())
