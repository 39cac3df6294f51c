"""The turns of an agent as a tree: what goes on from a turn a second time, or is called by it, stands under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Reply

DEEPEST = 8
"""Branches off deeper ones stand beside them, and say after which turn."""


class BranchStep(NamedTuple):
    """A turn, by its place in the episode, and what branches off there."""

    turn: int
    branches: tuple[TurnBranch, ...]


class TurnBranch(NamedTuple):
    """Turns each of whose prompts extends the one before. ``origin`` says how it began: "after 3", "called by 3", "new context after 3", "new prompt"."""

    origin: str
    steps: tuple[BranchStep, ...]


class _TurnPlace(NamedTuple):
    """Place of a turn: its depth, the turn under which its branch hangs (None: under none), and how that began ("": it goes on)."""

    depth: int
    host: int | None
    origin: str


def branches_of(replies: Sequence[Reply]) -> tuple[TurnBranch, ...]:
    """The branches of an agent's turns, those that begin with a new prompt side by side, in the order of time.

    The first turn whose prompt extends another's goes on with its branch; the next ones begin branches of their own. A
    conversation that a turn called (:attr:`Reply.caller`) hangs under that turn. What a damaged log says to extend or to be
    called by no earlier turn is a new prompt.
    """
    places, continued = list[_TurnPlace](), set[int]()
    for index, reply in enumerate(replies):
        places.append(_placed(index, reply, places, continued))
    chains = dict[int, list[BranchStep]]()  # by their first turn, the last step first
    hanging = dict[int | None, list[TurnBranch]]()  # by their host, the latest first
    for index in reversed(range(len(replies))):
        below = tuple(reversed(hanging.pop(index, [])))
        chain = chains.pop(index, [])
        chain.append(BranchStep(index, below))
        place, parent = places[index], parent_of(index, replies[index])
        if place.origin or parent is None:
            hanging.setdefault(place.host, []).append(TurnBranch(place.origin, tuple(reversed(chain))))
        else:
            chains[parent] = chain
    return tuple(reversed(hanging.pop(None, [])))


def _placed(index: int, reply: Reply, places: Sequence[_TurnPlace], continued: set[int]) -> _TurnPlace:
    parent = parent_of(index, reply)
    from_turn = caller_of(index, reply) if parent is None else parent
    if from_turn is None:
        continues = continued_by(index, reply)
        rewritten = f"new context after {continues + 1}" if continues is not None else "new prompt"
        return _TurnPlace(0, None, rewritten if index else "")
    if parent is not None and parent not in continued:
        continued.add(parent)
        return places[parent]._replace(origin="")
    above = places[from_turn]
    origin = f"{'after' if parent is not None else 'called by'} {from_turn + 1}"
    if above.depth < DEEPEST:
        return _TurnPlace(above.depth + 1, from_turn, origin)
    return _TurnPlace(above.depth, above.host, origin)


def parent_of(index: int, reply: Reply) -> int | None:
    """The turn whose prompt this one's extends; None where it is a new one."""
    return _earlier(index, reply.parent.turn(index))


def caller_of(index: int, reply: Reply) -> int | None:
    """The turn that called the conversation that begins with this one, if any did."""
    return _earlier(index, reply.caller) if parent_of(index, reply) is None else None


def continued_by(index: int, reply: Reply) -> int | None:
    """The turn whose conversation goes on here under another beginning, if one does."""
    return _earlier(index, reply.continues) if parent_of(index, reply) is None else None


def _earlier(index: int, turn: int | None) -> int | None:
    return turn if turn is not None and 0 <= turn < index else None
