"""Play episodes: one readable loop, and many of them in flight at once.

Every episode is a coroutine. A finished one frees its place at once, so the engine's batch stays full
and nobody waits for the slowest (continuous batching across episodes, no lock-step).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from turnwise.agents.core import Episode, History, Outcome, Trajectory, Turn, attends
from turnwise.agents.execution.admission import Admission
from turnwise.agents.execution.calls import Fault, ReplyTimer, in_env, in_policy
from turnwise.agents.execution.garbage import seldom_searched
from turnwise.agents.multi_agent import MultiAgentEpisode, PolicyMap, policy_for
from turnwise.agents.workers.leases import Leases, Maker, here
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.agents.workers.recovery import Deadlines, bring, checkpoint
from turnwise.envs.core import AgentEnv, EndReason, Snapshot, Step
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Task, derive_rng
from turnwise.watchdog import guard, watch_loop

MOST_SPARED = 8
"""Times that an episode is played again for what other episodes did to its process."""


class Limits(NamedTuple):
    """Deadlines in seconds, and how many tokens an episode may sample."""

    reset_s: float = 60.0
    step_s: float = 60.0
    generate_s: float = 300.0
    episode_s: float = float("inf")
    episode_tokens: float = float("inf")


class BranchPoint(NamedTuple):
    """A point of an episode at which its policy is about to act, and from which others can go on (E4).

    What goes on from here starts with these turns and these tokens, so an engine that caches prefixes computes
    them once.
    """

    task: Task
    seed: int
    snapshot: Snapshot[Any]
    observation: Messages
    state_key: str
    turns: tuple[Turn, ...]
    token_ids: tuple[int, ...]


class Request(NamedTuple):
    """One episode to play, from its beginning or from a branch point of another one.

    ``key`` is whose it is, such as (seed, update, group, member); no two in flight share one. ``draw`` numbers a further
    try in the very same world: the world's chance stays that of the seed, that of the first agent's policy is another.
    """

    task: Task
    seed: int
    start: BranchPoint | None = None
    key: tuple[int, ...] = ()
    draw: tuple[int, ...] = ()

    @property
    def played(self) -> int:
        """The turns that were played before the branch point."""
        return len(self.start.turns) if self.start else 0


def fork(point: BranchPoint, *names: Json) -> Request:
    """Continue from ``point`` with new randomness, a function of the parent's seed and ``names``."""
    seed = derive_rng("fork", point.seed, len(point.turns), *names).getrandbits(62)
    return Request(point.task, seed, point)


class _Episode:
    """One episode in the making; its environment may be replaced by a fresh one on the way.

    ``hopeless`` says that a step failed again when it was repeated from the same moment in a fresh environment, so
    that playing the whole episode again would end in the same way.
    """

    def __init__(
        self,
        request: Request,
        policy: PolicyMap,
        limits: Limits,
        renew: Callable[[Fault], Awaitable[AgentEnv[Any]]] | None = None,
        on_branch_point: Callable[[BranchPoint], None] | None = None,
    ) -> None:
        self.request, self.policy, self.limits = request, policy, limits
        self.renew, self.on_branch_point = renew, on_branch_point
        self.repeated = 0
        self.hopeless = False
        self.fault: Fault | None = None

    async def run(self, env: AgentEnv[Any]) -> Episode:
        """Play it to its end; a fault becomes the episode's outcome, and what was said before it is kept."""
        task, seed, limits = self.request.task, self.request.seed, self.limits
        self.started = time.monotonic()
        self.episode = episode = MultiAgentEpisode(env, task, seed, self.request.draw)
        end, outcome, error, state_key, cause = None, Outcome.OK, "", "", None
        timer = ReplyTimer(limits.generate_s)
        try:
            state_key = await self._begin()
            while end is None:
                history = episode.current_history()
                if self.on_branch_point is not None:
                    self.on_branch_point(await _branch_point(history, seed, state_key, limits.step_s))
                reply = await in_policy(policy_for(self.policy, history.agent), history, timer)
                if reply.silent or reply.memory is not None:
                    history.note(reply, state_key)
                elif reply.end is None:
                    step = await self._step(reply.message)
                    episode.add(history, reply, step, state_key)
                    state_key, end = step.info.get("state_key", ""), step.info.get("end")
                cut = end is None
                if cut and reply.end is not None:
                    cause = reply.cause
                end = end or reply.end or _spent(episode, limits, self.started)
                if cut and end is not None:
                    history.add_pending_reward(await in_env(episode.env, limits.step_s, episode.env.cut, end))
            outcome = Outcome.LIMIT if end.truncated else Outcome.OK
        except Fault as fault:
            self.fault, outcome, error = fault, fault.outcome, str(fault)
        finally:
            timer.close()
            await self._leave(end if self.fault is None else None, state_key)
        metrics = {"seconds": time.monotonic() - self.started}
        if self.repeated:
            metrics["repeated_steps"] = float(self.repeated)
        for history in episode.histories.values():
            metrics |= history.metrics
        return Episode(task, seed, episode.trajectories(), outcome, end, error, metrics, cause)

    async def _leave(self, end: EndReason | None, state_key: str) -> None:
        """Tell the policies that attended that the episode is over."""
        for history in self.episode.histories.values():
            policy = policy_for(self.policy, history.agent)
            if attends(policy):
                for reply in await policy.leave(history, end):
                    history.note(reply, state_key)

    async def _begin(self) -> str:
        """Reset the environment, or bring it and the history to where they start; the state's key."""
        episode, start, seconds = self.episode, self.request.start, self.limits.reset_s
        if start is None:
            options = {"task": episode.task}
            reset = episode.env.reset
            observation, info = await in_env(episode.env, seconds, reset, seed=episode.seed, options=options)
            episode.reset(observation)
            return info["state_key"]
        await in_env(episode.env, seconds, episode.env.restore, start.snapshot._replace(seed=episode.seed))
        history = episode.reset(start.observation)
        history.turns.extend(start.turns)
        history.token_ids.extend(start.token_ids)
        return start.state_key

    async def _step(self, action: Message) -> Step:
        """Step; what fails for infrastructure reasons is repeated once, from the same moment elsewhere."""
        episode, seconds = self.episode, self.limits.step_s
        moment = checkpoint(episode.env) if self.renew is not None else None
        try:
            return await in_env(episode.env, seconds, episode.env.step, action)
        except Fault as fault:
            if self.renew is None or fault.outcome is not Outcome.INFRA_ERROR:
                raise
            self.repeated += 1
            start = self.request.start.snapshot._replace(seed=episode.seed) if self.request.start else None
            fresh = await self.renew(fault)
            await bring(episode, fresh, moment, start, Deadlines(self.limits.reset_s, seconds))
            try:
                return await in_env(fresh, seconds, fresh.step, action)
            except Fault as again:
                self.hopeless = fault.late and again.late
                raise


async def rollout_episode(
    env: AgentEnv[Any],
    policy: PolicyMap,
    task: Task,
    *,
    seed: int,
    limits: Limits | None = None,
    start: BranchPoint | None = None,
    on_branch_point: Callable[[BranchPoint], None] | None = None,
) -> Episode:
    """Play one episode of ``task``. Never raises for a fault: the episode's ``outcome`` names it.

    With ``start`` it goes on from there, and the turns so far are the episode's first ones. ``on_branch_point`` is
    called with each point at which the policy is about to act.
    """
    episode = _Episode(
        Request(task, seed, start), policy, limits or Limits(), on_branch_point=on_branch_point
    )
    return await episode.run(env)


async def _branch_point(history: History, seed: int, state_key: str, seconds: float) -> BranchPoint:
    env = history.env
    if len(env.agents) > 1:
        raise Fault(Outcome.ENV_ERROR, "episodes of several agents cannot be branched: use strategy `chain`")
    snapshot = await in_env(env, seconds, env.snapshot)
    turns, tokens = tuple(history.turns), tuple(history.token_ids)
    return BranchPoint(history.task, seed, snapshot, history.observation, state_key, turns, tokens)


class EpisodeGate(Protocol):
    """Decides whether more episodes begin."""

    async def may_begin(self) -> bool:
        """Say whether the next one may begin; wait until that is known."""
        ...

    async def ended(self, episode: Episode) -> None:
        """An episode that began has ended."""
        ...


AHEAD = 8
"""So many requests of an iterator are drawn before any is played, so that a model's first batches are no single answers."""


async def rollout(
    requests: Iterable[Request],
    policy: PolicyMap,
    *,
    concurrency: int | Admission = 64,
    limits: Limits | None = None,
    retries: int = 1,
    env_options: Mapping[str, Any] | None = None,
    env_workers: int | WorkerPool = 0,
    on_episode: Callable[[int, Episode], None] | None = None,
    on_branch_point: Callable[[int, BranchPoint], None] | None = None,
    gate: EpisodeGate | None = None,
) -> list[Episode]:
    """Play all requests, ``concurrency`` at a time, and return the episodes in the requests' order.

    A step that fails for infrastructure reasons is repeated once, from the same moment in a fresh environment. An
    episode that faults all the same is played again, ``retries`` times; what still faults is returned with its
    outcome and its turns so far, for the caller to count.

    Args:
        requests: the episodes; those of an iterator are drawn while earlier ones are played already.
        policy: plays every agent, or a mapping names who plays whom (:data:`turnwise.agents.multi_agent.PolicyMap`).
        concurrency: episodes in flight, fewer where memory or cores are short (:mod:`turnwise.agents.execution.admission`);
            or the places that rollouts share which go on at the same time, first come, first served.
        limits: deadlines and token budget of each episode.
        retries: how often a faulted episode is played again.
        env_options: what environments are made with.
        env_workers: processes that the environments run in, or a pool of them; 0: in this process.
        on_episode: called with (index, episode) as each one finishes.
        on_branch_point: called with (index, point) before each turn, again from the first when an episode is retried.
        gate: asked before each episode begins; those that may not are not played, and not among those that are returned.

    Raises:
        TurnwiseError: an environment is unknown or cannot be made, or too many calls hang.
    """
    check_numbers(concurrency, retries)
    limits = limits or Limits()
    async with contextlib.AsyncExitStack() as stack:
        maker = stack.enter_context(_maker(env_workers))
        leases = Leases(maker, env_options or {}, limits.reset_s)
        stack.push_async_callback(leases.close)
        await stack.enter_async_context(watch_loop())
        stack.enter_context(guard(max(limits.reset_s, limits.step_s)))
        stack.enter_context(seldom_searched())
        admission = Admission(concurrency, policy) if isinstance(concurrency, int) else concurrency

        async def one(index: int, request: Request) -> Episode | None:
            async with admission.place(blocking=env_class(request.task.env).blocking):
                await asyncio.sleep(0)  # a script in a pure environment never waits: let Ctrl-C come between
                if gate is not None and not await gate.may_begin():
                    return None
                tell = functools.partial(on_branch_point, index) if on_branch_point is not None else None
                attempt = functools.partial(_attempt, leases, request, index, policy, limits, tell)
                episode = await _persist(attempt, retries)
            if on_episode is not None:
                on_episode(index, episode)
            if gate is not None:
                await gate.ended(episode)
            return episode

        tasks: list[asyncio.Task[Episode | None]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for index, request in enumerate(requests):
                    tasks.append(group.create_task(one(index, request)))
                    if isinstance(requests, Iterator) and index >= AHEAD:
                        await asyncio.sleep(0)
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        return [episode for task in tasks if (episode := task.result()) is not None]


def check_numbers(concurrency: int | Admission, retries: int) -> None:
    """Refuse numbers with which nothing would ever be played."""
    if isinstance(concurrency, int) and concurrency < 1:
        raise TurnwiseError(f"concurrency is {concurrency}: nothing would ever be played.", "Give 1 or more.")
    if retries < 0:
        raise TurnwiseError(f"retries is {retries}.", "Give 0 (play nothing again) or more.")


async def _persist(attempt: Callable[..., Awaitable[tuple[Episode, Fault | None]]], retries: int) -> Episode:
    """Play an episode until it counts, or ``retries`` are used up; what others did to it costs none, up to a limit."""
    spared, alone = 0, False
    while True:
        episode, fault = await attempt(alone=alone)
        if fault is None:
            return episode
        if fault.innocent and spared < MOST_SPARED:
            spared += 1
        elif retries:
            retries -= 1
        else:
            return episode
        alone = fault.suspect


async def _attempt(
    leases: Leases,
    request: Request,
    index: int,
    policy: PolicyMap,
    limits: Limits,
    on_branch_point: Callable[[BranchPoint], None] | None,
    *,
    alone: bool,
) -> tuple[Episode, Fault | None]:
    """Play an episode once; the fault that is worth playing it again."""
    name, key = request.task.env, request.key or (index,)
    held: list[AgentEnv[Any]] = []

    async def renew(fault: Fault) -> AgentEnv[Any]:
        leases.discard(held.pop())
        held.append(await leases.take(name, key, alone=fault.suspect))
        return held[-1]

    playing = _Episode(request, policy, limits, renew, on_branch_point)
    healthy = False
    try:
        held.append(await leases.take(name, key, alone=alone))
        episode = await playing.run(held[-1])
        healthy = episode.outcome.counts
    except Fault as fault:  # no environment could be had
        playing.fault = fault
        episode = Episode(
            request.task, request.seed, {"agent": Trajectory(())}, fault.outcome, error=str(fault)
        )
    finally:
        for env in held:
            if healthy:
                leases.give_back(env, name)
            else:
                leases.discard(env)  # what faulted or was cancelled is not used again
    return episode, None if playing.hopeless else playing.fault


@contextlib.contextmanager
def _maker(env_workers: int | WorkerPool) -> Generator[Maker]:
    """Yield the function that makes the environments; a pool of processes that was not given is closed in the end."""
    if not isinstance(env_workers, int):
        yield env_workers.make
        return
    with workers_for(env_workers) as pool:
        yield pool.make if pool is not None else here


def run_episodes(requests: Sequence[Request], policy: PolicyMap, **options: Any) -> list[Episode]:
    """:func:`rollout` for callers that have no event loop."""
    episodes: list[Episode] = []

    async def gather() -> None:  # of what a task returns, `asyncio.run` writes the text when it ends
        episodes.extend(await rollout(requests, policy, **options))

    asyncio.run(gather())
    return episodes


def _spent(episode: MultiAgentEpisode, limits: Limits, started: float) -> EndReason | None:
    if time.monotonic() - started > limits.episode_s:
        return EndReason.TIME_LIMIT
    if limits.episode_tokens == float("inf"):
        return None
    turns = (turn for history in episode.histories.values() for turn in history.turns)
    if sum(turn.reply.tokens for turn in turns) >= limits.episode_tokens:
        return EndReason.TOKEN_LIMIT
    return None
