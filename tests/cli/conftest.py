"""Runs the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

COMMAND = [sys.executable, "-c", "from turnwise.cli import main; main()"]


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@pytest.fixture
def turnwise(tmp_path: Path) -> Callable[..., Ran]:
    """``turnwise("list", "envs")`` runs it in an empty folder."""

    def run(*arguments: str, env: dict[str, str] | None = None, stdin: str = "") -> Ran:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
