"""The episodes of an update: sampled, sorted into groups, described."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from turnwise.agents.core import Episode, Policy, Trajectory
from turnwise.agents.log import EpisodeLog
from turnwise.agents.rollout import Limits, Request
from turnwise.agents.table import cast
from turnwise.envs.registry import suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Suite, derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.parts import Parts
from turnwise.trainers.play import Cost, Player
from turnwise.trainers.schema import Recipe


class Side(NamedTuple):
    """A group as one of its agents saw it: episodes with that agent's trajectory alone.

    Attributes:
        number: of the group in the sample.
        agent: whose side it is.
        rewarded: with the recipe's rewards; None where an episode failed for reasons that are not the
            policy's, so that the group is dropped.
        kept: True where the filter lets it through to training.
    """

    number: int
    agent: str
    rewarded: Group | None
    kept: bool


class Sample(NamedTuple):
    """What was rolled out for one update.

    Attributes:
        played: all groups, one per task, as they were played.
        sides: each group once for every agent that is trained, in order.
        cost: what was played for them, forks that only measure among it.
    """

    played: Sequence[Group]
    sides: Sequence[Side]
    cost: Cost

    @property
    def kept(self) -> list[Side]:
        """The sides that are trained on."""
        return [side for side in self.sides if side.kept]

    @property
    def training(self) -> list[Group]:
        """Their groups."""
        return [side.rewarded for side in self.kept if side.rewarded is not None]

    @property
    def failed(self) -> int:
        return sum(not episode.outcome.counts for group in self.played for episode in group)


def limits_of(recipe: Recipe) -> Limits:
    """Deadlines and token budget of every episode."""
    options = recipe.rollout
    return Limits(
        generate_s=options.generate_s,
        step_s=options.step_s,
        episode_tokens=options.episode_tokens or float("inf"),
    )


async def sample(
    recipe: Recipe,
    suite: Suite,
    policy: Policy,
    parts: Parts,
    update: int,
    opponents: Mapping[str, Policy] | None = None,
) -> Sample:
    """Play ``groups`` fresh training tasks ``group_size`` times each. Chance comes from (seed, update) alone.

    ``opponents`` play the agents of these names, who are not trained.

    Raises:
        RunError: more episodes failed than the recipe accepts.
    """
    options = recipe.rollout
    tasks = suite_tasks(suite, Split.TRAIN, options.groups, start=update * options.groups)
    plan = [
        [
            Request(task, derive_rng("episode", recipe.seed, update, g, i).getrandbits(62))
            for i in range(options.group_size)
        ]
        for g, task in enumerate(tasks)
    ]
    player = Player(
        cast(policy, opponents or {}),
        parts.reward,
        concurrency=options.concurrency,
        limits=limits_of(recipe),
        env_options=options.env_options,
    )
    groups = await parts.judge(await parts.strategy(player, plan))
    episodes = [episode for group in groups for episode in group]
    failed = [episode for episode in episodes if not episode.outcome.counts]
    if len(failed) > options.max_failed * len(episodes):
        raise RunError(
            f"{len(failed)} of {len(episodes)} episodes failed in update {update + 1}: {failed[0].error[:300]}",
            "Repair the cause and resume; rollout.max_failed is the share that is accepted.",
        )
    return sort(parts, groups, player.cost, opponents or ())


def sort(parts: Parts, played: Sequence[Group], cost: Cost, opponents: Collection[str] = ()) -> Sample:
    """Take each group apart by agent, reward what is whole and let the filter choose.

    ``opponents`` are agents that are not trained.
    """
    sides: list[Side] = []
    for number, group in enumerate(played):
        whole = all(episode.outcome.counts for episode in group)
        for agent in dict.fromkeys(name for episode in group for name in episode.trajectories):
            if agent in opponents:
                continue
            rewarded = parts.reward([_side_of(episode, agent) for episode in group]) if whole else None
            kept = rewarded is not None and parts.filter(rewarded)
            sides.append(Side(number, agent, rewarded, kept))
    return Sample(played, sides, cost)


def _side_of(episode: Episode, agent: str) -> Episode:
    return replace(episode, trajectories={agent: episode.trajectories.get(agent, Trajectory((), agent))})


def log_sample(log: EpisodeLog, update: int, sample: Sample, advantages: Sequence[Sequence[float]]) -> None:
    """Write every episode as it was played, so that it can be replayed.

    Args:
        log: of the run.
        update: counted from 0.
        sample: its groups are numbered by task.
        advantages: of the episodes trained on, in their order; one number per turn.
    """
    given = iter(advantages)
    own: dict[tuple[int, int], dict[str, Sequence[float]]] = {}
    for side in sample.kept:
        for i in range(len(sample.played[side.number])):
            own.setdefault((side.number, i), {})[side.agent] = next(given)
    for number, group in enumerate(sample.played):
        for i, episode in enumerate(group):
            log.append(episode, update=update, group=number, advantages=own.get((number, i)))
    log.flush()


def describe(sample: Sample) -> dict[str, float]:
    """What the rollouts came to, over the groups that were not dropped for a failure.

    Rewards and turns are of every trajectory that is trained on, success is the first agent's.
    """
    groups = [side.rewarded for side in sample.sides if side.rewarded is not None]
    episodes = [episode for group in groups for episode in group]
    turns = [turn for episode in episodes for turn in episode.trajectory.turns]
    n = max(1, len(episodes))
    whole = {side.number for side in sample.sides if side.rewarded is not None}
    return {
        "reward": sum(episode.trajectory.ret for episode in episodes) / n,
        "success": sum(episode.success for episode in episodes) / n,
        "turns": len(turns) / n,
        "bad_actions": sum(turn.bad_action for turn in turns) / max(1, len(turns)),
        "informative": len(sample.kept) / max(1, len(groups)),
        "groups_dropped": float(len(sample.played) - len(whole)),
        "episodes_failed": float(sample.failed),
        **{name: float(count) for name, count in sample.cost.to_json().items()},
    }
