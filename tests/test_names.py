"""One meaning per name, and the field's words: no class name twice, no retired name, no names an s apart."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("tasks", "tools", "envs", "agents", "trainers", "src/turnwise/cli", "src/turnwise/scaffold")
EVERYWHERE = frozenset(
    [
        "Studio",
        "open_studio",
        "Cast",
        "ShownPolicy",
        "Pump",
        "Stepper",
        "Exam",
        "FLOORS",
        "Clause",
        "CLAUSES",
        "DryPlayer",
        "Side",
        "on_moment",
        "movers",
        "credit_bench",
        "process_exams",
        "suite_exam",
        "floor_tasks",
        "gold_and_floor",
        "reset_optimizer",
        "play_episode",
        "read_habits",
        "write_habits",
    ]
)
"""Names that were given up for the field's own, wherever they stand."""

IN_THEIR_PLACE = {
    "envs/core.py": "End Kind ledger mover told others floor floors",
    "envs/steps.py": "End Kind told others",
    "envs/check": "laws clause Floor FLOORS floor floors mover mindless",
    "agents/core.py": "owe ret",
    "agents/multi_agent.py": "Table cast player seat mover owe",
    "agents/rollout.py": "Table Moment cast player seat play owe",
    "agents/engines": "forget",
    "agents/policies": "Habits habits",
    "trainers": "Habits habits ret ledger exam exams say studio forget",
    "trainers/run/collect.py": "sort side sides sample",
    "trainers/strategy": "Player player Moment play",
}
"""Names that mean something else elsewhere (a seat at a card table, a floor on a map), by where they are retired."""

RETIRED_FILES = (
    "envs/floors.py", "envs/clauses", "envs/check/laws.py", "envs/check/kept.py", "trainers/run/setup.py",
    "trainers/lab/exam.py", "trainers/lab/grade.py", "trainers/recipe/fit.py", "trainers/recipe/effects.py",
    "trainers/kit/by_hand.py", "benchmarks/credit/credit-bench.json",
)  # fmt: skip


def modules() -> Iterator[Path]:
    yield from (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    yield from sorted((ROOT / "src/turnwise").glob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Each identifier of a module, with its line; not what stands in texts and comments."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def found(path: Path, retired: frozenset[str]) -> list[str]:
    place = path.relative_to(ROOT)
    return [f"{place}:{line} {name}" for line, name in identifiers(path) if name in retired]


def twice(kind: type[ast.stmt] | tuple[type[ast.stmt], ...], paths: list[Path]) -> dict[str, set[Path]]:
    """Public names at the top of modules, each with the modules that define it."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        for node in parsed(path).body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                homes[node.name].add(path.relative_to(ROOT))
    return homes


def test_no_public_class_name_has_two_meanings():
    homes = twice(ast.ClassDef, list(modules()))
    assert len(homes) > 500, "the packages were not found"
    assert {name: sorted(map(str, places)) for name, places in homes.items() if len(places) > 1} == {}


def test_retired_names_are_gone():
    paths = [
        *modules(),
        *sorted((ROOT / "tests").rglob("*.py")),
        *sorted((ROOT / "benchmarks").rglob("*.py")),
    ]
    assert [line for path in paths for line in found(path, EVERYWHERE)] == []


@pytest.mark.parametrize(("place", "names"), IN_THEIR_PLACE.items(), ids=IN_THEIR_PLACE)
def test_retired_names_are_gone_where_they_were(place, names):
    here = ROOT / place
    paths = [here] if here.is_file() else sorted(here.rglob("*.py"))
    assert paths, f"{place} is empty"
    assert [line for path in paths for line in found(path, frozenset(names.split()))] == []


def test_retired_files_are_gone():
    assert [name for name in RETIRED_FILES if (ROOT / name).exists()] == []


def test_sibling_modules_have_no_functions_that_differ_by_an_s():
    rooms: dict[Path, list[Path]] = defaultdict(list)
    for path in modules():
        rooms[path.parent].append(path)
    pairs = []
    for paths in rooms.values():
        homes = twice((ast.FunctionDef, ast.AsyncFunctionDef), paths)
        pairs += [
            f"{name} in {sorted(map(str, homes[name]))}, {name}s in {sorted(map(str, homes[name + 's']))}"
            for name in homes
            if name + "s" in homes and homes[name] != homes[name + "s"]
        ]
    assert pairs == []
