"""A package's files read together: which functions there are, who calls them, and changes of several places at once."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.source import SourceText

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Spot(NamedTuple):
    """A piece of a file that is replaced."""

    path: str
    made: Replacement


class BugPlace(NamedTuple):
    """A node and the file that it is in."""

    path: str
    node: ast.AST


class WholePackage:
    """The files of a package that parse, path → text. ``used``: names that others use, such as its tests."""

    def __init__(self, texts: Mapping[str, str], *, used: frozenset[str] = frozenset()) -> None:
        self.used = used
        self.sources: dict[str, SourceText] = {}
        self.functions: dict[str, list[BugPlace]] = {}
        self.calls: dict[str, list[BugPlace]] = {}
        self.mentions: dict[str, int] = {}
        for path, text in sorted(texts.items()):
            try:
                self.sources[path] = SourceText(text)
            except (SyntaxError, ValueError, RecursionError):
                continue
            for node in self.sources[path].nodes:
                self._note(path, node)

    def _note(self, path: str, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.functions.setdefault(node.name, []).append(BugPlace(path, node))
        if isinstance(node, ast.Call) and (name := callee(node)):
            self.calls.setdefault(name, []).append(BugPlace(path, node))
        for name in (getattr(node, "id", None), getattr(node, "attr", None), getattr(node, "value", None)):
            if isinstance(name, str):
                self.mentions[name] = self.mentions.get(name, 0) + 1

    def owner(self, place: BugPlace) -> str:
        """The dotted name of the function or class that a node is in."""
        return self.sources[place.path].name_of(place.node)

    def owners(self, places: Sequence[BugPlace]) -> set[tuple[str, str]]:
        """The functions that hold any of these nodes, with their files."""
        return {(place.path, self.owner(place)) for place in places}

    def spot(self, place: BugPlace, text: str) -> Spot:
        """A node replaced."""
        return Spot(place.path, Replacement(*self.sources[place.path].span(place.node), text))

    def text(self, place: BugPlace) -> str:
        return self.sources[place.path].of(place.node)

    def swapped(self, path: str, first: ast.AST, second: ast.AST) -> list[Spot]:
        """Two nodes of a file, each in the other's place."""
        one, two = BugPlace(path, first), BugPlace(path, second)
        return [self.spot(one, self.text(two)), self.spot(two, self.text(one))]

    def dropped(self, path: str, node: ast.stmt) -> list[Spot]:
        """A statement that is gone; nothing where it shares its line."""
        source = self.sources[path]
        block = source.siblings(node)
        if not block or not source.alone(node):
            return []
        left = f"{' ' * node.col_offset}pass\n" if len(block) == 1 else ""
        return [Spot(path, Replacement(*source.block([node]), left))]

    def after(self, spots: Sequence[Spot]) -> dict[str, str]:
        """The texts of the files that spots change; none where two of these overlap or a file would not parse."""
        texts: dict[str, str] = {}
        for path in sorted({spot.path for spot in spots}):
            text, low = self.sources[path].text, len(self.sources[path].text) + 1
            for _, made in sorted((spot for spot in spots if spot.path == path), reverse=True):
                if made.end > low:
                    return {}
                text, low = text[: made.start] + made.text + text[made.end :], made.start
            try:
                ast.parse(text)
            except (SyntaxError, ValueError):
                return {}
            if text.split() != self.sources[path].text.split():
                texts[path] = text
        return texts


def callee(node: ast.Call) -> str:
    """The last part of the name that is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def own_arguments(node: FunctionNode, *, method: bool) -> list[ast.arg]:
    """The plain positional parameters, without ``self``."""
    return node.args.args[1:] if method else node.args.args
