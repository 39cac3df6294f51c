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
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urljoin

import yaml
from filelock import FileLock

from turnwise.errors import InfraError, NotFoundError
from turnwise.tools.sandbox.core import Root

ROOT = Root(
    pip=(
        "pytest==8.4.2", "pytest-mock==3.15.1", "hypothesis==6.140.3", "coverage==7.10.7", "PyYAML==6.0.3",
        "python-dateutil==2.9.0.post0", "tzdata==2025.2", "pytz==2025.2", "simplejson==3.20.2", "boltons==25.0.0",
        "attrs==25.3.0", "face==24.0.0", "freezegun==1.5.5", "MarkupSafe==3.0.3", "trio==0.31.0",
        "text-unidecode==1.3", "packaging==25.0", "whatever==0.7",
    )
)  # fmt: skip
"""What the packages need and their tests need; built once (about 30 s) and cached."""

_KEEP = re.compile(r"(README|CHANGE|LICEN[SC]E|setup\.|pyproject\.toml)", re.IGNORECASE)
_MOST = 64 * 2**20  # bytes of an unpacked sdist


class Package(NamedTuple):
    """Where a repository comes from. Paths are relative to its top; ``file`` is empty for the small ones."""

    name: str
    version: str
    source: str
    tests: str
    path: str = ""
    pattern: str = "test_*.py"
    file: str = ""
    sha256: str = ""

    @property
    def key(self) -> str:
        return f"{self.name}@{self.version}"

    def is_source(self, path: str) -> bool:
        """Whether a file is part of the package itself, not of its tests."""
        return _under(path, self.source) and not self.is_test(path)

    def is_test(self, path: str) -> bool:
        return _under(path, self.tests) or PurePosixPath(path).name == "conftest.py"


@cache
def packages() -> Mapping[str, Package]:
    """All packages by name: those of packages.yaml and the small ones."""
    listed = yaml.safe_load(files("turnwise.envs.swe").joinpath("packages.yaml").read_text("utf-8"))
    real = {
        name: Package(name, **{key: str(value) for key, value in row.items()}) for name, row in listed.items()
    }
    return {**real, **{name: Package(name, "1", name, "tests") for name in _small_names()}}


def get_package(name: str) -> Package:
    """The package of this name.

    Raises:
        NotFoundError: there is none.
    """
    if name not in packages():
        raise NotFoundError("package", name, packages())
    return packages()[name]


@cache
def repository(package: Package) -> Mapping[str, bytes]:
    """The files of a repository by path, fetched if need be: package, tests and a few words, no history.

    Raises:
        InfraError: it cannot be fetched.
    """
    if not package.file:
        text = files("turnwise.envs.swe").joinpath("small", f"{package.name}.yaml").read_text("utf-8")
        return {path: content.encode() for path, content in yaml.safe_load(text).items()}
    found = _unpacked(fetch(package))
    return {path: data for path, data in sorted(found.items()) if _belongs(package, path)}


def fetch(package: Package) -> bytes:
    """The sdist, from the cache or the package index; its hash is checked each time.

    Raises:
        InfraError: it is not there, or not what was pinned.
    """
    kept = cache_folder() / "sdists" / package.file
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if kept.exists() and hashlib.sha256(data := kept.read_bytes()).hexdigest() == package.sha256:
            return data
        data = _download(package)
        kept.with_suffix(".part").write_bytes(data)
        kept.with_suffix(".part").rename(kept)
    return data


def cache_folder() -> Path:
    """Where sdists and built tasks are: ``swe`` in ``$TURNWISE_CACHE`` or ``~/.cache/turnwise``."""
    if named := os.environ.get("TURNWISE_CACHE"):
        return Path(named) / "swe"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnwise" / "swe"


def tasks_file(name: str = "tasks") -> Path:
    """Where tasks are that a command made (``tasks``: built ones, ``adopted``), unless told otherwise."""
    return cache_folder() / f"{name}.jsonl"


def _download(package: Package) -> bytes:
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = f"{index}/{package.name}/"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'href="([^"#]+)', answer.read().decode())
        link = next((link for link in links if link.endswith(f"/{package.file}")), "")
        with urllib.request.urlopen(urljoin(page, link), timeout=120) as answer:
            data: bytes = answer.read(_MOST)
    except (OSError, urllib.error.URLError) as error:
        raise InfraError(
            f"{package.file} could not be fetched from {index}: {error}.",
            "Check the network, then try again.",
        ) from None
    if hashlib.sha256(data).hexdigest() != package.sha256:
        raise InfraError(
            f"{index} gave another file than the pinned {package.file}.",
            "Check PIP_INDEX_URL; the hash is in envs/swe/packages.yaml.",
        )
    return data


def _unpacked(sdist: bytes) -> dict[str, bytes]:
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
