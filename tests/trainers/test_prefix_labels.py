"""Trees of a task's rollouts, whose failures are halved: which one is next, what it takes, and what is written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.core import Episode
from turnwise.agents.log.episodes import load_episodes
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.core import EndReason
from turnwise.errors import TurnwiseError
from turnwise.trainers.kit.toy_batches import episode, with_tokens
from turnwise.trainers.lab.prefix_labels import PrefixNode, chosen, label, searched
from turnwise.trainers.reward.success import success
from turnwise.trainers.strategy.omega import omega
from turnwise.trainers.strategy.runner import RolloutRunner, RunnerResult, plan_groups

SUITE, POLICY, FORKS = "shop/quick", "mix:demonstrator=0.75,random=0.25", 4


def rollout(tokens: list[int], *, solved: bool = False) -> RunnerResult:
    end = EndReason.SOLVED if solved else EndReason.FAILED
    return RunnerResult(with_tokens(episode([0.0] * len(tokens), end=end), tokens), ())


def test_the_next_rollout_has_the_largest_q_and_u() -> None:
    """The book: Q = α^(1 − MC)·β^(len/L), U = c·√ΣN/(1 + N), α = .5, β = .9, L = 500, c = .125, where 0 < MC < 1."""
    root = PrefixNode(0, [rollout([50, 50], solved=True)] * 3 + [rollout([60, 40])], visits=8)
    middle = PrefixNode(1, [rollout([500, 10], solved=True), rollout([500, 10])], visits=1)
    hopeless, sure = PrefixNode(1, [rollout([1, 1])]), PrefixNode(1, [rollout([1, 1], solved=True)])
    of_root = 0.5**0.25 * 0.9 ** (100 / 500) + 0.125 * 9**0.5 / 9
    of_middle = 0.5**0.5 * 0.9 ** (10 / 500) + 0.125 * 9**0.5 / 2
    assert of_middle > of_root
    tree = [root, hopeless, sure, middle]
    found = chosen(tree)
    assert found is not None
    assert (found.node, found.rollout) == (middle, middle.rollouts[1])
    middle.visits = 8
    assert 0.5**0.5 * 0.9 ** (10 / 500) + 0.125 * 16**0.5 / 9 < 0.5**0.25 * 0.9 ** (100 / 500)
    found = chosen(tree)
    assert found is not None
    assert found.node is root
    root.left.clear()
    middle.left.clear()
    assert chosen(tree) is None


def test_a_search_finds_what_halving_finds() -> None:
    """Whole episodes have the labels of the strategy `omega`, whose probes are the same; others begin within the tree."""
    ((requests,),) = [plan_groups(SUITE, 1, 8)]
    asked: list[tuple[int, int]] = []

    class Counting(RolloutRunner):
        async def __call__(self, requests: Any, *, branch_points: bool = False) -> list[RunnerResult]:
            asked.extend((one.start.seed, len(one.start.turns)) for one in requests if one.start)
            return await super().__call__(requests, branch_points=branch_points)

    def play(searches: int) -> list[Episode]:
        return asyncio.run(
            searched(Counting(make_policy(POLICY), success), requests, searches=searches, forks=FORKS)
        )

    (known,) = asyncio.run(omega(RolloutRunner(make_policy(POLICY), success), [requests], forks=FORKS))
    of_whole = {one.seed: [turn.signals["wrong"] for turn in one.trajectory.turns] for one in known}
    none = play(0)
    assert {one.seed for one in none} == {one.seed for one in known if one.success}
    assert asked == []
    found = play(30)
    assert asked
    assert all(asked.count(one) % FORKS == 0 for one in asked)
    assert len(found) > len(known), "rollouts from within were searched too"
    for one in found:
        wrong = [turn.signals["wrong"] for turn in one.trajectory.turns]
        assert sum(wrong) == float(not one.success)
        if one.seed in of_whole:
            assert wrong == of_whole[one.seed]
    assert len({one.seed for one in found}) == len(found)


def test_labels_are_a_log(tmp_path: Path) -> None:
    count = label(SUITE, tmp_path / "x.jsonl", POLICY, tasks=3, searches=2, forks=8)
    records = load_episodes(tmp_path / "x.jsonl").records
    assert len(records) == count
    assert len({record.group for record in records}) > 1
    assert all("wrong" in turn.signals for record in records for turn in record.episode.trajectory.turns)
    with pytest.raises(TurnwiseError, match="exists"):
        label(SUITE, tmp_path / "x.jsonl", POLICY)
