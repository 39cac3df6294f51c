"""One meaning per name, and the field's words: no class name twice, no retired name, no names an s apart."""

from __future__ import annotations

import ast
import io
import re
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

PROSE = {
    r"back ends?": "backend",
    r"mend(?:ed|s|ing)?": "fix, correct, repair",
    r"clauses?": "requirement",
    r"laws?": "requirement, test",
    r"clerks?": "imperfect scripted policy",
    r"spoken to": "prompted, addressed",
    r"told nowhere": "not given",
    r"looked at on": "validated on",
    r"(?:an?|the|every) ledger": "reward components",
    r"exams?": "benchmark of true advantages",
    r"mindless|without a mind|floor agents?": "trivial baselines",
    r"movers?": "current agent",
    r"ow(?:e|es|ed) (?:it|him|them|a reward)": "pending reward",
    r"[Oo]pen_studio|Studio|Cast|ShownPolicy|Pump|Stepper|Exam|DryPlayer": "the word of docs/glossary.md",
}
"""Words of the house that were given up in prose, as patterns, each with the field's own."""

AT_HOME = {
    r"clauses?": (
        "envs/toolworld",
        "envs/shop",
        "envs/household",
        "envs/functioncall",
        "docs/toolworld.md",
    ),  # of a sentence
    r"clerks?": ("envs/shop/human", "envs/games/vocabulary.py"),  # somebody's work
    r"movers?": ("envs/games",),  # whose move it is, as books on games say
}
"""Where such a word means what it means in English."""

DIARIES = ("docs/lab-notes.md", "CHANGELOG.md")  # dated: they name things as they were called on that day

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


def test_no_class_name_has_two_meanings():
    homes: dict[str, set[Path]] = defaultdict(set)
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(path.relative_to(ROOT))
    assert len(homes) > 900, "the packages were not found"
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


def texts() -> Iterator[tuple[Path, int, str]]:
    """What people read: pages, presets and templates line by line; docstrings and the words of modules."""
    pages = list(ROOT.glob("*.md")) + [
        path for top in ("docs", "examples", "benchmarks", ".github") for path in (ROOT / top).rglob("*.md")
    ]
    data = [
        path
        for package in PACKAGES
        for end in ("yaml", "j2")
        for path in (ROOT / package).rglob(f"*.{end}")
        if not path.is_relative_to(ROOT / "envs")
    ]
    for path in pages + data:
        if str(path.relative_to(ROOT)) not in DIARIES:
            yield from ((path, n, line) for n, line in enumerate(path.read_text("utf-8").splitlines(), 1))
    for path in [
        *modules(),
        *sorted((ROOT / "examples").glob("*.py")),
        *sorted((ROOT / "benchmarks").glob("*.py")),
    ]:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield path, node.lineno, text
                case _:
                    pass


@cache
def read() -> tuple[tuple[Path, int, str], ...]:
    return tuple(texts())


@pytest.mark.parametrize("pattern", PROSE)
def test_pages_and_docstrings_use_the_words_of_the_field(pattern):
    word = re.compile(rf"\b(?:{pattern})\b")
    faults = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, line, text in read()
        if word.search(text) and not str(path.relative_to(ROOT)).startswith(AT_HOME.get(pattern, ()) or "/")
    ]
    assert faults == [], f"say {PROSE[pattern]}"


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
