"""From a judge's signals to what is asked of it here: a score of each episode, and whether it would be paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.errors import NotFoundError

WORSE = frozenset({"wrong"})
"""Signals that are high where a turn is bad."""
RELATIVE = frozenset({"standing"})
"""Signals that say who of a group is better, and nothing of an episode alone."""
FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "last": lambda x: x[-1],
    "min": min,
}
"""From what is said of turns to what is said of an episode."""


class JudgeReading(NamedTuple):
    """The way in which a judge's verdict on an episode is read.

    Attributes:
        signal: that is paid.
        fold: of the turns' values.
        threshold: an episode counts as paid above it.
    """

    signal: str
    fold: str = "mean"
    threshold: float = 0.5

    @property
    def relative(self) -> bool:
        """True if only the episodes of a group can be compared."""
        return self.signal in RELATIVE

    def of_turns(self, episode: Episode) -> list[float]:
        """Return what the judge says of each turn, the higher the better; nothing where it is silent about one of them."""
        said = [turn.signals.get(self.signal) for turn in episode.trajectory.turns]
        known = [1 - x if self.signal in WORSE else x for x in said if x is not None]
        return known if len(known) == len(said) else []

    def score(self, episode: Episode) -> float:
        """Return the judge's score of an episode, between 0 (bad) and 1; 0 where it says nothing of it.

        >>> from turnwise.trainers.kit.reward_edits import with_signals
        >>> from turnwise.trainers.kit.toy_batches import episode
        >>> one = with_signals(episode([0, 0]), [{"wrong": 1.0, "principle": 0.5}, {"wrong": 0.0, "principle": 1.0}])
        >>> JudgeReading("principle").score(one), JudgeReading("wrong", "min").score(one), JudgeReading("x").score(one)
        (0.75, 0.0, 0.0)
        """
        known = self.of_turns(episode)
        if not known:
            return 0.0
        return min(1.0, max(0.0, FOLDS[self.fold](known)))

    def paid(self, score: float) -> bool:
        """Say whether an episode of this score is paid."""
        return score > self.threshold


def reading_of(
    gives: Sequence[str],
    signal: str = "",
    fold: str = "mean",
    threshold: float = 0.5,
    needs: frozenset[str] = frozenset(),
) -> JudgeReading:
    """The reading of a judge that gives these signals: of ``signal``, else of the first that is needed, else of the first.

    >>> reading_of(["wrong", "principle"], needs=frozenset({"principle"})).signal
    'principle'

    Raises:
        NotFoundError: it gives no such signal, or turns are not folded so.
    """
    if signal and signal not in gives:
        raise NotFoundError("signal of this judge", signal, gives)
    if fold not in FOLDS:
        raise NotFoundError("way from turns to episodes", fold, FOLDS)
    wanted = [name for name in gives if name in needs] or [*gives]
    return JudgeReading(signal or wanted[0], fold, threshold)
