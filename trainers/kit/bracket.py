"""A seeded single elimination: n competitors, about 2(n − 1) comparisons, everybody gets a place.

ArenaRL (Zhang et al. 2026, 2601.06487): everyone first meets number 0, which seeds the bracket; the strongest seeds
meet last.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from statistics import fmean

Compare = Callable[[int, int], Awaitable[tuple[float, float]]]
"""The points that two competitors get in one comparison."""


async def standings(n: int, compare: Compare) -> list[float]:
    """1 − place/(n − 1) of each competitor: 1 for the champion, 0 for the last; 1/2 for one that is alone.

    Where all have the same points in the mean nobody is better, and each stands at 1/2 (ours). The loser of a later round stands above that of an earlier one; within a round mean points decide, then the
    seed.

    >>> import asyncio
    >>> strength = [5.0, 7.0, 3.0, 9.0]
    >>> async def by_strength(i: int, j: int) -> tuple[float, float]:
    ...     return strength[i], strength[j]
    >>> [round(x, 4) for x in asyncio.run(standings(4, by_strength))]
    [0.3333, 0.6667, 0.0, 1.0]
    """
    if n < 2:
        return [0.5] * n
    points: list[list[float]] = [[] for _ in range(n)]

    async def meet(i: int, j: int) -> int:
        """The winner; the first of the two if they tie."""
        first, second = await compare(i, j)
        points[i].append(first)
        points[j].append(second)
        return i if first >= second else j

    for other in range(1, n):
        await meet(0, other)
    if len({fmean(told) for told in points}) == 1:
        return [0.5] * n
    seeds = sorted(range(n), key=lambda i: (-fmean(points[i]), i))
    size = 1 << (n - 1).bit_length()
    alive: list[int | None] = [seeds[s] if s < n else None for s in bracket(size)]
    lost_in = dict.fromkeys(range(n), 0)
    for round_ in range(1, size.bit_length()):
        following: list[int | None] = []
        for one, two in zip(alive[::2], alive[1::2], strict=True):
            if one is None or two is None:
                following.append(two if one is None else one)
                continue
            winner = await meet(one, two)
            lost_in[two if winner == one else one] = round_
            following.append(winner)
        alive = following
    champion = next(i for i in alive if i is not None)
    lost_in[champion] = size.bit_length()
    order = sorted(range(n), key=lambda i: (-lost_in[i], -fmean(points[i]), seeds.index(i)))
    return [1 - order.index(i) / (n - 1) for i in range(n)]


def bracket(size: int) -> list[int]:
    """Seeds in the order of a bracket of ``size``, a power of two: the best two can only meet in the final.

    >>> bracket(8)
    [0, 7, 3, 4, 1, 6, 2, 5]
    """
    order = [0]
    while len(order) < size:
        order = [seed for s in order for seed in (s, 2 * len(order) - 1 - s)]
    return order
