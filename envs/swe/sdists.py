"""Source distributions of a package: which there are, and what one holds. From the package index, or from a folder."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from turnwise.cache_folder import cache_folder
from turnwise.envs.swe.layout import laid_out
from turnwise.envs.swe.needs import needs_of
from turnwise.envs.swe.packages import Package, fetch, index_links, unpacked
from turnwise.errors import TurnwiseError

_LEFT_OUT = frozenset(
    (".git", ".hg", ".tox", ".venv", "venv", "__pycache__", "node_modules", "dist", "build")
)


class Sdist(NamedTuple):
    """A release: its version, its file and that file's hash."""

    version: Version
    file: str
    sha256: str


class Unpacked(NamedTuple):
    """A release as a package, and all files that its source distribution has."""

    package: Package
    files: Mapping[str, bytes]


def sdists_of(name: str, *, folder: Path | None = None) -> list[Sdist]:
    """The source distributions of a package that are not pre-releases, by version; of a folder if one is named.

    Raises:
        InfraError: the package index cannot be asked.
        TurnwiseError: there is none.
    """
    if folder is not None:
        found = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.glob("*.tar.gz"))
        }
    else:
        found = {file: sha256 for file, (_, sha256) in index_links(name).items() if sha256}
    releases: dict[Version, Sdist] = {}
    for file, sha256 in found.items():
        try:
            of, version = parse_sdist_filename(file)
        except InvalidSdistFilename:
            continue
        if of == canonicalize_name(name) and file.endswith(".tar.gz") and not version.is_prerelease:
            releases[version] = Sdist(version, file, sha256)
            if folder is not None:
                _keep(file, (folder / file).read_bytes())
    if not releases:
        raise TurnwiseError(
            f"There is no source distribution (.tar.gz) of {name}{f' in {folder}' if folder else ''}.",
            "Check the name; wheels bring no tests.",
        )
    return [releases[version] for version in sorted(releases)]


def unpack(name: str, sdist: Sdist) -> Unpacked:
    """A release, laid out.

    Raises:
        InfraError: it cannot be fetched.
        TurnwiseError: it has no package, or no tests.
    """
    files = unpacked(fetch(Package(name, str(sdist.version), "", "", file=sdist.file, sha256=sdist.sha256)))
    found = laid_out(name, str(sdist.version), files)
    return Unpacked(found._replace(file=sdist.file, sha256=sdist.sha256, needs=needs_of(name, files)), files)


def packed(folder: Path, name: str) -> Sdist:
    """A folder of a repository as a source distribution in the cache, the same for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            if path.is_file() and not path.is_symlink() and not _LEFT_OUT & set(inner.parts):
                about = tarfile.TarInfo(f"{name}-0/{inner}")
                about.size = path.stat().st_size
                archive.addfile(about, io.BytesIO(path.read_bytes()))
    data = buffer.getvalue()[10:]  # gzip's head has the time
    data = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + data
    sha256 = hashlib.sha256(data).hexdigest()
    file = f"{name}-0+{sha256[:8]}.tar.gz"
    _keep(file, data)
    return Sdist(Version(f"0+{sha256[:8]}"), file, sha256)


def _keep(file: str, data: bytes) -> None:
    kept = cache_folder("swe", "sdists") / file
    kept.parent.mkdir(parents=True, exist_ok=True)
    if not kept.exists() or kept.read_bytes() != data:
        kept.write_bytes(data)
