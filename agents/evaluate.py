"""Evaluate a policy on a suite, episode by episode, with intervals.

Each of the tasks is played k times. What counts as a success, a score or a length is taken from the
episodes whose outcome counts (``ok``, ``limit``); infrastructure failures are reported beside them and
never as a zero.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from turnwise.agents.comparison import Comparison, compare
from turnwise.agents.core import Episode, Outcome, Policy
from turnwise.agents.log import EpisodeLog
from turnwise.agents.rollout import Limits, Request, rollout
from turnwise.agents.statistics import Interval, clustered_mean, proportion
from turnwise.agents.statistics import pass_at_k as at_k
from turnwise.agents.statistics import pass_hat_k as hat_k
from turnwise.agents.table import cast, check_opponents
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, derive_rng

Args = ParamSpec("Args")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Evaluation:
    """How a policy did on a suite.

    Attributes:
        suite, split, policy: what was played, and by whom.
        episodes: episodes played, those that failed for infrastructure reasons included.
        tasks, k: how many different tasks, and how often each was played.
        success: share of counting episodes that were solved (pass@1).
        success_interval: 95 % interval of it, clustered by task.
        mean_score, mean_score_interval: the ledger's outcome part, likewise.
        pass_at_k: chance that one of k runs solves a task (unbiased); None if no task counts k times.
        pass_hat_k: chance that all of k runs solve it.
        outcomes: how many episodes came to which outcome.
        ends: how many counting episodes ended how.
        turns: mean number of turns of the counting episodes.
        seed: from which the episodes' seeds are derived.
        seconds: wall-clock time of playing.
        results: for each task, 1.0 or 0.0 for each counting episode: what :meth:`compare` pairs.
    """

    suite: str
    policy: str
    episodes: int
    success: float
    success_interval: Interval
    mean_score: float
    mean_score_interval: Interval
    pass_at_k: float | None
    pass_hat_k: float | None
    outcomes: Mapping[str, int]
    ends: Mapping[str, int]
    turns: float
    split: str
    tasks: int
    k: int
    seed: int
    seconds: float
    results: Mapping[str, tuple[float, ...]]

    @property
    def excluded(self) -> int:
        """Episodes that say nothing about the policy: infrastructure, environment or verifier failed."""
        return sum(n for outcome, n in self.outcomes.items() if not Outcome(outcome).counts)

    def compare(self, before: Evaluation) -> Comparison:
        """This evaluation against an earlier one of the same tasks, paired by task."""
        return compare(before.results, self.results)

    def to_json(self, *, results: bool = False) -> dict[str, Json]:
        """One JSON object; with ``results`` also each task's, so that it can be compared later."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "results"}
        for name in ("success_interval", "mean_score_interval"):
            # One task alone has no interval; JSON knows no infinity.
            data[name] = [x if math.isfinite(x) else None for x in data[name]]
        data |= {"outcomes": dict(self.outcomes), "ends": dict(self.ends)}
        return data | ({"results": {task: list(r) for task, r in self.results.items()}} if results else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Evaluation:
        """What :meth:`to_json` wrote; other keys are left out."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("success_interval", "mean_score_interval"):
            low, high = fields[name]
            fields[name] = Interval(-math.inf if low is None else low, math.inf if high is None else high)
        fields["results"] = {task: tuple(runs) for task, runs in data.get("results", {}).items()}
        return cls(**fields)


async def evaluate_async(
    suite: Suite | str,
    policy: Policy,
    *,
    split: Split | str = Split.TEST,
    episodes: int = 200,
    k: int = 1,
    seed: int = 0,
    concurrency: int = 64,
    limits: Limits | None = None,
    env_options: Mapping[str, Json] | None = None,
    log: EpisodeLog | Path | str | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
    opponents: Mapping[str, Policy] | None = None,
) -> Evaluation:
    """Play tasks of a suite and say how well the policy did. (:func:`evaluate` is the same, blocking.)

    Args:
        suite: its name, or the suite itself.
        policy: who plays. It stays open.
        split: ``"train"``, ``"dev"`` or ``"test"``.
        episodes: how many in all; rounded up to whole tasks.
        k: how often each task is played.
        seed: the episodes' seeds are derived from it.
        concurrency: episodes in flight.
        limits: deadlines and token budget of each episode.
        env_options: what environments are made with.
        log: where the episodes are written, a path or an open log.
        on_episode: called with (index, episode) as each one finishes.
        opponents: who plays the other agents; ``policy`` plays those that are not named.

    Raises:
        TurnwiseError: suite, split or an opponent's name is unknown, or not a single episode counts.
    """
    suite = get_suite(suite) if isinstance(suite, str) else suite
    requests = requests_for(suite, split, episodes=episodes, k=k, seed=seed)
    check_opponents(suite, opponents or ())
    started = time.monotonic()
    with _heard(log, policy.name, env_options, on_episode) as heard:
        played = await rollout(
            requests,
            cast(policy, opponents or {}),
            concurrency=concurrency,
            limits=limits,
            env_options=env_options,
            on_episode=heard,
        )
    return summarize(
        played,
        suite=suite.name,
        policy=policy.name,
        split=split,
        k=k,
        seed=seed,
        seconds=time.monotonic() - started,
    )


@contextmanager
def _heard(
    log: EpisodeLog | Path | str | None,
    policy: str,
    env_options: Mapping[str, Json] | None,
    on_episode: Callable[[int, Episode], None] | None,
) -> Iterator[Callable[[int, Episode], None]]:
    """Who is told of each finished episode: the log, and whoever asked. A log of our own is closed in the end."""
    with ExitStack() as stack:
        if isinstance(log, (str, Path)):
            book = stack.enter_context(EpisodeLog(log, policy=policy, env_options=env_options))
        else:
            book = log

        def heard(index: int, episode: Episode) -> None:
            if book is not None:
                book.append(episode)
            if on_episode is not None:
                on_episode(index, episode)

        yield heard
        if book is not None:
            book.flush()


def _blocking(function: Callable[Args, Coroutine[Any, Any, Result]]) -> Callable[Args, Result]:
    @functools.wraps(function)
    def call(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        return asyncio.run(function(*args, **kwargs))

    return call


evaluate = _blocking(evaluate_async)


def requests_for(
    suite: Suite, split: Split | str, *, episodes: int = 200, k: int = 1, seed: int = 0
) -> list[Request]:
    """The episodes of an evaluation: the first ``ceil(episodes / k)`` tasks of the split, k times each.

    Seeds have 53 bits, so that JSON readers with floating-point numbers keep them exactly.
    """
    if episodes < 1 or k < 1:
        raise TurnwiseError(f"{episodes} episodes with k={k} cannot be played.", "Both must be at least 1.")
    try:
        split = Split(split)
    except ValueError:
        raise NotFoundError("split", str(split), (known.value for known in Split)) from None
    return [
        Request(task, derive_rng("evaluate", suite.name, split.value, seed, index, run).getrandbits(53))
        for index, task in enumerate(suite_tasks(suite, split, math.ceil(episodes / k)))
        for run in range(k)
    ]


def summarize(
    episodes: Sequence[Episode],
    *,
    suite: str,
    policy: str,
    split: Split | str = Split.TEST,
    k: int = 1,
    seed: int = 0,
    seconds: float = 0.0,
) -> Evaluation:
    """Compute an evaluation from episodes, freshly played or read from a log.

    Raises:
        TurnwiseError: no episode counts.
    """
    counting = [episode for episode in episodes if episode.outcome.counts]
    outcomes = Counter(episode.outcome.value for episode in episodes)
    if not counting:
        raise _nothing_counts(episodes, outcomes)
    tasks = [episode.task.id for episode in counting]
    success = proportion([episode.success for episode in counting], tasks)
    score = clustered_mean([episode.score for episode in counting], tasks)
    results: dict[str, list[float]] = defaultdict(list)
    for episode in counting:
        results[episode.task.id].append(float(episode.success))
    enough = [(len(runs), int(sum(runs))) for runs in results.values() if len(runs) >= k]
    return Evaluation(
        suite=suite,
        policy=policy,
        episodes=len(episodes),
        success=success.mean,
        success_interval=success.interval,
        mean_score=score.mean,
        mean_score_interval=score.interval,
        pass_at_k=_weighted([(n, at_k(n, c, k)) for n, c in enough]),
        pass_hat_k=_weighted([(n, hat_k(n, c, k)) for n, c in enough]),
        outcomes={outcome.value: outcomes[outcome.value] for outcome in Outcome},
        ends=dict(Counter(episode.end.value for episode in counting if episode.end)),
        turns=sum(len(episode.trajectory.turns) for episode in counting) / len(counting),
        split=Split(split).value,
        tasks=len({episode.task.id for episode in episodes}),
        k=k,
        seed=seed,
        seconds=seconds,
        results={task: tuple(runs) for task, runs in results.items()},
    )


def _weighted(tasks: Sequence[tuple[int, float]]) -> float | None:
    # A task that a small split drew twice has twice the runs and counts twice, so that pass@1 = success.
    total = sum(n for n, _ in tasks)
    return sum(n * value for n, value in tasks) / total if total else None


def _nothing_counts(episodes: Sequence[Episode], outcomes: Mapping[str, int]) -> TurnwiseError:
    if not episodes:
        return TurnwiseError("There are no episodes to evaluate.", "Play at least one.")
    counted = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items())
    first = next((episode.error for episode in episodes if episode.error), "no message")
    return TurnwiseError(
        f"None of the {len(episodes)} episodes can be judged ({counted}).",
        f"Mend this first: {first[:300]}",
    )
