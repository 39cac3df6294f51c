"""Of the tests of whole programs, `make test` runs those that a change can reach, and `make test-full` all, in two halves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import choosing
import pytest

ROOT = Path(__file__).parents[1]


class Item(NamedTuple):
    """What is asked of a test."""

    path: Path
    program: bool

    def get_closest_marker(self, name: str) -> bool | None:
        return self.program if name == "program" and self.program else None


def left(options: dict[str, str], reached: Any, items: list[Item]) -> list[str]:
    gone: list[Item] = []
    config = SimpleNamespace(
        rootpath=ROOT,
        workerinput={"reached": reached},
        getoption=options.get,
        hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)),
    )
    choosing.choose(config, items, lambda item: item.path.name)
    return [item.path.name for item in items]


ITEMS = [Item(ROOT / "tests/a.py", True), Item(ROOT / "tests/b.py", True), Item(ROOT / "tests/c.py", False)]


def test_a_program_that_no_change_reaches_is_left_out() -> None:
    assert left({"half": ""}, ["tests/a.py"], [*ITEMS]) == ["a.py", "c.py"]
    assert left({"half": ""}, "all", [*ITEMS]) == ["a.py", "b.py", "c.py"]


def test_the_halves_are_the_whole_and_share_nothing() -> None:
    halves = [left({"half": half}, "all", [*ITEMS]) for half in "12"]
    assert sorted(halves[0] + halves[1]) == ["a.py", "b.py", "c.py"]
    assert choosing.halves("abc", {"a": 5.0, "b": 3.0, "c": 1.0}) == {"a": 1, "b": 2, "c": 2}


def test_all_programs_run_where_no_full_run_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def found(commits: list[str]) -> Any:
        records = [tmp_path / str(number) for number in range(2)]
        for file, commit in zip(records, commits, strict=False):
            file.write_text(json.dumps({"date": "2026-01-01", "commit": commit}))
        monkeypatch.setattr(choosing, "RECORDS", records)
        reach: Callable[[], Any] = choosing._reached.__wrapped__
        return reach()

    assert found([]) == "all"
    assert found(["0" * 40] * 2) == "all"  # a commit that is not here
    asked = SimpleNamespace(
        git=choosing._changed_tests().git,
        WHOLE="whole",
        Tree=lambda files: sorted(files),
        targets=lambda tree, changed: (
            ["tests/b.py", "tests/a.py"] if "tests/test_choosing.py" in tree else "whole"
        ),
    )
    monkeypatch.setattr(choosing, "_changed_tests", lambda: asked)
    assert found(["HEAD-dirty"] * 2) == ["tests/a.py", "tests/b.py"]
