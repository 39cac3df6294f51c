"""Every group is trained on."""

from turnwise.trainers.core import Group
from turnwise.trainers.registry import component


@component("filter", "any")
def any_group(group: Group) -> bool:
    """Keeps every group that has an episode.

    >>> any_group([])
    False
    """
    return len(group) > 0
