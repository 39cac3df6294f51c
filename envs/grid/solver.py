"""The best next move from any state, how far the end is, and an imperfect scripted policy."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from turnwise.envs.grid.actions import move, possible
from turnwise.envs.grid.state import GridBoard, GridState, solved, sunk
from turnwise.envs.grid.vocabulary import DIRECTIONS, SIDEWAYS
from turnwise.envs.worlds.solver import shortest_plan

_INFINITE = float("inf")
_MOST = 60_000  # states that a search may look at
_MANY = 3  # boxes of which the imperfect policy looks at one at a time, so often:
_SHORT_SIGHTED = 0.6
_CLEARLY = 1e-9  # moves; what is better by less is rounding


def gold(state: GridState) -> str:
    """The best moves, as many as a turn may make; ``look`` where the level cannot be solved any more."""
    best = _planned(state)[0]
    if best == "look" or state.board.slip:
        return best
    moves: list[str] = []
    while len(moves) < state.board.moves and not solved(state):
        moves.append(_planned(state)[0])
        state = move(state, moves[-1])
    return " ".join(moves)


def distance(state: GridState) -> float:
    """Moves to the end (on slippery ice: expected), infinite where it cannot be reached (for certain)."""
    return 0.0 if solved(state) else _planned(state)[1]


def demonstrate(state: GridState, rng: Random) -> str:
    """An imperfect scripted policy: half of the turns are one random move, fewer on ice; with three boxes or more it
    brings, three turns in five, one box towards a target without a thought for the rest."""
    if len(state.boxes) >= _MANY and rng.random() < _SHORT_SIGHTED:
        way = _one_home(state)
        return " ".join(way[: state.board.moves]) if way else rng.choice(possible(state) or list(DIRECTIONS))
    best = gold(state)
    if best == "look" or rng.random() < (0.3 if state.board.game == "lake" else 0.5 / state.board.moves**2):
        return rng.choice(possible(state) or list(DIRECTIONS))
    return best


def _one_home(state: GridState) -> list[str] | None:
    """The shortest moves that bring one more box to a target while all others stay; None where there are none."""
    targets, ways = state.board.targets, list[list[str]]()
    for box in [box for box in state.boxes if box not in targets]:
        others = frozenset(state.boxes) - {box}

        def successors(node: GridState, others: frozenset[int] = others) -> Iterator[tuple[str, GridState]]:
            for direction in DIRECTIONS:
                after = move(node, direction)
                if after is not node and others.issubset(after.boxes):
                    yield direction, after

        def estimate(node: GridState, others: frozenset[int] = others) -> float:
            return float(not targets.issuperset(set(node.boxes) - others))

        plan = shortest_plan(state, successors, estimate)
        if plan:
            ways.append([direction for _, direction in plan])
    return min(ways, key=len, default=None)


def _planned(state: GridState) -> tuple[str, float]:
    known = state.board.planned
    key = (state.agent, state.boxes, state.keys)
    if key not in known:
        if state.board.slip:
            known.update(_safe_ways(state.board))
        else:
            known.update(_shortest_way(state))
    return known.get(key, ("look", _INFINITE))


def _shortest_way(state: GridState) -> Iterator[tuple[tuple[int, tuple[int, ...], int], tuple[str, float]]]:
    """A* over what differs between the states of a level."""
    board = state.board
    lower = _push_bounds(board) if board.boxes else None

    def successors(node: GridState) -> Iterator[tuple[str, GridState]]:
        for direction in DIRECTIONS:
            after = move(node, direction)
            if after is not node and not sunk(after):
                yield direction, after

    def estimate(node: GridState) -> float:
        if lower is None:
            return 0.0 if node.agent in board.targets else 1.0
        return sum([lower.get(box, _INFINITE) for box in node.boxes])

    plan = shortest_plan(state, successors, estimate, most=_MOST)
    if plan is None:
        yield (state.agent, state.boxes, state.keys), ("look", _INFINITE)
        return
    for done, (node, direction) in enumerate(plan):
        yield (node.agent, node.boxes, node.keys), (direction, float(len(plan) - done))


def _push_bounds(board: GridBoard) -> dict[int, int]:
    """Cell → the fewest pushes from it to a target, were there no other box; missing where there is no way."""
    far = dict.fromkeys(board.targets, 0)
    edge = list(board.targets)
    for cell in edge:
        for step in board.step.values():
            origin, pusher = cell - step, cell - 2 * step
            if origin not in far and origin not in board.walls and pusher not in board.walls:
                far[origin] = far[cell] + 1
                edge.append(origin)
    return far


def _safe_ways(board: GridBoard) -> dict[tuple[int, tuple[int, ...], int], tuple[str, float]]:
    """Slippery ice: from which cells the exit is reached for certain, by which move, in how many expected."""
    ways = _possible(board)
    safe = set(ways)
    while True:  # drop what cannot reach the exit without risk, until nothing changes
        fine = {cell: {d: ends for d, ends in ways[cell].items() if safe.issuperset(ends)} for cell in safe}
        near = _inwards(board, fine)
        if len(near) == len(safe):
            break
        safe = set(near)
    if board.start not in safe:
        return {}  # no level of ours
    return {(cell, (), 0): way for cell, way in _expected(board, {cell: fine[cell] for cell in near}).items()}


def _inwards(board: GridBoard, fine: dict[int, dict[str, list[int]]]) -> list[int]:
    """The cells from which the exit may be reached, the nearest first."""
    before: dict[int, list[int]] = {}
    for cell, ways in fine.items():
        for ends in ways.values():
            for end in ends:
                before.setdefault(end, []).append(cell)
    found = dict.fromkeys(cell for cell in board.targets if cell in fine)
    queue = list(found)
    for cell in queue:
        for other in before.get(cell, ()):
            if other not in found:
                found[other] = None
                queue.append(other)
    return queue


def _possible(board: GridBoard) -> dict[int, dict[str, list[int]]]:
    """Cell → direction → where one may come to: straight on, or to either side."""
    cells = [cell for cell in range(len(board.floor)) if cell not in board.walls | board.holes]
    return {
        cell: {
            direction: [move(GridState(board, cell), d).agent for d in (direction, *SIDEWAYS[direction])]
            for direction in DIRECTIONS
        }
        for cell in cells
    }


def _expected(board: GridBoard, fine: dict[int, dict[str, list[int]]]) -> dict[int, tuple[str, float]]:
    """Policy iteration from a way that may lead inwards at every cell. ``fine`` has the nearest cells first."""
    cells = [cell for cell in fine if cell not in board.targets]
    place = {cell: i for i, cell in enumerate(fine)}
    chances = np.array((1.0 - board.slip, board.slip / 2, board.slip / 2))
    choice = {cell: min(fine[cell], key=lambda d: min(place[end] for end in fine[cell][d])) for cell in cells}
    value = np.zeros(len(fine))

    def cost(cell: int, direction: str) -> float:
        return 1.0 + float(chances @ value[[place[end] for end in fine[cell][direction]]])

    better = True
    while better:
        matrix, constant = np.eye(len(fine)), np.zeros(len(fine))
        for cell, direction in choice.items():
            constant[place[cell]] = 1.0
            for chance, end in zip(chances, fine[cell][direction], strict=True):
                matrix[place[cell], place[end]] -= chance
        value = np.linalg.solve(matrix, constant)
        better = False
        for cell in cells:
            best = min(fine[cell], key=lambda d: cost(cell, d))
            if cost(cell, best) < value[place[cell]] - _CLEARLY:
                choice[cell], better = best, True
    return {cell: (choice[cell], float(value[place[cell]])) for cell in cells}
