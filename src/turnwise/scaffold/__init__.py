"""Start a package of one's own: an environment or a component that works, to be changed step by step."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.registry import suites
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.kinds import KINDS


class ScaffoldNames(NamedTuple):
    """Forms of one name: on PyPI, as an import, as a class and as an environment id."""

    distribution: str
    package: str
    cls: str
    env: str
    suite: str


def names(name: str) -> ScaffoldNames:
    """Derive all names from one.

    >>> names("word-chain")
    ScaffoldNames(distribution='turnwise-word-chain', package='turnwise_word_chain', cls='WordChain', \
env='word-chain/WordChain-v0', suite='word-chain/easy')

    Raises:
        TurnwiseError: the name is not made of words.
    """
    words = [word for word in re.split(r"[-_\s]+", name.strip().lower().removeprefix("turnwise-")) if word]
    short = "-".join(words)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", short) or keyword.iskeyword(short):
        raise TurnwiseError(
            f"{name!r} is no name for a package.", "Use letters, digits and dashes: word-chain."
        )
    cls = "".join(word.capitalize() for word in words)
    return ScaffoldNames(
        f"turnwise-{short}", f"turnwise_{short.replace('-', '_')}", cls, f"{short}/{cls}-v0", f"{short}/easy"
    )


def scaffold(name: str, where: Path) -> list[Path]:
    """Write a package with one environment, one suite and one test under ``where``; returns its files.

    Raises:
        TurnwiseError: the name is no name, or the folder exists already.
    """
    made = names(name)
    if made.suite in {suite.name for suite in suites()}:
        raise TurnwiseError(
            f"There is a suite {made.suite!r} already, which this package's would be called too.",
            f"Choose another name: my-{made.suite.partition('/')[0]}.",
        )
    about = {"about": f"The environment {made.env} for Turnwise", "entry": f"{made.package}:register_all"}
    sources = {
        "pyproject.toml.j2": "pyproject.toml",
        "README.md.j2": "README.md",
        "env.py.j2": f"{made.package}/__init__.py",
        "test_env.py.j2": "tests/test_env.py",
    }
    return _write(where / made.distribution, sources, {**made._asdict(), **about})


class PartNames(NamedTuple):
    """Names of a component of one's own: on PyPI, as an import, in the registry and as a class."""

    distribution: str
    package: str
    name: str  # under which it is registered, and its function
    cls: str


def part_names(name: str) -> PartNames:
    """Derive all names from one.

    >>> part_names("my-rule")
    PartNames(distribution='turnwise-my-rule', package='turnwise_my_rule', name='my_rule', cls='MyRule')

    Raises:
        TurnwiseError: the name is not made of words.
    """
    made = names(name)
    return PartNames(made.distribution, made.package, made.package.removeprefix("turnwise_"), made.cls)


def scaffold_part(kind: str, name: str, where: Path) -> tuple[PartNames, list[Path]]:
    """Write a package with one component of a kind and its test under ``where``; returns its names and files.

    Raises:
        NotFoundError: there is no such kind.
        TurnwiseError: the name is no name, or the folder exists already.
    """
    made = part_names(name)
    if kind not in KINDS:
        raise NotFoundError("kind of component", kind, KINDS)
    about = {"about": f"{kind} {made.name} for Turnwise", "entry": made.package, "kind": kind}
    sources = {
        "pyproject.toml.j2": "pyproject.toml",
        "README_part.md.j2": "README.md",
        f"parts/{kind}.py.j2": f"{made.package}/__init__.py",
        "test_part.py.j2": "tests/test_part.py",
    }
    return made, _write(where / made.distribution, sources, {**made._asdict(), **about})


def part_source(kind: str, name: str) -> str:
    """A component of a kind, as it is scaffolded: the example of its page in docs/extending.

    >>> print(part_source("schedule", "mine").splitlines()[0])
    from turnwise import component
    """
    return _render(f"parts/{kind}.py.j2", part_names(name)._asdict())


def _write(root: Path, sources: Mapping[str, str], values: Mapping[str, str]) -> list[Path]:
    if root.exists():
        raise TurnwiseError(f"{root} exists already.", "Choose another name or another folder (--out).")
    written: list[Path] = []
    for source, target in sources.items():
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_render(source, values), "utf-8")
        written.append(path)
    return written


def _render(source: str, values: Mapping[str, str]) -> str:
    import jinja2

    text = (files("turnwise.scaffold") / "template" / source).read_text("utf-8")
    return (
        jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        .from_string(text)
        .render(values)
    )
