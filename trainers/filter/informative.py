"""Groups whose trajectories all ended the same teach nothing to a baseline."""

from turnwise.trainers.core import Group
from turnwise.trainers.registry import component


@component("filter", "informative", paper="2503.14476")
def informative(group: Group, *, tolerance: float = 1e-6) -> bool:
    """Drops groups whose episodes all have the same return (DAPO's dynamic sampling).

    A group is kept when the returns of some agent differ by more than ``tolerance``. Compared is the sum
    of the rewards; credit that looks at single turns could still have learned from a dropped group.

    >>> from turnwise.trainers.by_hand import episode
    >>> informative([episode([0, 1]), episode([1])]), informative([episode([0, 1]), episode([0, 0])])
    (False, True)
    """
    agents = {name for episode in group for name in episode.trajectories}
    for name in agents:
        returns = [episode.trajectories[name].ret for episode in group if name in episode.trajectories]
        if max(returns) - min(returns) > tolerance:
            return True
    return False
