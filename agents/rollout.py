"""Play episodes: one readable loop, and many of them in flight at once.

Every episode is a coroutine. A finished one frees its place at once, so the engine's batch stays full
and nobody waits for the slowest (continuous batching across episodes, no lock-step).
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from turnwise.agents.core import Episode, History, Outcome, Policy, Reply, Turn
from turnwise.agents.table import Cast, Table, player
from turnwise.envs.core import AgentEnv, End, Snapshot
from turnwise.envs.messages import Messages
from turnwise.envs.registry import make
from turnwise.errors import InfraError, VerifierError
from turnwise.tasks.core import Json, Task, derive_rng

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Limits(NamedTuple):
    """Deadlines in seconds, and how many tokens an episode may sample."""

    reset_s: float = 60.0
    step_s: float = 60.0
    generate_s: float = 300.0
    episode_s: float = float("inf")
    episode_tokens: float = float("inf")


class Moment(NamedTuple):
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
    """One episode to play, from its beginning or from a moment of another one."""

    task: Task
    seed: int
    start: Moment | None = None

    @property
    def played(self) -> int:
        """Turns that are there already."""
        return len(self.start.turns) if self.start else 0


def fork(moment: Moment, *names: Json) -> Request:
    """Go on from ``moment`` with chance of its own, a function of the parent's seed and ``names``."""
    seed = derive_rng("fork", moment.seed, len(moment.turns), *names).getrandbits(62)
    return Request(moment.task, seed, moment)


class _Fault(Exception):
    """What went wrong outside the policy's responsibility."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


async def play(
    env: AgentEnv[Any],
    policy: Cast,
    task: Task,
    *,
    seed: int,
    limits: Limits | None = None,
    start: Moment | None = None,
    on_moment: Callable[[Moment], None] | None = None,
) -> Episode:
    """Play one episode of ``task``. Never raises for a fault: the episode's ``outcome`` names it.

    With ``start`` it goes on from there, and the turns so far are the episode's first ones. ``on_moment`` is
    told each point at which the policy is about to act.
    """
    limits = limits or Limits()
    started = time.monotonic()
    table = Table(env, task, seed)
    end, outcome, error = None, Outcome.OK, ""
    try:
        state_key = await _begin(table, start, limits.reset_s)
        while end is None:
            history = table.mover()
            if on_moment is not None:
                on_moment(await _moment(history, seed, state_key, limits.step_s))
            reply = await _in_policy(player(policy, history.agent), history, limits.generate_s)
            if reply.end is None:
                step = await _in_env(env, limits.step_s, env.step, reply.message)
                table.add(history, reply, step, state_key)
                state_key, end = step.info.get("state_key", ""), step.info.get("end")
            end = end or reply.end or _spent(table, limits, started)
            if end is not None and env.now.end is None:
                history.owe(env.cut(end))
        outcome = Outcome.LIMIT if end.truncated else Outcome.OK
    except _Fault as fault:
        outcome, error = fault.outcome, str(fault)
    seconds = {"seconds": time.monotonic() - started}
    return Episode(task, seed, table.trajectories(), outcome, end, error, seconds)


async def _begin(table: Table, start: Moment | None, seconds: float) -> str:
    """Reset the environment, or bring it and the history to where they start; the state's key."""
    env = table.env
    if start is None:
        options = {"task": table.task}
        observation, info = await _in_env(env, seconds, env.reset, seed=table.seed, options=options)
        table.seat(observation)
        return info["state_key"]
    await _in_env(env, seconds, env.restore, start.snapshot._replace(seed=table.seed))
    history = table.seat(start.observation)
    history.turns.extend(start.turns)
    history.token_ids.extend(start.token_ids)
    return start.state_key


async def _moment(history: History, seed: int, state_key: str, seconds: float) -> Moment:
    env = history.env
    if len(env.agents) > 1:
        raise _Fault(Outcome.ENV_ERROR, "episodes of several agents cannot be branched: use strategy `chain`")
    snapshot = await _in_env(env, seconds, env.snapshot)
    turns, tokens = tuple(history.turns), tuple(history.token_ids)
    return Moment(history.task, seed, snapshot, history.observation, state_key, turns, tokens)


async def rollout(
    requests: Sequence[Request],
    policy: Cast,
    *,
    concurrency: int = 64,
    limits: Limits | None = None,
    retries: int = 1,
    env_options: Mapping[str, Any] | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
    on_moment: Callable[[int, Moment], None] | None = None,
) -> list[Episode]:
    """Play all requests, ``concurrency`` at a time, and return the episodes in the requests' order.

    ``policy`` plays every agent, or a mapping names who plays whom (:data:`turnwise.agents.table.Cast`).

    An episode that faults is played again in a fresh environment, ``retries`` times; what still faults
    is returned with its outcome, for the caller to count. ``on_episode(index, episode)`` is called as
    each one finishes, ``on_moment(index, moment)`` before each turn (again from the first, when it is retried).
    """
    gate = asyncio.Semaphore(concurrency)
    idle: dict[str, list[AgentEnv[Any]]] = defaultdict(list)
    options = dict(env_options or {})

    async def attempt(index: int, request: Request) -> Episode:
        pool = idle[request.task.env]
        env = pool.pop() if pool else make(request.task.env, **options)
        tell = functools.partial(on_moment, index) if on_moment is not None else None
        episode = await play(
            env, policy, request.task, seed=request.seed, limits=limits, start=request.start, on_moment=tell
        )
        if episode.outcome.counts:
            pool.append(env)
        else:
            env.close()  # what faulted is not used again
        return episode

    async def one(index: int, request: Request) -> Episode:
        async with gate:
            await asyncio.sleep(0)  # a script in a pure environment never waits: let Ctrl-C come between
            episode = await attempt(index, request)
            for _ in range(retries):
                if episode.outcome.counts:
                    break
                episode = await attempt(index, request)
            if on_episode is not None:
                on_episode(index, episode)
            return episode

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(index, request)) for index, request in enumerate(requests)]
        return [task.result() for task in tasks]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    finally:
        for pool in idle.values():
            for env in pool:
                env.close()


def run_episodes(requests: Sequence[Request], policy: Cast, **options: Any) -> list[Episode]:
    """:func:`rollout` for callers that have no event loop."""
    return asyncio.run(rollout(requests, policy, **options))


async def _in_env(
    env: AgentEnv[Any], seconds: float, call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Call the environment: short pure ones on the event loop, blocking ones in a thread of their own."""
    try:
        if not env.blocking:
            return call(*args, **kwargs)
        async with asyncio.timeout(seconds):
            return await asyncio.to_thread(call, *args, **kwargs)
    except TimeoutError:
        name = getattr(call, "__name__", "call")
        raise _Fault(Outcome.INFRA_ERROR, f"{name}() took more than {seconds:g} s") from None
    except VerifierError as error:
        raise _Fault(Outcome.VERIFIER_ERROR, str(error)) from error
    except InfraError as error:
        raise _Fault(Outcome.INFRA_ERROR, str(error)) from error
    except (Exception, SystemExit) as error:
        raise _Fault(Outcome.ENV_ERROR, f"{type(error).__name__}: {error}") from error


async def _in_policy(policy: Policy, history: History, seconds: float) -> Reply:
    try:
        async with asyncio.timeout(seconds):
            return await policy.act(history)
    except TimeoutError:
        raise _Fault(Outcome.INFRA_ERROR, f"the policy took more than {seconds:g} s") from None
    except Exception as error:
        raise _Fault(Outcome.INFRA_ERROR, f"{type(error).__name__}: {error}") from error


def _spent(table: Table, limits: Limits, started: float) -> End | None:
    if time.monotonic() - started > limits.episode_s:
        return End.TIME_LIMIT
    turns = (turn for history in table.histories.values() for turn in history.turns)
    if sum(len(turn.reply.action_ids) for turn in turns) >= limits.episode_tokens:
        return End.TOKEN_LIMIT
    return None
