"""The examples in docstrings give what they say; those of components are a requirement of their kind (tests/contract)."""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnwise.registry import components_in

ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers", "src/turnwise")


def modules() -> Iterator[Any]:
    """Each file with examples; those of one folder run in one worker, which has imported what they share."""
    for folder in map(ROOT.joinpath, FOLDERS):
        for file in sorted(folder.rglob("*.py")):
            name = str(file.relative_to(ROOT))
            if not any(part.is_symlink() for part in file.parents) and has_examples(file.read_text("utf-8")):
                mark = pytest.mark.xdist_group(f"examples in {Path(name).parent}")
                yield pytest.param(name, id=name, marks=mark)


def has_examples(source: str) -> bool:
    """The file has examples beside those of its components."""
    if "@component" not in source or ">>>" not in source:
        return ">>>" in source
    defined = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]
    return any(">>>" in (ast.get_docstring(node) or "") and not is_component(node) for node in defined)


def is_component(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(ast.unparse(decorator).startswith("component(") for decorator in decorators)


def dotted(name: str) -> str:
    """The name under which a file is imported."""
    parts = Path(name).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else ("turnwise", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """Those of the module but for its components'."""
    theirs = {f"{module.__name__}.{getattr(entry.target, '__name__', '')}" for entry in components_in(module)}
    return [
        test for test in doctest.DocTestFinder().find(module) if test.examples and test.name not in theirs
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_give_what_they_say(name: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for test in examples(importlib.import_module(dotted(name))):
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_a_wrong_example_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_example.py").write_text('def two():\n    """Two.\n\n    >>> 1 + 2\n    4\n    """\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = examples(importlib.import_module("wrong_example"))
    assert doctest.DocTestRunner(verbose=False).run(found, out=lambda text: None).failed == 1
