"""A bandit over suites: those whose advantages are large are drawn more often, and those that were drawn little."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from statistics import mean

from turnwise.registry import component
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import OverSuites, require_option, softmax


def upper_bounds(means: Sequence[float], counts: Sequence[int]) -> list[float]:
    """U_j = μ_j + √(2·ln(N + 1)/(n_j + 1)), N = Σ n_j.

    The book has N = max(1, Σ n_j), which gives the same weights: before the first episode all U are equal.

    >>> [round(u, 4) for u in upper_bounds([0.8, 0.3, 0.0], [300, 300, 30])]
    [1.007, 0.507, 0.6449]
    """
    total = sum(counts)
    return [m + sqrt(2 * log(total + 1) / (n + 1)) for m, n in zip(means, counts, strict=True)]


@component("sampler", "dump", paper="2504.09710")
class Dump(OverSuites):
    """Each task's suite is drawn by a bandit that seeks large advantages: weights softmax(U/τ), U_j = μ_j + √(2·ln(N + 1)/(n_j + 1)).

    DUMP (Wang et al. 2025): μ_j is the mean of ``|a|`` over the last ``window`` episodes of suite j, a being an episode's mean
    advantage over its sampled tokens, n_j the number of its episodes ever, N = Σ n_j. Advantages of groups are large where the
    policy solves half, and 0 where it solves all or nothing, so that μ measures what can be learned. Suites stand for the paper's
    sources; which weights the mixture gives them is no matter. Their tasks are new ones, not drawn again with replacement: ours.

    Worked by hand from the book:

    >>> [round(w, 4) for w in softmax(upper_bounds([0.8, 0.3, 0.0], [300, 300, 30]), 0.1)]
    [0.9676, 0.0065, 0.0259]
    """

    over = (
        "the suites' training tasks, each suite by its present weight, which follows the size of advantages"
    )

    def __init__(self, setup: SamplerSetup, *, temperature: float = 0.1, window: int = 300) -> None:
        super().__init__(setup)
        require_option(
            "dump", temperature > 0, f"temperature {temperature:g} draws nothing", "Give a number above 0."
        )
        require_option("dump", window > 0, f"window={window} holds no episode", "Give 1 or more.")
        self.temperature, self.window = temperature, window
        self.restore(PartState())

    def weights(self) -> Sequence[float]:
        means = [mean(self.recent[suite] or [0.0]) for suite in self.setup.suites]
        counts = [self.counts[suite] for suite in self.setup.suites]
        return softmax(upper_bounds(means, counts), self.temperature)

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            suite, found = group.request.suite, [abs(a) for a in group.advantages]
            self.counts[suite] += len(found)
            self.recent[suite] = [*self.recent[suite], *found][-self.window :]

    def state(self) -> PartState:
        return PartState({suite: [self.counts[suite], self.recent[suite]] for suite in self.setup.suites})

    def restore(self, state: PartState) -> None:
        known = {suite: state.numbers.get(suite, [0, []]) for suite in self.setup.suites}
        self.counts: dict[str, int] = {suite: int(n) for suite, (n, _) in known.items()}
        self.recent: dict[str, list[float]] = {suite: [*recent] for suite, (_, recent) in known.items()}
