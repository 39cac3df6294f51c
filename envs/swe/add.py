"""Adds a package of the user's: from the package index by name, from a folder, or as a YAML says. Validated before it is listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from turnwise.envs.swe.baseline import baseline_of
from turnwise.envs.swe.draw import Drawing, Tally
from turnwise.envs.swe.layout import laid_out
from turnwise.envs.swe.needs import needs_of
from turnwise.envs.swe.packages import (
    Package,
    added_folder,
    fetch,
    holds_itself,
    packages,
    read_packages,
    repository,
    unpacked,
)
from turnwise.envs.swe.sdists import packed, sdists_of, unpack
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import Backend


class AddedPackage(NamedTuple):
    """A package that was added: how many of its tests count, what of a few bugs became tasks, and what a run of its suite costs.

    ``cpu`` is in seconds of the processor; ``uncollected`` are files of tests that cannot be imported here.
    """

    package: Package
    tests: int
    cpu: float
    tally: Tally
    uncollected: tuple[str, ...]


def add(backend: Backend, what: str, *, tries: int = 4) -> list[AddedPackage]:
    """Add what is meant: a YAML file, a folder of a repository, or a name of the package index (``NAME`` or ``NAME==VERSION``).

    Each package's suite must run and some of its tests pass each time; up to ``tries`` tasks are made of it, to see what
    it yields, and forgotten.

    Raises:
        InfraError: it cannot be fetched.
        TurnwiseError: it is no such thing, or no task can be made of it; says why.
    """
    return [_added(backend, package, tries) for package in _meant(what)]


def _meant(what: str) -> Iterator[Package]:
    path = Path(what).expanduser()
    if path.is_dir():
        yield _of_folder(path.resolve())
    elif path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise TurnwiseError(
                f"There is no file {what}.", "Name a YAML file, a folder, or a package of the index."
            )
        for package in read_packages(path.read_text("utf-8"), what).values():
            yield _pinned(package)
    else:
        name, _, version = what.partition("==")
        there = sdists_of(name)
        chosen = [sdist for sdist in there if not version or str(sdist.version) == version]
        if not chosen:
            known = ", ".join(str(sdist.version) for sdist in there[-8:])
            raise TurnwiseError(
                f"{name} has no source distribution {version}.", f"The last ones are {known}."
            )
        yield unpack(name, chosen[-1]).package


def _of_folder(folder: Path) -> Package:
    sdist = packed(folder, folder.name)
    base = Package(folder.name, str(sdist.version), "", "", file=sdist.file, sha256=sdist.sha256)
    files = unpacked(fetch(base))
    found = laid_out(folder.name, base.version, files)
    return found._replace(file=sdist.file, sha256=sdist.sha256, needs=needs_of(folder.name, files))


def _pinned(package: Package) -> Package:
    """With file and hash, which a YAML need not give."""
    if package.file and package.sha256:
        return package
    for sdist in sdists_of(package.name):
        if str(sdist.version) == package.version:
            return package._replace(file=sdist.file, sha256=sdist.sha256)
    raise TurnwiseError(
        f"{package.name} has no source distribution {package.version} in the package index.",
        "Correct its version.",
    )


def _added(backend: Backend, package: Package, tries: int) -> AddedPackage:
    known = packages().get(package.name)
    if known and not (added_folder() / f"{package.name}.yaml").exists():
        raise TurnwiseError(
            f"{package.name} comes with Turnwise, as version {known.version}.",
            "Build tasks of it: turnwise swe build.",
        )
    if not any(package.is_source(path) for path in repository(package)):
        raise TurnwiseError(
            f"{package.name} has nothing at {package.source}.", "Correct `source` in the YAML."
        )
    if holds_itself(package):
        raise TurnwiseError(
            f"The sandbox holds {package.name} itself, because something else needs it: an agent could read the repair there.",
            "Take another package.",
        )
    base = baseline_of(backend, package)
    drawing = Drawing(backend, package)
    made = list(drawing.draw(tries))
    if tries and not made:
        raise TurnwiseError(
            f"No task could be made of {package.name}: {drawing.tally.tried} bugs were tried.",
            "Its tests may not look at what it does.",
        )
    _list(package)
    return AddedPackage(package, len(base.passing), base.cpu, drawing.tally, tuple(sorted(base.uncollected)))


def _list(package: Package) -> None:
    row = {name: value for name, value in package._asdict().items() if value and name != "name"}
    if package.needs:
        row["needs"] = list(package.needs)
    folder = added_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{package.name}.yaml").write_text(
        yaml.safe_dump({package.name: row}, sort_keys=False), "utf-8"
    )
