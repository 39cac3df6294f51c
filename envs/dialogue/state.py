"""Positions in a conversation of each scene: immutable values."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

START = 30  # of 100: the emotion that a conversation of comfort begins with


Package: TypeAlias = tuple[int, ...]
"""The option chosen of each issue."""


class BargainState(NamedTuple):
    """The state of a negotiation: the latest offer of each side, and how far the partner has conceded."""

    offers: tuple[Package | None, Package | None] = (None, None)
    best_heard: int = -1  # what the agent's best offer is worth to the partner
    steps: int = 0
    turns: int = 0
    seat: int = 0
    deal: Package | None = None
    heard: tuple[str, ...] = ()  # all that was said, in order
    vain: int = 0  # offers that were no better for the partner than all before


class PersuadeState(NamedTuple):
    """A position. Concerns are met in the partner's order; ``told`` and ``needed`` concern the present one."""

    met: int = 0
    told: bool = False  # the partner has said what worries it
    needed: bool = False  # and what would convince it
    pressed: int = 0
    turns: int = 0
    agreed: bool = False
    heard: tuple[str, ...] = ()
    seat: int = 0
    judged: str = ""  # what the script would answer to the last message; for gold, where two agents play


class ComfortState(NamedTuple):
    """The state of the conversation: the emotion, the stage, and what was said last."""

    emotion: int = START
    stage: int = 0
    last: str = ""
    turns: int = 0
    seat: int = 0
    heard: tuple[str, ...] = ()
    judged: int = (
        0  # what the script would say that the last message changed; for gold, where two agents play
    )


class SocialState(NamedTuple):
    """A position. Seats are indices; ``done`` holds (seat, what) of what counts once."""

    seat: int = 0
    relation: int = 1
    done: frozenset[tuple[int, str]] = frozenset()
    proposal: tuple[int, str, str] | None = None  # who proposes, what it would do, what it wants
    agreed: frozenset[tuple[int, str]] = frozenset()  # who does which favour
    left: frozenset[int] = frozenset()
    turns: int = 0
    heard: tuple[str, ...] = ()  # all that was said
