"""Suites on which success moves are drawn more often, whether it rises or falls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from turnwise.registry import component
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import OverSuites, require_option


def progress(outcomes: Sequence[float]) -> float:
    """LP: the mean of the newer half of outcomes, less that of the older one; 0 of fewer than two.

    >>> progress([0, 0, 1, 0, 1, 1]), progress([0, 1, 0]), progress([1])
    (0.3333333333333333, -1, 0.0)
    """
    half = len(outcomes) // 2
    return mean(outcomes[-half:]) - mean(outcomes[-2 * half : -half]) if half else 0.0


def shared(progresses: Sequence[float], explore: float) -> list[float]:
    """ε/n + (1 − ε)·|LP|/Σ|LP|; the same for all where none moves."""
    total, n = sum(map(abs, progresses)), len(progresses)
    return [explore / n + (1 - explore) * abs(one) / total if total else 1 / n for one in progresses]


@component("sampler", "learning_progress", paper="1810.06284")
class LearningProgress(OverSuites):
    """Each task's suite is drawn by absolute learning progress: p_j = ε/n + (1 − ε)·|LP_j|/Σ|LP|.

    CURIOUS (Colas et al. 2019): the competence of suite j is its mean success in ``window`` episodes, LP_j the difference between the
    newest window and the one before it, so that what is learned and what is forgotten are played, and what is mastered or out of
    reach is not, beyond the share ``explore`` (their ε = 0.4, over n suites). Before two windows are full, halves of what there is are
    compared (ours). Suites stand for their modules; which weights the mixture gives them is no matter.

    Worked by hand from the paper's formula: progress 0.3, −0.1 and 0 with ε = 0.4.

    >>> [round(p, 4) for p in shared([0.3, -0.1, 0.0], 0.4)]
    [0.5833, 0.2833, 0.1333]
    """

    over = "the suites' training tasks, each suite by its present weight, which follows how its success moves"

    def __init__(self, setup: SamplerSetup, *, window: int = 300, explore: float = 0.4) -> None:
        super().__init__(setup)
        require_option(
            "learning_progress", window > 0, f"window={window} holds no episode", "Give 1 or more."
        )
        require_option(
            "learning_progress",
            0 < explore <= 1,
            f"explore {explore:g} would never again draw a suite that stood still once",
            "Give a share above 0, up to 1.",
        )
        self.window, self.explore = window, explore
        self.restore(PartState())

    def weights(self) -> Sequence[float]:
        return shared([progress(self.outcomes[suite]) for suite in self.setup.suites], self.explore)

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            suite, found = group.request.suite, [int(episode.success) for episode in group.episodes]
            self.outcomes[suite] = [*self.outcomes[suite], *found][-2 * self.window :]

    def state(self) -> PartState:
        return PartState({suite: self.outcomes[suite] for suite in self.setup.suites})

    def restore(self, state: PartState) -> None:
        self.outcomes: dict[str, list[int]] = {
            suite: [*state.numbers.get(suite, [])] for suite in self.setup.suites
        }
