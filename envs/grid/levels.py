"""Generation of levels, each of which can be solved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeAlias

from turnwise.envs.grid.vocabulary import COLOURS

Cell: TypeAlias = tuple[int, int]  # row, column

_PULLS = 300  # steps of the walk, for each box
_POSITIONS = 40_000  # that the search for far levels looks at
_LEVELS = 10  # levels that one walk gives, at most about
_NEAR = ((-1, 0), (1, 0), (0, -1), (0, 1))


def sokoban(rng: Random, size: int, boxes: int) -> Iterator[Sequence[str]]:
    """Levels played backwards from their end: the agent walks at random and pulls boxes off their targets.

    Open space is a random walk's path, so that rooms differ. Moments of one walk in which no box is on a
    target are levels; the farther ones come first.
    """
    floor = _cave(rng, size)
    free = sorted(floor)
    if len(free) < 3 * boxes + 3:
        return
    targets = frozenset(rng.sample(free, boxes))
    at, agent = set(targets), rng.choice([cell for cell in free if cell not in targets])
    found: dict[tuple[frozenset[Cell], Cell], int] = {}
    for _ in range(_PULLS * boxes):
        dy, dx = rng.choice(_NEAR)
        ahead, behind = (agent[0] + dy, agent[1] + dx), (agent[0] - dy, agent[1] - dx)
        if ahead not in floor or ahead in at:
            continue
        if behind in at and rng.random() < 0.7:
            at = at - {behind} | {agent}
        agent = ahead
        if not at & targets:
            far = sum(min(abs(y - a) + abs(x - b) for a, b in targets) for y, x in at)
            found[frozenset(at), agent] = far
    apart = sorted(found, key=lambda level: -found[level])[:: max(1, len(found) // _LEVELS)]
    for there, here in apart:
        yield _sokoban_rows(floor, targets, there, here, size)


def far_sokoban(rng: Random, size: int, boxes: int, least: int) -> Iterator[Sequence[str]]:
    """Levels from which the end is as far as it can be in their room: a search over all positions, backwards.

    The agent walks, or pulls a box, from every position in which all boxes stand on targets; breadth comes first,
    so a level's depth is the length of its shortest solution. The deepest fifth are levels, where that is ``least``
    moves at least.
    """
    floor = _cave(rng, size)
    free = sorted(floor)
    if len(free) < 3 * boxes + 3:
        return
    targets = frozenset(rng.sample(free, boxes))
    depth = {(targets, agent): 0 for agent in free if agent not in targets}
    order = list(depth)
    for boxes_at, agent in order:
        if len(order) > _POSITIONS:
            break
        for dy, dx in _NEAR:
            ahead, behind = (agent[0] + dy, agent[1] + dx), (agent[0] - dy, agent[1] - dx)
            if ahead not in floor or ahead in boxes_at:
                continue
            after = [(boxes_at, ahead)]
            if behind in boxes_at:
                after.append((boxes_at - {behind} | {agent}, ahead))
            for one in after:
                if one not in depth:
                    depth[one] = depth[boxes_at, agent] + 1
                    order.append(one)
    enough = max(least, round(0.8 * depth[order[-1]]))
    deep = [one for one in order if not one[0] & targets and depth[one] >= enough]
    for there, here in rng.sample(deep, min(len(deep), 4 * _LEVELS)):
        yield _sokoban_rows(floor, targets, there, here, size)


def maze(rng: Random, size: int, doors: int, decoys: int) -> Sequence[str] | None:
    """A maze without loops, with locked doors on the only way to the exit, each key before its door.

    ``decoys`` are further doors, whose keys lie about too and which lead nowhere. ``size`` is odd.
    """
    floor = _tree(rng, size)
    start = (1, 1)
    parent = _parents(floor, start)
    exit_ = max(parent, key=lambda cell: (len(_way(parent, cell)), cell))
    way = _way(parent, exit_)
    passages = [cell for cell in way[2:-1] if (cell[0] + cell[1]) % 2]  # between two rooms
    if len(passages) < doors:
        return None
    locks = sorted(rng.sample(passages, doors), key=way.index)
    marks = dict.fromkeys(floor, "_") | {start: "@", exit_: "x"}
    colours = rng.sample(COLOURS, doors + decoys)
    before: set[Cell] = set()
    for lock, colour in zip(locks, colours, strict=False):
        reach = set(_parents({cell for cell in floor if cell not in locks[locks.index(lock) :]}, start))
        free = sorted(cell for cell in reach - before if marks[cell] == "_" and cell not in locks)
        if not free:
            return None
        marks[rng.choice(free)], marks[lock] = colour, colour.upper()
        before = reach
    before = before or set(floor)
    for colour in colours[doors:]:
        side = [
            c
            for c in sorted(floor - set(way))
            if (c[0] + c[1]) % 2 and marks[c] == "_" and _harmless(c, parent, marks)
        ]
        open_ = [cell for cell in sorted(before - set(way)) if marks[cell] == "_" and cell not in side]
        if not side or not open_:
            return None
        marks[rng.choice(side)], marks[rng.choice(open_)] = colour.upper(), colour
    return _rows(marks, size)


def lake(rng: Random, size: int, holes: float) -> Sequence[str]:
    """Ice with holes, the target far from the start. A way is laid first, so that one remains."""
    inner = [(y, x) for y in range(1, size - 1) for x in range(1, size - 1)]
    open_ = [
        (y, x) for y, x in inner if 1 < y < size - 2 and 1 < x < size - 2
    ]  # no shore leads to the target
    start = goal = inner[0]
    while abs(start[0] - goal[0]) + abs(start[1] - goal[1]) < size - 3:
        start, goal = rng.choice(inner), rng.choice(open_)
    cell, way = start, {start}
    while cell != goal:
        towards = [(goal[0] > cell[0]) - (goal[0] < cell[0]), (goal[1] > cell[1]) - (goal[1] < cell[1])]
        axis = rng.choice([i for i in (0, 1) if towards[i]])
        cell = (cell[0] + towards[0], cell[1]) if axis == 0 else (cell[0], cell[1] + towards[1])
        way.add(cell)
    marks = {other: "~" if other not in way and rng.random() < holes else "_" for other in inner}
    return _rows(marks | {start: "@", goal: "x"}, size)


def _sokoban_rows(
    floor: set[Cell], targets: frozenset[Cell], boxes: frozenset[Cell], agent: Cell, size: int
) -> Sequence[str]:
    marks = dict.fromkeys(floor, "_") | dict.fromkeys(targets, "x") | dict.fromkeys(boxes, "o")
    marks[agent] = "+" if agent in targets else "@"
    return _rows(marks, size)


def _cave(rng: Random, size: int) -> set[Cell]:
    cell = (size // 2, size // 2)
    floor = {cell}
    while len(floor) < 0.6 * (size - 2) ** 2:
        dy, dx = rng.choice(_NEAR)
        if 1 <= cell[0] + dy < size - 1 and 1 <= cell[1] + dx < size - 1:
            cell = (cell[0] + dy, cell[1] + dx)
            floor.add(cell)
    return floor


def _tree(rng: Random, size: int) -> set[Cell]:
    """Rooms on odd coordinates, joined by a random tree."""
    floor, stack = {(1, 1)}, [(1, 1)]
    while stack:
        y, x = stack[-1]
        fresh = [
            (dy, dx)
            for dy, dx in _NEAR
            if 1 <= y + 2 * dy < size - 1
            and 1 <= x + 2 * dx < size - 1
            and (y + 2 * dy, x + 2 * dx) not in floor
        ]
        if not fresh:
            stack.pop()
            continue
        dy, dx = rng.choice(fresh)
        floor |= {(y + dy, x + dx), (y + 2 * dy, x + 2 * dx)}
        stack.append((y + 2 * dy, x + 2 * dx))
    return floor


def _parents(floor: set[Cell], start: Cell) -> dict[Cell, Cell]:
    """Every cell that can be reached, with the one before it."""
    parent, edge = {start: start}, [start]
    for y, x in edge:
        for dy, dx in _NEAR:
            cell = (y + dy, x + dx)
            if cell in floor and cell not in parent:
                parent[cell] = (y, x)
                edge.append(cell)
    return parent


def _way(parent: dict[Cell, Cell], cell: Cell) -> list[Cell]:
    way = [cell]
    while parent[way[-1]] != way[-1]:
        way.append(parent[way[-1]])
    return way[::-1]


def _harmless(door: Cell, parent: dict[Cell, Cell], marks: dict[Cell, str]) -> bool:
    """Say whether nothing that is needed lies behind a door."""
    return not any(mark not in "_@" and door in _way(parent, cell) for cell, mark in marks.items())


def _rows(marks: dict[Cell, str], size: int) -> Sequence[str]:
    return ["".join(marks.get((y, x), "#") for x in range(size)) for y in range(size)]
