"""Start a package of one's own: an environment that works, to be changed step by step."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from turnwise.errors import TurnwiseError


class Names(NamedTuple):
    """What one name is called where: on PyPI, as an import, as a class and as an environment id."""

    distribution: str
    package: str
    cls: str
    env: str
    suite: str


def names(name: str) -> Names:
    """Derive all names from one.

    >>> names("word-chain")
    Names(distribution='turnwise-word-chain', package='turnwise_word_chain', cls='WordChain', \
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
    return Names(
        f"turnwise-{short}", f"turnwise_{short.replace('-', '_')}", cls, f"{short}/{cls}-v0", f"{short}/easy"
    )


def scaffold(name: str, where: Path) -> list[Path]:
    """Write a package with one environment, one suite and one test under ``where``; returns its files.

    Raises:
        TurnwiseError: the name is no name, or the folder exists already.
    """
    import jinja2

    made = names(name)
    root = where / made.distribution
    if root.exists():
        raise TurnwiseError(f"{root} exists already.", "Choose another name or another folder (--out).")
    template = files("turnwise.scaffold") / "template"
    render = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    written: list[Path] = []
    for source, target in (
        ("pyproject.toml.j2", "pyproject.toml"),
        ("README.md.j2", "README.md"),
        ("env.py.j2", f"{made.package}/__init__.py"),
        ("test_env.py.j2", "tests/test_env.py"),
    ):
        text = render.from_string((template / source).read_text("utf-8")).render(made._asdict())
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        written.append(path)
    return written
