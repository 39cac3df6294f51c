"""No judge."""

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group


@component("judge", "none")
async def none(groups: Sequence[Group]) -> list[Group]:
    """Returns the groups unchanged: no judge is asked.

    >>> import asyncio
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [episode([1])]
    >>> asyncio.run(none([group]))[0] is group
    True
    """
    return list(groups)
