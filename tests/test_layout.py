"""The links under src/turnwise, the one-way dependencies, and what importing costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers")
ALLOWED = {  # which of the other folders each may import, everywhere in its code
    "tools": {"tools"},
    "tasks": {"tasks"},
    "envs": {"envs", "tasks", "tools"},
    "agents": {"agents", "envs", "tasks", "tools"},
    "trainers": set(FOLDERS),
}
HEAVY = ("torch", "vllm", "transformers", "scipy", "matplotlib", "pyarrow")


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_the_top_level_folders(folder):
    assert (ROOT / "src" / "turnwise" / folder).samefile(ROOT / folder)
    assert not list((ROOT / folder).rglob("__init__.pyi"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_dependencies_point_one_way(folder):
    for path, module in _imports(ROOT / folder):
        if module.startswith("turnwise."):
            other = module.split(".")[1]
            assert other not in FOLDERS or other in ALLOWED[folder], f"{path} imports {module}"
        assert module.split(".")[0] not in FOLDERS, f"{path} imports {module}: say turnwise.{module}"


def test_torch_stays_in_trainers_and_policies():
    for folder in ("tasks", "tools", "envs", "agents"):
        for path, module in _imports(ROOT / folder):
            if module.split(".")[0] in ("torch", "vllm"):
                assert path.is_relative_to(ROOT / "agents" / "policies") or _is_benchmark(path), path


@pytest.mark.parametrize(
    "statement",
    [
        "import turnwise",
        "import turnwise; turnwise.make('turnwise/Shop-v0')",
        "import turnwise.agents.rollout",
        "import turnwise.agents.policies.registry",
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


def _is_benchmark(path: Path) -> bool:
    return path.name == "bench.py"


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
