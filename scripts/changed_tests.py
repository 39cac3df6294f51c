#!/usr/bin/env python3
"""Run pytest on what a change can reach: ``scripts/changed_tests.py [--since COMMIT] [-- pytest …]``.

Changed is what differs from COMMIT (by default: where this branch left its upstream or ``main``), with what is not
committed. A file depends on what it imports anywhere in its code, and on what its strings name: a module, an
environment, a suite, a recipe, a component such as a credit rule, a data file, a program. The registries name every
environment and every kind of component, so they are not asked: a file depends on those that it names itself, and a
test on all of them where it asks the registry for all. A data file in a package is read by the nearest modules that
look for files. The tests that look at every file (``HOUSE``) are always chosen. A changed file that nothing is known
to read means everything.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers")  # linked to from src/turnwise
WHOLE = ["tests"]  # what plain `pytest` collects
BASIC = re.compile(r"(pyproject\.toml|Makefile|scripts/(install|sandboxes)\.py|tests/conftest\.py)")
IDLE = re.compile(r"(\.ci/.*|\.github/.*|\.gitignore|LICENSE)")  # no test reads them
AROUND = ("tests/", "scripts/", "benchmarks/")  # what may read pages and results
PROGRAMS = ("scripts/", "benchmarks/", "examples/")  # found by their names, not imported
EXAMPLES = "tests/test_doctests.py::test_examples_give_what_they_say"  # of a docstring in the named file
HOUSE = (  # look at every file
    "tests/cli/test_packaging.py",
    "tests/envs/test_family_shape.py",
    "tests/test_docs.py",
    "tests/test_layout.py",
    "tests/test_named_tests.py",
    "tests/test_names.py",
    "tests/test_plain_yaml.py",
    "tests/test_sizes.py",
    "tests/test_openings.py",
)
REGISTRY = "envs/builtin.py"
SUITES = "tasks/suites/"
KINDS = "src/turnwise/kinds.py"
ALL_FAMILIES = re.compile(r"\b(env_entries|suites\(\)|list_envs|list_suites)")
OFFERS = "src/turnwise/__init__.py"
ALL_PARTS = re.compile(r"\b(components\((?!\")|requirements\(|KINDS\b)")
ALL_OF_KIND = re.compile(r"\bcomponents\(\"(\w+)\"")
ALL_RECIPES = re.compile(r"\b(list_recipes|recipe_names|presets)\b")
LOCATES = re.compile(r"__file__|__path__|\bfiles\(|\bPackageLoader\(|\bresources\b|\b(?:data|text)_file\(")
MOST_PARTS = 8  # that code names which uses them; what names more is a list of them
MODULE = re.compile(r"turnwise(?:\.\w+)+\.?")
ENV = re.compile(r"turnwise/\w+-v\d+")
WORD = re.compile(r"[\w.-]+")


IMPORT = " (on import)"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Tree:
    """The repository's files, and which of them depend on which."""

    def __init__(self, files: Iterable[str]) -> None:
        self.texts = {name: text for name in files if (text := _text(ROOT / name)) is not None}
        self.python = {name for name in self.texts if name.endswith(".py")}
        self.modules = {module_of(name): name for name in self.python if not name.startswith("tests/")}
        self.helpers = {Path(name).stem: name for name in self.python if name.startswith("tests/")}
        self.envs = self._environments()
        self.families = set(self.envs.values())
        self.requirements: set[str] = set()  # modules that test the components of a kind, and packages
        self.kinds = self._kinds()
        self.parts = self._components()
        self.offered = set(re.findall(r"\w+", self.texts.get(OFFERS, "")))
        programs = {name for name in self.python if name.startswith(PROGRAMS)}
        read = sorted(set(self.texts) - self.python | programs)
        self.data = {name: _names_of(name, self.texts[name]) for name in read}
        self.called: dict[str, list[tuple[str, str, list[str]]]] = defaultdict(list)
        self.pages: dict[str, set[str]] = defaultdict(set)  # by the first folder of their path
        for name, known in self.data.items():
            for whole, parts in known:
                self.called[max(parts, key=len)].append((name, whole, parts))
            if _is_page(name):
                self.pages[name.partition("/")[0]].add(name)
        self.readers = self._readers(set(self.data) - programs)
        self.defined = {
            name: _defined(self.texts[name]) for name in self.python if name.endswith("conftest.py")
        }
        self.uses: dict[str, set[str]] = {}
        for name in sorted(self.python):
            self._add(name)
        for name in self.data:
            if name.endswith((".yaml", ".yml")):
                self.uses[name] = (
                    self._named(self.texts[name]) | self._parts_in(self.texts[name], self.texts[name])
                ) - {name}
            self.uses.setdefault(name, set())

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """By file, those that use it."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, uses in self.uses.items():
            for other in uses:
                found[other].add(name)
        return found

    def reached_by(self, changed: Iterable[str]) -> set[str]:
        """Every file that depends on one of these, with them."""
        reached: set[str] = set()
        waiting = [node for name in changed for node in (name, f"{name}{IMPORT}")]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(self.users.get(name, ()))
        return reached

    def nearest_tests(self, changed: str) -> set[str]:
        """The files of tests that are fewest steps away from a file; that file alone, where it is one."""
        seen: set[str] = set()
        level = {changed, f"{changed}{IMPORT}"}
        while level:
            if found := {name for name in level if _is_test(name) and name in self.texts}:
                return found
            seen |= level
            level = set[str]().union(*(self.users.get(name, ()) for name in level)) - seen
        return set()

    def is_read(self, name: str) -> bool:
        """Whether anything is known to depend on this file."""
        return any(name in uses for user, uses in self.uses.items() if user != name)

    def _environments(self) -> dict[str, str]:
        text = self.texts.get(REGISTRY, "")
        found = re.findall(r'"(turnwise/\w+-v\d+)": \(\s*"([\w.]+):', text)
        return {env: self.modules[home] for env, home in found if home in self.modules}

    def _kinds(self) -> dict[str, set[str]]:
        """By kind of component, the modules of ours and the requirements of that kind."""
        found: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(self.texts.get(KINDS, ""))):
            for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                    homes = MODULE.findall(_strings([*ast.walk(value)]))
                    single = {m for home in homes for m in self._module(home)}
                    self.requirements |= single
                    found[str(key.value)] = single.union(*(self._inside(home) for home in homes))
        return found

    def _inside(self, package: str) -> set[str]:
        return {n for n in self._module(f"{package}.") if module_of(n).rpartition(".")[0] == package}

    def _components(self) -> dict[str, set[tuple[str, str]]]:
        """By a component's name, its kind and its module."""
        by_name: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for kind, modules in self.kinds.items():
            for name in modules - self.requirements:
                by_name[Path(name).stem].add((kind, name))
        return by_name

    def _asked_for(self, text: str) -> set[str]:
        """What a test uses that asks a registry for all there is, or for all of a kind."""
        found = set(self.families) if ALL_FAMILIES.search(text) else set[str]()
        kinds = {kind for kind in ALL_OF_KIND.findall(text) if kind in self.kinds}
        if ALL_PARTS.search(text):
            kinds = set(self.kinds)
        if ALL_RECIPES.search(text):
            found |= {name for name in self.data if _is_recipe(name)}
        return found.union(*(self.kinds[kind] for kind in kinds))

    def _parts_in(self, strings: str, text: str) -> set[str]:
        """The components that are named, where their kind is spoken of or an algorithm, which stands for several."""
        words = {word.replace("-", "_") for word in re.findall(r"[\w-]+", strings)} & set(self.parts)
        named = set[tuple[str, str]]().union(*(self.parts[word] for word in words))
        return {module for kind, module in named if kind in text or "algorithm" in text}

    def _readers(self, data: Iterable[str]) -> dict[str, set[str]]:
        """By module, the data files that it is taken to read: those around it, if it looks for files."""
        looking = {name for name in self.python if LOCATES.search(self.texts[name])}
        beside: dict[str, set[str]] = defaultdict(set)
        for name in self.python:
            beside[str(Path(name).parent)].add(name)
        found: dict[str, set[str]] = defaultdict(set)
        for name in data:
            around = [str(parent) for parent in Path(name).parents][:-1]
            if _is_recipe(name) or name.startswith(SUITES):
                continue  # by those who name it, or a suite in it
            if name.startswith("tests/"):
                near = set[str]().union(*(beside[folder] for folder in around))
            else:
                near = next((n for folder in around if (n := beside[folder] & looking)), set[str]())
                near = near or next((beside[folder] for folder in around if beside[folder]), set[str]())
            for module in near:
                found[module].add(name)
        return found

    def _add(self, name: str) -> None:
        """Note what a file uses; what its import alone runs is a node of its own, for packages around others."""
        tree, text = ast.parse(self.texts[name]), self.texts[name]
        if Path(name).name == "conftest.py":
            self._add_fixtures(name, tree)
            return
        nodes = [*ast.walk(tree)]
        self.uses[f"{name}{IMPORT}"] = self._imported(_executed(tree.body), plain=False)
        used = (
            self._imported(nodes, plain=name.startswith(AROUND))
            | self.readers[name]
            | self._fixtures(name, set(re.findall(r"\w+", text)))
        )
        for parent in Path(name).parents:
            if (package := str(parent / "__init__.py")) in self.python:
                used.add(f"{package}{IMPORT}")
        if name not in (REGISTRY, KINDS):
            strings = _strings(nodes)
            used |= self._named(strings, reads_pages=name.startswith(AROUND))
            parts = self._parts_in(strings, text)
            used |= parts if name.startswith("tests/") or len(parts) <= MOST_PARTS else set()
        if name.startswith("tests/"):
            used |= self._asked_for(text)
        self.uses[name] = used - {name}

    def _add_fixtures(self, name: str, tree: ast.Module) -> None:
        """A conftest's functions are nodes of their own, since a test uses few of them."""
        self.uses[name] = set()
        own = {node.name: node for node in tree.body if isinstance(node, DEFINITIONS)}
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        strings = _strings([*ast.walk(tree)])
        for fixture, node in own.items():
            words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            words |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
            needed = [i for i in imports if words & {alias.asname or alias.name for alias in i.names}]
            used = self._imported([*ast.walk(node), *needed]) | self._fixtures(name, words - {fixture})
            self.uses[f"{name}::{fixture}"] = used | self._named(strings)

    def _fixtures(self, name: str, words: set[str]) -> set[str]:
        """Of the conftests that hold for a file: themselves, and those of their functions that it mentions."""
        found: set[str] = set()
        for parent in Path(name).parents:
            conftest = str(parent / "conftest.py")
            if conftest in self.python:
                found |= {conftest, *(f"{conftest}::{word}" for word in words & self.defined[conftest])}
        return found

    def _imported(self, nodes: Iterable[ast.AST], *, plain: bool = True) -> set[str]:
        """What these statements import. Plain ``import turnwise`` brings, on use, all that the package offers."""
        found: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if plain or "." in alias.name]
                found.update(*map(self._module, set(names) - {"turnwise"}))
                found |= {f"{OFFERS}{IMPORT}"} if "turnwise" in names else set()
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "turnwise" and not node.attr.startswith("__"):
                    found |= self._module(f"turnwise.{node.attr}", exactly=True) or {OFFERS}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inside = self._module(f"{node.module}.{alias.name}", exactly=True)
                    found |= inside
                    if not inside and alias.name.startswith("__"):
                        found |= {f"{file}{IMPORT}" for file in self._module(node.module)}
                    elif not inside and (plain or "." in node.module):
                        found |= self._module(node.module)
        return found

    def _module(self, dotted: str, *, exactly: bool = False) -> set[str]:
        """The file of a module; of a dotted name that ends in "." everything under it."""
        if dotted.endswith("."):
            return {path for module, path in self.modules.items() if module.startswith(dotted)}
        if dotted in self.modules:
            return {self.modules[dotted]}
        if dotted in self.helpers:
            return {self.helpers[dotted]}
        shorter = dotted.rpartition(".")[0]
        return set() if exactly or not shorter else self._module(shorter)

    def _named(self, text: str, *, reads_pages: bool = False) -> set[str]:
        """What a text names: modules, environments, suites and recipes, data files; pages, if it reads pages."""
        found: set[str] = set()
        for dotted in set(MODULE.findall(text)):
            said = self._module(dotted)
            if OFFERS in said and not (reads_pages and dotted.partition(".")[2] in self.offered):
                continue  # an error's words, or a name that is neither a module nor what the package offers
            found |= said
        for env in set(ENV.findall(text)) & set(self.envs):
            found.add(self.envs[env])
        words = {word.strip(".") for word in WORD.findall(text)}
        lines = set(text.split("\n"))
        for word in words & self.called.keys():
            for name, whole, parts in self.called[word]:
                if (reads_pages or not _is_page(name)) and words.issuperset(parts) and whole in text:
                    found.add(name)
        for folder in self.pages.keys() & lines if reads_pages else ():
            found |= self.pages[folder]
        return found


def module_of(name: str) -> str:
    """The dotted name under which a file is imported."""
    path = Path(name).with_suffix("")
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    parts = ("turnwise", *parts) if parts[0] in FOLDERS else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8") if path.is_file() else ""
    except UnicodeDecodeError:
        return ""


def _defined(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, DEFINITIONS)}


def _strings(tree: Sequence[ast.AST]) -> str:
    """All strings among a file's nodes but those that only say something to people."""
    said = {
        id(node.body[0].value)
        for node in tree
        if isinstance(node, (*DEFINITIONS, ast.Module)) and node.body and isinstance(node.body[0], ast.Expr)
    }
    nodes = [node for node in tree if isinstance(node, ast.Constant) and id(node) not in said]
    return "\n".join(node.value for node in nodes if isinstance(node.value, str))


def _executed(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements that importing a module runs."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for inner in ("body", "orelse", "handlers", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _executed(getattr(node, inner, ()))


def _is_page(name: str) -> bool:
    return name.endswith(".md") or name.startswith(("docs/", "benchmarks/"))


def _is_recipe(name: str) -> bool:
    return name.endswith(".yaml") and Path(name).parent.name in ("recipes", "presets")


def _names_of(name: str, content: str) -> list[tuple[str, list[str]]]:
    """By what a data file is named: its own name, and a YAML file's suites or the recipe that it is; with their words."""
    path, names = Path(name), [Path(name).name]
    if path.suffix == ".yaml" and not _is_page(name):
        names += [path.stem] if _is_recipe(name) else re.findall(r"^([\w-]+/[\w-]+):", content, re.MULTILINE)
    return [(whole, [word.strip(".") for word in WORD.findall(whole)]) for whole in names]


def targets(tree: Tree, changed: Iterable[str]) -> list[str]:
    """The test files, and the tests of examples in docstrings, that these files can reach."""
    asked = [name for name in changed if not IDLE.fullmatch(name)]
    unknown = [n for n in asked if n not in tree.texts or not (n.startswith("tests/") or tree.is_read(n))]
    for name in asked:
        if BASIC.fullmatch(name) or (name in unknown and not _is_test(name)):
            why = "everything rests on it" if BASIC.fullmatch(name) else "who reads it is not known"
            print(f"{name}: {why}", file=sys.stderr)
            return WHOLE
    reached = tree.reached_by(asked) | (set(HOUSE) if asked else set())
    tests = sorted(name for name in reached if _is_test(name) and name in tree.texts)
    examples = sorted(
        name for name in reached & tree.python if not name.startswith(AROUND) and ">>>" in tree.texts[name]
    )
    return tests + [f"{EXAMPLES}[{name}]" for name in examples if EXAMPLES.partition("::")[0] not in tests]


def _is_test(name: str) -> bool:
    return name.startswith("tests/") and Path(name).name.startswith("test_")


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none where it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def fork_point() -> str:
    """The commit at which this branch left its upstream or main."""
    for other in ("@{upstream}", "main", "origin/main"):
        if found := git("merge-base", "HEAD", other):
            return found[0]
    return "HEAD"


def main() -> int:
    """Say what would run, and run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", default="", metavar="COMMIT")
    parser.add_argument("command", nargs="*", help="pytest and its options; without it the files are printed")
    asked = parser.parse_args()
    since = asked.since or fork_point()
    changed = {
        *git("diff", "--name-only", "--no-renames", since),
        *git("ls-files", "--others", "--exclude-standard"),
    }
    chosen = targets(Tree(git("ls-files", "--cached", "--others", "--exclude-standard")), sorted(changed))
    print(
        f"{len(changed)} files differ from {since[:12]} and reach {len(chosen)} files of tests.",
        file=sys.stderr,
    )
    if not asked.command or not chosen:
        print("\n".join(chosen))
        return 0
    return subprocess.run([*asked.command, *chosen], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
