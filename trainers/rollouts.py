"""The episodes of an update: sampled, sorted into groups, described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Policy
from turnwise.agents.log import EpisodeLog
from turnwise.agents.rollout import Limits, Request
from turnwise.envs.registry import suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Suite, derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.parts import Parts
from turnwise.trainers.play import Cost, Player
from turnwise.trainers.schema import Recipe


class Sample(NamedTuple):
    """What was rolled out for one update.

    Attributes:
        played: all groups, one per task, as they were played.
        rewarded: the same with the recipe's rewards; None where an episode failed for reasons that are not
            the policy's, so that the group is dropped.
        kept: numbers of the groups that the filter lets through to training.
        cost: what was played for them, forks that only measure among it.
    """

    played: Sequence[Group]
    rewarded: list[Group | None]
    kept: list[int]
    cost: Cost

    @property
    def training(self) -> list[Group]:
        """The groups that are trained on."""
        return [group for i in self.kept if (group := self.rewarded[i]) is not None]

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


async def sample(recipe: Recipe, suite: Suite, policy: Policy, parts: Parts, update: int) -> Sample:
    """Play ``groups`` fresh training tasks ``group_size`` times each. Chance comes from (seed, update) alone.

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
        policy,
        parts.reward,
        concurrency=options.concurrency,
        limits=limits_of(recipe),
        env_options=options.env_options,
    )
    groups = await parts.strategy(player, plan)
    episodes = [episode for group in groups for episode in group]
    failed = [episode for episode in episodes if not episode.outcome.counts]
    if len(failed) > options.max_failed * len(episodes):
        raise RunError(
            f"{len(failed)} of {len(episodes)} episodes failed in update {update + 1}: {failed[0].error[:300]}",
            "Repair the cause and resume; rollout.max_failed is the share that is accepted.",
        )
    return sort(parts, groups, player.cost)


def sort(parts: Parts, played: Sequence[Group], cost: Cost) -> Sample:
    """Reward the whole groups and let the filter choose among them."""
    rewarded = [
        parts.reward(group) if all(episode.outcome.counts for episode in group) else None for group in played
    ]
    kept = [i for i, group in enumerate(rewarded) if group is not None and parts.filter(group)]
    return Sample(played, rewarded, kept, cost)


def log_sample(log: EpisodeLog, update: int, sample: Sample, advantages: Sequence[Sequence[float]]) -> None:
    """Write every episode as it was played, so that it can be replayed.

    Args:
        log: of the run.
        update: counted from 0.
        sample: its groups are numbered by task.
        advantages: of the episodes trained on, in their order; one number per turn.
    """
    given = iter(advantages)
    kept = set(sample.kept)
    for number, group in enumerate(sample.played):
        for episode in group:
            own = next(given) if number in kept else ()
            log.append(episode, update=update, group=number, advantages=own)
    log.flush()


def describe(sample: Sample) -> dict[str, float]:
    """What the rollouts came to, over the groups that were not dropped for a failure."""
    groups = [group for group in sample.rewarded if group is not None]
    episodes = [episode for group in groups for episode in group]
    turns = [turn for episode in episodes for turn in episode.trajectory.turns]
    n = max(1, len(episodes))
    return {
        "reward": sum(episode.trajectory.ret for episode in episodes) / n,
        "success": sum(episode.success for episode in episodes) / n,
        "turns": len(turns) / n,
        "bad_actions": sum(turn.bad_action for turn in turns) / max(1, len(turns)),
        "informative": len(sample.kept) / max(1, len(groups)),
        "groups_dropped": float(len(sample.played) - len(groups)),
        "episodes_failed": float(sample.failed),
        **{name: float(count) for name, count in sample.cost.to_json().items()},
    }
