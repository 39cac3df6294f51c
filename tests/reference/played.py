"""Strategies: on a small shop, with a script that acts by chance, and every fork played once more."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from itertools import chain as concatenate
from statistics import fmean, stdev
from typing import Any, NamedTuple

from plain import mean, reference, refuses

from turnwise.agents.core import Episode, History, Outcome, Policy, Reply
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.rollout import BranchPoint, fork, run_episodes
from turnwise.errors import EngineError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.runner import DryRunner, RolloutRunner, RunnerResult, plan_groups

Part = Callable[..., Any]
SUITE = "shop/quick"


@dataclasses.dataclass
class Toned:
    """A script that plays well half of the time and says how likely its tokens were; its seeds decide both."""

    inner: Policy
    knows: frozenset[int] = frozenset()  # seeds beside which it does not play, or does not begin
    only_first: bool = False
    name: str = "toned"
    version: int = 0

    async def act(self, history: History) -> Reply:
        if self.knows and history.seed not in self.knows and not (self.only_first and history.turns):
            raise EngineError("It is gone.", "None.")
        reply = await self.inner.act(history)
        rng = derive_rng("toned", history.seed, len(history.turns))
        ids = tuple(range(rng.choice([1, 2, 3])))
        return reply._replace(prompt_ids=(7,), action_ids=ids, logprobs=tuple(-rng.random() for _ in ids))

    def close(self) -> None:
        """Nothing is held."""


def script() -> Policy:
    return Toned(mixture("demonstrator=0.5,random=0.5"))


def play(
    strategy: Part, policy: Policy, groups: int, size: int, **options: Any
) -> tuple[list[Group], list[list[RunnerResult]]]:
    """The groups of a strategy, and its plan played from the start with all branch points."""
    plan = plan_groups(SUITE, groups, size)

    async def run() -> tuple[list[Group], list[list[RunnerResult]]]:
        found = await strategy(RolloutRunner(policy, as_is), plan, **options)
        runner = RolloutRunner(script(), as_is)
        return found, [await runner(requests, branch_points=True) for requests in plan]

    return asyncio.run(run())


def forked(point: BranchPoint, *names: Any) -> Episode:
    return run_episodes([fork(point, *names)], script())[0]


def actions(episode: Episode) -> list[str]:
    return [str(turn.action) for turn in episode.trajectory.turns]


@reference("strategy", "chain")
def chain(strategy: Part) -> None:
    found, alone = play(strategy, script(), 3, 2)
    assert [[*map(actions, group)] for group in found] == [
        [actions(one.episode) for one in group] for group in alone
    ]
    assert [[one.seed for one in group] for group in found] == [
        [request.seed for request in group] for group in plan_groups(SUITE, 3, 2)
    ]
    assert not any(turn.signals for group in found for one in group for turn in one.trajectory.turns)


def rest(episode: Episode, turn: int) -> float:
    return sum(one.reward for one in episode.trajectory.turns[turn:])


def spread(point: BranchPoint, count: int, *names: Any) -> tuple[float, float]:
    """Mean return of fresh rollouts from a point, and its standard error."""
    found = [rest(forked(point, *names, i), len(point.turns)) for i in range(count)]
    return fmean(found), stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0


@reference("strategy", "vine", forks=[1, 2])
def vine(strategy: Part, forks: int = 4) -> None:
    found, alone = play(strategy, script(), 2, 2)
    assert [[*map(actions, group)] for group in found] == [
        [actions(one.episode) for one in group] for group in alone
    ]
    for group, trunks in zip(found, alone, strict=True):
        for one, trunk in zip(group, trunks, strict=True):
            for k, turn in enumerate(one.trajectory.turns):
                value, error = spread((trunk if k else trunks[0]).branch_points[k], forks)
                assert abs(turn.signals["fork_value"] - value) < 1e-9, (k, turn.signals, value)
                assert abs(turn.signals["fork_error"] - error) < 1e-9
                assert turn.signals.keys() == {"fork_value", "fork_error"}
    known = frozenset(request.seed for group in plan_groups(SUITE, 2, 2) for request in group)
    lost, _ = play(strategy, dataclasses.replace(script(), knows=known), 1, 2)  # pyright: ignore
    assert [(one.outcome, one.error) for one in lost[0]] == [
        (Outcome.INFRA_ERROR, "no fork of turn 0 came through")
    ] * 2


SIZES = (3, 4)


class Counting(RolloutRunner):
    """Keeps what it was asked for, call by call: the seed from which each rollout was forked, and after how many turns."""

    calls: list[list[tuple[int, int]]]

    async def __call__(self, requests: Any, *, branch_points: bool = False) -> list[RunnerResult]:
        assert len(self.calls) < 9, "more rounds than any episode has"
        self.calls.append([(one.start.seed, len(one.start.turns)) for one in requests if one.start])
        return await super().__call__(requests, branch_points=branch_points)


def probes_by_hand(chances: Sequence[bool]) -> tuple[list[int], int]:
    """The places that are probed of a failure whose prefixes can still succeed or not, and the first that cannot.

    The book: MC > 0 → right half, MC = 0 → left half. The last one is the failure's own end.
    """
    left, probed = list(range(len(chances))), list[int]()
    while len(left) > 1:
        half = (len(left) + 1) // 2
        middle = left[half - 1]
        probed.append(middle)
        left = left[half:] if chances[middle] else left[:half]
    return probed, left[0]


def able() -> Policy:
    """Plays well more often."""
    return Toned(mixture("gold=0.5,random=0.5"))


@reference("strategy", "omega", forks=[1, 3])
def omega(strategy: Part, forks: int = 16) -> None:
    assert probes_by_hand([True] * 5 + [False] * 3) == ([3, 5, 4], 5)
    refuses(lambda: play(strategy, able(), 1, 1, forks=0))
    plan, runner = plan_groups(SUITE, *SIZES), Counting(able(), as_is)
    runner.calls = []
    found = asyncio.run(strategy(runner, plan))
    alone = [asyncio.run(RolloutRunner(able(), as_is)(requests, branch_points=True)) for requests in plan]
    rounds: dict[int, list[tuple[int, int]]] = {}
    firsts, lengths = set[int](), set[int]()
    for group, trunks in zip(found, alone, strict=True):
        for one, trunk in zip(group, trunks, strict=True):
            assert actions(one) == actions(trunk.episode)
            wrong = [turn.signals for turn in one.trajectory.turns]
            if one.success:
                assert wrong == [{"wrong": 0.0}] * len(wrong)
                continue
            T = len(wrong)
            points = trunk.branch_points[1:T]
            played_ = iter(run_episodes([fork(point, i) for point in points for i in range(forks)], able()))
            after = [sum(next(played_).success for _ in range(forks)) > 0 for _ in points]
            probed, first = probes_by_hand([*after, False])
            assert wrong == [{"wrong": float(k == first)} for k in range(T)]
            for number, place in enumerate(probed):
                rounds.setdefault(number, []).extend([(one.seed, place + 1)] * forks)
            firsts.add(first)
            lengths.add(T)
    assert runner.calls == [[], *rounds.values()], "every probe, and none besides"
    assert runner.cost.fork_steps
    assert {one.success for group in found for one in group} == {True, False}
    assert (len(firsts) > 1, len(lengths) > 1) == (True, True)
    known = frozenset(request.seed for group in plan for request in group)
    lost, _ = play(strategy, dataclasses.replace(able(), knows=known), *SIZES)  # pyright: ignore
    for one, other in zip(concatenate.from_iterable(found), concatenate.from_iterable(lost), strict=True):
        place = (len(one.trajectory.turns) - 1) // 2
        failed = not one.success and len(one.trajectory.turns) > 1
        assert other.error == (f"no fork of turn {place + 1} came through" if failed else "")
        assert other.outcome is (Outcome.INFRA_ERROR if failed else Outcome.OK)
    unplayed = asyncio.run(strategy(DryRunner(as_is), plan))
    assert not any(one.trajectory.turns for group in unplayed for one in group)
    gone, _ = play(strategy, dataclasses.replace(able(), knows=frozenset({1})), 1, 1)  # pyright: ignore
    assert gone[0][0].outcome is Outcome.INFRA_ERROR
    assert "It is gone" in gone[0][0].error


class Leaf(NamedTuple):
    """Who sampled each turn of a leaf, and its share of the tree."""

    owners: list[int]
    weight: float


def surest_least(trunk: RunnerResult, turns: int) -> list[int]:
    return largest([-mean(turn.reply.logprobs) for turn in trunk.episode.trajectory.turns], turns)


def largest(values: Sequence[float], turns: int) -> list[int]:
    """The places of the largest, in order, each looked for among those that are left."""
    left, found = dict(enumerate(values)), list[int]()
    while left and len(found) < turns:
        best = max(left.values())
        found.append(next(k for k, x in left.items() if x == best))
        del left[found[-1]]
    return sorted(found)


@reference(
    "strategy", "tree", branches=[3], at=[(0, 2), "entropy", "uncertainty"], turns=[2], probes=[3],
    also=[{"at": "uncertainty", "probes": 2}, {"at": "entropy", "branches": 3}, {"at": "entropy", "branches": 3, "turns": 2},
          {"at": "uncertainty", "probes": 2, "turns": 3}, {"at": "entropy", "turns": 9}],
)  # fmt: skip
def tree(
    strategy: Part, branches: int = 2, at: tuple[int, ...] | str = (1,), turns: int = 1, probes: int = 4
) -> None:
    levels = 1 if isinstance(at, str) else len(at)
    full = 1 + turns * (branches - 1) if isinstance(at, str) else branches**levels
    for wrong, size in (
        ({"branches": 1}, 4), ({"at": ()}, 4), ({"at": (2, 1)}, 16), ({"at": (1, 1)}, 16), ({"at": (-1,)}, 2 * branches),
        ({"at": "uncertainty", "probes": 1}, 2 * branches), ({}, full), ({}, 2 * full + 1), ({"turns": 0}, 2),
    ):  # fmt: skip
        refuses(lambda wrong=wrong, size=size: play(strategy, script(), 1, size, **wrong))
    if at == "entropy":
        silent = mixture("demonstrator=0.5,random=0.5")
        refuses(lambda: play(strategy, silent, 1, 2 * full))
    if at == "uncertainty" and branches == 2 and turns == 1:
        _is_refused_at_first(strategy, 2 * full, probes)
    found, alone = play(strategy, script(), 2, 2 * full)
    for group, whole in zip(found, alone, strict=True):
        trunks = whole[:2]
        length = [len(one.trajectory.turns) for one in group]
        leaves = [Leaf([n + 1] * length[n], 1.0) for n in range(2)]
        assert [actions(group[n]) for n in range(2)] == [actions(one.episode) for one in trunks]
        for level in range(levels):
            for n in range(len(leaves)):
                for k in _parts_at(at, level, turns, trunks, n, probes):
                    if k >= length[n]:
                        continue
                    leaves[n] = Leaf(leaves[n].owners, leaves[n].weight / branches)
                    for i in range(1, branches):
                        m = len(leaves)
                        new = [m + 1] * (length[m] - k)
                        leaves.append(Leaf([*leaves[n].owners[:k], *new], leaves[n].weight))
                        _is_fork(group[m], group[n], k)
                        if level == 0:
                            assert actions(group[m]) == actions(forked(trunks[n].branch_points[k], i))
        assert len(leaves) == len(group)
        for one, leaf in zip(group, leaves, strict=True):
            for k, turn in enumerate(one.trajectory.turns):
                sharing = [
                    other for other in leaves if k < len(other.owners) and other.owners[k] == leaf.owners[k]
                ]
                assert turn.signals == {
                    "edge": float(leaf.owners[k] if len(sharing) > 1 else 0),
                    "leaf_weight": leaf.weight * full,
                }


def _is_refused_at_first(strategy: Part, size: int, probes: int) -> None:
    """Where no probe came through nothing is known to be uncertain."""
    known = frozenset(request.seed for group in plan_groups(SUITE, 2, size) for request in group)
    lame = dataclasses.replace(script(), knows=known, only_first=True)  # pyright: ignore
    found, alone = play(strategy, lame, 2, size)
    for group, trunks in zip(found, alone, strict=True):
        at = [_widest(trunks, n, probes, 1, lost_first=True)[0] for n in range(2)]
        for n, child in enumerate(group[2:4]):
            _is_fork(child, group[n], at[n])


def _parts_at(
    at: tuple[int, ...] | str, level: int, turns: int, trunks: Sequence[RunnerResult], n: int, probes: int
) -> list[int]:
    if not isinstance(at, str):
        return [at[level]]
    return surest_least(trunks[n], turns) if at == "entropy" else _widest(trunks, n, probes, turns)


def _widest(
    trunks: Sequence[RunnerResult], n: int, probes: int, turns: int, *, lost_first: bool = False
) -> list[int]:
    errors = [
        0.0 if lost_first and k == 0 else spread(trunks[n if k else 0].branch_points[k], probes, "probe")[1]
        for k in range(len(trunks[n].episode.trajectory.turns))
    ]
    return largest(errors, turns)


def _is_fork(child: Episode, parent: Episode, k: int) -> None:
    """The first k turns are the parent's own, and the next one is not."""
    same = [a.reply is b.reply for a, b in zip(child.trajectory.turns, parent.trajectory.turns, strict=False)]
    assert same == [n < k for n in range(len(same))]
    assert len(child.trajectory.turns) > k
