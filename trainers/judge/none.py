"""No judge."""

from collections.abc import Sequence

from turnwise.trainers.core import Group
from turnwise.trainers.registry import component


@component("judge", "none")
async def none(groups: Sequence[Group]) -> list[Group]:
    """Nobody says anything; the groups are what they were.

    >>> import asyncio
    >>> from turnwise.trainers.by_hand import episode
    >>> group = [episode([1])]
    >>> asyncio.run(none([group]))[0] is group
    True
    """
    return list(groups)
