"""Tools of guides: groups that were played, and a player that plays more of them with help.

A guide gives every group back, some of their episodes replaced: whole tasks played anew, or on from a moment of an episode
that was played (:meth:`GuidePlayer.moments`, :meth:`GuidePlayer.go_on`). The turns that help chose carry guide/NAME
(``Reply.source``), and those that were sampled under another prompt than they are learned under carry both
(``Reply.scored_ids``). A recipe may give the tokens of a guide losses and a correction of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from turnwise.agents.core import Episode, Policy, Trajectory, Turn
from turnwise.agents.multi_agent import policy_map
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import BranchPoint, Request
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import RecipeError, RunError
from turnwise.tasks.core import Task, derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.strategy.runner import RolloutRunner, TurnPoint


class GuidePlayer:
    """Plays more episodes of an update, by the policy that is trained or with help.

    Args:
        runner: of the update; what is played here is counted there.
        policy: that is trained.
        opponents: who plays the other agents.
        seed: the run's.
        update: its number; chance comes from both.
        first: the number of the first group within the update.
        tasks: the ids of those of the update, which are of the train split; it plays no others. None: any.
    """

    def __init__(
        self,
        runner: RolloutRunner,
        policy: Policy,
        opponents: Mapping[str, Policy],
        seed: int,
        update: int,
        first: int = 0,
        tasks: frozenset[str] | None = None,
    ) -> None:
        self.policy, self.update = policy, update
        self._first, self._tasks = first, tasks
        self._runner, self._opponents = runner, opponents
        self._names = seed, update
        self._asked = 0

    @property
    def renderer(self) -> Renderer:
        """Messages ⇄ tokens, of the policy.

        Raises:
            RecipeError: the policy is no model.
        """
        return self.model.renderer

    @property
    def model(self) -> ModelPolicy:
        """The policy as a model.

        Raises:
            RecipeError: it is none.
        """
        if not isinstance(self.policy, ModelPolicy):
            raise RecipeError(
                f"A guide writes tokens, and {self.policy.name!r} is no model.", "Leave the guide out."
            )
        return self.policy

    def rng(self, group: int, *names: int) -> Any:
        """The chance of a group, a function of (seed, update, group)."""
        return derive_rng("guide", *self._names, self._first + group, *names)

    def rng_of_update(self) -> Any:
        """The chance of an update, a function of (seed, update)."""
        return derive_rng("guide", *self._names)

    def requests(self, groups: Mapping[int, Group]) -> dict[int, list[Request]]:
        """As many episodes of these groups' tasks as each group has, with seeds that no other episode has."""
        return self._requests({n: [(episode.task, None) for episode in group] for n, group in groups.items()})

    def _requests(
        self, starts: Mapping[int, Sequence[tuple[Task, BranchPoint | None]]]
    ) -> dict[int, list[Request]]:
        self._asked += 1

        def request(number: int, i: int, task: Task, start: BranchPoint | None) -> Request:
            names = (*self._names, self._first + number, i, self._asked)
            return Request(task, derive_rng("guided", *names).getrandbits(62), start, names)

        return {
            number: [request(number, i, *begun) for i, begun in enumerate(every)]
            for number, every in starts.items()
        }

    async def play(
        self, requests: Mapping[int, Sequence[Request]], policy: Policy
    ) -> dict[int, list[Episode]]:
        """Play these episodes by ``policy``.

        Raises:
            RunError: a task is not one of the update's.
        """
        every = [request for asked in requests.values() for request in asked]
        strange = [one.task.id for one in every if self._tasks is not None and one.task.id not in self._tasks]
        if strange:
            raise RunError(
                f"A guide would play the task {strange[0]}, which is none of update {self.update + 1}.",
                "Play the tasks of the groups that it is given; what it is evaluated on is not for guides.",
            )
        played = iter(await self._runner.playing(policy_map(policy, self._opponents))(every))
        return {number: [next(played).episode for _ in asked] for number, asked in requests.items()}

    async def __call__(self, groups: Mapping[int, Group], policy: Policy) -> dict[int, list[Episode]]:
        """Play as many episodes of these groups' tasks as each group has, by ``policy``, with seeds of their own."""
        return await self.play(self.requests(groups), policy)

    async def moments(self, wanted: Sequence[TurnPoint]) -> list[BranchPoint | None]:
        """The points before turns of episodes that were played, for :meth:`go_on`: their actions are made again, without a token.

        None where the environment fails, has several agents, or comes to another state than it did.
        """
        self._asked += 1
        return await self._runner.moments(wanted, *self._names, self._first, self._asked)

    async def go_on(
        self, points: Mapping[int, Sequence[BranchPoint]], policy: Policy
    ) -> dict[int, list[Episode]]:
        """Play an episode from each of these points, by number of the group, by ``policy``, with seeds of their own.

        Its turns before the point are those that were played then, with their tokens, log-probabilities and contexts.
        """
        starts = {n: [(point.task, point) for point in every] for n, every in points.items()}
        return await self.play(self._requests(starts), policy)


Guide: TypeAlias = Callable[[GuidePlayer, Sequence[Group]], Awaitable[list[Group]]]
"""Groups → as many groups of the same tasks, some of whose episodes were played again with help. A guide that remembers is a
class, made once for a run with its options, and is Stateful."""


@runtime_checkable
class PlaysInstead(Protocol):
    """A guide that may play every episode itself, so that plain play before it would be wasted.

    Where ``instead`` is true and the guide is a recipe's first, it is given episodes that ended before their first turn, and
    gives none of them back.
    """

    @property
    def instead(self) -> bool: ...


@runtime_checkable
class ReplacesFailures(Protocol):
    """A guide of which every episode that it leaves in a group stands where one counted and failed, if ``replaces_failures`` is true.

    A sampler that adds episodes by how many of the first ones succeeded can then be asked again from the log alone.
    """

    @property
    def replaces_failures(self) -> bool: ...


def replaces_failures(guide: object) -> bool:
    """Say whether a guide, or its class, says so of itself."""
    return isinstance(guide, ReplacesFailures) and guide.replaces_failures


def plays_instead(guides: Sequence[Guide]) -> bool:
    """Say whether the first of the guides plays in place of the policy alone."""
    return bool(guides) and isinstance(guides[0], PlaysInstead) and guides[0].instead


def check_played(groups: Sequence[Group], unplayed: Sequence[Group], *, shared_turns: bool) -> None:
    """Refuse what guides leave behind that nobody can learn from.

    Raises:
        RunError: an episode of ``unplayed`` is still there, or two episodes hold one and the same turn that both would teach,
            as what goes on from one episode's moment does, and no guide declares ``shared_turns``.
    """
    left = {id(episode) for group in unplayed for episode in group}
    for group in groups:
        if any(id(episode) in left for episode in group):
            raise RunError(
                f"A guide plays in place of the policy, and left an episode of task {group[0].task.id} unplayed.",
                "Let it play whatever it cannot help by `player(groups, player.policy)`.",
            )
        replies = [
            id(turn.reply)
            for episode in group
            for one in episode.trajectories.values()
            for turn in one.turns
            if turn.weight
        ]
        if len({*replies}) < len(replies) and not shared_turns:
            raise RunError(
                f"Two episodes of task {group[0].task.id} share a turn after a guide, which would be learned twice.",
                "Let one of them read it (`Turn.weight` 0), or register the guide with shared_turns=True and use a credit rule that allows "
                "for it.",
            )


def is_solved(group: Group) -> bool:
    """Say whether any episode of a group, of those that count, solved its task."""
    return any(episode.success for episode in group if episode.outcome.counts)


def is_unsolved(group: Group) -> bool:
    """Say whether a group has episodes that count and none of them solved its task."""
    return any(episode.outcome.counts for episode in group) and not is_solved(group)


def only_read(episode: Episode) -> Episode:
    """The episode in which turns that the policy did not choose are read and not learned."""

    def read(turn: Turn) -> Turn:
        return replace(turn, weight=0.0) if turn.reply.source else turn

    return replace(
        episode,
        trajectories={
            name: Trajectory(tuple(map(read, one.turns)), one.agent, one.final)
            for name, one in episode.trajectories.items()
        },
    )
