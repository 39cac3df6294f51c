"""Runs the real command in a process of its own, and makes what does so importable by the tests."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import forked

from turnwise.cli.app import run as run_verb
from turnwise.cli.forms import FORMS


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str
    verb: str = ""

    @property
    def json(self) -> Any:
        """The one JSON value on stdout; it has the keys that the reference of the command line says."""
        assert self.out.count("\n") == 1, self.out
        value = json.loads(self.out)
        if self.verb in FORMS and not (self.code and "cause" in value):
            form = FORMS[self.verb]
            assert isinstance(value, list) == form.several, f"{self.verb}: {form}"
            rows = value if form.several else [value]
            assert all(set(form.keys) <= set(row) for row in rows), f"{self.verb}: {form}, and not {rows[:1]}"
        return value


@pytest.fixture
def turnwise(tmp_path: Path) -> Callable[..., Ran]:
    """``turnwise("list", "envs")`` runs it in an empty folder."""

    def run(*arguments: str, env: dict[str, str] | None = None, stdin: str = "") -> Ran:
        given = {**os.environ, **(env or {})}
        done = forked.turnwise(*arguments, cwd=tmp_path, env=given, stdin=stdin)
        return Ran(done.returncode, done.stdout, done.stderr, arguments[0] if arguments else "")

    return run


@pytest.fixture
def turnwise_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run it in this process, which has loaded everything: for what the process has no part in."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run_verb(list(arguments))
        return Ran(code, *capfd.readouterr(), arguments[0] if arguments else "")

    return run
