"""Bugs: small changes to a program's text, found on its syntax tree.

A :class:`Edit` replaces a piece of text; what surrounds it, comments and layout included, stays as it is, so that
a bug looks like something that a person wrote. The operators are in :mod:`turnwise.envs.swe.operators`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.operators import OPERATORS, Replacement
from turnwise.envs.swe.source import SourceText


class Edit(NamedTuple):
    """Replace ``old`` at character ``start`` of file ``path`` by ``new``."""

    path: str
    start: int
    old: str
    new: str

    def apply(self, text: str) -> str:
        """The text after the edit; ValueError where the text is not what it was made for."""
        if text[self.start : self.start + len(self.old)] != self.old:
            raise ValueError(f"{self.path} is not the file that this edit was made for")
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    def undo(self, text: str) -> str:
        """The text before the edit."""
        return Edit(self.path, self.start, self.new, self.old).apply(text)


class LineSpan(NamedTuple):
    """Lines of a file, from ``first`` to ``last``, both included, from 1."""

    path: str
    first: int
    last: int


class Bug(NamedTuple):
    """A change that may break something. ``where`` is the dotted name of the function or class that it is about.

    ``edits`` make it, one in each file; ``spans`` are what it changes, of which tests must run some. ``pieces``: changes
    of which each must break something by itself; all edits together, unless a bug says that it is several.
    """

    operator: str
    edits: tuple[Edit, ...]
    where: str
    spans: tuple[LineSpan, ...]
    pieces: tuple[tuple[Edit, ...], ...] = ()

    @property
    def edit(self) -> Edit:
        """The first change."""
        return self.edits[0]


def bugs_of(path: str, text: str, rng: Random, *, lines: frozenset[int] | None = None) -> Iterator[Bug]:
    """All bugs that the operators make of a file, in random order, each a program that parses.

    ``lines``: only of what begins on one of these lines (1-based), such as those that tests run.
    """
    try:
        source = SourceText(text)
    except (SyntaxError, ValueError):
        return
    for name, node in _sites(source, rng, lines):
        made = OPERATORS[name].make(source, node, rng)
        bug = _bug(path, source, name, node, made) if made else None
        if bug is not None:
            yield bug


def _sites(source: SourceText, rng: Random, lines: frozenset[int] | None) -> Iterator[tuple[str, ast.AST]]:
    """Operators and nodes that fit: an operator at random each time, so that frequent kinds of code do not win."""
    of: dict[str, list[ast.AST]] = {}
    for name, operator in OPERATORS.items():
        fitting = [node for node in source.nodes if operator.fits(node)]
        if lines is not None:
            fitting = [node for node in fitting if source.head_of(node) in lines]
        if fitting:
            of[name] = rng.sample(fitting, len(fitting))
    while of:
        name = rng.choice(sorted(of))
        yield name, of[name].pop()
        if not of[name]:
            del of[name]


def _bug(path: str, source: SourceText, name: str, node: ast.AST, made: Replacement) -> Bug | None:
    old = source.text[made.start : made.end]
    changed = source.text[: made.start] + made.text + source.text[made.end :]
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError):
        return None
    if old.split() == made.text.split():
        return None
    first, last = source.line_at(made.start), source.line_at(max(made.end - 1, made.start))
    edit = Edit(path, made.start, old, made.text)
    return Bug(name, (edit,), source.name_of(node), (LineSpan(path, first, last),))
