"""What a rollout strategy works with: a player of requests that remembers moments and counts what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.core import Episode, Outcome, Trajectory, Turn
from turnwise.agents.rollout import Limits, Moment, Request, rollout
from turnwise.agents.table import Cast
from turnwise.envs.core import End
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.core import Group, Reward

Plan: TypeAlias = Sequence[Sequence[Request]]
"""The episodes that an update would have without branching, group by group."""


class Played(NamedTuple):
    """An episode, and the moments before its turns; a player knows those from which it began on."""

    episode: Episode
    moments: tuple[Moment, ...]

    def moment(self, turn: int) -> Moment | None:
        """The moment before a turn, if it is known."""
        return next((m for m in self.moments if len(m.turns) == turn), None)


@dataclass
class Cost:
    """What was played, whoever is trained on it: environment steps, tokens read and sampled, tokens sampled.

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


class Player:
    """Plays requests with one policy; ``reward`` is the recipe's, for strategies that compare returns."""

    def __init__(
        self,
        policy: Cast,
        reward: Reward,
        *,
        concurrency: int = 64,
        limits: Limits | None = None,
        env_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.reward = reward
        self.cost = Cost()
        self._policy = policy
        self._options: dict[str, Any] = {
            "concurrency": concurrency, "limits": limits, "env_options": env_options
        }  # fmt: skip

    async def __call__(self, requests: Sequence[Request], *, moments: bool = False) -> list[Played]:
        """Play all requests; with ``moments`` keep the points from which others can go on."""
        kept: list[dict[int, Moment]] = [{} for _ in requests]

        def keep(index: int, moment: Moment) -> None:
            if len(moment.turns) == requests[index].played:  # the first one, perhaps of another attempt
                kept[index].clear()
            kept[index][len(moment.turns)] = moment

        episodes = await rollout(requests, self._policy, on_moment=keep if moments else None, **self._options)
        for request, episode in zip(requests, episodes, strict=True):
            for trajectory in episode.trajectories.values():
                self.cost.add(trajectory.turns[request.played :], forked=request.start is not None)
        return [Played(e, tuple(found.values())) for e, found in zip(episodes, kept, strict=True)]


class DryPlayer(Player):
    """Plays nothing: every episode ends before its first turn. To see whether a strategy accepts a plan."""

    def __init__(self, reward: Reward) -> None:
        self.reward, self.cost = reward, Cost()

    async def __call__(self, requests: Sequence[Request], *, moments: bool = False) -> list[Played]:
        ended = {"agent": Trajectory(())}
        return [Played(Episode(r.task, r.seed, ended, Outcome.OK, End.FAILED), ()) for r in requests]


Strategy: TypeAlias = Callable[[Player, Plan], Awaitable[list[Group]]]
"""Plays a plan; the groups in its order, not yet rewarded, with what it measured in ``Turn.signals``."""


def plan_groups(suite: str, groups: int, size: int, *names: int, split: Split = Split.TRAIN) -> Plan:
    """``size`` episodes of each of ``groups`` tasks; ``names`` number the plan, as an update does."""
    start = names[-1] * groups if names else 0
    tasks = suite_tasks(get_suite(suite), split, groups, start=start)
    return [
        [Request(task, derive_rng("episode", *names, g, i).getrandbits(62)) for i in range(size)]
        for g, task in enumerate(tasks)
    ]


def try_out(strategy: Strategy, spec: str, suite: str, *, groups: int, size: int) -> tuple[list[Group], Cost]:
    """Play one plan with the policy that ``spec`` names: for examples and tests."""
    from turnwise.agents.policies.registry import make_policy
    from turnwise.trainers.reward.as_is import as_is

    player = Player(make_policy(spec), as_is)

    async def run() -> list[Group]:
        return await strategy(player, plan_groups(suite, groups, size))

    return asyncio.run(run()), player.cost
