"""Roll out a policy on tasks: those of a suite, or any others."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from turnwise.agents.core import Episode, Policy
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.log.episodes import Episodes
from turnwise.agents.log.records import Record, env_version
from turnwise.agents.multi_agent import check_opponents, policy_map
from turnwise.agents.policies.own import PolicyLike, as_policy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import EpisodeGate, Limits, Request
from turnwise.agents.rollout import rollout as rollout_requests
from turnwise.agents.workers.pool import WorkerPool
from turnwise.blocking import blocking
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, Task, derive_rng

_FLUSH_SECONDS = 1.0  # a killed evaluation loses what finished since its last frame


async def rollout_async(
    tasks: Suite | str | Iterable[Task],
    policy: PolicyLike,
    *,
    split: Split | str = Split.TRAIN,
    episodes: int | None = None,
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
) -> Episodes:
    """Play tasks and return the episodes.

    >>> import turnwise
    >>> (episode,) = turnwise.rollout("shop/easy", "scripted:gold")
    >>> episode.success, episode.outcome.value, episode.score
    (True, 'ok', 1.0)

    Args:
        tasks: a suite, by its name or itself, or tasks of any environments.
        policy: who plays: a policy, a function of the history, or a spec such as ``scripted:gold``. What is given made
            stays open.
        split: of the suite: ``"train"``, ``"dev"`` or ``"test"``.
        episodes: of the suite, how many in all; rounded up to whole tasks. One task's unless given.
        k: how often each task is played.
        seed: the episodes' seeds are derived from it.
        concurrency: episodes in flight.
        limits: deadlines and token budget of each episode.
        retries: how often an episode that fails is played again.
        env_options: what environments are made with.
        env_workers: processes that the environments run in, which can be killed, or a pool of them; 0: this one.
        log: where the episodes are written, a path or an open log.
        on_episode: called with (index, episode) as each one finishes.
        opponents: who plays the other agents; ``policy`` plays those that are not named.

    Returns:
        All episodes, task by task; those that failed too, with their ``outcome`` and the turns that they had.

    Raises:
        TurnwiseError: a suite, split, environment, policy or opponent is unknown, or there is nothing to play.
    """
    if isinstance(tasks, str):
        tasks = get_suite(tasks)
    if isinstance(tasks, Suite):
        requests = requests_for(tasks, split, episodes=k if episodes is None else episodes, k=k, seed=seed)
        check_opponents(tasks, opponents or {})
    else:
        requests = _requests_for_tasks(list(tasks), episodes, k, seed)
    with opened_policies(policy, opponents, max_sequences=concurrency, seed=seed) as (player, others):
        played = await play_requests(
            requests,
            player,
            others,
            concurrency=concurrency,
            limits=limits,
            retries=retries,
            env_options=env_options,
            env_workers=env_workers,
            log=log,
            on_episode=on_episode,
        )
        name = player.name
    options = dict(env_options or {})
    return Episodes(Record(episode, name, env_version(episode.task.env, options)) for episode in played)


rollout = blocking(rollout_async)


def requests_for(
    suite: Suite, split: Split | str, *, episodes: int = 200, k: int = 1, seed: int = 0
) -> Iterator[Request]:
    """The episodes of an evaluation: the first ``ceil(episodes / k)`` tasks of the split, k times each; of a list no more than it has.

    Each task is drawn when its first episode is asked for: some suites take 10 ms for one. Seeds have 53 bits, so that JSON readers
    with floating-point numbers keep them exactly.

    Raises:
        TurnwiseError: at once, where nothing could be played.
    """
    episodes, k, seed = int(episodes), int(k), int(seed)  # numpy's are no JSON
    if episodes < 1 or k < 1:
        raise TurnwiseError(f"{episodes} episodes with k={k} cannot be played.", "Both must be at least 1.")
    if k > episodes:
        raise TurnwiseError(
            f"{episodes} episodes are fewer than the k={k} of a single task.", f"Ask for {k} or more of them."
        )
    try:
        split = Split(split)
    except ValueError:
        raise NotFoundError("split", str(split), (known.value for known in Split)) from None
    count = math.ceil(episodes / k)
    count = min(count, suite.length(split) or count)
    return (
        Request(task, derive_rng("evaluate", suite.name, split.value, seed, index, run).getrandbits(53))
        for index, task in enumerate(suite_tasks(suite, split, count))
        for run in range(k)
    )


def _requests_for_tasks(tasks: Sequence[Task], episodes: int | None, k: int, seed: int) -> list[Request]:
    if episodes is not None:
        raise TurnwiseError(
            f"episodes={episodes} is of a suite, and tasks are given.", f"Give {episodes} tasks, or k."
        )
    if not tasks or k < 1:
        raise TurnwiseError(f"{len(tasks)} tasks with k={k} cannot be played.", "Both must be at least 1.")
    for task in tasks:
        if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TurnwiseError(
                f"{task!r:.60} is a {type(task).__name__} and no task.",
                "Give turnwise.Task objects, or a suite.",
            )
    return [
        Request(task, derive_rng("rollout", task.id, seed, index, run).getrandbits(53))
        for index, task in enumerate(tasks)
        for run in range(k)
    ]


@contextmanager
def opened_policy(given: PolicyLike, **options: object) -> Iterator[Policy]:
    """The policy, given or made from its spec; one that is made here is closed at the end.

    Args:
        given: a policy or a function, which stay open, or a spec.
        options: with which a spec's policy is made (:func:`turnwise.make_policy`).

    Raises:
        TurnwiseError: it is no policy, or there is none of this spec.
    """
    if not isinstance(given, str):
        yield as_policy(given)
        return
    policy = make_policy(given, **options)
    try:
        yield policy
    finally:
        policy.close()


@contextmanager
def opened_policies(
    policy: PolicyLike, opponents: Mapping[str, PolicyLike] | None, **options: object
) -> Iterator[tuple[Policy, dict[str, Policy]]]:
    """The policy and its opponents by name; those that are made here, of their specs, are closed in the end."""
    with ExitStack() as stack:
        others = {
            name: stack.enter_context(opened_policy(other, **options))
            for name, other in (opponents or {}).items()
        }
        yield stack.enter_context(opened_policy(policy, **options)), others


class EpisodeSearch(Protocol):
    """Plays each episode of an evaluation by trying more than one way (:func:`turnwise.make_search`).

    Attributes:
        label: what it does that a deployment could not; it stands in every table.
    """

    label: str

    @property
    def asked(self) -> dict[str, Json]:
        """All of it that an episode depends on: a resume must ask the same."""
        ...

    def named(self, policy: str) -> str:
        """The name of the policy with the search and its label."""
        ...

    def check(self, suite: Suite, policy: Policy) -> None:
        """Refuse a suite or a policy with which it cannot be done."""
        ...

    @property
    def rollout(self) -> Callable[..., Coroutine[Any, Any, list[Episode]]]:
        """Play all requests, as :func:`turnwise.agents.rollout.rollout` does, with ``opponents``."""
        ...

    def close(self) -> None:
        """Give up what its scorer holds."""
        ...


def search_name(search: EpisodeSearch | None, policy: Policy) -> str:
    """Return the name under which a policy plays, with the search that plays for it."""
    return search.named(policy.name) if search else policy.name


async def play_requests(
    requests: Iterable[Request],
    policy: Policy,
    opponents: Mapping[str, Policy],
    *,
    concurrency: int,
    limits: Limits | None,
    retries: int,
    env_options: Mapping[str, Json] | None,
    env_workers: int | WorkerPool,
    log: EpisodeLog | Path | str | None,
    on_episode: Callable[[int, Episode], None] | None,
    gate: EpisodeGate | None = None,
    search: EpisodeSearch | None = None,
) -> list[Episode]:
    """Roll out requests as they are drawn, and write each episode into the log as it finishes."""
    with _heard(log, search_name(search, policy), env_options, on_episode) as heard:
        options: dict[str, Any] = {
            "concurrency": concurrency, "limits": limits, "retries": retries, "env_options": env_options,
            "env_workers": env_workers, "on_episode": heard, "gate": gate,
        }  # fmt: skip
        if search is not None:
            return await search.rollout(requests, policy, opponents=opponents, **options)
        return await rollout_requests(requests, policy_map(policy, opponents), **options)


@contextmanager
def _heard(
    log: EpisodeLog | Path | str | None,
    policy: str,
    env_options: Mapping[str, Json] | None,
    on_episode: Callable[[int, Episode], None] | None,
) -> Iterator[Callable[[int, Episode], None]]:
    """Yield the function that tells each finished episode to the log and to whoever asked. A log of our own is closed in
    the end."""
    with ExitStack() as stack:
        if isinstance(log, (str, Path)):
            options = {"policy": policy, "env_options": env_options, "flush_seconds": _FLUSH_SECONDS}
            book = stack.enter_context(EpisodeLog(log, **options))
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
