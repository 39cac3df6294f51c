"""One meaning per name, and the field's words: no class name twice, no retired name, no names an s apart."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
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

DIARIES = ("docs/lab-notes/", "CHANGELOG.md")  # dated: they name things as they were called on that day

RETIRED_FILES = (
    "envs/floors.py", "envs/clauses", "envs/check/laws.py", "envs/check/kept.py", "trainers/run/setup.py",
    "trainers/lab/exam.py", "trainers/lab/grade.py", "trainers/recipe/fit.py", "trainers/recipe/effects.py",
    "trainers/kit/by_hand.py", "benchmarks/credit/credit-bench.json",
)  # fmt: skip


def modules() -> Iterator[Path]:
    yield from (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    yield from sorted((ROOT / "src/turnwise").glob("*.py"))


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text(path)))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path))


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Each identifier of a module, with its line; not what stands in texts and comments."""
    for token in tokenize.generate_tokens(io.StringIO(text(path)).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def found(path: Path, retired: frozenset[str]) -> list[str]:
    if retired.isdisjoint(words(path)):
        return []  # nearly always, and tokens take a hundred times longer
    place = path.relative_to(ROOT)
    return [f"{place}:{line} {name}" for line, name in identifiers(path) if name in retired]


def homes(definition: str, paths: Iterable[Path]) -> dict[str, set[Path]]:
    """Names that a line of this form defines, each with the modules that do; parsing them all takes half a minute."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        for name in re.findall(definition, text(path), re.MULTILINE):
            found[name].add(path.relative_to(ROOT))
    return found


def test_no_class_name_has_two_meanings():
    classes = homes(r"^ *class (\w+)\b *[(:]", modules())
    assert len(classes) > 900, "the packages were not found"
    assert {name: sorted(map(str, places)) for name, places in classes.items() if len(places) > 1} == {}


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


@cache
def pages() -> tuple[Path, ...]:
    """What people read beside code: pages, presets and templates."""
    found = [*ROOT.glob("*.md")]
    for top in ("docs", "examples", "benchmarks", ".github"):
        found += (ROOT / top).rglob("*.md")
    for package in PACKAGES:
        data = (path for end in ("yaml", "j2") for path in (ROOT / package).rglob(f"*.{end}"))
        found += (path for path in data if not path.is_relative_to(ROOT / "envs"))
    return tuple(path for path in found if not str(path.relative_to(ROOT)).startswith(DIARIES))


@cache
def programs() -> tuple[Path, ...]:
    return (
        *modules(),
        *sorted((ROOT / "examples").glob("*.py")),
        *sorted((ROOT / "benchmarks").glob("*.py")),
    )


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield node.lineno, said
            case _:
                pass


@pytest.mark.parametrize("pattern", PROSE)
def test_pages_and_docstrings_use_the_words_of_the_field(pattern):
    word = re.compile(rf"\b(?:{pattern})\b")
    at_home = tuple(str(ROOT / place) for place in AT_HOME.get(pattern, ()))
    faults: list[str] = []
    for path in (*pages(), *programs()):
        if str(path).startswith(at_home) or not word.search(text(path)):
            continue
        parts = docstrings(path) if path.suffix == ".py" else enumerate(text(path).splitlines(), 1)
        faults += [f"{path.relative_to(ROOT)}:{line}" for line, part in parts if word.search(part)]
    assert faults == [], f"say {PROSE[pattern]}"


def test_retired_files_are_gone():
    assert [name for name in RETIRED_FILES if (ROOT / name).exists()] == []


def test_sibling_modules_have_no_functions_that_differ_by_an_s():
    rooms: dict[Path, list[Path]] = defaultdict(list)
    for path in modules():
        rooms[path.parent].append(path)
    pairs = []
    for paths in rooms.values():
        functions = homes(r"^(?:async )?def ([a-zA-Z]\w*)", paths)
        pairs += [
            f"{name} in {sorted(map(str, functions[name]))}, {name}s in {sorted(map(str, functions[name + 's']))}"
            for name in functions
            if name + "s" in functions and functions[name] != functions[name + "s"]
        ]
    assert pairs == []
