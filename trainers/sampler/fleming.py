"""A mix of solved and failed tasks, taken anew whenever success on dev stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import (
    GroupRequest,
    SamplerSetup,
    SeenGroup,
    TaskMemory,
    memory_from,
    memory_state,
)
from turnwise.trainers.sampler.remembered import FromPool, require_option


def mixed(batch: int, failed: int, solved: int, ratio: int) -> tuple[int, int]:
    """The numbers of failed and solved tasks of a batch, ``ratio`` failed ones to each solved one, of as many as there are."""
    units = min(batch // (ratio + 1), failed // ratio, solved)
    return units * ratio, units


def stands_still(successes: Sequence[float], window: int) -> bool:
    """Say of 2·``window`` evaluations, or fewer so far, whether the mean of the newer half is no higher than that of the older.

    >>> stands_still([0.1, 0.2, 0.2, 0.1], 2), stands_still([0.1, 0.2, 0.2, 0.3], 2), stands_still([0.1], 2)
    (True, False, False)
    """
    older, newer = successes[:window], successes[window:]
    return len(newer) == window and mean(newer) <= mean(older)


@component("sampler", "fleming", paper="2509.15279")
class Fleming(FromPool):
    """Failed and solved tasks of a pool in a ratio: 1 to 1 until dev success stands still, from then on 2 to 1, with more episodes.

    The two stages of Fleming-R1 (2025), whose second trains on what the first one failed while a third of solved tasks keeps it from
    forgetting. A task is solved if it was in half of its episodes or more. Success stands still where the mean of the newest ``window`` evaluations on
    dev is no higher than that of the ``window`` before. Then what is known of tasks is forgotten, and all of the pool is played anew, once, in chance order:
    what the policy now fails are the failures of the second stage, until success stands still again. Evaluations meanwhile do not count. What is played in
    this pass is learned from as well (ours; the paper plays it with the model of the first stage at rest). Where there are too
    few of a kind the ratio is kept, and the rest of the update is drawn from the whole pool: ours.

    Worked by hand from the book:

    >>> mixed(30, 99, 99, 1), mixed(30, 99, 99, 2), mixed(30, 12, 99, 2)
    ((15, 15), (20, 10), (12, 6))
    """

    over = "failed and solved tasks of its pool, half and half, and from the first plateau of dev success on two to one"

    def __init__(self, setup: SamplerSetup, *, size: int = 256, window: int = 3, more: int = 0) -> None:
        super().__init__(setup, size)
        usual = setup.group_size
        require_option("fleming", window > 0, f"window={window} holds no evaluation", "Give 1 or more.")
        require_option(
            "fleming",
            not more or more >= usual,
            f"more={more} is less than the group_size of {usual}",
            "Give rollout.group_size or more episodes, or 0 for twice as many.",
        )
        self.window, self.more = window, more or 2 * usual
        self.restore(PartState())

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset({self.setup.group_size, self.more})

    def chosen(self, update: int) -> list[GroupRequest]:
        rng, most = derive_rng("fleming", self.setup.seed, update), self.setup.most
        if self.left is not None:
            drawn = rng.sample(self.left, min(most, len(self.left)))
        else:
            seen = [i for i in range(self.size) if self.known(i).episodes]
            failed = [i for i in seen if self.known(i).rate < 0.5] if self.failures is None else self.failures
            solved = [i for i in seen if i not in {*failed} and self.known(i).rate >= 0.5]
            hard, simple = mixed(most, len(failed), len(solved), 1 if self.failures is None else 2)
            drawn = [*rng.sample(failed, hard), *rng.sample(solved, simple)]
        others = [i for i in range(self.size) if i not in {*drawn}]
        drawn += rng.sample(others, most - len(drawn))
        rng.shuffle(drawn)
        second = self.failures is not None and self.left is None
        return [self.request(index, self.more if second else 0) for index in drawn]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        super().seen(update, groups)
        if self.left is not None:
            self.left = [i for i in self.left if not self.known(i).episodes]
            if not self.left:
                self.left = None
                self.failures = sorted(i for i in range(self.size) if self.known(i).rate < 0.5)

    def evaluated(self, dev_success: float) -> None:
        if self.left is not None:
            return
        self.dev = [*self.dev, dev_success][-2 * self.window :]
        if stands_still(self.dev, self.window):
            self.dev, self.left = [], [*range(self.size)]
            self.memory = {i: TaskMemory(one.visits, 0.0, 0.0, one.last) for i, one in self.memory.items()}

    def figures(self) -> Mapping[str, float]:
        return {
            "stage": 1.0 if self.failures is None else 2.0,
            "failures": float(len(self.failures or ())),
            "to_play": float(len(self.left or ())),
        }

    def state(self) -> PartState:
        memory = {**memory_state(self.memory).numbers}
        return PartState({"memory": memory, "dev": self.dev, "failures": self.failures, "left": self.left})

    def restore(self, state: PartState) -> None:
        self.memory = memory_from(PartState(state.numbers.get("memory", {})))
        self.dev: list[float] = [*state.numbers.get("dev", [])]
        failures, left = (state.numbers.get(name) for name in ("failures", "left"))
        self.failures: list[int] | None = None if failures is None else [*failures]
        self.left: list[int] | None = None if left is None else [*left]
