"""Tasks come back by what their last visit promised to teach, and by how long ago it was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import require_option


class Level(NamedTuple):
    """Memory of a task: its visits, the score of the last one and its update."""

    visits: int
    score: float
    last: int


def by_rank(scores: Sequence[float], beta: float) -> list[float]:
    """(1/rank)^(1/β), normed to 1; rank 1 is the highest score's, and equal scores share the mean of their ranks.

    >>> [round(p, 4) for p in by_rank([3.0, 1.0, 2.0], 0.5)], by_rank([2.0, 2.0], 0.1)
    ([0.7347, 0.0816, 0.1837], [0.5, 0.5])
    """
    rising, n = sorted(scores), len(scores)
    ranks = [n - (bisect_left(rising, s) + bisect_right(rising, s) - 1) / 2 for s in scores]
    raised = [rank ** (-1 / beta) for rank in ranks]
    return [one / sum(raised) for one in raised]


def replayed(levels: Sequence[Level], update: int, beta: float, stale: float) -> list[float]:
    """(1 − ρ)·P_S + ρ·P_C: by rank of score, and in proportion to the updates since the last visit."""
    ages = [update - level.last for level in levels]
    ranked = by_rank([level.score for level in levels], beta)
    return [(1 - stale) * p + stale * age / sum(ages) for p, age in zip(ranked, ages, strict=True)]


@component("sampler", "plr", paper="2010.03934")
class PrioritizedReplay(Sampler):
    """New tasks of a pool, and earlier ones again by the size of their last advantages and by how long they were not played.

    Prioritized level replay (Jiang et al. 2021): a task is one that was played before with the chance ``replay`` (0: the share of the
    pool that was), drawn by (1 − ρ)·P_S + ρ·P_C, or else one that was not. P_S goes by (1/rank)^(1/β) of the score S, the mean
    absolute advantage of the task's last visit; P_C is in proportion to the updates since then (``stale`` ρ). Their β = 0.1 and
    ρ = 0.1 are for Procgen. Drawn without replacement, the clock counts updates, equal scores share their rank: ours.

    Worked by hand from the paper's formulas: scores 3, 1, 2 of 1, 5 and 2 updates ago, β = ½ and ρ = ¼.

    >>> [round(p, 4) for p in by_rank([3.0, 1.0, 2.0], 0.5)]
    [0.7347, 0.0816, 0.1837]
    >>> [round(p, 4) for p in replayed([Level(1, 3.0, 9), Level(1, 1.0, 5), Level(2, 2.0, 8)], 10, 0.5, 0.25)]
    [0.5823, 0.2175, 0.2003]
    """

    returns = True
    by_success = True
    over = "the tasks of its pool, each new once, and by the size of their last advantages and the time since"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 256,
        beta: float = 0.1,
        stale: float = 0.1,
        replay: float = 0.0,
    ) -> None:
        super().__init__(setup)
        require_option(
            "plr",
            size >= setup.most,
            f"its pool has {size} tasks, and an update may play {setup.most}",
            "Raise its size, or lower rollout.groups or rollout.refill.most.",
        )
        require_option(
            "plr", beta >= 0.02, f"beta {beta:g} leaves no chance to any but the first", "Give 0.02 or more."
        )
        require_option("plr", 0 <= stale <= 1, f"stale {stale:g} is no share", "Give one from 0 to 1.")
        require_option("plr", 0 <= replay <= 1, f"replay {replay:g} is no chance", "Give one from 0 to 1.")
        self.size, self.beta, self.stale, self.replay = size, beta, stale, replay
        self.levels: dict[int, Level] = {}

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        rng = derive_rng("plr", self.setup.seed, update)
        again = [*self.levels]
        new = [i for i in range(self.size) if i not in self.levels]
        rng.shuffle(new)
        chance = self.replay or len(again) / self.size
        likely = dict(
            zip(again, replayed([*self.levels.values()], update, self.beta, self.stale), strict=True)
        )
        drawn: list[int] = []
        for _ in range(self.setup.most):
            if again and (not new or rng.random() < chance):
                drawn += rng.choices(again, [likely[i] for i in again])
                again.remove(drawn[-1])
            else:
                drawn.append(new.pop())
        rng.shuffle(drawn)
        return [
            self.setup.request(i, visits=self.levels[i].visits if i in self.levels else 0)
            for i in drawn[played : played + groups]
        ]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            if group.episodes:
                index = group.request.index
                self.levels[index] = Level(group.request.visits + 1, group.advantage, update)

    def figures(self) -> Mapping[str, float]:
        return {"levels": float(len(self.levels))}

    def state(self) -> PartState:
        return PartState({str(index): [*level] for index, level in self.levels.items()})

    def restore(self, state: PartState) -> None:
        self.levels = {
            int(index): Level(int(visits), float(score), int(last))
            for index, (visits, score, last) in state.numbers.items()
        }
