"""Finds out by looking how a repository is laid out, and what its tests need beside what every sandbox has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.parser import Parser
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from turnwise.envs.swe.packages import ROOT, Package
from turnwise.errors import TurnwiseError

_PATTERNS = ("test_*.py", "*_test.py", "tests.py")
_EXTRAS = ("", "test", "tests", "testing")
_TOOLS = frozenset(
    ("pytest", "pytest-cov", "coverage", "tox", "flake8", "mypy", "black", "ruff", "pre-commit", "isort")
)
_MISSING = re.compile(r"No module named '([\w.]+)'")


def laid_out(name: str, version: str, files: Mapping[str, bytes]) -> Package:
    """Where package and tests are in these files, as far as their names tell.

    Raises:
        TurnwiseError: there is no package, or there are no tests.
    """
    source = next((path for path in _sources(name, files)), "")
    if not source:
        raise TurnwiseError(
            f"No package is found in {name} {version}: neither src/{_module(name)} nor {_module(name)} is there.",
            "Write a YAML that says where `source` and `tests` are, and add that (docs/swe.md).",
        )
    folder = source.rpartition("/")[0] if source.startswith("src/") else ""
    for tests in (
        "tests",
        "test",
        f"{source}/tests",
        f"{source}/test",
        "tests.py",
        f"test_{_module(name)}.py",
    ):
        for pattern in _PATTERNS:
            inside = [path for path in files if path == tests or path.startswith(f"{tests}/")]
            if any(PurePosixPath(path).match(pattern) for path in inside):
                return Package(name, version, source, tests, folder, pattern)
    raise TurnwiseError(
        f"{name} {version} brings no tests: none of tests, test, {source}/tests holds a {_PATTERNS[0]}.",
        "Take another version (`--since`, `--until`), or a folder of its repository.",
    )


def needs_of(name: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """What a package and its tests require by its metadata, beside what every sandbox has and what only developers use."""
    there = (
        {canonicalize_name(one.partition("==")[0]) for one in ROOT.pip} | _TOOLS | {canonicalize_name(name)}
    )
    text = next((files[path] for path in ("PKG-INFO",) if path in files), b"").decode("utf-8", "replace")
    found: dict[str, str] = {}
    for line in Parser().parsestr(text).get_all("Requires-Dist") or ():
        try:
            need = Requirement(str(line))
        except InvalidRequirement:
            continue
        wanted = any(
            not need.marker or need.marker.evaluate({"extra": extra, "python_version": "3.11"})
            for extra in _EXTRAS
        )
        if wanted and canonicalize_name(need.name) not in there:
            found[canonicalize_name(need.name)] = f"{need.name}{need.specifier}"
    return tuple(found[key] for key in sorted(found))


def missing_modules(details: Iterable[str], package: Package) -> tuple[str, ...]:
    """Modules that tests could not import, as names of distributions; not the package itself nor its tests."""
    own = {
        PurePosixPath(package.source).name.removesuffix(".py"),
        package.tests.partition("/")[0],
        "tests",
        "test",
    }
    names = {match.partition(".")[0] for text in details for match in _MISSING.findall(text)}
    return tuple(sorted(names - own))


def _sources(name: str, files: Mapping[str, bytes]) -> Iterable[str]:
    """Where the package may be: by its name first, then what else is a package at the top."""
    for module in dict.fromkeys((_module(name), _module(name).removeprefix("python_"), *_listed(files))):
        for path in (f"src/{module}", module):
            if any(file.startswith(f"{path}/") and file.endswith(".py") for file in files):
                yield path
            elif f"{path}.py" in files:
                yield f"{path}.py"


def _listed(files: Mapping[str, bytes]) -> Iterable[str]:
    """What a source distribution says that it installs."""
    for path in sorted(files):
        if path.endswith(".egg-info/top_level.txt"):
            yield from files[path].decode("utf-8", "replace").split()


def _module(name: str) -> str:
    return re.sub(r"[-.]+", "_", name).lower()
