"""Suites by how far their mean success is from a target."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import OverSuites, require_option, softmax


def counts_by_weight(total: int, weights: Sequence[float]) -> list[int]:
    """floor(total·w), and what remains to the largest weights, one each.

    >>> counts_by_weight(32, [0.0662, 0.2511, 0.6827])
    [2, 8, 22]
    """
    counts = [int(total * weight) for weight in weights]
    largest = sorted(range(len(weights)), key=lambda j: (-weights[j], j))
    for j in largest[: total - sum(counts)]:
        counts[j] += 1
    return counts


@component("sampler", "rule_reasoner", paper="2506.08672")
class RuleReasoner(OverSuites):
    """Suites that are solved least are played most: weights softmax(v/τ), v_i = max(0, r* − r̄_i).

    Domain-aware sampling of RuleReasoner (Liu et al. 2025). Every ``every`` updates the mean success of what was played since
    is smoothed, r̄ ← α·r̄ + (1 − α)·new; as in its code a r̄ of exactly 0 counts as none. With ``buffer`` above 0 it is the first
    version of the code instead: r̄ is the mean of the newest ``buffer`` means, the k-th newest times 1/k, and the target is
    r*·(Σ_{k ≤ buffer} 1/k)/buffer. All suites weigh the same at first; one that was not played keeps its shortfall. An update has
    floor(B·w_i) tasks of suite i, and what remains goes to the largest weights. Success, 0 or 1, is the reward: ours.

    Worked by hand from the book:

    >>> [round(w, 4) for w in softmax([0.1, 0.5, 0.8], 0.3)], [round(w, 4) for w in softmax([0.1, 0.5, 0.8], 0.8)]
    ([0.0662, 0.2511, 0.6827], [0.1981, 0.3266, 0.4753])
    >>> from turnwise.trainers.sampler.core import example_setup
    >>> sampler = RuleReasoner(example_setup())
    >>> for suite, old, new in (("a", 0.9, 0.8), ("b", 0.5, 0.6), ("c", 0.2, 0.4)):
    ...     sampler.means[suite] = [old]
    ...     sampler._smooth(suite, new)
    >>> [round(sampler.means[suite][0], 2) for suite in "abc"], [round(sampler.short[suite], 2) for suite in "abc"]
    ([0.85, 0.55, 0.3], [0.15, 0.45, 0.7])
    >>> [round(w, 4) for w in softmax([0.15, 0.45, 0.7], 0.3)]
    [0.1003, 0.2726, 0.6272]
    >>> round(RuleReasoner(example_setup(), buffer=4).target, 4)
    0.5208
    """

    over = "the suites' training tasks, each suite by its shortfall in success"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        temperature: float = 0.3,
        target: float = 1.0,
        keep: float = 0.5,
        every: int = 8,
        buffer: int = 0,
    ) -> None:
        super().__init__(setup)
        name = "rule_reasoner"
        require_option(
            name, temperature > 0, f"temperature {temperature:g} draws nothing", "Give a number above 0."
        )
        require_option(name, 0 < target <= 1, f"target {target:g} is no success", "Give a share above 0.")
        require_option(name, 0 <= keep < 1, f"keep {keep:g} learns nothing", "Give 0 or more, below 1.")
        require_option(name, every > 0, f"every={every} is no number of updates", "Give 1 or more.")
        require_option(name, buffer >= 0, f"buffer={buffer} holds no batch", "Give 1 or more, or 0 for α.")
        self.temperature, self.keep, self.every, self.buffer = temperature, keep, every, buffer
        self.target = target * sum(1 / k for k in range(1, buffer + 1)) / buffer if buffer else target
        self.restore(PartState())

    def weights(self) -> Sequence[float]:
        return softmax([self.short[suite] for suite in self.setup.suites], self.temperature)

    def drawn(self, update: int) -> list[str]:
        counts = counts_by_weight(self.setup.most, self.weights())
        drawn = [suite for suite, n in zip(self.setup.suites, counts, strict=True) for _ in range(n)]
        derive_rng("rule_reasoner", self.setup.seed, update).shuffle(drawn)
        return drawn

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            self.new[group.request.suite] += [float(episode.success) for episode in group.episodes]
        if (update - self.setup.since + 1) % self.every:
            return
        for suite in self.setup.suites:
            if self.new[suite]:
                self._smooth(suite, mean(self.new[suite]))
        self.new = {suite: [] for suite in self.setup.suites}

    def _smooth(self, suite: str, found: float) -> None:
        if self.buffer:
            means = self.means[suite] = [found, *self.means[suite]][: self.buffer]
            smooth = mean(m / k for k, m in enumerate(means, start=1))
        else:
            (old,) = self.means[suite] or [0.0]
            smooth = self.keep * old + (1 - self.keep) * found if old else found
            self.means[suite] = [smooth]
        self.short[suite] = max(0.0, self.target - smooth)

    def state(self) -> PartState:
        return PartState(
            {suite: [self.short[suite], self.means[suite], self.new[suite]] for suite in self.setup.suites}
        )

    def restore(self, state: PartState) -> None:
        known = {suite: state.numbers.get(suite, [self.target, [], []]) for suite in self.setup.suites}
        self.short: dict[str, float] = {suite: float(short) for suite, (short, _, _) in known.items()}
        self.means: dict[str, list[float]] = {suite: [*means] for suite, (_, means, _) in known.items()}
        self.new: dict[str, list[float]] = {suite: [*new] for suite, (_, _, new) in known.items()}
