"""The episodes of an update: sampled, sorted into groups, described."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from turnwise.agents.core import Episode, Finish, Policy, Trajectory
from turnwise.agents.execution.admission import Admission
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.multi_agent import policy_map
from turnwise.agents.workers.pool import WorkerPool
from turnwise.errors import RunError
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, check_played, plays_instead
from turnwise.trainers.hack_meter.meter import PlantedEpisode
from turnwise.trainers.kit.asking import trained
from turnwise.trainers.kit.meter import PartMeter
from turnwise.trainers.kit.purse import JudgeUse, charged
from turnwise.trainers.kit.reward_edits import part_total
from turnwise.trainers.proposer.core import PooledTask, ProposerContext
from turnwise.trainers.recipe.schema import Refill, Rollout
from turnwise.trainers.run.again import play_on
from turnwise.trainers.run.door import limits_of
from turnwise.trainers.run.parts import Parts
from turnwise.trainers.run.proposing import PlayFurther, proposed
from turnwise.trainers.run.update import TokenNumbers, UpdateResult
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SeenGroup
from turnwise.trainers.sampler.refill import is_informative, refill_weights, size_weights
from turnwise.trainers.strategy.runner import Cost, RolloutRunner, plan_group, unplayed


class AgentGroup(NamedTuple):
    """A group as one of its agents saw it: episodes with that agent's trajectory alone.

    Attributes:
        number: of the group in the plan.
        agent: whose trajectories it holds.
        episodes: its members as they were played; None where too few are left of it, or where it means nothing
            without those that failed for reasons that are not the policy's.
        members: which episodes of the group these are; the others failed.
    """

    number: int
    agent: str
    episodes: Group | None
    members: tuple[int, ...] = ()


class CollectedGroups(NamedTuple):
    """The episodes that were played for one update.

    Attributes:
        played: all groups, one per task, as they were played.
        agent_groups: each group once for every agent that is trained, in order.
        cost: what was played for them, forks that only measure among it.
        requests: what each group was asked for as.
        weights: of each group's trajectories in the update.
        rounds: in which they were played; 1 without refill.
        figures: metrics of what was played before guides had a hand in it, and of what parts took.
        planted: episodes of planted tasks that were played beside them, which nothing is learned from.
    """

    played: Sequence[Group]
    agent_groups: Sequence[AgentGroup]
    cost: Cost
    requests: Sequence[GroupRequest] = ()
    weights: Sequence[float] = ()
    rounds: int = 1
    figures: Mapping[str, float] = {}
    planted: Sequence[PlantedEpisode] = ()

    @property
    def usable(self) -> list[AgentGroup]:
        """Those from which something may be learned."""
        return [agent_group for agent_group in self.agent_groups if agent_group.episodes is not None]

    @property
    def training(self) -> list[Group]:
        """Their episodes."""
        return [agent_group.episodes for agent_group in self.agent_groups if agent_group.episodes is not None]

    @property
    def training_weights(self) -> list[float]:
        """Of each group of :attr:`training`, the weight of its trajectories; empty where all weigh the same."""
        found = [self.weights[agent_group.number] for agent_group in self.usable] if self.weights else []
        return [] if all(weight == 1.0 for weight in found) else found

    def advantages(self, result: UpdateResult) -> dict[tuple[int, int], dict[str, Sequence[float]]]:
        """By the numbers of group and episode, what each agent's turns were trained with; what weighed 0 is absent."""
        given = zip(result.weights, result.advantages, strict=True)
        own: dict[tuple[int, int], dict[str, Sequence[float]]] = {}
        for agent_group in self.usable:
            for i in agent_group.members:
                weight, advantages = next(given, (0.0, ()))
                if weight > 0:
                    own.setdefault((agent_group.number, i), {})[agent_group.agent] = advantages
        return own

    def entropies(self, result: UpdateResult) -> dict[tuple[int, int], dict[str, TokenNumbers]]:
        """By the numbers of group and episode, the entropies of what each agent said, where they were measured."""
        given, own = iter(result.entropies), dict[tuple[int, int], dict[str, TokenNumbers]]()
        for agent_group in self.usable if result.entropies else ():
            for i in agent_group.members:
                own.setdefault((agent_group.number, i), {})[agent_group.agent] = next(given)
        return own

    @property
    def failed(self) -> int:
        return sum(not episode.outcome.counts for group in self.played for episode in group)


class RolloutTail:
    """Seconds in which at most a quarter of a round's episodes were still played, while the engine waited for the longest.

    >>> tail = RolloutTail()
    >>> tail.ended = [1.0, 2.0, 2.5, 4.0]
    >>> tail.end_round()
    >>> tail.seconds
    1.5
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ended: list[float] = []

    def told(self, then: Callable[[int, Episode], None] | None) -> Callable[[int, Episode], None]:
        """Return a function that is to be told of every episode that ends; ``then`` is told as well."""

        def tell(index: int, episode: Episode) -> None:
            self.ended.append(time.monotonic())
            if then is not None:
                then(index, episode)

        return tell

    def end_round(self) -> None:
        """All of a round ended."""
        if self.ended:
            self.seconds += self.ended[-1] - self.ended[-(-3 * len(self.ended) // 4) - 1]
        self.ended = []


async def collect(
    options: Rollout,
    sampler: Sampler,
    policy: Policy,
    parts: Parts,
    seed: int,
    update: int,
    opponents: Mapping[str, Policy] | None = None,
    workers: WorkerPool | None = None,
    places: Admission | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
    pool: Sequence[PooledTask] = (),
) -> CollectedGroups:
    """Play the tasks that the sampler chooses, in rounds if the recipe refills, then those that proposers make of them; chance
    comes from (seed, update).

    ``opponents`` play the agents of these names, who are not trained; ``workers`` hold the environments. Several updates
    that are played at a time share ``places``; ``on_episode`` is told of every episode that ends. ``pool`` is what proposers
    made before.

    Raises:
        RunError: more episodes failed than the recipe accepts.
    """
    tail = RolloutTail()
    runner = RolloutRunner(
        policy_map(policy, opponents or {}),
        parts.reward,
        concurrency=places or options.concurrency,
        limits=limits_of(options),
        env_options=options.env_options,
        env_workers=workers or 0,
        on_episode=tail.told(on_episode),
    )
    requests: list[GroupRequest] = []
    played: list[Group] = []
    rounds: list[int] = []
    alone: list[bool] = []
    meter, use = PartMeter(), JudgeUse()

    def tokens() -> int:
        return runner.cost.tokens

    most = sampler.setup.most
    while not rounds or (len(requests) < most and not _has_enough(options, parts, played)):
        asked = sampler.plan(update, len(requests), min(options.groups, most - len(requests)))
        plan = [
            plan_group(request.task, request.episodes, seed, update, g)
            for g, request in enumerate(asked, start=len(requests))
        ]
        helped = plays_instead(parts.guides)
        with meter.of("strategy", tokens):
            play = functools.partial(parts.strategy, runner)
            groups: list[Group] = [unplayed(one) for one in plan] if helped else await play(plan)
            asked, groups = await play_on(sampler, play, asked, groups, seed, update, first=len(requests))
        tail.end_round()
        before = groups
        if not helped:
            alone += [episode.success for group in before for episode in group if episode.outcome.counts]
        tasks = frozenset(request.task.id for request in asked)
        player = GuidePlayer(runner, policy, opponents or {}, seed, update, len(requests), tasks)
        with meter.of("guide", tokens):
            for guide in parts.guides:
                groups = await guide(player, groups)
        if parts.guides:
            check_played(groups, before if helped else (), shared_turns=parts.shared_turns)
        with meter.of("judge"):
            played += await judged(parts, groups, policy, use)
        requests += asked
        rounds.append(len(asked))
        _refuse_failures(played, options.max_failed, update)

    see = ProposerContext(seed, update, tuple(played), pool)
    play_further = _further(parts, runner, policy, meter, use, tail, seed, update)
    further, more = await proposed(parts, see, options.group_size, play_further)
    requests, played = [*requests, *further], [*played, *more]
    _refuse_failures(played, options.max_failed, update)
    figures = {**meter.metrics, **use.metrics, "tail_seconds": tail.seconds}
    if parts.guides and not plays_instead(parts.guides):
        figures["success_unguided"] = mean(alone) if alone else 0.0
    return assembled(options, parts, played, runner.cost, requests, rounds)._replace(figures=figures)


def _further(
    parts: Parts,
    runner: RolloutRunner,
    policy: Policy,
    meter: PartMeter,
    use: JudgeUse,
    tail: RolloutTail,
    *names: int,
) -> PlayFurther:
    """Return a function that plays and judges what proposers ask for; ``names`` are seed and update."""

    async def play(asked: Sequence[GroupRequest], first: int) -> list[Group]:
        plan = [plan_group(one.task, one.episodes, *names, g) for g, one in enumerate(asked, first)]
        with meter.of("strategy", lambda: runner.cost.tokens):
            groups = await parts.strategy(runner, plan)
        tail.end_round()
        with meter.of("judge"):
            return await judged(parts, groups, policy, use)

    return play


def assembled(
    options: Rollout,
    parts: Parts,
    played: Sequence[Group],
    cost: Cost,
    requests: Sequence[GroupRequest],
    rounds: Sequence[int],
) -> CollectedGroups:
    """Collect what an update learns from, of the groups that were played as ``requests`` asked in rounds of these sizes."""
    split = split_by_agent(parts, played, cost, options.opponents)
    weights = _weights(options, parts, split, requests, rounds)
    return split._replace(requests=requests, weights=weights, rounds=len(rounds))


def _refuse_failures(played: Sequence[Group], most: float, update: int) -> None:
    episodes = [episode for group in played for episode in group]
    failed = [episode for episode in episodes if not episode.outcome.counts]
    if len(failed) > most * len(episodes):
        raise RunError(
            f"{len(failed)} of {len(episodes)} episodes failed in update {update + 1}: {failed[0].error[:300]}",
            "Repair the cause and resume; rollout.max_failed is the share that is accepted.",
        )


def _has_enough(options: Rollout, parts: Parts, played: Sequence[Group]) -> bool:
    """Say whether an update has the informative groups that it refills for; true without refill."""
    if options.refill is None:
        return True
    return (
        sum(_is_informative(options.refill, parts, group) for group in played) >= options.refill.informative
    )


def _is_informative(refill: Refill, parts: Parts, group: Group) -> bool:
    """By the recipe's rewards, unless they pay for signals or look at all groups, which are not there yet, and by the share that was solved."""
    members = [group[i] for i in _counting(group)]
    useful = len(members) == len(group) or (len(members) > 1 and not parts.whole_groups)
    if not useful or not refill.low <= mean(episode.success for episode in members) <= refill.high:
        return False
    known = not parts.paid_signals and not parts.reward.whole
    return is_informative(parts.reward(members) if known else members)


def _weights(
    options: Rollout,
    parts: Parts,
    split: CollectedGroups,
    requests: Sequence[GroupRequest],
    rounds: Sequence[int],
) -> list[float]:
    """The weight of each group's trajectories: for its task, its size, and the rounds that were played.

    Groups that cannot be used count as not played.
    """
    used = sorted({agent_group.number for agent_group in split.usable})
    sized = size_weights([requests[g].episodes for g in used], [requests[g].weight for g in used])
    if options.refill is not None:
        starts = [sum(rounds[:n]) for n in range(len(rounds) + 1)]
        flags = [
            [_is_informative(options.refill, parts, split.played[g]) for g in used if start <= g < end]
            for start, end in pairwise(starts)
        ]
        refilled = refill_weights(flags, options.refill.informative)
        ones = [1.0] * (len(sized) - len(refilled))  # of what proposers made
        sized = [weight * other for weight, other in zip(sized, [*refilled, *ones], strict=True)]
    found = dict(zip(used, sized, strict=True))
    return [found.get(g, 0.0) for g in range(len(requests))]


def visits(collected: CollectedGroups, result: UpdateResult) -> list[SeenGroup]:
    """Return what came of each request of the sampler, for it to remember."""
    given: dict[int, list[float]] = {}
    means: dict[int, list[float]] = {}
    rows = iter(result.advantages)
    for agent_group in collected.usable:
        for episode in agent_group.episodes or ():
            row = next(rows, ())
            given.setdefault(agent_group.number, []).extend(map(abs, row))
            tokens = [len(turn.reply.action_ids) for turn in episode.trajectory.turns]
            summed = sum(n * advantage for n, advantage in zip(tokens, row, strict=False))
            means.setdefault(agent_group.number, []).append(summed / max(1, sum(tokens)))
    return [
        SeenGroup(
            request,
            [group[i] for i in _counting(group)],
            mean(given.get(g) or [0.0]),
            tuple(means.get(g, ())),
        )
        for g, (request, group) in enumerate(zip(collected.requests, collected.played, strict=True))
        if not request.by
    ]


async def judged(parts: Parts, played: Sequence[Group], policy: Policy, use: JudgeUse) -> list[Group]:
    """The groups as the judges leave them, who may ask the policy that is trained; they are not shown what failed.

    What they ask is added to ``use``.
    """
    counting = [_counting(group) for group in played]
    shown: list[Group] = [[group[i] for i in found] for group, found in zip(played, counting, strict=True)]
    for judge, purse in zip(parts.judges, parts.purses, strict=True):
        with trained(policy), charged(purse, use):
            shown = await judge(shown)
    return [
        [seen[found.index(i)] if i in found else episode for i, episode in enumerate(group)]
        for group, found, seen in zip(played, counting, shown, strict=True)
    ]


def _counting(group: Group) -> tuple[int, ...]:
    return tuple(i for i, episode in enumerate(group) if episode.outcome.counts)


def split_by_agent(
    parts: Parts, played: Sequence[Group], cost: Cost, opponents: Collection[str] = ()
) -> CollectedGroups:
    """Split each group by agent, without the episodes that failed.

    Of a group that lost episodes to failures the others are kept, if two are left to be compared and the recipe's
    parts do not ask for whole groups. ``opponents`` are agents that are not trained.
    """
    agent_groups: list[AgentGroup] = []
    for number, group in enumerate(played):
        members = _counting(group)
        useful = len(members) == len(group) or (len(members) > 1 and not parts.whole_groups)
        for agent in dict.fromkeys(name for i in members for name in group[i].trajectories):
            if agent in opponents:
                continue
            episodes = [_of_agent(group[i], agent) for i in members] if useful else None
            agent_groups.append(AgentGroup(number, agent, episodes, members))
    return CollectedGroups(played, agent_groups, cost)


def _of_agent(episode: Episode, agent: str) -> Episode:
    return replace(episode, trajectories={agent: episode.trajectories.get(agent, Trajectory((), agent))})


def log_groups(log: EpisodeLog, update: int, collected: CollectedGroups, result: UpdateResult) -> None:
    """Write every episode as it was played, so that it can be replayed, with the advantages that it was trained with.

    Entropies of its tokens are written where they were measured.

    Args:
        log: of the run.
        update: counted from 0; a log counts updates from 1, as metrics do.
        collected: its groups are numbered by task.
        result: what was learned from them.
    """
    own, entropies = collected.advantages(result), collected.entropies(result)
    suites = [request.suite for request in collected.requests] or [""] * len(collected.played)
    for number, (suite, group) in enumerate(zip(suites, collected.played, strict=True)):
        for i, episode in enumerate(group):
            place = number, i
            log.append(
                episode,
                update=update + 1,
                group=number,
                advantages=own.get(place),
                entropies=entropies.get(place),
                suite=suite,
            )
    log.flush()


def describe(collected: CollectedGroups, result: UpdateResult) -> dict[str, float]:
    """Metrics of the rollouts, over the episodes that did not fail.

    Rewards and turns are of every trajectory that is trained on, success is the first agent's. What proposers made is not in
    the means of the policy's play; its success is told by the name of its pool.
    """
    made = {g for g, request in enumerate(collected.requests) if request.by}
    paid = zip(collected.usable, result.groups, strict=True)
    every = [(agent_group.number in made, group) for agent_group, group in paid]
    episodes = [episode for by_proposer, group in every if not by_proposer for episode in group]
    turns = [turn for episode in episodes for turn in episode.trajectory.turns]
    n = max(1, len(episodes))
    whole = {agent_group.number for agent_group in collected.usable}
    of_play = {
        "reward": sum(episode.trajectory.total_reward for episode in episodes) / n,
        "success": sum(episode.success for episode in episodes) / n,
        "turns": len(turns) / n,
        "bad_actions": sum(turn.bad_action for turn in turns) / max(1, len(turns)),
        "cut": sum(turn.reply.served.finish is Finish.LENGTH for turn in turns) / max(1, len(turns)),
        "informative": sum(result.kept) / max(1, len(result.groups)),
    }
    return {
        **(of_play if len(collected.played) > len(made) else {}),
        "groups_dropped": float(len(collected.played) - len(whole)),
        "episodes_failed": float(collected.failed),
        **{name: float(count) for name, count in collected.cost.to_json().items()},
        **collected.figures,
        **({"groups_proposed": float(len(made))} if made else {}),
        **_components([episode for _, group in every for episode in group]),
        **_foreign(episodes),
        **_sampled(collected),
    }


def _components(episodes: Sequence[Episode]) -> dict[str, float]:
    """Of each reward component, what a trajectory earned by it in the mean; nothing where all is the outcome."""
    names = sorted({name for one in episodes for turn in one.trajectory.turns for name in turn.rewards})
    return {
        f"reward/{name}": sum(part_total(one.trajectory.turns, name) for one in episodes) / len(episodes)
        for name in (names if names != ["outcome"] else ())
    }


def _foreign(episodes: Sequence[Episode]) -> dict[str, float]:
    """Of each guide, the share of episodes in which it had a hand."""
    sources = [{turn.reply.source for turn in episode.trajectory.turns} - {""} for episode in episodes]
    names = sorted(set[str]().union(*sources))
    return {f"{name}_share": sum(name in one for one in sources) / len(episodes) for name in names}


def _sampled(collected: CollectedGroups) -> dict[str, float]:
    """Metrics of what the sampler chose: tasks that were new or returned, rounds, success by suite if there are several or proposers made some."""
    requests = collected.requests
    planned = [request for request in requests if not request.by]
    returned = sum(request.visits > 0 for request in planned)
    found = {
        "tasks_new": float(len(planned) - returned),
        "tasks_returned": float(returned),
        "rounds": float(collected.rounds),
    }
    suites = sorted({request.suite for request in requests})
    for suite in suites if len(suites) > 1 or len(planned) < len(requests) else ():
        groups = [g for request, g in zip(requests, collected.played, strict=True) if request.suite == suite]
        solved = [episode.success for group in groups for episode in group if episode.outcome.counts]
        found |= {f"success/{suite}": sum(solved) / len(solved)} if solved else {}
    return found
