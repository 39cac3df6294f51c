"""Prefixes: a demonstrator plays the first turns, and the policy goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.rollout import Request
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved, only_read
from turnwise.trainers.guide.rows import expert

MARK = "guide/prefix"


@dataclass
class PrefixedPolicy:
    """Lets one policy begin and another one go on; ``turns`` by the seed of the episode. ``marked`` of the two carries the name."""

    name: str
    first: Policy
    then: Policy
    turns: Mapping[int, int]
    marked: Literal["first", "then"] = "first"

    @property
    def version(self) -> int:
        return self.then.version

    async def act(self, history: History) -> Reply:
        begins = len(history.turns) < self.turns[history.seed]
        reply = await (self.first if begins else self.then).act(history)
        return reply._replace(source=self.name) if begins == (self.marked == "first") else reply

    def close(self) -> None:
        """The maker of the two policies closes them."""


@component("guide", "prefix", paper="2306.11816", only_read=True)
async def prefix(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    demonstrator: str = "gold",
    share: float = 1.0,
    length: float | Literal["random"] = "random",
    where: Literal["unsolved", "all"] = "unsolved",
    method: Literal["ppo++", "aggrevate", "lols", "d2lols"] = "ppo++",
    mix: float = 0.8,
    until: int = 20,
    each: bool = False,
) -> list[Group]:
    """Plays groups again from where a demonstrator has already gone some of the way; only the policy's turns are learned.

    ``demonstrator`` plays the task to its end once, T turns; the policy then plays every episode of the group after
    its first k, k drawn from 1 … T − 1 for the group (``length: random``) or round(length·T) of them, at least 1 and at
    most T − 1. That is PPO++ of RLGF (Chang et al. 2023), with one k for a group (ours), so that its members have one first state of
    their own and serve as one another's baseline; with ``each`` every row has a chance ``share`` and a k of its own, as in the paper. With
    ``method: aggrevate`` the policy plays the first k turns and the demonstrator goes on: the policy's are learned, by what the
    demonstrator made of them (AggreVaTeD). ``lols`` takes PPO++ in an update by chance ``mix``, else AggreVaTeD; ``d2lols``
    AggreVaTeD in the first ``until`` updates, then PPO++. The paper: mix 0.8, until 20 to 200, share 0.6 to 1. With ``where: unsolved`` only groups that nobody solved are played
    again (ours), and of the groups in question each is by chance ``share``. A task that the demonstrator does not
    solve, or that has one turn, stays as it was played. Turns of the demonstrator are read and carry no loss.
    ``demonstrator`` is a script, or any policy's spec, such as a model's. Worked by hand: of 5 turns and k = 2 PPO++ learns 0 0 1 1 1, AggreVaTeD 1 1 0 0 0.

    It changes the objective: tasks are trained from other first states than they are evaluated from. With ``where: all`` and
    a rule that is unbiased, to (1 − share)·J + share·E_k J_k, exactly; with ``unsolved`` what such groups would have taught is
    lost, which is nothing where the outcome is the only reward (docs/recipe-bias.md).

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(prefix, "shop/quick", groups=1, size=2, length=0.5)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][:3] for episode in guided[0]]
    [['guide/prefix', 'guide/prefix', ''], ['guide/prefix', 'guide/prefix', '']]
    >>> [[turn.weight for turn in episode.trajectory.turns][:3] for episode in guided[0]]
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    >>> plain, guided = played_with(prefix, "shop/quick", groups=1, size=2, length=0.5, method="aggrevate")
    >>> [[turn.weight for turn in episode.trajectory.turns][:3] for episode in guided[0]]
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]

    Raises:
        RecipeError: a length or a share is not a part of one.
    """
    for option, value in (
        ("share", share),
        ("mix", mix),
        *([("length", length)] if length != "random" else []),
    ):
        if not 0 < float(value) <= 1:
            raise RecipeError(f"guide 'prefix': {option}={value} is no part of a whole.", "Give 0 < x ≤ 1.")
    chosen = {
        number: group
        for number, group in enumerate(groups)
        if group and (where == "all" or is_unsolved(group)) and (each or player.rng(number).random() < share)
    }
    shows = expert(demonstrator, player)
    shown = await player({number: group[:1] for number, group in chosen.items()}, shows)
    lengths = {
        number: len(episode.trajectory.turns)
        for number, (episode,) in shown.items()
        if episode.success and len(episode.trajectory.turns) > 1
    }
    asked = player.requests({number: chosen[number] for number in lengths})
    rows: dict[int, dict[int, Request]] = {
        number: {
            i: one for i, one in enumerate(every) if not each or player.rng(number, 2, i).random() < share
        }
        for number, every in asked.items()
    }
    turns = {
        one.seed: _begun(player.rng(number, 1, i) if each else player.rng(number, 1), lengths[number], length)
        for number, every in rows.items()
        for i, one in every.items()
    }
    begins = _begins(player, method, mix, until)
    plays = (shows, player.policy) if begins else (player.policy, shows)
    by = PrefixedPolicy(MARK, *plays, turns, "first" if begins else "then")
    guided = await player.play({number: [*every.values()] for number, every in rows.items()}, by)
    changed = [[*group] for group in groups]
    for number, every in rows.items():
        for i, episode in zip(every, guided[number], strict=True):
            changed[number][i] = only_read(episode)
    return [*changed]


def _begun(rng: Random, T: int, length: float | Literal["random"]) -> int:
    """How many of T turns are played by whoever begins: at least one, and not all."""
    k = rng.randrange(1, T) if length == "random" else round(float(length) * T)
    return min(max(1, k), T - 1)


def _begins(player: GuidePlayer, method: str, mix: float, until: int) -> bool:
    """Say whether the demonstrator begins in this update, and the policy goes on."""
    if method == "lols":
        return player.rng_of_update().random() < mix
    return method == "ppo++" or (method == "d2lols" and player.update >= until)
