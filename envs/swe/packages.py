"""Repositories that bugs are put into: packages from PyPI, pinned by hash, and small ones that come with Turnwise."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urljoin

import yaml
from filelock import FileLock

from turnwise.cache_folder import cache_folder
from turnwise.errors import InfraError, NotFoundError, TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.tools.sandbox.core import Root
from turnwise.tools.sandbox.roots import build_root

ROOT = Root(
    pip=(
        "pytest==8.4.2", "pytest-mock==3.15.1", "hypothesis==6.140.3", "coverage==7.10.7", "PyYAML==6.0.3",
        "python-dateutil==2.9.0.post0", "tzdata==2025.2", "pytz==2025.2", "simplejson==3.20.2", "boltons==25.0.0",
        "attrs==25.3.0", "face==24.0.0", "freezegun==1.5.5", "MarkupSafe==3.0.3", "trio==0.31.0",
        "text-unidecode==1.3", "packaging==25.0", "whatever==0.7",
    )
)  # fmt: skip
"""Requirements of the packages and of their tests; built once (about 30 s) and cached."""

_KEEP = re.compile(r"(README|LICEN[SC]E|setup\.|pyproject\.toml)", re.IGNORECASE)
_FORM = (
    "A package has version, source, tests, and may have path, pattern, file, sha256 and needs (docs/swe.md)."
)
_MOST = 64 * 2**20  # bytes of an unpacked sdist


class Package(NamedTuple):
    """Source of a repository. Paths are relative to its top; ``file`` is empty for the small ones.

    ``needs`` are requirements of package and tests beside what :data:`ROOT` has.
    """

    name: str
    version: str
    source: str
    tests: str
    path: str = ""
    pattern: str = "test_*.py"
    file: str = ""
    sha256: str = ""
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def root(self) -> Root:
        """Root that the package's sandboxes start from."""
        return Root(pip=(*ROOT.pip, *self.needs)) if self.needs else ROOT

    @property
    def is_own(self) -> bool:
        """True if it comes with Turnwise: a task of it need not say where it is from."""
        return _own().get(self.name) == self

    def is_source(self, path: str) -> bool:
        """Say whether a file is part of the package itself, not of its tests."""
        return _under(path, self.source) and not self.is_test(path)

    def is_test(self, path: str) -> bool:
        return _under(path, self.tests) or PurePosixPath(path).name == "conftest.py"


def packages() -> Mapping[str, Package]:
    """All packages by name: those of packages.yaml, the small ones, and what users added (``turnwise swe add``)."""
    added = [path for path in sorted(added_folder().glob("*.yaml")) if path.is_file()]
    found = {
        name: one for path in added for name, one in read_packages(path.read_text("utf-8"), str(path)).items()
    }
    return {**_own(), **found}


@cache
def _own() -> Mapping[str, Package]:
    text = files("turnwise.envs.swe").joinpath("packages.yaml").read_text("utf-8")
    small = {name: Package(name, "1", name, "tests") for name in _small_names()}
    return {**read_packages(text, "packages.yaml"), **small}


def added_folder() -> Path:
    """Return the folder in which the packages that users added are listed."""
    return cache_folder("swe", "packages")


def read_packages(text: str, place: str) -> dict[str, Package]:
    """Packages from YAML: name → fields of :class:`Package`.

    Raises:
        TurnwiseError: a row is not one; says which and why.
    """
    try:
        listed: object = read_yaml(text)
    except yaml.YAMLError as error:
        raise TurnwiseError(f"{place} is no YAML: {' '.join(str(error).split())[:200]}.", _FORM) from None
    if not isinstance(listed, dict) or not all(isinstance(row, dict) for row in listed.values()):
        raise TurnwiseError(f"{place} does not map names of packages to their fields.", _FORM)
    return {str(name): _package(str(name), row, place) for name, row in listed.items()}


def _package(name: str, row: Mapping[str, Any], place: str) -> Package:
    known = Package._fields[1:]
    if wrong := [key for key in row if key not in known]:
        near = get_close_matches(str(wrong[0]), known, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise TurnwiseError(
            f"{place}: {name} has an unknown field {wrong[0]!r}.", f"{meant.capitalize()}{_FORM}"
        )
    if lacking := [key for key in ("version", "source", "tests") if not row.get(key)]:
        raise TurnwiseError(f"{place}: {name} has no {lacking[0]}.", _FORM)
    texts = {key: str(value) for key, value in row.items() if key != "needs"}
    return Package(name, **texts, needs=tuple(str(need) for need in row.get("needs") or ()))


def holds_itself(package: Package) -> bool:
    """Say whether the root of a package's sandboxes holds the package.

    It does where something else needs it: a repair could be read there.

    Raises:
        SandboxError: the root cannot be built.
    """
    top = PurePosixPath(package.source).name.removesuffix(".py").lower()
    there = build_root(package.root).glob("usr/**/dist-packages/*")
    return top in {item.name.lower().removesuffix(".py") for item in there}


def get_package(name: str) -> Package:
    """The package of this name.

    Raises:
        NotFoundError: there is none.
    """
    known = _own() if name in _own() else packages()
    if name not in known:
        raise NotFoundError("package", name, known)
    return known[name]


@cache
def repository(package: Package) -> Mapping[str, bytes]:
    """The files of a repository by path, fetched if need be: package, tests and a few words, no history.

    Raises:
        InfraError: it cannot be fetched.
    """
    if not package.file:
        text = files("turnwise.envs.swe").joinpath("small", f"{package.name}.yaml").read_text("utf-8")
        return {path: content.encode() for path, content in read_yaml(text).items()}
    found = unpacked(fetch(package))
    return {path: data for path, data in sorted(found.items()) if _belongs(package, path)}


def fetch(package: Package) -> bytes:
    """The sdist, from the cache or the package index; its hash is checked each time.

    Raises:
        InfraError: it is not there, or not what was pinned.
    """
    kept = cache_folder("swe", "sdists") / package.file
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if kept.exists() and hashlib.sha256(data := kept.read_bytes()).hexdigest() == package.sha256:
            return data
        data = _download(package)
        kept.with_suffix(".part").write_bytes(data)
        kept.with_suffix(".part").rename(kept)
    return data


def tasks_file(name: str = "tasks") -> Path:
    """Return the file of tasks that a command made (``tasks``: built ones, ``adopted``) by default."""
    return cache_folder("swe", f"{name}.jsonl")


def index_links(name: str) -> dict[str, tuple[str, str]]:
    """The files that the package index has of a package: name → address and SHA-256 (empty where it tells none).

    Raises:
        InfraError: it cannot be asked, or has no such package.
    """
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = f"{index}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            found = re.findall(r'href="([^"#]+)(?:#sha256=([0-9a-f]{64}))?', answer.read().decode())
    except (OSError, urllib.error.URLError) as error:
        raise InfraError(
            f"The package index {index} was asked for {name}: {error}.",
            "Check the name and the network, then try again.",
        ) from None
    return {link.rpartition("/")[2]: (urljoin(page, link), sha256) for link, sha256 in found}


def _download(package: Package) -> bytes:
    link, _ = index_links(package.name).get(package.file, ("", ""))
    try:
        if not link:
            raise OSError("the index does not have it")
        with urllib.request.urlopen(link, timeout=120) as answer:
            data: bytes = answer.read(_MOST)
    except (OSError, urllib.error.URLError) as error:
        raise InfraError(
            f"{package.file} could not be fetched: {error}.", "Check the network, then try again."
        ) from None
    if hashlib.sha256(data).hexdigest() != package.sha256:
        raise InfraError(
            f"The index gave another file than the pinned {package.file}.",
            "Check PIP_INDEX_URL; the hash stands where the package is listed (envs/swe/packages.yaml).",
        )
    return data


def unpacked(sdist: bytes) -> dict[str, bytes]:
    """Regular files of an archive, in memory: nothing in it becomes a path on this machine."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(sdist)) as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts[1:]
            if member.isreg() and parts and ".." not in parts and member.size <= _MOST:
                opened = archive.extractfile(member)
                assert opened is not None
                found["/".join(parts)] = opened.read()
    return found


def _belongs(package: Package, path: str) -> bool:
    if "/.git" in f"/{path}" or "__pycache__" in path or path.endswith((".c", ".so", ".pyc", ".go")):
        return False
    top = any(_under(path, folder) for folder in (package.source, package.tests, "bin"))
    return top or ("/" not in path and bool(_KEEP.match(path)))


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _small_names() -> list[str]:
    names = (item.name for item in files("turnwise.envs.swe").joinpath("small").iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))
