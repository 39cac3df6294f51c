"""Tests of whole programs (examples, pages, commands, kills), of which `make test` runs those that a change can reach.

``--programs changed``: since the commit of the last `make test-full`, which runs them all and writes that commit down.
``--half 1`` and ``--half 2`` divide what is run by its recorded processor time.
"""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = [ROOT / "benchmarks" / f"tests-full-{half}.json" for half in (1, 2)]
PROGRAMS = (
    "tests/cli/",
    "tests/faults/",
    "tests/plugin/",
    "tests/gateway/test_engine_kills.py",
    "tests/gateway/test_kills.py",
    "tests/remote/test_kills.py",
    "tests/remote/test_ray",
    "tests/test_code_blocks.py",
    "tests/test_examples.py",
)
"""Files whose slow tests are of whole programs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", choices=["all", "changed"], default="all")
    parser.addoption("--half", choices=["1", "2"], default="")


def pytest_configure_node(node: Any) -> None:
    """Tell a worker what was chosen: it is worked out once."""
    node.workerinput["reached"] = reached(node.config)


def is_program(file: str, slow: bool) -> bool:
    return slow and file.startswith(PROGRAMS)


def choose(config: pytest.Config, items: list[pytest.Item], group_of: Callable[[pytest.Item], str]) -> None:
    """Leave out programs that no change reaches, and the other half."""
    found = getattr(config, "workerinput", {}).get("reached") or reached(config)
    half = config.getoption("half")
    mine = halves({group_of(item) for item in items}, costs()) if half else {}

    def wanted(item: pytest.Item) -> bool:
        file = str(item.path.relative_to(config.rootpath))
        if found != "all" and item.get_closest_marker("program") and file not in found:
            return False
        return not half or mine[group_of(item)] == int(half)

    left = [item for item in items if not wanted(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if wanted(item)]


def reached(config: pytest.Config) -> str | list[str]:
    """The files of tests that changes reach, or "all": where that was asked for, or nobody can tell."""
    return "all" if config.getoption("programs") == "all" else _reached()


@cache
def _reached() -> str | list[str]:
    script = _changed_tests()
    since = _last_full()
    if not since or not script.git("cat-file", "-t", since):
        return "all"
    changed = {
        *script.git("diff", "--name-only", "--no-renames", since),
        *script.git("ls-files", "--others", "--exclude-standard"),
    }
    tree = script.Tree(script.git("ls-files", "--cached", "--others", "--exclude-standard"))
    found = script.targets(tree, sorted(changed))
    return "all" if found == script.WHOLE else sorted(found)


def _last_full() -> str:
    """The commit of the older of the two halves; nothing where one is missing."""
    if not all(file.exists() for file in RECORDS):
        return ""
    older = min((json.loads(file.read_text("utf-8")) for file in RECORDS), key=lambda row: row["date"])
    return str(older["commit"]).removesuffix("-dirty")


def _changed_tests() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed_tests", ROOT / "scripts" / "changed_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def costs() -> dict[str, float]:
    """Processor seconds of each file in the last `make test-full`."""
    found: dict[str, float] = {}
    for file in RECORDS:
        if file.exists():
            found |= json.loads(file.read_text("utf-8")).get("cpu_seconds_by_file", {})
    return found


def halves(groups: Iterable[str], cost: dict[str, float]) -> dict[str, int]:
    """Which half each group is in: the dearest first, each to the half that has less; others by their names.

    >>> halves(["a", "b", "c"], {"a": 5.0, "b": 3.0, "c": 1.0})
    {'a': 1, 'b': 2, 'c': 2}
    """
    found: dict[str, int] = {}
    spent = {1: 0.0, 2: 0.0}
    for group in sorted(groups, key=lambda name: (-cost.get(name, 0.0), name)):
        half = min(spent, key=lambda one: spent[one]) if group in cost else 1 + zlib.crc32(group.encode()) % 2
        found[group] = half
        spent[half] += cost.get(group, 0.0)
    return found
