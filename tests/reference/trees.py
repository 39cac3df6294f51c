"""Credit rules over the tree of a group's states, or over episodes that branched."""

from __future__ import annotations

from math import exp

from plain import Refused, deviation, each_turn, mean, others, reference, to_go
from ragged import Ragged, Rows


def through(r: Ragged, i: int, k: int) -> list[int]:
    """The trajectories of the group that came to i's k-th turn by the same states."""
    return [j for j in r.peers(i) if r.states[j][: k + 1] == r.states[i][: k + 1] and len(r.states[j]) > k]


def value(r: Ragged, i: int, k: int) -> float:
    """Mean return of those who came by; after the last turn the own return."""
    return mean([r.returns[j] for j in through(r, i, k)]) if k < len(r.states[i]) else r.returns[i]


@reference("credit", "spo_tree")
def spo_tree(r: Ragged) -> Rows:
    return each_turn(r, lambda i, k: value(r, i, k + 1) - value(r, i, k))


@reference("credit", "tempo")
def tempo(r: Ragged) -> Rows:
    def of(i: int, k: int) -> float:
        returns = [r.returns[j] for j in r.peers(i)]
        step = value(r, i, k + 1) - value(r, i, k)
        return (r.returns[i] - mean(returns) + step) / (deviation(returns) + 1e-6)

    return each_turn(r, of)


@reference(
    "credit", "branch_grpo", fuse=["logp", "progress", "long_logp"], skip=[2, -1], skip_from=[2, 0],
    also=[{"fuse": "logp", "skip": 1, "skip_from": 2}, {"skip": 9, "skip_from": 2}, {"skip": 2, "skip_from": 3}],
)  # fmt: skip
def branch_grpo(r: Ragged, fuse: str | None = None, skip: int = 0, skip_from: int = 1) -> Rows:
    if skip < 0 or skip_from < 1:
        raise Refused

    def child(j: int, k: int) -> tuple[object, ...]:
        """The node that turn k of j leads to."""
        return ("leaf", j) if k + 1 == len(r.states[j]) else tuple(r.states[j][: k + 2])

    def worth(i: int, k: int) -> float:
        """Of the node before turn k, which is after turn k − 1."""
        if fuse is None or k == len(r.states[i]):
            return value(r, i, k)
        children: dict[object, tuple[list[float], float]] = {}
        for j in through(r, i, k):
            said, _ = children.get(child(j, k), ([], 0.0))
            children[child(j, k)] = ([*said, r.turns[fuse][j][k]], worth(j, k + 1))
        likely = {name: mean(said) for name, (said, _) in children.items()}
        weight = {name: exp(x - max(likely.values())) for name, x in likely.items()}
        return sum(weight[name] * x for name, (_, x) in children.items()) / sum(weight.values())

    def of(i: int, k: int) -> float:
        nodes = {child(j, k): worth(j, k + 1) for j in r.peers(i) if k < len(r.states[j])}
        every = [*nodes.values()]
        spread = deviation(every)
        if spread <= 1e-6 or skip_from <= k + 1 < skip_from + skip:
            return 0.0
        return (worth(i, k + 1) - mean(every)) / (spread + 1e-8)

    return each_turn(r, of)


@reference("credit", "siblings")
def siblings(r: Ragged) -> Rows:
    G = [to_go(row) for row in r.rewards]

    def of(i: int, k: int) -> float:
        if not others(r, i):
            return 0.0
        met = [G[j][k] for j in through(r, i, k) if j != i]
        return G[i][k] - (
            mean(met) if met else mean([G[j][k] if k < len(G[j]) else 0.0 for j in others(r, i)])
        )

    return each_turn(r, of)


@reference("credit", "tree")
def tree(r: Ragged) -> Rows:
    G, edge = [to_go(row) for row in r.rewards], r.turns["edge"]
    w = [row[0] for row in r.turns["leaf_weight"]]

    def share(i: int, j: int, k: int) -> bool:
        return k < len(edge[i]) and k < len(edge[j]) and edge[i][k] == edge[j][k] > 0

    def of(i: int, k: int) -> float:
        apart = [j for j in others(r, i) if not share(i, j, k)]
        branched = [j for j in apart if k > 0 and share(i, j, k - 1)]
        against = branched or apart
        if not against:
            return w[i] * G[i][k] if others(r, i) else 0.0
        total = sum(w[j] for j in against)
        return w[i] * (G[i][k] - sum(w[j] * (G[j][k] if k < len(G[j]) else 0.0) for j in against) / total)

    return each_turn(r, of)


def conversations(r: Ragged, i: int, k: int) -> list[tuple[int, int]]:
    """From the outermost conversation to the turn's own: the conversation's first turn, and the turn that stands there."""
    first, place = k, k
    while (parent := r.parents[i][first]) >= 0 and r.parents[i].index(parent) == first:
        first = parent
    caller = r.callers[i][first] if r.parents[i][first] < 0 else -1
    return [*(conversations(r, i, caller) if caller >= 0 else ()), (first, place)]


def told(r: Ragged, i: int, k: int, j: int) -> bool:
    """Whether turn j may have been told of turn k, which is before it."""
    for depth, ((conversation, here), (other, there)) in enumerate(
        zip(conversations(r, i, k), conversations(r, i, j), strict=False)
    ):
        if conversation != other:
            return depth == 0  # of two that one turn called, neither is told of the other
        if here != there:
            return here < there
    return True


@reference("credit", "branch_return")
def branch_return(r: Ragged) -> Rows:
    D = [
        [row[k] + sum(row[j] for j in range(k + 1, len(row)) if told(r, i, k, j)) for k in range(len(row))]
        for i, row in enumerate(r.rewards)
    ]

    def of(i: int, k: int) -> float:
        met = [D[j][k] if k < len(D[j]) else 0.0 for j in others(r, i)]
        return D[i][k] - mean(met) if met else 0.0

    return each_turn(r, of)
