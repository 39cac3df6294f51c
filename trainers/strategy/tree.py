"""Trees: episodes that share their beginning, so that what differs after it has one cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from turnwise.agents.core import Episode, Turn
from turnwise.agents.rollout import fork
from turnwise.errors import RecipeError
from turnwise.trainers.core import Group
from turnwise.trainers.play import Plan, Played, Player
from turnwise.trainers.registry import component


@dataclass(frozen=True)
class Leaf:
    """An episode of a tree: who sampled each of its turns, and its share of the tree."""

    played: Played
    owners: tuple[int, ...]  # by turn, the number of the leaf that sampled it
    weight: float

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.played.episode.trajectory.turns


@component("strategy", "tree", paper="2505.23564", gives=("edge", "leaf_weight"))
async def tree(
    play: Player, plan: Plan, *, branches: int = 2, at: tuple[int, ...] | Literal["entropy"] = (1,)
) -> list[Group]:
    """Some episodes from the start; at the chosen turns each one goes on in ``branches`` ways.

    ``at`` names turns from 0, in order; every episode that gets there branches. With ``"entropy"`` each episode
    branches once, at the turn whose sampled tokens were the least likely on average (needs a policy that
    reports log-probabilities). A group of n has n / branches^len(at) roots; those that end before a branch
    leave it with fewer episodes. After SPO-tree (Guo et al. 2025) and ARPO (2507.19849), turn by turn.

    Gives ``edge``, the same number for turns that are one and the same sample, 0 for those that only one
    episode has; and ``leaf_weight``, Π 1/branches over the branches passed, times the leaves of a full tree.
    With fixed turns the weighted leaves are distributed as the policy plays. With ``"entropy"`` they are
    not quite: the branch is chosen by what was sampled, so unlikely actions lose weight.

    >>> from turnwise.trainers.play import try_out
    >>> groups, cost = try_out(tree, "scripted:gold", "shop/quick", groups=1, size=4)
    >>> [[int(turn.signals["edge"]) for turn in e.trajectory.turns] for e in groups[0]]
    [[1, 0, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]]
    >>> cost.steps  # two roots of 4 turns, two forks of 3
    14

    Raises:
        RecipeError: the group size does not divide into at least two full trees, or no turn is named.
    """
    full = branches ** (1 if at == "entropy" else len(at))
    forest = await grow(play, plan, branches, at)
    return [[labelled(leaf, leaves, full) for leaf in leaves] for leaves in forest]


async def grow(
    play: Player, plan: Plan, branches: int, at: tuple[int, ...] | Literal["entropy"]
) -> list[list[Leaf]]:
    """The leaves of every group's trees, each with the moments of all its turns."""
    levels = 1 if at == "entropy" else len(at)
    full = branches**levels
    _check(plan, branches, at, full)
    roots = [request for group in plan for request in group[: len(group) // full]]
    played = iter(await play(roots, moments=True))
    forest = [
        [_leaf(next(played), n + 1) for n in range(len(group) // full)] for group in plan
    ]  # fmt: skip
    for level in range(levels):
        await _branch(play, forest, branches, "entropy" if at == "entropy" else at[level])
    return forest


def _check(plan: Plan, branches: int, at: tuple[int, ...] | str, full: int) -> None:
    if branches < 2 or not at or (at != "entropy" and (sorted(set(at)) != list(at) or at[0] < 0)):  # pyright: ignore[reportOperatorIssue]
        raise RecipeError(
            f"strategy 'tree': branches={branches}, at={at} is no tree.",
            "Give at least two branches, and turns from 0 in rising order.",
        )
    for group in plan:
        if len(group) % full or len(group) < 2 * full:
            raise RecipeError(
                f"strategy 'tree' makes {full} leaves per root, which a group of {len(group)} does not hold twice.",
                f"Set rollout.group_size to a multiple of {full}, at least {2 * full}.",
            )


def _leaf(played: Played, number: int) -> Leaf:
    return Leaf(played, (number,) * len(played.episode.trajectory.turns), 1.0)


async def _branch(play: Player, forest: list[list[Leaf]], branches: int, at: int | str) -> None:
    """Let every leaf that gets to its branching turn go on in other ways too; grows ``forest``."""
    asked = [
        (group, index, turn, moment)
        for group, leaves in enumerate(forest)
        for index, leaf in enumerate(leaves)
        if (turn := _branching_turn(leaf, at)) is not None
        and (moment := leaf.played.moment(turn)) is not None
    ]
    requests = [fork(moment, i) for *_, moment in asked for i in range(1, branches)]
    played = iter(await play(requests, moments=True))
    for group, index, turn, _ in asked:
        leaves = forest[group]
        parent = replace(leaves[index], weight=leaves[index].weight / branches)
        leaves[index] = parent
        for _ in range(1, branches):
            child = next(played)
            own = len(child.episode.trajectory.turns) - turn
            owners = (*parent.owners[:turn], *(len(leaves) + 1,) * own)
            inherited = tuple(m for m in parent.played.moments if len(m.turns) <= turn)
            whole = Played(child.episode, inherited + child.moments[1:])
            leaves.append(Leaf(whole, owners, parent.weight))


def _branching_turn(leaf: Leaf, at: int | str) -> int | None:
    """The turn at which a leaf branches; None where it does not get there."""
    if not leaf.played.episode.outcome.counts:
        return None
    if isinstance(at, int):
        return at if at < len(leaf.turns) else None
    surprise = [_surprise(turn) for turn in leaf.turns]
    return max(range(len(surprise)), key=surprise.__getitem__, default=None)


def _surprise(turn: Turn) -> float:
    """Mean −log p of the sampled tokens, in nats."""
    logprobs = turn.reply.logprobs
    if not logprobs:
        raise RecipeError(
            "strategy 'tree' cannot branch by entropy: the policy reports no log-probabilities.",
            "Name the turns: rollout.strategy={name: tree, at: [1]}.",
        )
    return -sum(logprobs) / len(logprobs)


def labelled(leaf: Leaf, leaves: Sequence[Leaf], full: int) -> Episode:
    """The episode with its place in the tree written beside each turn."""
    shared = Counter((k, owner) for other in leaves for k, owner in enumerate(other.owners))
    turns = [
        replace(
            turn,
            signals={
                **turn.signals,
                "edge": float(owner if shared[k, owner] > 1 else 0),
                "leaf_weight": leaf.weight * full,
            },
        )
        for k, (turn, owner) in enumerate(zip(leaf.turns, leaf.owners, strict=True))
    ]
    trajectory = replace(leaf.played.episode.trajectory, turns=tuple(turns))
    return replace(leaf.played.episode, trajectories={trajectory.agent: trajectory})
