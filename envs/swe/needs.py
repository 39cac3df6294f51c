"""Requirements of a package and its tests.

They come from metadata first, then from whatever declares them, by what turns out to be missing.

Metadata is believed (``Requires-Dist``, with the extras that are for tests). Other places name what developers like to
have besides (tox.ini, requirements files, ``[dependency-groups]``, poetry's groups), so of those only what a test could not
import is taken. A module that nobody declares is tried under its own name.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from email.parser import Parser
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from turnwise.envs.swe.packages import ROOT, Package

_EXTRAS = ("", "test", "tests", "testing")
_TOOLS = frozenset(
    (
        "black", "build", "codecov", "coverage", "coveralls", "flake8", "isort", "mypy", "nox", "pre-commit", "pyright",
        "pytest", "pytest-benchmark", "pytest-codspeed", "pytest-cov", "pytest-randomly", "pytest-runner", "pytest-sugar",
        "pytest-timeout", "pytest-xdist", "ruff", "setuptools", "sphinx", "tox", "twine", "wheel",
    )
)  # fmt: skip
_MISSING = re.compile(r"No module named '([\w.]+)'|fixture '(\w+)' not found")
_MODULES = {  # where module and distribution have different names
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "dotenv": "python-dotenv", "jwt": "pyjwt", "yaml": "pyyaml",
    "benchmark": "pytest-benchmark", "mocker": "pytest-mock", "subtests": "pytest-subtests", "httpbin": "pytest-httpbin",
}  # fmt: skip
_FILES = re.compile(r"(^|/)(requirements[\w.-]*|[\w-]*requirements)\.txt$|^requirements/[\w.-]+\.txt$")


def needs_of(name: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return what a package and its tests require by its metadata.

    What every sandbox has and what only developers use is left out.

    Lower bounds are left out, since the newest is installed anyway: so releases of a package share a sandbox root.
    """
    there = _there(name) | _TOOLS
    found: dict[str, str] = {}
    text = files.get("PKG-INFO", b"").decode("utf-8", "replace")
    for need in _requirements(str(line) for line in Parser().parsestr(text).get_all("Requires-Dist") or ()):
        key = canonicalize_name(need.name)
        if key not in there and any(_applies(need, extra) for extra in _EXTRAS):
            found[key] = _written(need)
    return tuple(found[key] for key in sorted(found))


def needs_for(details: Iterable[str], package: Package, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return requirements for the modules and fixtures that tests lack (``details``: their errors).

    As it is declared somewhere in the repository, else by the module's own name; the package and its tests are none.
    """
    own = {PurePosixPath(package.source).name.removesuffix(".py"), package.tests.partition("/")[0]}
    own |= {PurePosixPath(path).parts[0].removesuffix(".py") for path in files} | {"tests", "test"}
    declared = {canonicalize_name(need.name): need for need in _requirements(_declared(files))}
    there, found = _there(package.name), dict[str, str]()
    for module in sorted({name for text in details for match in _found(text) for name in match}):
        top = module.partition(".")[0]
        key = canonicalize_name(_MODULES.get(top, top))
        if top and top not in own and key not in there:
            found[key] = _written(declared[key]) if key in declared else key
    return tuple(found[key] for key in sorted(found))


def _found(text: str) -> list[tuple[str, str]]:
    return _MISSING.findall(text)


def _there(name: str) -> frozenset[str]:
    return frozenset(canonicalize_name(one.partition("==")[0]) for one in (*ROOT.pip, name))


def _applies(need: Requirement, extra: str) -> bool:
    return not need.marker or need.marker.evaluate({"extra": extra, "python_version": "3.11"})


def _written(need: Requirement) -> str:
    upper = SpecifierSet(",".join(str(one) for one in need.specifier if one.operator not in (">", ">=")))
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    return f"{need.name}{extras}{upper}"


def _requirements(lines: Iterable[str]) -> Iterator[Requirement]:
    for line in lines:
        try:
            yield Requirement(line.partition(" #")[0].strip())
        except InvalidRequirement:
            continue


def _declared(files: Mapping[str, bytes]) -> Iterator[str]:
    """Every line that some file of the repository gives as a requirement."""
    for path in sorted(files):
        text = (
            files[path].decode("utf-8", "replace") if path.endswith((".txt", ".ini", ".cfg", ".toml")) else ""
        )
        if path == "pyproject.toml":
            yield from _of_pyproject(text)
        elif path in ("tox.ini", "setup.cfg"):
            yield from _of_ini(text)
        elif _FILES.search(path):
            yield from text.splitlines()
    yield from (
        Parser().parsestr(files.get("PKG-INFO", b"").decode("utf-8", "replace")).get_all("Requires-Dist")
        or ()
    )


def _of_ini(text: str) -> Iterator[str]:
    """tox's ``deps`` (without conditions such as ``py311:``) and the lists of setup.cfg."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        for key, value in parser.items(section):
            if key in ("deps", "tests_require", "install_requires") or section == "options.extras_require":
                yield from (re.sub(r"^[\w,{}!.-]+:\s*", "", line.strip()) for line in value.splitlines())


def _of_pyproject(text: str) -> Iterator[str]:
    try:
        about: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    groups = [about.get("dependency-groups", {}), about.get("project", {}).get("optional-dependencies", {})]
    for group in groups:
        yield from (line for lines in group.values() for line in lines if isinstance(line, str))
    poetry = about.get("tool", {}).get("poetry", {})
    tables = [poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    yield from (name for table in tables for name in table)
