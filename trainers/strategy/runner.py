"""Tools of rollout strategies: a runner that plays requests, keeps their branch points and counts what they cost."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.core import Episode, History, Outcome, Reply, Trajectory, Turn
from turnwise.agents.execution.admission import Admission
from turnwise.agents.multi_agent import PolicyMap
from turnwise.agents.rollout import BranchPoint, Limits, Request, rollout
from turnwise.agents.workers.pool import WorkerPool
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.trainers.core import Group, Reward

Plan: TypeAlias = Sequence[Sequence[Request]]
"""The episodes that an update would have without branching, group by group."""


class RunnerResult(NamedTuple):
    """An episode and its branch points, one before each turn; the runner knows those from its start on."""

    episode: Episode
    branch_points: tuple[BranchPoint, ...]

    def branch_point(self, turn: int) -> BranchPoint | None:
        """The branch point before a turn, if it is known."""
        return next((m for m in self.branch_points if len(m.turns) == turn), None)


class TurnPoint(NamedTuple):
    """A moment of an episode that was played: before its turn of this number, counted from 0."""

    episode: Episode
    turn: int

    @property
    def place(self) -> tuple[str, int]:
        """Task and seed of the moment's episode, which with the actions make it."""
        return self.episode.task.id, self.episode.seed

    def at(self, point: BranchPoint | None) -> BranchPoint | None:
        """The point that was reached again, with what was played before it; None if it is another state."""
        turns = self.episode.trajectory.turns
        if point is None or self.turn >= len(turns) or point.state_key != turns[self.turn].state_key:
            return None
        return point._replace(turns=turns[: self.turn], token_ids=_branch_of(turns[: self.turn]))


def _branch_of(turns: Sequence[Turn]) -> tuple[int, ...]:
    """The tokens that the next turn would extend: those of the last turn and of what it extends, as they are learned."""
    ends: list[tuple[int, ...]] = []
    for k, turn in enumerate(turns):
        reply = turn.reply
        parent = reply.parent.turn(k)
        before = () if parent is None else ends[parent]
        told = reply.prompt_ids if reply.scored_ids is None else reply.scored_ids
        ends.append((*before, *told, *reply.action_ids))
    return ends[-1] if ends else ()


class RecordedMoments:
    """Makes the actions of episodes that were played, by task and seed, up to a moment of each."""

    name, version = "recorded", 0

    def __init__(self, moments: Mapping[tuple[str, int], TurnPoint]) -> None:
        self._moments = moments

    async def act(self, history: History) -> Reply:
        """The reply that was given then; at the moment the end."""
        moment, turn = self._moments[history.task.id, history.seed], len(history.turns)
        if turn >= min(moment.turn, len(moment.episode.trajectory.turns)):
            return Reply(Message("assistant", ""), end=EndReason.TURN_LIMIT)
        return moment.episode.trajectory.turns[turn].reply

    def close(self) -> None:
        """There is nothing to close."""


@dataclass
class Cost:
    """The cost of rollouts: environment steps, tokens read and sampled, tokens sampled.

    The ``fork_`` counts are the part of them that went into episodes which start in the middle of another.
    """

    steps: int = 0
    tokens: int = 0
    tokens_sampled: int = 0
    fork_steps: int = 0
    fork_tokens: int = 0
    fork_tokens_sampled: int = 0

    def add(self, turns: Sequence[Turn], *, forked: bool) -> None:
        sampled = sum(len(turn.reply.action_ids) for turn in turns)
        tokens = sampled + sum(len(turn.reply.prompt_ids) for turn in turns)
        self.steps += len(turns)
        self.tokens += tokens
        self.tokens_sampled += sampled
        if forked:
            self.fork_steps += len(turns)
            self.fork_tokens += tokens
            self.fork_tokens_sampled += sampled

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class RolloutRunner:
    """Plays requests with one policy; ``reward`` is the recipe's, for strategies that compare returns."""

    def __init__(
        self,
        policy: PolicyMap,
        reward: Reward,
        *,
        concurrency: int | Admission = 64,
        limits: Limits | None = None,
        env_options: Mapping[str, Any] | None = None,
        env_workers: int | WorkerPool = 0,
        on_episode: Callable[[int, Episode], None] | None = None,
    ) -> None:
        self.reward = reward
        self.cost = Cost()
        self._policy = policy
        self._options: dict[str, Any] = {
            "concurrency": concurrency, "limits": limits, "env_options": env_options, "env_workers": env_workers,
            "on_episode": on_episode,
        }  # fmt: skip

    async def __call__(
        self, requests: Sequence[Request], *, branch_points: bool = False
    ) -> list[RunnerResult]:
        """Play all requests; with ``branch_points`` keep the points from which others can go on."""
        kept: list[dict[int, BranchPoint]] = [{} for _ in requests]

        def keep(index: int, point: BranchPoint) -> None:
            if len(point.turns) == requests[index].played:  # the first one, perhaps of another attempt
                kept[index].clear()
            kept[index][len(point.turns)] = point

        episodes = await rollout(
            requests, self._policy, on_branch_point=keep if branch_points else None, **self._options
        )
        for request, episode in zip(requests, episodes, strict=True):
            for trajectory in episode.trajectories.values():
                self.cost.add(trajectory.turns[request.played :], forked=request.start is not None)
        return [RunnerResult(e, tuple(found.values())) for e, found in zip(episodes, kept, strict=True)]

    async def moments(self, wanted: Sequence[TurnPoint], *names: int) -> list[BranchPoint | None]:
        """The points before these turns, from which others can go on: their actions are made again, and no token is sampled.

        None where the environment fails, has several agents, or comes to another state than it did (E3). What is played from
        a point begins with the turns and tokens of the episode; the steps are counted. ``names`` begin the keys of the requests.
        """
        last: dict[tuple[str, int], TurnPoint] = {}
        for moment in wanted:
            known = last.setdefault(moment.place, moment)
            last[moment.place] = max(known, moment, key=lambda one: one.turn)
        again = self.playing(RecordedMoments(last))
        again.cost, again._options = Cost(), {**self._options, "on_episode": None}
        asked = [one.episode for one in last.values()]
        requests = [Request(e.task, e.seed, key=(*names, i)) for i, e in enumerate(asked)]
        found = dict(zip(last, await again(requests, branch_points=True), strict=True))
        self.cost.steps += again.cost.steps
        return [moment.at(found[moment.place].branch_point(moment.turn)) for moment in wanted]

    def playing(self, policy: PolicyMap) -> RolloutRunner:
        """The same with another policy; what it plays is counted here."""
        other = copy.copy(self)
        other._policy = policy
        return other

    def paying(self, reward: Reward) -> RolloutRunner:
        """The same with another reward; what it plays is counted here."""
        other = copy.copy(self)
        other.reward = reward
        return other


class DryRunner(RolloutRunner):
    """Plays nothing (every episode ends before its first turn), to test whether a strategy accepts a plan."""

    def __init__(self, reward: Reward) -> None:
        self.reward, self.cost = reward, Cost()

    async def __call__(
        self, requests: Sequence[Request], *, branch_points: bool = False
    ) -> list[RunnerResult]:
        return [RunnerResult(episode, ()) for episode in unplayed(requests)]


def unplayed(requests: Sequence[Request]) -> list[Episode]:
    """Episodes that ended before their first turn, in place of those that would be played."""
    ended = {"agent": Trajectory(())}
    return [Episode(r.task, r.seed, ended, Outcome.OK, EndReason.FAILED) for r in requests]


Strategy: TypeAlias = Callable[[RolloutRunner, Plan], Awaitable[list[Group]]]
"""Plays a plan; the groups in its order, not yet rewarded, with what it measured in ``Turn.signals``."""


def plan_groups(suite: str, groups: int, size: int, *names: int, split: Split = Split.TRAIN) -> Plan:
    """``size`` episodes of each of ``groups`` tasks; ``names`` number the plan, as an update does."""
    start = names[-1] * groups if names else 0
    return plan_episodes(suite_tasks(get_suite(suite), split, groups, start=start), size, *names)


def plan_episodes(tasks: Iterable[Task], size: int, *names: int) -> Plan:
    """``size`` episodes of each task, with seeds and keys from ``names`` and their places."""
    return [plan_group(task, size, *names, g) for g, task in enumerate(tasks)]


def plan_group(task: Task, size: int, *names: int) -> list[Request]:
    """``size`` episodes of a task, with seeds and keys from ``names`` and their places."""
    return [
        Request(task, derive_rng("episode", *names, i).getrandbits(62), key=(*names, i)) for i in range(size)
    ]


def try_out(strategy: Strategy, spec: str, suite: str, *, groups: int, size: int) -> tuple[list[Group], Cost]:
    """Play one plan with the policy that ``spec`` names: for examples and tests."""
    from turnwise.agents.policies.registry import make_policy
    from turnwise.trainers.reward.as_is import as_is

    runner = RolloutRunner(make_policy(spec), as_is)

    async def run() -> list[Group]:
        return await strategy(runner, plan_groups(suite, groups, size))

    return asyncio.run(run()), runner.cost
