"""Trees: episodes that share their beginning, so that what differs after it has one cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from torch import Tensor

from turnwise.agents.core import Episode, Turn
from turnwise.agents.rollout import fork
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.strategy.runner import Plan, RolloutRunner, RunnerResult
from turnwise.trainers.strategy.vine import fork_values, value_of

Chosen: TypeAlias = Literal["entropy", "uncertainty"]
"""Each episode branches at a turn of its own."""


@dataclass(frozen=True)
class Leaf:
    """An episode of a tree: who sampled each of its turns, and its share of the tree."""

    played: RunnerResult
    owners: tuple[int, ...]  # by turn, the number of the leaf that sampled it
    weight: float

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.played.episode.trajectory.turns


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    """Trajectories are drawn apart: no turn is shared."""
    return {"edge": 0.0 * turns_of(p), "leaf_weight": turns_of(p)}


@component(
    "strategy",
    "tree",
    paper="2505.23564",
    gives=("edge", "leaf_weight"),
    whole_groups=True,
    shared_turns=True,
    stand_in=_stand_in,
)
async def tree(
    runner: RolloutRunner,
    plan: Plan,
    *,
    branches: int = 2,
    at: tuple[int, ...] | Chosen = (1,),
    turns: int = 1,
    probes: int = 4,
) -> list[Group]:
    """Some episodes from the start; at the chosen turns each one goes on in ``branches`` ways.

    ``at`` names turns from 0, in order (fixed); every episode that gets there branches. Otherwise each root
    branches at ``turns`` turns, and what branched off does not: with ``"entropy"`` at the turn whose sampled tokens were the least likely on average (needs a
    policy that reports log-probabilities); with ``"uncertainty"`` where what comes of it is least certain: from the
    state before each turn ``probes`` fresh rollouts are played, and the turn with the widest spread of returns is
    taken, the earliest if several are. A group of n has n / branches^len(at) roots, or n / (1 + (branches − 1)·turns); those that
    end before a branch, or have fewer turns, leave it with fewer episodes. ETMR of ETTRL (2508.11356) is ``at: entropy``: M roots, each of which goes
    on in B = branches − 1 other ways at its N = ``turns`` turns of the highest entropy, M·(1 + B·N) episodes; M = 12, N = 2 and B = 2 are
    `{name: tree, at: entropy, turns: 2, branches: 3}` with groups of 60. After SPO-tree (Guo et al. 2025) and ARPO (2507.19849), turn by turn;
    choosing by the spread of returns is ours.

    Gives ``edge``, the same number for turns that are one and the same sample, 0 for those that only one
    episode has; and ``leaf_weight``, Π 1/branches over the branches passed, times the leaves of a full tree.
    With fixed turns the weighted leaves are distributed as the policy plays. With the others they are not quite:
    the branch is chosen by what was sampled, so unlikely (uncertain) ways lose weight. Probes are not trained on;
    their steps are in ``fork_steps``.

    >>> from turnwise.trainers.strategy.runner import try_out
    >>> groups, cost = try_out(tree, "scripted:gold", "shop/quick", groups=1, size=4)
    >>> [[int(turn.signals["edge"]) for turn in e.trajectory.turns] for e in groups[0]]
    [[1, 0, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]]
    >>> cost.steps  # two roots of 4 turns, two forks of 3
    14
    >>> leaves_of(3, "entropy", 2), 60 // leaves_of(3, "entropy", 2)  # ETMR's 60 episodes have 12 roots
    (5, 12)

    Raises:
        RecipeError: the group size does not divide into at least two full trees, or no turn is named.
    """
    full = leaves_of(branches, at, turns)
    forest = await grow(runner, plan, branches, at, probes, turns)
    return [[labelled(leaf, leaves, full) for leaf in leaves] for leaves in forest]


async def grow(
    runner: RolloutRunner,
    plan: Plan,
    branches: int,
    at: tuple[int, ...] | Chosen,
    probes: int = 4,
    turns: int = 1,
) -> list[list[Leaf]]:
    """The leaves of every group's trees, each with the branch points of all its turns."""
    full = leaves_of(branches, at, turns)
    _check(plan, branches, at, full, probes, turns)
    roots = [request for group in plan for request in group[: len(group) // full]]
    played = iter(await runner(roots, branch_points=True))
    forest = [
        [_leaf(next(played), n + 1) for n in range(len(group) // full)] for group in plan
    ]  # fmt: skip
    if at == "uncertainty":
        spread = await _uncertainty(runner, forest, probes)
        await _branch(runner, forest, branches, lambda leaf: highest(spread[id(leaf.played)], turns))
        return forest
    if at == "entropy":
        await _branch(runner, forest, branches, lambda leaf: highest([*map(_surprise, leaf.turns)], turns))
        return forest
    for turn in at:
        await _branch(runner, forest, branches, lambda leaf, turn=turn: [turn])
    return forest


def leaves_of(branches: int, at: tuple[int, ...] | Chosen, turns: int) -> int:
    """The number of leaves that a root has, itself one of them."""
    return 1 + (branches - 1) * turns if isinstance(at, str) else branches ** len(at)


def highest(values: Sequence[float], count: int) -> list[int]:
    """The places of the highest values, in order; of equals the first.

    >>> highest([0.2, 0.9, 0.5, 0.9], 2), highest([0.3, 0.3], 1), highest([], 2)
    ([1, 3], [0], [])
    """
    return sorted(sorted(range(len(values)), key=lambda k: -values[k])[:count])


def _check(plan: Plan, branches: int, at: tuple[int, ...] | str, full: int, probes: int, turns: int) -> None:
    if branches < 2 or not at or (not isinstance(at, str) and (sorted(set(at)) != list(at) or at[0] < 0)):  # pyright: ignore[reportOperatorIssue]
        raise RecipeError(
            f"strategy 'tree': branches={branches}, at={at} is no tree.",
            "Give at least two branches, and turns from 0 in rising order.",
        )
    if turns < 1:
        raise RecipeError(f"strategy 'tree': turns={turns} branch nowhere.", "Give 1 or more.")
    if at == "uncertainty" and probes < 2:
        raise RecipeError("strategy 'tree': one probe has no spread.", "Set probes to at least 2.")
    for group in plan:
        if len(group) % full or len(group) < 2 * full:
            raise RecipeError(
                f"strategy 'tree' makes {full} leaves per root, which a group of {len(group)} does not hold twice.",
                f"Set rollout.group_size to a multiple of {full}, at least {2 * full}.",
            )


def _leaf(played: RunnerResult, number: int) -> Leaf:
    return Leaf(played, (number,) * len(played.episode.trajectory.turns), 1.0)


async def _branch(
    runner: RolloutRunner, forest: list[list[Leaf]], branches: int, choose: Callable[[Leaf], Sequence[int]]
) -> None:
    """Let every leaf go on in other ways too at its branching turns, which are in order; grows ``forest``."""
    asked = [
        (group, index, turn, point)
        for group, leaves in enumerate(forest)
        for index, leaf in enumerate(leaves)
        if leaf.played.episode.outcome.counts
        for turn in choose(leaf)
        if (point := leaf.played.branch_point(turn)) is not None
    ]
    requests = [fork(point, i) for *_, point in asked for i in range(1, branches)]
    played = iter(await runner(requests, branch_points=True))
    for group, index, turn, _ in asked:
        leaves = forest[group]
        parent = replace(leaves[index], weight=leaves[index].weight / branches)
        leaves[index] = parent
        for _ in range(1, branches):
            child = next(played)
            own = len(child.episode.trajectory.turns) - turn
            owners = (*parent.owners[:turn], *(len(leaves) + 1,) * own)
            inherited = tuple(m for m in parent.played.branch_points if len(m.turns) <= turn)
            whole = RunnerResult(child.episode, inherited + child.branch_points[1:])
            leaves.append(Leaf(whole, owners, parent.weight))


def _surprise(turn: Turn) -> float:
    """Mean −log p of the sampled tokens, in nats."""
    logprobs = turn.reply.logprobs
    if not logprobs:
        raise RecipeError(
            "strategy 'tree' cannot branch by entropy: the policy reports no log-probabilities.",
            "Name the turns: rollout.strategy={name: tree, at: [1]}.",
        )
    return -sum(logprobs) / len(logprobs)


async def _uncertainty(
    runner: RolloutRunner, forest: list[list[Leaf]], probes: int
) -> dict[int, list[float]]:
    """Spread of what fresh rollouts from before each turn earn, by the identity of a leaf's play."""
    trunks = [[leaf.played for leaf in leaves] for leaves in forest]
    values = await fork_values(runner, trunks, probes, "probe")
    spread: dict[int, list[float]] = {}
    for group in trunks:
        for played in group:
            found = [
                value_of(values, group[0], played, k) for k in range(len(played.episode.trajectory.turns))
            ]
            spread[id(played)] = [value.error if value else 0.0 for value in found]
    return spread


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
