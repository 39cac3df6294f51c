"""Label the turns of tasks that are searched as trees, as OmegaPRM does: an episode log with ``wrong`` beside its turns.

python -m turnwise.trainers.lab.prefix_labels SUITE OUT --policy openai:MODEL       # --tasks 10 --searches 100 --forks 16

A task begins with ``--forks`` whole episodes. Each search takes the failed rollout r of a state s with the largest Q + U, where rollouts from s neither all succeed nor
all fail: Q = α^(1 − MC(s))·β^(len(r)/L), U = c·√ΣN/(1 + N(s)); MC is the share of successes, len the tokens said (letters, where nobody counted),
N how often a state was chosen. Halving finds the first turn of r after which no rollout succeeds; every state that was probed joins the tree with its rollouts.
``judging:step:OUT`` and ``judging:first:OUT`` ask about the labels (envs/judging). Luo et al. 2024 (2406.06592); α = .5, β = .9, L = 500, c = .125.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.log.records import Record, env_version, to_line
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import BranchPoint, Request, fork
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError
from turnwise.frames import frames_of
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.reward.success import success
from turnwise.trainers.strategy.omega import Halving
from turnwise.trainers.strategy.runner import RolloutRunner, RunnerResult, plan_groups

ALPHA, BETA, LENGTH, EXPLORE = 0.5, 0.9, 500, 0.125


def worth(chance: float, length: int) -> float:
    """Q of a rollout: more where its state nearly always leads to success, and where it is short.

    >>> round(worth(0.75, 100), 4)
    0.8234
    """
    return ALPHA ** (1 - chance) * BETA ** (length / LENGTH)


def unsearched(visits: int, every: int) -> float:
    """U of a state: more where it was seldom chosen.

    >>> unsearched(1, 9)
    0.1875
    """
    return EXPLORE * sqrt(every) / (1 + visits)


@dataclass
class PrefixNode:
    """A state of a task: the turns before it, the rollouts from it that came through, those that may be searched, and how often it was chosen."""

    turns: int
    rollouts: Sequence[RunnerResult]
    visits: int = 0
    left: list[RunnerResult] = field(init=False)

    def __post_init__(self) -> None:
        self.left = [one for one in self.rollouts if _longer(one.episode, self.turns)]

    @property
    def chance(self) -> float:
        """MC: the share of its rollouts that succeed."""
        return fmean(one.episode.success for one in self.rollouts)


class ChosenPrefix(NamedTuple):
    """A rollout that may be searched, and the state that it goes on from."""

    node: PrefixNode
    rollout: RunnerResult


def chosen(tree: Sequence[PrefixNode]) -> ChosenPrefix | None:
    """The rollout with the largest Q + U, the first of equals; None where none is left."""
    every = sum(node.visits for node in tree)
    choices = [ChosenPrefix(node, one) for node in tree if 0 < node.chance < 1 for one in node.left]

    def value(one: ChosenPrefix) -> float:
        length = said(one.rollout.episode, one.node.turns)
        return worth(one.node.chance, length) + unsearched(one.node.visits, every)

    return max(choices, key=value, default=None)


def said(episode: Episode, turns: int) -> int:
    """The tokens that the policy said after so many turns; letters where nobody counted tokens."""
    return sum(
        len(turn.reply.action_ids) or len(str(turn.action)) for turn in episode.trajectory.turns[turns:]
    )


async def searched(
    runner: RolloutRunner, requests: Sequence[Request], *, searches: int = 100, forks: int = 16
) -> list[Episode]:
    """The rollouts of a task that were searched, and its whole episodes that succeeded, each with ``wrong``."""
    root = [one for one in await runner(requests, branch_points=True) if one.episode.outcome.counts]
    tree = [PrefixNode(0, root)] if root else []
    labelled = [_told(one.episode, None) for one in root if one.episode.success]
    for _ in range(searches):
        choice = chosen(tree)
        if choice is None:
            break
        choice.node.visits += 1
        choice.node.left.remove(choice.rollout)
        first = await _halved(runner, choice, tree, forks)
        if first is not None:
            labelled.append(_told(choice.rollout.episode, first))
    return labelled


async def _halved(
    runner: RolloutRunner, choice: ChosenPrefix, tree: list[PrefixNode], forks: int
) -> int | None:
    """The first turn after which no rollout succeeds; None where a probe cannot be made."""
    start = choice.node.turns
    search = Halving(len(choice.rollout.episode.trajectory.turns) - start)
    while (place := search.place) is not None:
        point: BranchPoint | None = choice.rollout.branch_point(start + place + 1)
        asked = [fork(point, i) for i in range(forks)] if point else []
        played = [one for one in await runner(asked, branch_points=True) if one.episode.outcome.counts]
        if not played:
            return None
        tree.append(PrefixNode(start + place + 1, played))
        search.told(tree[-1].chance > 0)
    return start + search.first


def _longer(episode: Episode, turns: int) -> bool:
    return not episode.success and len(episode.trajectory.turns) > turns


def _told(episode: Episode, first: int | None) -> Episode:
    return with_signals(episode, [{"wrong": float(k == first)} for k in range(len(episode.trajectory.turns))])


def label(
    suite: str, out: Path | str, policy: str, *, tasks: int = 10, searches: int = 100, forks: int = 16
) -> int:
    """Write the labelled episodes of so many tasks; return how many there are.

    Raises:
        TurnwiseError: the file exists.
    """
    out = Path(out)
    if out.exists():
        raise TurnwiseError(f"{out} exists.", "Choose another file.")
    runner = RolloutRunner(make_policy(policy), success)

    async def play() -> list[list[Episode]]:
        plan = plan_groups(suite, tasks, forks)
        return [await searched(runner, requests, searches=searches, forks=forks) for requests in plan]

    found = asyncio.run(play())

    def lines() -> Iterator[bytes]:
        for number, group in enumerate(found):
            for one in group:
                record = Record(one, policy, env_version(one.task.env, {}), group=number, suite=suite)
                yield f"{to_line(record)}\n".encode()

    write_whole(out, b"".join(frames_of(lines()) if out.suffix == ".zst" else lines()))
    return sum(map(len, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite")
    parser.add_argument("out")
    parser.add_argument("--policy", required=True)
    for option, usual in (("tasks", 10), ("searches", 100), ("forks", 16)):
        parser.add_argument(f"--{option}", type=int, default=usual)
    given = parser.parse_args()
    count = label(
        given.suite, given.out, given.policy, tasks=given.tasks, searches=given.searches, forks=given.forks
    )
    print(f"{count} episodes in {given.out}")


if __name__ == "__main__":
    main()
