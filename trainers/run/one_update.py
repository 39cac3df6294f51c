"""One update of a run, step by step: its episodes come, the learner learns from them, the weights are published."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.agents.workers.pool import WorkerPool
from turnwise.trainers.run.ahead import Lag, PlayAhead, check_lag, lag_of
from turnwise.trainers.run.collect import CollectedGroups, describe
from turnwise.trainers.run.lesson import LearnedUpdate, Lessons, apart
from turnwise.trainers.run.progress import RunProgress
from turnwise.trainers.run.ranks import Ranks
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.vacuous import Vacuous


class RunUpdate:
    """One update; :meth:`play`, :meth:`learn` and :meth:`publish` are its steps, in this order.

    Args:
        number: of the update, from 0.
        lessons: of the run.
        session: whose learner learns.
        ahead: plays its episodes, and perhaps those of later updates.

    Attributes:
        played: its episodes, once it was played.
        lesson: what was learned from them.
        metrics: its figures so far.
    """

    played: CollectedGroups
    lesson: LearnedUpdate
    lag: Lag

    def __init__(
        self, number: int, lessons: Lessons, session: TrainingSession, ahead: PlayAhead[CollectedGroups]
    ) -> None:
        self.number, self.lessons, self.session, self._ahead = number, lessons, session, ahead
        self.metrics: dict[str, Any] = {}
        self.waited = 0.0
        self._began = time.monotonic()

    @property
    def nothing(self) -> Vacuous | None:
        """Why it taught nothing; None where it taught something."""
        return self.lesson.nothing

    async def play(self) -> None:
        """Wait until its episodes are played.

        Raises:
            RunError: tokens were sampled by weights that are older than the recipe allows.
        """
        self.lessons.prepare(self.session, self.number)
        self._ahead.published(self.number)
        self.played, self.waited = await self._ahead.take(self.number)
        self.lag = lag_of(self.played.training, self.number)
        check_lag(self.lag, self._ahead.staleness, self.number)
        self._played = time.monotonic()

    async def learn(self, ranks: Ranks | None, workers: WorkerPool | None) -> None:
        """Learn from its episodes, together with the other learners if there are any."""
        if ranks is not None:
            ranks.learn(self.number, self.played)
        self.lesson = await self.lessons.learn(self.session, self.number, self.played, workers)
        result, sources = self.lesson.result, self.lesson.sources
        self.metrics |= {**describe(self.played, result), **result.metrics, **self.lesson.sampled}
        self._times = {
            "rollout_seconds": self._played - self._began,
            "learn_seconds": time.monotonic() - self._played - sources["source_seconds"],
            **sources,
        }

    async def publish(self, push: Callable[[], Mapping[str, float]]) -> None:
        """Publish the weights by ``push``, which says how that went."""
        self.metrics |= await apart(self.lessons.beside, push)
        if self._ahead.staleness:
            self._ahead.published(self.number + 1)
            self.metrics |= {
                "waited_seconds": self.waited,
                "lag": self.lag.mean,
                "lag_most": float(self.lag.most),
            }
            self.metrics["drift"] = float(self.lessons.now.steps - 1)
        self.metrics |= {**self._times, **self.lessons.schedules.values}

    def count(self, progress: RunProgress) -> None:
        """Bring the run's counters up to date."""
        progress.update = self.number + 1
        progress.tokens += int(self.metrics["tokens"])
        progress.failed += self.played.failed
        progress.learned += self.nothing is None
        idle = self.nothing is not None and not self.nothing.mastered
        progress.vacuous = progress.vacuous + 1 if idle else 0

    def end(self) -> None:
        """Note how long it took, and how many tokens were played in a second; the first call counts for the time."""
        self.metrics.setdefault("seconds", time.monotonic() - self._began)
        self.metrics["tokens_per_second"] = self.metrics["tokens"] / self.metrics["seconds"]
