"""Prefixes: a demonstrator plays the first turns, and the policy goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved, only_read

MARK = "guide/prefix"


@dataclass
class PrefixedPolicy:
    """Lets one policy begin and another one go on; ``turns`` by the id of the task."""

    name: str
    first: Policy
    then: Policy
    turns: Mapping[str, int]

    @property
    def version(self) -> int:
        return self.then.version

    async def act(self, history: History) -> Reply:
        if len(history.turns) >= self.turns[history.task.id]:
            return await self.then.act(history)
        return (await self.first.act(history))._replace(source=MARK)

    def close(self) -> None:
        """Whoever made the two policies closes them."""


@component("guide", "prefix", paper="2306.11816", only_read=True)
async def prefix(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    demonstrator: str = "gold",
    share: float = 1.0,
    length: float | Literal["random"] = "random",
    where: Literal["unsolved", "all"] = "unsolved",
) -> list[Group]:
    """Plays groups again from where a demonstrator has already gone some of the way; only the policy's turns are learned.

    ``demonstrator`` plays the task to its end once, T turns; the policy then plays every episode of the group after
    its first k, k drawn from 1 … T − 1 for the group (``length: random``) or round(length·T) of them, at least 1 and at
    most T − 1. Of Chang et al. 2023 it is PPO++ alone, with one k for a group (ours), so that its members have one first state of
    their own and serve as one another's baseline. With ``where: unsolved`` only groups that nobody solved are played
    again (ours), and of the groups in question each is by chance ``share``. A task that the demonstrator does not
    solve, or that has one turn, stays as it was played. Turns of the demonstrator are read and carry no loss.
    Left out: AggreVaTeD, in which the policy begins and the guide goes on, LOLS and D²LOLS, which mix the two, and a model as the guide.

    It changes the objective: tasks are trained from other first states than they are evaluated from. With ``where: all`` and
    a rule that is unbiased, to (1 − share)·J + share·E_k J_k, exactly; with ``unsolved`` what such groups would have taught is
    lost, which is nothing where the outcome is the only reward (docs/recipe-bias.md).

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(prefix, "shop/quick", groups=1, size=2, length=0.5)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][:3] for episode in guided[0]]
    [['guide/prefix', 'guide/prefix', ''], ['guide/prefix', 'guide/prefix', '']]
    >>> [[turn.weight for turn in episode.trajectory.turns][:3] for episode in guided[0]]
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]

    Raises:
        RecipeError: a length or a share is not a part of one.
    """
    for option, value in (("share", share), *([("length", length)] if length != "random" else [])):
        if not 0 < float(value) <= 1:
            raise RecipeError(f"guide 'prefix': {option}={value} is no part of a whole.", "Give 0 < x ≤ 1.")
    chosen = {
        number: group
        for number, group in enumerate(groups)
        if group and (where == "all" or is_unsolved(group)) and player.rng(number).random() < share
    }
    shows = DemonstrationPolicy(scripted(demonstrator), player.renderer)
    shown = await player({number: group[:1] for number, group in chosen.items()}, shows)
    turns: dict[str, int] = {}
    for number, (episode,) in shown.items():
        T = len(episode.trajectory.turns)
        if episode.success and T > 1:
            k = player.rng(number, 1).randrange(1, T) if length == "random" else round(float(length) * T)
            turns[episode.task.id] = min(max(1, k), T - 1)
    again = {number: group for number, group in chosen.items() if group[0].task.id in turns}
    guided = await player(again, PrefixedPolicy(MARK, shows, player.policy, turns))
    return [
        [only_read(episode) for episode in guided[number]] if number in guided else [*group]
        for number, group in enumerate(groups)
    ]
