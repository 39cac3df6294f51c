"""Finds out by looking how a repository is laid out: where the package is, and where its tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from turnwise.envs.swe.packages import Package
from turnwise.errors import TurnwiseError

_PATTERNS = ("test_*.py", "*_test.py", "tests.py")
_NO_PACKAGES = frozenset(
    ("tests", "test", "docs", "doc", "examples", "scripts", "tools", "benchmarks", "build")
)


def laid_out(name: str, version: str, files: Mapping[str, bytes]) -> Package:
    """Find the package and the tests in these files, as far as their names tell.

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


def _sources(name: str, files: Mapping[str, bytes]) -> Iterable[str]:
    """Yield the paths where the package may be: by its name first, then what else is a package at the top."""
    for module in dict.fromkeys((_module(name), _module(name).removeprefix("python_"), *_listed(files))):
        for path in (f"src/{module}", module):
            if any(file.startswith(f"{path}/") and file.endswith(".py") for file in files):
                yield path
            elif f"{path}.py" in files:
                yield f"{path}.py"


def _listed(files: Mapping[str, bytes]) -> Iterable[str]:
    """Yield what a source distribution says that it installs.

    After that comes the one folder at the top (or in src) that is a package.
    """
    for path in sorted(files):
        if path.endswith(".egg-info/top_level.txt"):
            yield from files[path].decode("utf-8", "replace").split()
    found = {
        parts[-2]
        for parts in (PurePosixPath(path.removeprefix("src/")).parts for path in files)
        if len(parts) == 2 and parts[1] == "__init__.py" and parts[0] not in _NO_PACKAGES
    }
    if len(found) == 1:
        yield from found


def _module(name: str) -> str:
    return re.sub(r"[-.]+", "_", name).lower()
