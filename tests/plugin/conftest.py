"""A third party's package, scaffolded and installed by pip into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import forked
import pytest

from turnwise.scaffold import scaffold

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore = ["open_trainer"]  # a package of its own, whose parts must not be registered here


class Plugin(NamedTuple):
    """Where the package's source is, and how to run things on a machine that has it installed."""

    source: Path
    installed: Path
    run: Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    """``plugin.run(code, …)`` runs Python with the package installed."""
    base = tmp_path_factory.mktemp("plugin")
    scaffold("word-chain", base)
    source, installed = base / "turnwise-word-chain", base / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*pip, "--target", str(installed), str(source)], check=True, capture_output=True)

    def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH", "")]))
        return forked.run(
            code, *arguments, cwd=base, env={**os.environ, "PYTHONPATH": path}, timeout=280, training=True
        )

    return Plugin(source, installed, run)
