"""Rewards in a row: each is shown what the ones before it paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.trainers.core import Group


class PaidGroups(NamedTuple):
    """Groups as a list of rewards pays them; ``by_part`` says by how much each changed the sum of all rewards."""

    groups: list[Group]
    by_part: Mapping[str, float]


class RewardInRow(NamedTuple):
    """A reward with its options fixed; ``whole``: it is called with all groups of an update at once."""

    name: str
    reward: Callable[..., Any]
    whole: bool = False

    def pay(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups as it pays them."""
        return list(self.reward(groups)) if self.whole else [self.reward(group) for group in groups]


class Payer(NamedTuple):
    """A recipe's rewards, one after the other.

    Worked by hand: the environment paid 0.25 for a solved task, `success` makes it 1, `verified` takes 10 for 1.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.trainers.reward.success import success
    >>> from turnwise.trainers.reward.verified import verified
    >>> row = Payer([RewardInRow("success", success), RewardInRow("verified", lambda group: verified(group, solved=10.0))])
    >>> paid = row.pay([[episode([0, 0.25], end=EndReason.SOLVED)]])
    >>> paid.groups[0][0].trajectory.total_reward, dict(paid.by_part)
    (10.0, {'success': 0.75, 'verified': 9.0})
    """

    rewards: Sequence[RewardInRow]

    @property
    def whole(self) -> bool:
        """True if one of them looks beyond a single group."""
        return any(one.whole for one in self.rewards)

    def __call__(self, group: Group) -> Group:
        """Pay one group as if it were all that was played."""
        return self.pay([group]).groups[0]

    def pay(self, groups: Sequence[Group]) -> PaidGroups:
        """Pay all groups of an update."""
        now, before, by_part = list(groups), total(groups), dict[str, float]()
        for one in self.rewards:
            now = one.pay(now)
            after = total(now)
            by_part[one.name] = by_part.get(one.name, 0.0) + after - before
            before = after
        return PaidGroups(now, by_part)


def total(groups: Sequence[Group]) -> float:
    """The sum of all rewards of some groups, of every agent."""
    return sum(side.total_reward for group in groups for one in group for side in one.trajectories.values())
