"""tau-bench's own folders, as they are published: ``tau_bench/envs/retail`` and those like it.

* ``data/*.json`` are the tables, ``wiki.md`` is the policy;
* ``tasks_train.py``, ``tasks_dev.py``, ``tasks_test.py`` (each splits its tasks) or ``tasks.py`` hold lists of
  ``Task(…)`` or of dicts. They are read, never run;
* ``tools/`` is a Python package with ``ALL_TOOLS``: classes with ``invoke(data, …)`` and ``get_info()``. It *is* run,
  in this process, hence only where the knob ``code`` says so; ``tau_bench`` itself need not be installed.

A tool gets a copy of the tables in which rows are made when they are looked at; what it changed is written back to the
immutable database. Text that begins with ``Error`` is an error, and changes nothing. Transfers end the conversation.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from immutables import Map

from turnwise.envs.toolworld.database import Database, frozen, plain
from turnwise.envs.toolworld.domain import DomainAction, Written
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split
from turnwise.tools.core import ToolError, ToolSpec
from turnwise.tools.schema import tool_of_schema

_ENDS = "transfer_to_human_agents"


def is_original(folder: str) -> bool:
    """Say whether a folder has tau-bench's own layout."""
    return (Path(folder) / "wiki.md").is_file() and (Path(folder) / "tools").is_dir()


def source_files(folder: str) -> list[Path]:
    """The files that say what the domain is."""
    root = Path(folder)
    found = [root / "wiki.md", *root.glob("tasks*.py"), *root.glob("data/*.json"), *root.glob("tools/*.py")]
    return sorted(found)


def task_files(folder: str) -> Iterator[tuple[Split | None, Path]]:
    """The lists of tasks, each with the split that its name says."""
    for path in sorted(Path(folder).glob("tasks*.py")):
        name = path.stem.removeprefix("tasks").strip("_")
        if name in ("", *Split):
            yield (Split(name) if name else None), path


def read_tasks(path: Path) -> list[dict[str, Json]]:
    """The tasks of a file, read from its syntax without running it.

    Raises:
        EnvError: it holds something else than literals.
    """
    try:
        tree = ast.parse(path.read_text("utf-8"))
        lists = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
        ]
        return [_literal(item) for found in lists for item in found.elts]
    except (SyntaxError, ValueError) as error:
        raise EnvError(f"{path} holds no list of tasks: {error}.", "Tasks are written as literals.") from None


def acts_of(folder: str, stamp: str) -> tuple[DomainAction, ...]:
    """The acts of the folder's tools.

    Raises:
        EnvError: its code does not run, or is none of tau-bench's kind.
    """
    try:
        return tuple(_act(kind) for kind in _run_package(Path(folder) / "tools", f"turnwise_tau_{stamp}"))
    except Exception as error:
        raise EnvError(f"{folder}/tools cannot be used: {error!r}.", "It must define ALL_TOOLS.") from error


def _of_all(name: str) -> Any:
    """The method of dicts of this name, called when every row is made."""
    return lambda rows, *given: getattr(dict, name)(rows.look(), *given)


class LazyRows(dict[str, Any]):
    """A table for tools that change it in place: a row is made when it is looked at first."""

    def __init__(self, source: Map[str, Any]) -> None:
        super().__init__()
        self.source, self.seen = source, set[str]()

    def __missing__(self, key: str) -> Any:
        if key in self.seen:  # it was, and the tool removed it
            raise KeyError(key)
        self.seen.add(key)
        self[key] = plain(self.source[key])
        return self[key]

    def look(self) -> Self:
        """With every row made."""
        for key in sorted(self.source):
            if key not in self.seen:
                self[key]
        return self

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (key in self.source and key not in self.seen)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 (this is get itself)

    __iter__, __len__, __delitem__ = map(_of_all, ("__iter__", "__len__", "__delitem__"))
    keys, values, items, pop = map(_of_all, ("keys", "values", "items", "pop"))

    def written(self, table: str, db: Database) -> Database:
        """The database with what was changed here."""
        for key in sorted({*self.seen, *dict.keys(self)}):
            row = frozen(dict.get(self, key))
            if not dict.__contains__(self, key):
                db = db.drop(table, key) if key in self.source else db
            elif key not in self.source or self.source[key] != row:
                db = db.put(table, key, row)
        return db


def _act(kind: Any) -> DomainAction:
    told: Mapping[str, Any] = kind.get_info()["function"]

    def run(db: Database, **arguments: Any) -> Written:
        tables = {name: LazyRows(rows) for name, rows in db.tables.items()}
        try:
            text = str(kind.invoke(tables, **arguments))
        except Exception as error:  # noqa: BLE001 (foreign code may raise anything)
            raise ToolError(f"Error: {error}") from None
        if text.startswith("Error"):
            raise ToolError(text)
        for name in sorted(tables):
            db = tables[name].written(name, db)
        return Written(db, text)

    spec = ToolSpec(told["name"], told.get("description", ""), told["parameters"])
    return DomainAction(tool_of_schema(spec, run), "end" if spec.name == _ENDS else "read")


def _run_package(folder: Path, name: str) -> list[Any]:
    """``ALL_TOOLS`` of the package in ``folder``, imported under ``name``."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            with _base_class():
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return list(sys.modules[name].ALL_TOOLS)


@contextlib.contextmanager
def _base_class() -> Iterator[None]:
    """``tau_bench.envs.tool.Tool`` for the tools to inherit from, where tau_bench is not installed."""
    if importlib.util.find_spec("tau_bench") is not None:
        yield
        return
    made = {name: types.ModuleType(name) for name in ("tau_bench", "tau_bench.envs", "tau_bench.envs.tool")}
    setattr(made["tau_bench.envs.tool"], "Tool", type("Tool", (), {}))  # noqa: B010 (a module has no such field)
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in made:
            sys.modules.pop(name, None)


def _literal(node: ast.expr) -> Json:
    """A literal; ``Task(…)`` and ``Action(…)`` are the dicts of their arguments."""
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in ("Task", "Action")
        if not known or node.args or any(one.arg is None for one in node.keywords):
            raise ValueError(
                f"line {node.lineno} has a call that is no Task(…) or Action(…) of named arguments"
            )
        return {str(one.arg): _literal(one.value) for one in node.keywords}
    if isinstance(node, ast.List):
        return [_literal(item) for item in node.elts]
    return ast.literal_eval(node)
