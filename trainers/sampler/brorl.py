"""Many episodes of few tasks, most where the policy fails most."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.cures import shared_by
from turnwise.trainers.sampler.remembered import FromPool, require_option


@component("sampler", "brorl", paper="2510.01180")
class BroRL(FromPool):
    """Tasks of a pool, each as likely as any other, with episodes in proportion to how often they failed.

    BroRL (2025) breadth: where more updates teach no more, many episodes of a task (512 for 16) still see what succeeds rarely, since
    a success of chance q is missing from N with chance (1 − q)^N. An update keeps its groups × group_size episodes; a task that failed
    in the share 1 − p of its earlier episodes has round(budget·(1 − p)/Σ(1 − p)) of them, within [least, most]. That, and that a new task
    counts as failed in half, are ours: the paper gives all tasks the same N, which is `pool` with a large rollout.group_size. Each
    task weighs the same in the update.

    Worked by hand: success 0, ½ and ¾ share 28 episodes as 4 : 2 : 1.

    >>> shared_by([1.0, 0.5, 0.25], 28, least=2, most=512)
    [16, 8, 4]
    """

    unbiased = True
    over = "the tasks of its pool, each as likely as any other, whatever number of episodes they have"

    def __init__(self, setup: SamplerSetup, *, size: int = 256, least: int = 4, most: int = 512) -> None:
        super().__init__(setup, size)
        require_option(
            "brorl", 2 <= least <= most, f"[{least}, {most}] holds no group", "Give 2 ≤ least ≤ most."
        )
        self.least, self.most = least, most

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset(range(self.least, self.most + 1))

    def chosen(self, update: int) -> list[GroupRequest]:
        setup = self.setup
        drawn = derive_rng("pool", setup.seed, update).sample(range(self.size), setup.most)
        known = [self.known(index) for index in drawn]
        failed = [1 - task.rate if task.episodes else 0.5 for task in known]
        counts = shared_by(failed, setup.most * setup.group_size, self.least, self.most)
        return [self.request(index, n) for index, n in zip(drawn, counts, strict=True)]
