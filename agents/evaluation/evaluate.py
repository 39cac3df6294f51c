"""Evaluate a policy on a suite, episode by episode, with intervals.

Each of the tasks is played k times. What counts as a success, a score or a length is taken from the
episodes whose outcome counts (``ok``, ``limit``); failures are reported beside them with their causes, never
as a zero, and where they are many success is a bound: had all of them failed, had all been solved.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from turnwise.agents.core import Episode, Outcome, Usage
from turnwise.agents.evaluation.failures import (
    MAX_FAILED,
    Cause,
    bound,
    causes,
    check_max_failed,
    is_bounded,
    nothing_counts,
)
from turnwise.agents.evaluation.passing import TaskRuns, pass_rates
from turnwise.agents.evaluation.programs import NO_PROGRAMS, ProgramFigures, program_figures
from turnwise.agents.evaluation.replies import NO_REPLIES, ReplyFigures, headline, reply_figures
from turnwise.agents.evaluation.searched import NO_SEARCH, SearchFigures, search_figures
from turnwise.agents.evaluation.spending import Spending, shared
from turnwise.agents.evaluation.statistics import Interval, proportion, score_mean
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.multi_agent import check_opponents
from turnwise.agents.policies.own import PolicyLike
from turnwise.agents.rollout import Limits, Request
from turnwise.agents.rollout_tasks import (
    EpisodeSearch,
    opened_policies,
    play_requests,
    requests_for,
    search_name,
)
from turnwise.agents.workers.pool import WorkerPool
from turnwise.blocking import blocking
from turnwise.envs.registry import get_suite
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split, Suite

_INTERVALS = (
    "success_interval", "mean_score_interval", "pass_at_k_interval", "pass_hat_k_interval", "pass_at_k_bound", "pass_hat_k_bound",
)  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """Results of a policy on a suite.

    Attributes:
        suite, split, policy: what was played, and by whom.
        episodes: episodes played, those that failed for infrastructure reasons included.
        tasks, k: how many different tasks, and how often each was played.
        success: share of counting episodes that were solved (pass@1).
        success_interval: 95 % interval of it, clustered by task.
        mean_score, mean_score_interval: the outcome reward component, likewise; within [0, 1] if the scores are.
        pass_at_k, pass_hat_k: chance that one, that all of k runs solve a task (unbiased); None if no task counts k times.
        pass_tasks: how many of the tasks count k times; the two chances are of these.
        pass_at_k_interval, pass_hat_k_interval: 95 % intervals of them, clustered by task; None where they are None.
        pass_at_k_bound, pass_hat_k_bound: both over all tasks, if every missing run had failed, and if every one had been solved.
        outcomes, ends: how many episodes came to which outcome, and how many of those that count ended how.
        turns: mean number of turns of the counting episodes.
        seed, seconds: from which the episodes' seeds are derived, and the wall-clock time of playing.
        results: for each task, 1.0 or 0.0 for each counting episode: what :func:`turnwise.compare` pairs.
        causes: why episodes do not count, most frequent first: message, the author's place, how many.
        said: what is said about the replies: how many were cut or refused, and what all of them took.
        notes: what a policy's server was not sent although it was asked for, and the like.
        programs: how agents' programs ended, and what they were refused.
        search: what searches took, and what they looked at that a deployment could not.
        stopped: why it stopped before all episodes were played; "" if it did not.
        panel: name, version and hash of the panel that it is a part of (envs/panels.py); "" if it is of none.
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
    causes: tuple[Cause, ...] = ()
    said: ReplyFigures = NO_REPLIES
    notes: tuple[str, ...] = ()
    programs: ProgramFigures = NO_PROGRAMS
    search: SearchFigures = NO_SEARCH
    stopped: str = ""
    pass_tasks: int = 0
    pass_at_k_interval: Interval | None = None
    pass_hat_k_interval: Interval | None = None
    pass_at_k_bound: Interval | None = None
    pass_hat_k_bound: Interval | None = None
    panel: str = ""

    @property
    def excluded(self) -> int:
        """Episodes that do not count: infrastructure, environment or verifier failed."""
        return sum(n for outcome, n in self.outcomes.items() if not Outcome(outcome).counts)

    @property
    def failed_share(self) -> float:
        """The share of episodes that do not count."""
        return self.excluded / self.episodes

    @property
    def success_bound(self) -> Interval:
        """Success if all episodes that do not count had failed, and if all had been solved."""
        return bound(self.success, self.episodes - self.excluded, self.excluded)

    @property
    def bounded(self) -> bool:
        """True if success must be reported as a bound.

        That is where more than 1 % of the episodes do not count, or where the bound is wider than the 95 %
        interval: then chance is the smaller of the two doubts.
        """
        return is_bounded(self.success_interval, self.success_bound, self.failed_share)

    @property
    def headline(self) -> str:
        """The sentence to be read before the figures: most replies were cut, say; "" where there is nothing."""
        return headline(self.said)

    @property
    def passes(self) -> list[tuple[str, float | None, Interval | None, Interval | None]]:
        """pass@k and pass^k: name, value, interval, and a bound over all tasks where some do not count k times."""
        missing = self.pass_tasks < self.tasks
        return [
            (
                f"pass@{self.k}",
                self.pass_at_k,
                self.pass_at_k_interval,
                self.pass_at_k_bound if missing else None,
            ),
            (
                f"pass^{self.k}",
                self.pass_hat_k,
                self.pass_hat_k_interval,
                self.pass_hat_k_bound if missing else None,
            ),
        ]

    def to_json(self, *, results: bool = False) -> dict[str, Json]:
        """One JSON object; with ``results`` also each task's, so that it can be compared later."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "results"}
        for name in _INTERVALS:
            # One task alone has no interval; JSON knows no infinity.
            data[name] = data[name] and [x if math.isfinite(x) else None for x in data[name]]
        data |= {"outcomes": dict(self.outcomes), "ends": dict(self.ends)}
        data |= {"causes": [cause._asdict() for cause in self.causes], "failed_share": self.failed_share}
        data |= {"success_bound": list(self.success_bound), "bounded": self.bounded}
        said = self.said._asdict() | {"usage": self.said.usage._asdict()}
        data |= {"said": said, "headline": self.headline}
        data |= {
            "notes": list(self.notes),
            "programs": self.programs._asdict(),
            "search": self.search.to_json(),
        }
        return data | ({"results": {task: list(r) for task, r in self.results.items()}} if results else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Evaluation:
        """Read what :meth:`to_json` wrote; other keys are left out."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in _INTERVALS:
            if fields.get(name) is not None:
                low, high = fields[name]
                fields[name] = Interval(-math.inf if low is None else low, math.inf if high is None else high)
        fields["results"] = {task: tuple(runs) for task, runs in data.get("results", {}).items()}
        fields["causes"] = tuple(Cause(**cause) for cause in data.get("causes", ()))
        fields["notes"] = tuple(data.get("notes", ()))
        fields["programs"] = ProgramFigures(**data.get("programs", {}))
        fields["search"] = SearchFigures.from_json(data.get("search"))
        if told := data.get("said"):
            fields["said"] = ReplyFigures(told["replies"], told["causes"], Usage(**told["usage"]))
        return cls(**fields)


async def evaluate_async(
    suite: Suite | str,
    policy: PolicyLike,
    *,
    split: Split | str = Split.TEST,
    episodes: int = 200,
    k: int = 1,
    seed: int = 0,
    concurrency: int = 64,
    limits: Limits | None = None,
    retries: int = 1,
    env_options: Mapping[str, Json] | None = None,
    env_workers: int | WorkerPool = 0,
    log: EpisodeLog | Path | str | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
    opponents: Mapping[str, PolicyLike] | None = None,
    max_failed: float = MAX_FAILED,
    finished: Iterable[Episode] = (),
    max_cost: float | None = None,
    max_total_tokens: int | None = None,
    spending: Spending | None = None,
    search: EpisodeSearch | None = None,
) -> Evaluation:
    """Play tasks of a suite and say how well the policy did.

    >>> import turnwise
    >>> result = turnwise.evaluate("shop/easy", "scripted:gold", episodes=4)
    >>> result.success, result.turns > 1
    (1.0, True)

    Args:
        suite: its name, or the suite itself.
        policy: who plays: a policy, a function of the history that returns a reply, a message or its text (async or
            not), or a spec such as ``scripted:gold``. What is given made stays open.
        split: ``"train"``, ``"dev"`` or ``"test"``.
        episodes: how many in all; rounded up to whole tasks.
        k: how often each task is played.
        seed: the episodes' seeds are derived from it.
        concurrency: episodes in flight.
        limits: deadlines and token budget of each episode.
        retries: how often an episode that fails is played again before it is left out.
        env_options: what environments are made with.
        env_workers: processes that the environments run in, which can be killed, or a pool of them; 0: this one.
        log: where the episodes are written, a path or an open log.
        on_episode: called with (index, episode) as each one finishes, and for those that are finished as their tasks are drawn.
        opponents: who plays the other agents; ``policy`` plays those that are not named.
        max_failed: the share of episodes that may fail (``env_error``, ``verifier_error``, ``infra_error``).
        finished: episodes of an earlier call. Those that are asked for again (same task and seed) and count are
            neither played nor logged again.
        max_cost: what the episodes of this call may cost, as their servers tell, or by the policy's price. Where the next
            one would go beyond it the evaluation stops, and says so (``stopped``); those that began are finished.
        max_total_tokens: likewise of tokens read and sampled.
        spending: what several calls, one after the other, may take together, in place of these two limits.
        search: plays each episode by trying more than one way (:func:`turnwise.make_search`); it stays open.

    Returns:
        The figures, with intervals, and each task's results, so that two evaluations can be compared in pairs.

    Raises:
        TurnwiseError: suite, split or an opponent's name is unknown, a policy is none, or not a single episode
            counts.
        TooManyFailedError: more than ``max_failed`` of the episodes failed; what the others came to is its
            ``evaluation``.
    """
    check_max_failed(max_failed)
    k, seed = int(k), int(seed)  # numpy's are no JSON
    spending = shared(spending, max_cost, max_total_tokens)
    suite = get_suite(suite) if isinstance(suite, str) else suite
    requests = requests_for(suite, split, episodes=episodes, k=k, seed=seed)
    check_opponents(suite, opponents or {})
    started = time.monotonic()
    known = {(episode.task.id, episode.seed): episode for episode in finished if episode.outcome.counts}
    played: dict[int, Episode] = {}
    waiting: list[int] = []

    def unfinished() -> Iterator[Request]:
        for index, request in enumerate(requests):
            episode = known.get((request.task.id, request.seed))
            if episode is None:
                waiting.append(index)
                yield request
                continue
            played[index] = episode
            if on_episode is not None:
                on_episode(index, episode)

    def heard(number: int, episode: Episode) -> None:
        played[waiting[number]] = episode
        if on_episode is not None:
            on_episode(waiting[number], episode)

    with opened_policies(policy, opponents, max_sequences=concurrency, seed=seed) as (player, others):
        if search is not None:
            search.check(suite, player)
        await play_requests(
            unfinished(),
            player,
            others,
            concurrency=concurrency,
            limits=limits,
            retries=retries,
            env_options=env_options,
            env_workers=env_workers,
            log=log,
            on_episode=heard,
            gate=spending,
            search=search,
        )
        name, notes = search_name(search, player), tuple(getattr(player, "notes", ()))
    notes = (*_said_of(suite, Split(split), math.ceil(episodes / k)), *notes)
    result = summarize(
        [played[index] for index in sorted(played)],
        suite=suite.name,
        policy=name,
        split=split,
        k=k,
        seed=seed,
        seconds=time.monotonic() - started,
        notes=notes,
        stopped=spending.stopped,
    )
    if result.failed_share > max_failed:
        raise TooManyFailedError(result, max_failed)
    return result


evaluate = blocking(evaluate_async)


def _said_of(suite: Suite, split: Split, tasks: int) -> tuple[str, ...]:
    """Say what keeps the figures of a published list from being published ones."""
    length = suite.length(split)
    part = f"{tasks} of the {length} tasks of {suite.name} were played: this is no published score."
    return tuple(filter(None, (suite.note, part if length and tasks < length else "")))


def summarize(
    episodes: Sequence[Episode],
    *,
    suite: str,
    policy: str,
    split: Split | str = Split.TEST,
    k: int = 1,
    seed: int = 0,
    seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    stopped: str = "",
) -> Evaluation:
    """Compute an evaluation from episodes, freshly played or read from a log.

    Raises:
        TurnwiseError: no episode counts, or all are of programs that did nothing.
    """
    counting = [episode for episode in episodes if episode.outcome.counts]
    outcomes = Counter(episode.outcome.value for episode in episodes)
    if not counting:
        raise nothing_counts(episodes, outcomes)
    tasks = [episode.task.id for episode in counting]
    success = proportion([episode.success for episode in counting], tasks)
    scores = [episode.score for episode in counting]
    # Scores that are the successes are the same figure, and have its interval.
    same = len(set(tasks)) > 1 and scores == [float(episode.success) for episode in counting]
    score = success if same else score_mean(scores, tasks)
    results: dict[str, list[float]] = defaultdict(list)
    for episode in counting:
        results[episode.task.id].append(float(episode.success))
    asked = Counter(episode.task.id for episode in episodes)
    runs = [TaskRuns(n, len(results[task]), int(sum(results[task]))) for task, n in asked.items()]
    passes = pass_rates(runs, k)
    return Evaluation(
        suite=suite,
        policy=policy,
        episodes=len(episodes),
        success=success.mean,
        success_interval=success.interval,
        mean_score=score.mean,
        mean_score_interval=score.interval,
        pass_at_k=passes.at.value,
        pass_hat_k=passes.hat.value,
        pass_tasks=passes.tasks,
        pass_at_k_interval=passes.at.interval,
        pass_hat_k_interval=passes.hat.interval,
        pass_at_k_bound=passes.at.bound,
        pass_hat_k_bound=passes.hat.bound,
        outcomes={outcome.value: outcomes[outcome.value] for outcome in Outcome},
        ends=dict(Counter(episode.end.value for episode in counting if episode.end)),
        turns=sum(len(episode.trajectory.turns) for episode in counting) / len(counting),
        split=Split(split).value,
        tasks=len({episode.task.id for episode in episodes}),
        k=k,
        seed=seed,
        seconds=seconds,
        results={task: tuple(counted) for task, counted in results.items() if counted},
        causes=causes(episodes),
        said=reply_figures(episodes),
        notes=notes,
        programs=program_figures(episodes),
        search=search_figures(episodes),
        stopped=stopped,
    )


class TooManyFailedError(TurnwiseError):
    """More episodes failed than were accepted; ``evaluation`` is what the others came to."""

    def __init__(self, evaluation: Evaluation, max_failed: float) -> None:
        cause, remedy = too_many(evaluation, max_failed)
        super().__init__(f"{cause} Most often: {evaluation.causes[0]}.", remedy)
        self.evaluation = evaluation


def too_many(evaluation: Evaluation, max_failed: float) -> tuple[str, str]:
    """Cause and remedy where more episodes failed than were accepted."""
    low, high = evaluation.success_bound
    cause = (
        f"{evaluation.excluded} of {evaluation.episodes} episodes do not count, more than {100 * max_failed:g} %"
        f" (max_failed), so success may be anything from {100 * low:.1f} to {100 * high:.1f} %."
    )
    return cause, "Fix the cause and play them again; a larger max_failed accepts more of them."
