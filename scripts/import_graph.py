#!/usr/bin/env python3
"""Draw who imports whom: ``scripts/import_graph.py`` writes docs/graphs/, beside the commit that counts.json names.

A room is a file or a folder directly under trainers/, agents/ or envs/. An arrow leads from a room to one that it
imports anywhere in its code, for types only and inside functions too. A floor is one above the highest room that is
imported.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tasks", "tools", "envs", "agents", "trainers")  # linked to from src/turnwise
DRAWN = ("trainers", "agents", "envs")
OUT = ROOT / "docs" / "graphs"

Arrows = dict[str, set[str]]


class Counts(NamedTuple):
    """What a folder's graph comes to."""

    rooms: int
    room_arrows: int
    floors: int
    room_cycles: int
    module_cycles: int


def import_arrows(root: Path) -> Arrows:
    """Module → the modules of these folders that it imports, ``envs.shop.env`` and the like."""
    modules = {_name(path.relative_to(root)): path for top in FOLDERS for path in (root / top).rglob("*.py")}
    arrows: Arrows = {name: set() for name in modules}
    for name, path in modules.items():
        for imported in _imports(ast.parse(path.read_text("utf-8")), modules):
            if imported != name:
                arrows[name].add(imported)
    return arrows


def rooms_of(arrows: Mapping[str, Iterable[str]], folder: str) -> Arrows:
    """The same between the rooms of one folder; its own ``__init__`` is none."""
    rooms: Arrows = defaultdict(set)
    for name, others in arrows.items():
        home = _room(name, folder)
        if home:
            rooms[home] |= {there for other in others if (there := _room(other, folder)) and there != home}
    return dict(rooms)


def cycles(arrows: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Sets of nodes that lead to each other (Tarjan's strongly connected components of two nodes and more)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            if len(stack) - cut > 1:
                found.append(sorted(stack[cut:]))
            del stack[cut:]

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def floors_of(arrows: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Each room's floor; rooms of one cycle are on the same."""
    together = {node: min(cycle) for cycle in cycles(arrows) for node in cycle}
    floors: dict[str, int] = {}

    def floor(node: str) -> int:
        if node not in floors:
            mine = [n for n in arrows if together.get(n, n) == together.get(node, node)]
            below = {o for n in mine for o in arrows.get(n, ()) if o not in mine}
            height = 1 + max((floor(other) for other in sorted(below)), default=-1)
            floors.update(dict.fromkeys(mine or [node], height))
        return floors[node]

    for node in sorted(arrows):
        floor(node)
    return floors


def counts(arrows: Arrows, folder: str) -> Counts:
    """What the graph of one folder comes to."""
    rooms = rooms_of(arrows, folder)
    inside = {name: others for name, others in arrows.items() if name.split(".")[0] == folder}
    floors = floors_of(rooms)
    return Counts(
        rooms=len(rooms),
        room_arrows=sum(map(len, rooms.values())),
        floors=1 + max(floors.values()),
        room_cycles=len(cycles(rooms)),
        module_cycles=len(cycles(inside)),
    )


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _room(name: str, folder: str) -> str:
    words = name.split(".")
    return words[1] if words[0] == folder and len(words) > 1 else ""


def _imports(tree: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            given = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            given = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in given:
            name = name.removeprefix("turnwise.") if name.startswith("turnwise.") else ""
            while name and name not in modules:
                name = name.rpartition(".")[0]
            if name:
                yield name


# --- pictures -------------------------------------------------------------------------------------


def draw(graphs: Mapping[str, Arrows], folder: str, out: Path) -> None:
    """Both graphs of a folder beside each other, floor over floor."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": folder, "svg.fonttype": "none", "font.size": 7})
    figure, axes = plt.subplots(1, len(graphs), figsize=(13, 6.5))
    for axis, (title, arrows) in zip(axes, graphs.items(), strict=True):
        rooms = rooms_of(arrows, folder)
        found = counts(arrows, folder)
        where = _places(floors_of(rooms))
        knotted = {room: n for n, cycle in enumerate(cycles(rooms)) for room in cycle}
        for room, others in sorted(rooms.items()):
            for other in sorted(others):
                bad = room in knotted and knotted.get(other) == knotted[room]
                axis.annotate(
                    "",
                    xy=where[other],
                    xytext=where[room],
                    arrowprops={
                        "arrowstyle": "-|>",
                        "color": "#c33" if bad else "#8a97a8",
                        "lw": 1.2 if bad else 0.4,
                        "alpha": 0.9 if bad else 0.55,
                        "shrinkA": 5,
                        "shrinkB": 5,
                    },
                )
        for room, (x, y) in sorted(where.items()):
            axis.text(x, y, room, ha="center", va="center", bbox={"boxstyle": "round,pad=0.25", "fc": "#eef3fb", "ec": "#44608f", "lw": 0.6})  # fmt: skip
        axis.set_title(title_of(title, found), fontsize=10)
        axis.set_xlim(-0.06, 1.06)
        axis.set_ylim(-0.6, max(y for _, y in where.values()) + 0.6)
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def _places(floors: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Rooms of a floor side by side, eight to a row."""
    places: dict[str, tuple[float, float]] = {}
    height = 0.0
    for floor in range(1 + max(floors.values())):
        here = sorted(room for room, at in floors.items() if at == floor)
        for start in range(0, len(here), 8):
            row = here[start : start + 8]
            for i, room in enumerate(row):
                places[room] = ((i + 0.5) / len(row), height)
            height += 0.55
        height += 0.45
    return places


def _tree_of(commit: str, folder: Path) -> Path:
    archive = folder / "tree.tar"
    with archive.open("wb") as file:
        subprocess.run(["git", "archive", commit, *FOLDERS], cwd=ROOT, stdout=file, check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "tree", filter="data")
    return folder / "tree"


def title_of(when: str, found: Counts) -> str:
    """What stands over a picture."""
    return f"{when}: {found.rooms} rooms, {found.room_arrows} arrows, {found.room_cycles} cycles"


def main() -> None:
    """Write a picture for each folder, and the counts."""
    written = json.loads((OUT / "counts.json").read_text("utf-8"))
    parser = argparse.ArgumentParser(description="Draw who imports whom.")
    parser.add_argument("--before", default=written["before_commit"], help="the commit to compare with")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        graphs = {"before": import_arrows(_tree_of(asked.before, Path(folder))), "now": import_arrows(ROOT)}
    for top in DRAWN:
        draw(graphs, top, asked.out / f"{top}.svg")
    found = {when: {top: counts(arrows, top)._asdict() for top in DRAWN} for when, arrows in graphs.items()}
    (asked.out / "counts.json").write_text(
        json.dumps({"before_commit": asked.before, **found}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
