"""Trees that grow towards where it is worth it, leaf by leaf once more, and the rules that learn from them."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from plain import Refused, agree, each_turn, mean, reference, refuses
from played import Part, play, script
from ragged import Ragged, Rows, ragged

from turnwise.agents.core import Outcome
from turnwise.agents.policies.mixture import mixture
from turnwise.trainers.core import Group
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.runner import DryRunner, plan_groups

Path = tuple[int, ...]
"""The numbers of a leaf's turns."""
Bound = Callable[[float, float, int, int], float]
"""From a mean, a prior, and the ends counted above and here."""


@reference("strategy", "alphamath", children=[2, 3, 1], c=[0.0, 20.0], wrong=[0.0, 0.5])
def alphamath(strategy: Part, children: int = 4, c: float = 1.5, wrong: float = -1.0) -> None:
    """Q + c·prior·√N/(1 + n) of ±1; the label is the mean itself."""
    if children == 1:
        assert "is no tree" in refuses(lambda: play(strategy, script(), 1, 9))
        return
    grows(
        strategy, children, lambda q, prior, above, n: q + c * prior * above**0.5 / (n + 1), lambda x: x + wrong * (1 - x), lambda x: x
    )  # fmt: skip


@reference("strategy", "propa", children=[2, 3, 1], c=[0.0, 20.0])
def propa(strategy: Part, children: int = 4, c: float = 1.0) -> None:
    """V/n + c·√(2 ln N/n) of 0 and 1; the label is boosted."""
    if children == 1:
        assert "is no tree" in refuses(lambda: play(strategy, script(), 1, 9))
        return
    grows(
        strategy, children, lambda q, _, above, n: q + c * math.log(above**2) ** 0.5 / n**0.5, lambda x: x,
        lambda x: math.log(1 + 10 * x, 11),
    )  # fmt: skip


def grows(
    strategy: Part,
    children: int,
    bound: Bound,
    worth: Callable[[float], float],
    label: Callable[[float], float],
) -> None:
    assert "rollout.group_size" in refuses(lambda: play(strategy, script(), 1, children))
    size = 24
    for policy in (script(), mixture("demonstrator=0.5,random=0.5")):
        found, alone = play(strategy, policy, 1, size)
        for group, whole in zip(found, alone, strict=True):
            for one, plain in zip(group[:children], whole, strict=False):
                if policy.name == "toned":
                    assert [str(t.action) for t in one.trajectory.turns] == [
                        str(t.action) for t in plain.episode.trajectory.turns
                    ]
            _is_grown(group, size, children, bound, worth)
            _is_labelled(group, worth, label)
    known = frozenset(one.seed for group in plan_groups("shop/quick", 1, size) for one in group)
    lame = dataclasses.replace(script(), knows=known)  # pyright: ignore
    (group,), _ = play(strategy, lame, 1, size)
    assert [one.outcome.counts for one in group] == [n < children for n in range(len(group))]
    assert not any(turn.signals for one in group[children:] for turn in one.trajectory.turns)
    _is_labelled(group[:children], worth, label)
    dry = asyncio.run(strategy(DryRunner(as_is), plan_groups("shop/quick", 1, size)))
    assert [len(group) for group in dry] == [children]


def paths_of(group: Group) -> list[Path]:
    """Each leaf's turns by number, in the order in which they were met; a turn that is met again says its number, one that never is says 0."""
    found, seen = list[Path](), 0
    for one in group:
        path: Path = ()
        for k, turn in enumerate(one.trajectory.turns):
            told = int(turn.signals["edge"])
            if not told or (*path, told) not in {other[: k + 1] for other in found}:
                seen += 1
                assert told in (0, seen)
                told = seen
            path = (*path, told)
        found.append(path)
    for one, path in zip(group, found, strict=True):
        for k, turn in enumerate(one.trajectory.turns):
            met = sum(other[: k + 1] == path[: k + 1] for other in found)
            assert turn.signals["edge"] == (path[k] if met > 1 else 0)
    return found


def _is_grown(group: Group, size: int, children: int, bound: Bound, worth: Callable[[float], float]) -> None:
    """Each round of leaves branches off where the bound says, from what was known before it."""
    paths, i = paths_of(group), 0
    while i < len(group):
        at = _chosen(group[:i], paths[:i], children, bound, worth) if i else ()
        assert at is not None
        kids = {path[: len(at) + 1] for path in paths[:i] if path[: len(at)] == at}
        for _ in range(min(size - i, children - len(kids))):
            assert paths[i][: len(at)] == at
            assert paths[i][: len(at) + 1] not in {path[: len(at) + 1] for path in paths[:i]}
            parent = next((n for n in range(i) if paths[n][: len(at)] == at), None)
            if parent is not None:
                shared = group[parent].trajectory.turns[: len(at)]
                assert [t.reply for t in group[i].trajectory.turns[: len(at)]] == [t.reply for t in shared]
            i += 1
    assert len(group) == size or _chosen(group, paths, children, bound, worth) is None
    fresh = [str(turn.action) for one in group for turn in one.trajectory.turns]
    assert len({*fresh}) > 1


def _chosen(
    group: Group, paths: Sequence[Path], children: int, bound: Bound, worth: Callable[[float], float]
) -> Path | None:
    def kids(at: Path) -> list[Path]:
        return sorted(
            {path[: len(at) + 1] for path in paths if path[: len(at)] == at and len(path) > len(at)}
        )

    def through(at: Path) -> list[float]:
        return [
            worth(float(one.success)) for one, path in zip(group, paths, strict=True) if path[: len(at)] == at
        ]

    def left(at: Path) -> bool:
        return at not in paths and (len(kids(at)) < children or any(left(kid) for kid in kids(at)))

    def prior(at: Path) -> float:
        first = next(one for one, path in zip(group, paths, strict=True) if path[: len(at)] == at)
        said = first.trajectory.turns[len(at) - 1].reply.logprobs or ()
        return math.prod(math.exp(x) for x in said) ** (1 / len(said)) if said else 1 / children

    at: Path = ()
    while len(kids(at)) >= children:
        ways = [kid for kid in kids(at) if left(kid)]
        if not ways:
            return None
        best = [bound(mean(through(kid)), prior(kid), len(through(at)), len(through(kid))) for kid in ways]
        at = ways[max(range(len(ways)), key=lambda n, best=best: (best[n], -n))]
    return at


def _is_labelled(group: Group, worth: Callable[[float], float], label: Callable[[float], float]) -> None:
    paths = paths_of(group)
    for one, path in zip(group, paths, strict=True):
        assert one.outcome is not Outcome.INFRA_ERROR
        for k, turn in enumerate(one.trajectory.turns):
            ends = [
                worth(float(other.success))
                for other, p in zip(group, paths, strict=True)
                if p[:k] == path[:k]
            ]
            assert {*turn.signals} == {"edge", "tree_value"}
            assert abs(turn.signals["tree_value"] - label(mean(ends))) < 1e-9


# --- rules ------------------------------------------------------------------------------------------------------


def forest(seed: int) -> Ragged:
    """A ragged batch whose episodes grew out of each other: some go on from the first turns of one before."""
    r, rng = ragged(seed), random.Random(f"forest {seed}")
    number, edge = [0] * len(r), [[0.0] * len(row) for row in r.rewards]  # each group counts for itself
    for i in range(len(r)):
        before = [j for j in r.peers(i) if j < i]
        if before and rng.random() < 0.8:
            j = rng.choice(before)
            for k in range(rng.randint(0, min(len(edge[i]), len(edge[j])))):
                number[r.group[i]] += 1
                edge[j][k] = edge[j][k] or float(number[r.group[i]])
                edge[i][k] = edge[j][k]
    return dataclasses.replace(r, turns={**r.turns, "edge": edge})


def bush(won: int, through: int) -> Ragged:
    """One turn, by which so many went of whom some won, and another, by which one went and lost."""
    n = through + 1
    return dataclasses.replace(
        ragged(0),
        rewards=[[float(i < won)] for i in range(n)], group=[0] * n, truncated=[False] * n, states=[[0]] * n,
        turns={"edge": [[float(i < through)] for i in range(n)]}, whole={}, ids=[[[0]]] * n, tokens={}, parents=[[-1]] * n,
        callers=[[-1]] * n, role=[],
    )  # fmt: skip


def trees_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """On batches with pairs that share turns, as for other rules, and on trees."""
    by_hand = [bush(1, 9), bush(2, 5), bush(1, 8)]
    for r in [ragged(seed) for seed in range(11)] + [forest(seed) for seed in range(24)] + by_hand:
        try:
            expected = formula(r)
        except Refused:
            assert "compares what is alike" in refuses(lambda r=r: part(r.batch()))
            continue
        found = part(r.batch())
        assert not found[~r.batch().mask_BK].any()
        for i, row in enumerate(expected):
            for k, x in enumerate(row):
                agree(found[i, k].item(), x, f"trajectory {i}, turn {k}")


def together(r: Ragged, i: int, k: int) -> list[int]:
    """The trajectories of i's group that have i's k-th turn too, itself among them, as they had all before."""
    if k < 0:
        return r.peers(i)
    edge = r.turns["edge"]
    return [
        j
        for j in together(r, i, k - 1)
        if j == i or (k < len(edge[j]) and edge[j][k] == edge[i][k] and edge[i][k] > 0)
    ]


@reference(
    "credit", "propa", law=trees_law, least=[0.4, 0.0], success=[0.4], trains=["value"], also=[{"least": 0.4, "success": 0.4}]
)  # fmt: skip
def propa_rule(r: Ragged, least: float = 0.1, success: float = 1.0, trains: str = "") -> Rows:
    if least <= 0:
        raise Refused

    def of(i: int, k: int) -> float:
        ways = {tuple(together(r, j, k)) for j in together(r, i, k - 1) if k < len(r.rewards[j])}
        x = {way: mean([float(r.returns[j] >= success - 1e-6) for j in way]) for way in sorted(ways)}
        if max(x.values()) - min(x.values()) < least - 1e-6:
            return 0.0
        y = {way: math.log(1 + 10 * share, 11) for way, share in x.items()}
        middle = mean([*y.values()])
        spread = (sum((z - middle) ** 2 for z in y.values()) / (len(y) - 1)) ** 0.5
        own = tuple(together(r, i, k))
        return (y[own] - middle) / spread / len(own)

    return each_turn(r, of)


@reference("credit", "alphamath", law=trees_law, success=[0.4], trains=[""])
def alphamath_rule(r: Ragged, success: float = 1.0, trains: str = "value") -> Rows:
    def of(i: int, k: int) -> float:
        won = [r.returns[j] >= success - 1e-6 for j in together(r, i, k)]
        return 1 / sum(won) if r.returns[i] >= success - 1e-6 else 0.0

    return each_turn(r, of)
