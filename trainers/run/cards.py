"""Cards that a plan may be asked about, by their makers' data sheets, and how much of one a learner was measured to use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.errors import NotFoundError, TurnwiseError

GB = 1e9
ROOM = 0.9
"""The share of a card that is planned for; the rest is kernels, fragments, and what nobody counted."""
MOST_CARDS = 1024


class Card(NamedTuple):
    """A kind of card.

    Attributes:
        name: as it is sold.
        memory: gigabytes, of 10⁹ bytes; none has less than it is sold with.
        tflops: nominal 10¹² operations a second, dense, of matrix products in bfloat16.
        bandwidth: nominal 10⁹ bytes a second of its memory.
        used: the share of ``tflops`` that a learner was measured to use; 0: it was not measured.
    """

    name: str
    memory: float
    tflops: float
    bandwidth: float
    used: float = 0.0


CARDS: Mapping[str, Card] = {
    card.name: card
    for card in (
        Card("A10", 24, 125, 600),
        Card("A100-40", 40, 312, 1555),
        Card("A100-80", 80, 312, 2039),
        Card("B200", 180, 2250, 7700),
        Card("H100", 80, 989, 3350, 0.163),  # 161 TFLOP/s: learner_flops/0.5b of benchmarks/gpu.json
        Card("H200", 141, 989, 4800),
        Card("L4", 24, 121, 300),
        Card("L40S", 48, 362, 864),
        Card("RTX-3090", 24, 71, 936),
        Card("RTX-4090", 24, 165, 1008),
        Card("RTX-A6000", 48, 155, 768),
    )
}
MEASURED_WEIGHTS = (0.25e9, 1e9)
"""Models near enough to the one of half a billion weights with which :attr:`Card.used` was measured."""


def cards_of(text: str) -> tuple[int, Card]:
    """Read how many cards of which kind are meant.

    >>> [(n, card.name) for n, card in map(cards_of, ("8xH100", "A100-80", "2 x l4"))]
    [(8, 'H100'), (1, 'A100-80'), (2, 'L4')]

    Raises:
        NotFoundError: there is no such card in the table.
        TurnwiseError: it is no number of cards.
    """
    said = re.fullmatch(r"(?:(\d{1,9})\s?[x×*]\s?)?(.{1,40})", text.strip(), re.IGNORECASE | re.DOTALL)
    count = int(said[1] or 1) if said else 0
    if said is None or not 1 <= count <= MOST_CARDS:
        raise TurnwiseError(
            f"--on {text[:60]!r} is no number of cards.",
            f"Give 1 to {MOST_CARDS} of one kind, such as 8xH100.",
        )
    wanted = said[2].upper().replace(" ", "-")
    if wanted not in CARDS:
        raise NotFoundError("card", said[2], CARDS)
    return count, CARDS[wanted]
