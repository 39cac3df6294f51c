"""Which files read which key of a recipe by name: `.venv/bin/python scripts/recipe_keys.py [ROOT]`.

A read is an attribute of something that holds a recipe or a section of one: a parameter or a variable whose type says so, or
whatever is called a recipe. Files of trainers/recipe/ read recipes for a living and are left out.
"""

from __future__ import annotations

import ast
import sys
import typing
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from turnwise.trainers.recipe.schema import Recipe, Section

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers", "src/turnwise/cli")
OWN = "trainers/recipe/"
CALLED = {"recipe", "checked"}
"""Names and attributes that hold a recipe, whatever else is known of them."""


def sections() -> dict[str, tuple[type[Section], str]]:
    """Return the classes of a recipe and its sections by name, each with the dotted key of its place."""
    found: dict[str, tuple[type[Section], str]] = {"Recipe": (Recipe, "")}
    waiting: list[tuple[type[Section], str]] = [(Recipe, "")]
    while waiting:
        cls, place = waiting.pop()
        for name, field in cls.model_fields.items():
            for one in (field.annotation, *typing.get_args(field.annotation)):
                if isinstance(one, type) and issubclass(one, Section) and one.__name__ not in found:
                    found[one.__name__] = one, f"{place}.{name}".strip(".")
                    waiting.append(found[one.__name__])
    return found


SECTIONS = sections()


class _Reads(ast.NodeVisitor):
    """The keys that a module reads."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.known: dict[str, str] = {}  # of each variable in sight, the class of what it holds

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = dict(self.known)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            named = {one.id for one in ast.walk(argument.annotation or argument) if isinstance(one, ast.Name)}
            self.known.pop(argument.arg, None)
            for cls in named & SECTIONS.keys():
                self.known[argument.arg] = cls
        self.generic_visit(node)
        self.known = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=False) if several else [(target, node.value)]  # pyright: ignore[reportAttributeAccessIssue]
            for one, value in pairs:
                if isinstance(one, ast.Name):
                    self.known.pop(one.id, None)
                    if cls := self.held(value):
                        self.known[one.id] = cls

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        cls = self.held(node.value)
        if cls is None:
            return
        section, place = SECTIONS[cls]
        if node.attr in section.model_fields and self.held(node) is None:
            self.keys.add(f"{place}.{node.attr}".strip("."))

    def held(self, node: ast.expr) -> str | None:
        """Return the class of the recipe or section that an expression gives, if it gives one."""
        match node:
            case ast.Name(id=name):
                return self.known.get(name) or ("Recipe" if name in CALLED else None)
            case ast.Attribute(value=inner, attr=attr):
                cls = self.held(inner)
                if cls is None:
                    return "Recipe" if attr in CALLED else None
                field = SECTIONS[cls][0].model_fields.get(attr)
                types = (field.annotation, *typing.get_args(field.annotation)) if field else ()
                names = (getattr(one, "__name__", "") for one in types)
                return next((name for name in names if name in SECTIONS), None)
            case _:
                return None


def reads(root: Path = ROOT) -> dict[str, list[str]]:
    """Return by key the files outside of trainers/recipe/ that read it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in _modules(root):
        seen = _Reads()
        seen.visit(tree)
        for key in seen.keys:
            found[key].append(path)
    return {key: found[key] for key in sorted(found, key=lambda key: (-len(found[key]), key))}


def takers(root: Path = ROOT) -> list[str]:
    """Return the functions of trainers/run/ that have a whole recipe among their parameters."""
    found: list[str] = []
    for path, tree in _modules(root):
        for node in ast.walk(tree):
            if path.startswith("trainers/run/") and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                named = (one for a in given if a.annotation is not None for one in ast.walk(a.annotation))
                if any(isinstance(one, ast.Name) and one.id == "Recipe" for one in named):
                    found.append(f"{path}:{node.lineno} {node.name}")
    return found


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(OWN):
                yield name, ast.parse(path.read_text("utf-8"))


def main(root: Path) -> None:
    """Print both tables."""
    for key, files in reads(root).items():
        print(f"{len(files):3d} {key:32s} {' '.join(files)}")
    found = takers(root)
    print(f"{len(found)} signatures in trainers/run/ take a Recipe:", *found, sep="\n  ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT)
