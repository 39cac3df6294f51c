"""The links under src/turnwise, the one-way dependencies, and what importing costs."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("import_graph", ROOT / "scripts" / "import_graph.py")
assert _SPEC is not None
assert _SPEC.loader is not None
graphs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(graphs)
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers")
ALLOWED = {  # which of the other folders each may import, everywhere in its code
    "tools": {"tools"},
    "tasks": {"tasks"},
    "envs": {"envs", "tasks", "tools"},
    "agents": {"agents", "envs", "tasks", "tools"},
    "trainers": set(FOLDERS),
}
ORDER = {  # rooms from the lowest up: each may import those before it, for types and inside functions too
    "envs": [
        "wordings", "messages", "spaces", "steps", "planted", "returned", "core", "sources", "baselines", "rivals", "acting", "live", "replaying", "registry", "roles", "published", "offered", "panels", "trust", "worlds",
        "craft", "dialogue", "functioncall", "games", "grid", "household", "judging", "lab", "small", "mcp", "foreign", "code", "swe", "images",
        "keywords", "search", "toolworld", "web", "shop", "tracker", "benchmarks", "builtin", "check", "bench",
    ],
    "agents": [
        "core", "contexts", "tokens", "models", "remote", "engines", "multi_agent", "log", "execution", "workers", "gateway",
        "policies", "rollout", "rollout_tasks", "replay", "evaluation", "hosting", "check", "bench",
    ],
    "trainers": [
        "core", "sink", "kit", "credit", "loss", "reduce", "correction", "reward", "filter", "shape",
        "schedule", "judge", "strategy", "sampler", "hack_meter", "trust", "guide", "proposer",
        "learn", "search", "signal", "source", "teacher", "recipe", "others", "report", "compare", "run", "lab", "check", "view", "audit", "mismatch", "bench",
    ],
}  # fmt: skip
RECIPE_DOORS = {
    "credit.py",  # with what options a run made its environments, which play its episodes again
    "environments.py",  # `turnwise list recipes` says what each is about
    "recipe_bias.py",  # the parts of a recipe → its bias, computed by trainers/lab, which lies above run
    "training.py",  # train, explain and what else is told a recipe's name
}
"""Modules of the command line that hold a recipe, and for what."""
HEAVY = ("torch", "vllm", "transformers", "scipy", "matplotlib", "pyarrow", "aiohttp")


@functools.cache
def arrows():
    return graphs.import_arrows(ROOT)


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_the_top_level_folders(folder):
    assert (ROOT / "src" / "turnwise" / folder).samefile(ROOT / folder)
    assert not list((ROOT / folder).rglob("__init__.pyi"))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_dependencies_point_one_way(folder):
    for path, module in _imports(ROOT / folder):
        if module.startswith("turnwise."):
            other = module.split(".")[1]
            assert other not in FOLDERS or other in ALLOWED[folder], f"{path} imports {module}"
        assert module.split(".")[0] not in FOLDERS, f"{path} imports {module}: say turnwise.{module}"


@pytest.mark.slow
@pytest.mark.parametrize("folder", ORDER)
def test_rooms_import_only_lower_rooms(folder):
    rooms = graphs.rooms_of(arrows(), folder)
    assert sorted(rooms) == sorted(ORDER[folder]), "a new room takes its place in ORDER"
    floor = {room: n for n, room in enumerate(ORDER[folder])}
    upward = [f"{a} → {b}" for a, others in rooms.items() for b in others if floor[b] >= floor[a]]
    assert not upward


def test_no_module_imports_itself_by_way_of_others():
    assert graphs.cycles(arrows()) == []


@pytest.mark.parametrize("folder", graphs.DRAWN)
def test_the_counted_and_the_drawn_graph_is_that_of_the_code(folder):
    found = graphs.counts(arrows(), folder)
    remedy = "the rooms or their arrows have changed: scripts/import_graph.py, then scripts/docs_figures.py"
    assert json.loads((graphs.OUT / "counts.json").read_text("utf-8"))["now"][folder] == found._asdict(), (
        remedy
    )
    assert graphs.title_of("now", found) in (graphs.OUT / f"{folder}.svg").read_text("utf-8"), remedy


def test_only_recipe_and_run_see_a_recipe():
    """Nobody else names its class, loads one or reads a key of one; the command line takes it apart, where it comes in."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.relative_to(ROOT).parts[:2] not in (("trainers", "recipe"), ("trainers", "run")):
                assert not _recipes(path), f"{path} sees a recipe: hand it the values that it uses"
    seen = {path.name for path in sorted((ROOT / "src" / "turnwise" / "cli").rglob("*.py")) if _recipes(path)}
    assert seen == RECIPE_DOORS


def test_a_recipe_is_seen_under_any_name(tmp_path):
    for source in (
        "from turnwise.trainers.recipe.load import load_recipe as read",
        "def f(given: Recipe): ...",
        "def f(recipe): return recipe.sampling.tools",
        "import turnwise\nturnwise.load_recipe('x')",
    ):
        (tmp_path / "module.py").write_text(source)
        assert _recipes(tmp_path / "module.py"), source
    (tmp_path / "module.py").write_text("def f(recipe: str): return recipe.upper()")
    assert not _recipes(tmp_path / "module.py")


def test_cycles_are_found():
    some = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"e"}}
    assert graphs.cycles(some) == [["a", "b", "c"]]
    assert graphs.floors_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {
        "a": 1,
        "b": 0,
        "c": 0,
        "d": 0,
    }


def test_torch_stays_in_trainers_engines_and_models():
    for folder in ("tasks", "tools", "envs", "agents"):
        for path, module in _imports(ROOT / folder):
            if module.split(".")[0] in ("torch", "vllm"):
                assert any(
                    path.is_relative_to(ROOT / "agents" / room)
                    for room in ("engines", "models", "remote", "bench")
                ), path


@pytest.mark.parametrize(
    "statement",
    [
        "import turnwise",
        "import turnwise; turnwise.make('turnwise/Shop-v0')",
        "import turnwise.agents.rollout",
        "import turnwise.agents.policies.registry",
        "import turnwise.agents.gateway.agent_program",
        "import turnwise.cli.app",
    ],
)
def test_light_imports_load_nothing_heavy(statement):
    program = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & set(HEAVY)


def test_help_loads_neither_numpy_nor_gymnasium():
    program = (
        "import sys; from turnwise.cli.app import run; assert run(['--help']) == 0\n"
        "assert not {'numpy', 'gymnasium', 'pydantic', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


_RECIPE_CLASS = (
    (ROOT / "trainers" / "recipe" / "schema.py").read_text("utf-8").partition("\nclass Recipe(")[2]
)


def _recipes(path: Path) -> list[int]:
    """The lines that name the class of recipes or what loads one, or read a key of something called a recipe."""
    text = path.read_text("utf-8")
    if "ecipe" not in text:
        return []
    keys = set(re.findall(r"^    (\w+): ", _RECIPE_CLASS, re.MULTILINE))
    found: list[int] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id="Recipe" | "load_recipe") | ast.Attribute(attr="load_recipe"):
                found.append(node.lineno)
            case ast.alias(name="Recipe" | "load_recipe"):
                found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="recipe") | ast.Attribute(attr="recipe"), attr=attr) if (
                attr in keys
            ):
                found.append(node.lineno)
            case _:
                pass
    return found


@functools.cache
def _imports(folder: Path) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found.extend((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append((path, node.module))
    assert found
    return found


@functools.cache
def _names(module: str) -> frozenset[str]:
    """What can be imported from a module, as its source says; nothing is imported."""
    place = ROOT / "src" / Path(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not path.exists():
        return frozenset()
    found = {child.stem for child in path.parent.iterdir()} if path.name == "__init__.py" else set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.Constant(
                value=str(name)
            ):  # a package that loads its names when they are asked for lists them
                found.add(name)
            case _:
                pass
    return frozenset(found)


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "scripts"])
def test_code_that_no_type_checker_reads_imports_what_there_is(folder: str) -> None:
    """Imports inside functions too, which nothing else would try before the function runs."""
    missing = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}.{one.name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "turnwise"
        for one in node.names
        if one.name not in _names(node.module or "")
    ]
    assert missing == []
