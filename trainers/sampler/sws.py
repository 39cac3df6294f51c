"""Weak tasks say in which suites new ones are to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import linear_regression

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import FromPool, require_option


def slope(history: Sequence[float]) -> float:
    """The slope of the least-squares line through success by epoch."""
    return linear_regression(range(len(history)), history).slope


def budgets(total: int, failures: Sequence[int]) -> list[int]:
    """int(total · share of the failures) of each suite; none where nothing failed."""
    return [total * n // max(1, sum(failures)) for n in failures]


FLAT = 1e-9
"""A slope that rounding alone can give; those of success are larger by far."""


@component("sampler", "sws", paper="2506.08989")
class SwS(FromPool):
    """A pool is played for some epochs; then new tasks join it from the suites in which tasks stayed weak.

    SwS, self-aware weakness-driven synthesis (Liang et al. 2025). A task is weak if its best success over ``epochs`` passes stays below
    ``low`` and the slope of its success by epoch is below 0. ``new`` tasks are shared over the suites by their weak tasks, int(new·share),
    and are played with the old ones from then on. Where the paper has a language model write tasks around the concepts of those that
    failed, a suite makes more of its own: its category. The paper's last filter is `filter: {name: band, low: 0.125, high: 0.875}`.
    The thresholds are those of the book, which has them from memory.

    Worked by hand from the book: weak tasks 12, 30 and 18 of three suites, and a task whose success falls.

    >>> budgets(1000, [12, 30, 18]), is_weak([0.5, 0.4, 0.4, 0.3, 0.2], low=0.6), is_weak([0.1, 0.2, 0.3], low=0.6)
    ([200, 500, 300], True, False)
    >>> round(slope([0.5, 0.4, 0.4, 0.3, 0.2]), 4), budgets(9, [0, 1])
    (-0.07, [0, 9])
    """

    over = "the tasks of its pool and, after its epochs, new ones of the suites in which tasks stayed weak"

    def __init__(
        self, setup: SamplerSetup, *, size: int = 128, epochs: int = 5, low: float = 0.5, new: int = 128
    ) -> None:
        super().__init__(setup, size)
        require_option("sws", epochs > 1, f"epochs={epochs} have no trend", "Give 2 or more.")
        require_option("sws", 0 < low <= 1, f"low {low:g} is no success", "Give a share above 0.")
        require_option("sws", new > 0, f"new={new} makes no task", "Give 1 or more.")
        self.epochs, self.low, self.new = epochs, low, new
        self.old = [(i, setup.mixture.suite_of(i).name) for i in range(size)]
        self.restore(PartState())

    def chosen(self, update: int) -> list[GroupRequest]:
        rng = derive_rng("sws", self.setup.seed, update)
        pool = self.pool
        if self.made is None:  # those that were played least come first, so that passes are whole
            tried = {key: (len(self.history.get(key, ())), rng.random()) for key in pool}
            drawn = sorted(pool, key=tried.__getitem__)[: self.setup.most]
            rng.shuffle(drawn)
        else:
            drawn = rng.sample(pool, self.setup.most)
        return [
            self.setup.request(index, suite=suite, visits=len(self.history.get((index, suite), ())))
            for index, suite in drawn
        ]

    @property
    def pool(self) -> list[tuple[int, str]]:
        """The tasks by number and suite: those of the beginning, and those that joined."""
        made = zip(self.setup.suites, self.made or (), strict=False)
        return [*self.old, *((self.size + k, suite) for suite, n in made for k in range(n))]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            if group.episodes:
                self.history.setdefault((group.request.index, group.request.suite), []).append(group.rate)
        pool = self.pool
        if self.made is None and all(len(self.history.get(key, ())) >= self.epochs for key in pool):
            weak = [suite for key in pool for suite in [key[1]] if is_weak(self.history[key], self.low)]
            self.made = budgets(self.new, [weak.count(suite) for suite in self.setup.suites])

    def figures(self) -> Mapping[str, float]:
        made = self.made or [0] * len(self.setup.suites)
        return {f"new/{suite}": float(n) for suite, n in zip(self.setup.suites, made, strict=True)}

    def state(self) -> PartState:
        history = [[index, suite, rates] for (index, suite), rates in sorted(self.history.items())]
        return PartState({"history": history, "made": self.made})

    def restore(self, state: PartState) -> None:
        history = state.numbers.get("history", [])
        self.history: dict[tuple[int, str], list[float]] = {
            (int(i), suite): [*rates] for i, suite, rates in history
        }
        made = state.numbers.get("made")
        self.made: list[int] | None = None if made is None else [*made]


def is_weak(history: Sequence[float], low: float) -> bool:
    """Say whether a task's best success stays below ``low`` and its success falls."""
    return max(history) < low and slope(history) < -FLAT
