"""Losses of trajectories: against a reference, against each other, and by what they earned."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from math import exp, log, sqrt

from losses import METRICS, Batch, Token, kl_old
from plain import Refused, deviation, mean, reference
from ratios import between, sigmoid


def of_trajectory(batch: Batch, b: int) -> list[Token]:
    return [t for t in batch.tokens.values() if t.trajectory == b]


def read(batch: Batch) -> list[list[int]]:
    """By group, those of its members that are read."""
    every = range(len(batch.group))
    return [[b for b in every if batch.group[b] == g and batch.kept[b]] for g in sorted(set(batch.group))]


def earned(batch: Batch, b: int) -> float:
    return sum(batch.rewards[b])


def moved_away(batch: Batch, b: int, of: str = "logp") -> float:
    """Σ log π − log π_ref, each token's within ±20."""
    return sum(between(getattr(t, of) - t.reference, -20.0, 20.0) for t in of_trajectory(batch, b))


def rate(batch: Batch, b: int) -> float:
    """The success rate of the trajectory's group as it was played."""
    own = [s for s, g in zip(batch.success, batch.group, strict=True) if g == batch.group[b]]
    return mean([float(s) for s in own])


def members(batch: Batch) -> list[int]:
    return [b for group in read(batch) for b in group]


def mean_or_0(x: list[float]) -> float:
    return mean(x) if x else 0.0


# --- pairs --------------------------------------------------------------------------------------------------


def better_and_worse(batch: Batch) -> list[list[tuple[int, int]]]:
    return [
        [(a, b) for a, b in permutations(group, 2) if earned(batch, a) > earned(batch, b)]
        for group in read(batch)
    ]


def over_pairs(batch: Batch, of: Callable[[int, int], float]) -> float:
    return mean([mean_or_0([of(a, b) for a, b in pairs]) for pairs in better_and_worse(batch)])


def margins(batch: Batch, of: Callable[[int, int], float]) -> dict[str, float]:
    every = [pair for pairs in better_and_worse(batch) for pair in pairs]
    return {"margin": mean_or_0([of(a, b) for a, b in every]), "pairs": float(len(every))}


Segment = tuple[int, int]
"""A trajectory, and the number of the segment in it."""


def cut(batch: Batch, segment: int) -> dict[Segment, list[Token]]:
    """The tokens of each segment of those trajectories that are read; 0: each is one."""
    found: dict[Segment, list[Token]] = {(b, 0): [] for b in members(batch)} if not segment else {}
    for b in members(batch):
        for t in of_trajectory(batch, b):
            found.setdefault((b, t.turn // segment if segment else 0), []).append(t)
    return found


def regret(tokens: list[Token]) -> float:
    """The sum of turns' advantages, a turn's the mean of its tokens'."""
    turns = sorted({t.turn for t in tokens})
    return sum(mean([t.advantage for t in tokens if t.turn == k]) for k in turns)


def compared(batch: Batch, segment: int) -> list[list[tuple[Segment, Segment]]]:
    """By group the pairs, the better one first: trajectories by return, segments by regret where place and length agree."""
    if not segment:
        return [[((a, 0), (b, 0)) for a, b in group] for group in better_and_worse(batch)]
    pieces = cut(batch, segment)
    length = {one: len({t.turn for t in tokens}) for one, tokens in pieces.items()}
    return [
        [
            (one, two)
            for one, two in permutations([one for one in pieces if one[0] in group], 2)
            if one[1] == two[1]
            and length[one] == length[two]
            and regret(pieces[one]) > regret(pieces[two]) + 1e-9
        ]
        for group in read(batch)
    ]


def segment_margin(
    batch: Batch, alpha: float, conservative: float, discount: float, segment: int
) -> Callable[[Segment, Segment], float]:
    def score(one: Segment) -> float:
        first = one[1] * segment
        return alpha * sum(discount ** (t.turn - first) * t.logp for t in pieces[one])

    if segment < 0:
        raise Refused
    pieces = cut(batch, segment)
    return lambda a, b: score(a) - conservative * score(b)


@reference(
    "loss", "cpl", alpha=[0.5], conservative=[1.0, 0.1], discount=[0.5], segment=[2, 1, -1],
    also=[{"segment": 2, "discount": 0.5}],
)  # fmt: skip
def cpl(
    now: Batch,
    then: Batch,
    alpha: float = 0.1,
    conservative: float = 0.5,
    discount: float = 1.0,
    segment: int = 0,
) -> float:
    margin = segment_margin(now, alpha, conservative, discount, segment)
    every = compared(now, segment)
    return mean([mean_or_0([-log(sigmoid(margin(a, b))) for a, b in pairs]) for pairs in every])


def cpl_metrics(
    batch: Batch, alpha: float = 0.1, conservative: float = 0.5, discount: float = 1.0, segment: int = 0
) -> dict[str, float]:
    margin = segment_margin(batch, alpha, conservative, discount, segment)
    every = [margin(a, b) for pairs in compared(batch, segment) for a, b in pairs]
    return {"margin": mean_or_0(every), "pairs": float(len(every))}


def ahead(batch: Batch) -> Callable[[int, int], float]:
    h = {b: moved_away(batch, b) for b in members(batch)}
    return lambda a, b: h[a] - h[b]


@reference("loss", "dpo", beta=[0.5], smoothing=[0.2])
def dpo(now: Batch, then: Batch, beta: float = 0.1, smoothing: float = 0.0) -> float:
    h = ahead(now)

    def of(a: int, b: int) -> float:
        x = beta * h(a, b)
        return (1 - smoothing) * log(1 + exp(-x)) + smoothing * log(1 + exp(x))

    return over_pairs(now, of)


@reference("loss", "ipo", beta=[0.5])
def ipo(now: Batch, then: Batch, beta: float = 0.1) -> float:
    h = ahead(now)
    return over_pairs(now, lambda a, b: (h(a, b) - 1 / (2 * beta)) ** 2)


@reference("loss", "prdp", beta=[0.4], proximal=[None, 0.05, 5.0])
def prdp(now: Batch, then: Batch, beta: float = 0.1, proximal: float | None = 0.5) -> float:
    within = float("inf") if proximal is None else proximal
    h = {b: moved_away(now, b) for b in members(now)}
    old = {b: moved_away(now, b, "old") for b in members(now)}
    near = {b: between(h[b], old[b] - within, old[b] + within) for b in h}

    def of(a: int, b: int) -> float:
        paid = earned(now, a) - earned(now, b)
        return max((beta * (x[a] - x[b]) - paid) ** 2 for x in (h, near))

    return mean([mean_or_0([of(a, b) for a, b in combinations(group, 2)]) for group in read(now)])


def prediction(batch: Batch, beta: float = 0.1, proximal: float | None = 0.5) -> dict[str, float]:
    h = ahead(batch)
    off = [
        abs(beta * h(a, b) - (earned(batch, a) - earned(batch, b)))
        for group in read(batch)
        for a, b in combinations(group, 2)
    ]
    return {"error": mean_or_0(off), "kl_old": kl_old(batch)}


METRICS |= {
    "cpl": cpl_metrics,
    "dpo": lambda batch, beta=0.0, smoothing=0.0: margins(batch, ahead(batch)),
    "ipo": lambda batch, beta=0.0: margins(batch, ahead(batch)),
    "prdp": prediction,
}


# --- against a reference, one by one ------------------------------------------------------------------------


def offline_ratio(batch: Batch, t: Token, ratio: str, low: float, high: float) -> float:
    by = {"none": 1.0, "token": exp(t.logp - t.reference)}
    return between(by[ratio] if ratio in by else exp(moved_away(batch, t.trajectory)), low, high)


@reference("loss", "a_lol", ratio=["token", "none"], low=[0.7], high=[1.2])
def a_lol(now: Batch, then: Batch, ratio: str = "trajectory", low: float = 0.1, high: float = 1.9) -> float:
    return sum(
        -t.weight * max(t.advantage, 0.0) * offline_ratio(then, then.tokens[at], ratio, low, high) * t.logp
        for at, t in now.tokens.items()
    )


def used(batch: Batch, ratio: str = "trajectory", low: float = 0.1, high: float = 1.9) -> dict[str, float]:
    good = [t for t in batch.tokens.values() if t.advantage > 0]
    weights = [t.advantage * offline_ratio(batch, t, ratio, low, high) for t in good]
    return {"used": len(good) / len(batch.tokens), "imitation": mean_or_0(weights)}


def baseline(batch: Batch) -> float:
    return max(0.0, mean([moved_away(batch, b) for b in members(batch)]))


@reference("loss", "kto", beta=[0.5], desirable=[0.4], undesirable=[1.7])
def kto(
    now: Batch, then: Batch, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0
) -> float:
    middle = baseline(then)
    found: list[float] = []
    for b in members(now):
        ahead = moved_away(now, b) - middle
        found.append(
            desirable * (1 - sigmoid(beta * ahead))
            if now.success[b]
            else undesirable * (1 - sigmoid(-beta * ahead))
        )
    return mean(found)


def satisfied(
    batch: Batch, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0
) -> dict[str, float]:
    middle = baseline(batch)
    sides = [
        moved_away(batch, b) > middle if batch.success[b] else moved_away(batch, b) < middle
        for b in members(batch)
    ]
    return {"kl_reference": middle, "satisfied": mean([float(x) for x in sides])}


METRICS |= {
    "a_lol": used,
    "kto": satisfied,
}


# --- by groups ----------------------------------------------------------------------------------------------


@reference("loss", "nft", by=["none", "std"], floor=[0.5], failures=[0.3])
def nft(now: Batch, then: Batch, by: str = "rate", floor: float = 1.0, failures: float = 1.0) -> float:
    total = 0.0
    for at, t in now.tokens.items():
        q = rate(now, t.trajectory)
        if q in (0, 1):
            continue
        q = between(q, 0.02, 0.98)
        omega = {"none": 1.0, "rate": 1 - q, "std": sqrt((1 - q) / q)}[by]
        up = min(t.logp - t.old, 10.0)
        if now.success[t.trajectory]:
            total -= t.weight * omega * up
        else:
            x, fixed = second_argument(t, q), second_argument(then.tokens[at], q)
            most = max(fixed, floor)
            total += t.weight * omega * failures * (-log(most) - (x - fixed) / most)
    return total


def second_argument(t: Token, q: float) -> float:
    return (1 - q * exp(min(t.logp - t.old, 10.0))) / (1 - q)


def at_the_floor(
    batch: Batch, by: str = "rate", floor: float = 1.0, failures: float = 1.0
) -> dict[str, float]:
    held: list[float] = []
    for t in batch.tokens.values():
        q = rate(batch, t.trajectory)
        if not batch.success[t.trajectory] and q > 0:
            held.append(float(second_argument(t, between(q, 0.02, 0.98)) < floor))
    return {"held": mean_or_0(held), "kl_old": kl_old(batch)}


def scores(batch: Batch, group: list[int], beta: float) -> dict[int, float]:
    """Each member's score less the mean of the others'."""
    s = {b: beta * sum(t.logp - t.old for t in of_trajectory(batch, b)) for b in group}
    return {b: s[b] - mean_or_0([s[c] for c in group if c != b]) for b in group}


@reference("loss", "pacs", beta=[0.3], balanced=[False])
def pacs(now: Batch, then: Batch, beta: float = 1.0, balanced: bool = True) -> float:
    found: list[float] = []
    for group in read(now):
        psi, losses = scores(now, group, beta), list[float]()
        classes = [now.success[b] for b in group]
        for b in group:
            w = len(group) / (2 * classes.count(now.success[b])) if balanced and len(set(classes)) > 1 else 1
            losses.append(-w * log(sigmoid(psi[b] if now.success[b] else -psi[b])))
        found.append(mean_or_0(losses))
    return mean(found)


def accuracy(batch: Batch, beta: float = 1.0, balanced: bool = True) -> dict[str, float]:
    psi = {b: x for group in read(batch) for b, x in scores(batch, group, beta).items()}
    right = [0.5 if x == 0 else float((x > 0) == batch.success[b]) for b, x in psi.items()]
    return {"score": mean([abs(x) for x in psi.values()]), "accuracy": mean(right)}


def standardised(batch: Batch, group: list[int], guard: float) -> list[tuple[float, float]]:
    """Of each member A and Â; of none where they are no group."""
    R = [earned(batch, b) for b in group]
    rho = [sum(t.logp - t.old for t in of_trajectory(batch, b)) for b in group]
    if len(set(R)) < 2:
        return []
    spread = sqrt(deviation(rho) ** 2 + guard**2)
    return [
        ((a - mean(R)) / (deviation(R) + 1e-6), (x - mean(rho)) / spread) for a, x in zip(R, rho, strict=True)
    ]


@reference("loss", "reg_grpo", guard=[0.3])
def reg_grpo(now: Batch, then: Batch, guard: float = 0.1) -> float:
    groups = [standardised(now, group, guard) for group in read(now)]
    return mean([mean_or_0([(a - x) ** 2 for a, x in pairs]) for pairs in groups])


def fit(batch: Batch, guard: float = 0.1) -> dict[str, float]:
    every = [pair for group in read(batch) for pair in standardised(batch, group, guard)]
    squares = sum(a * a for a, _ in every) * sum(x * x for _, x in every)
    return {"fit": sum(a * x for a, x in every) / sqrt(squares) if squares else 0.0, "kl_old": kl_old(batch)}


METRICS |= {"nft": at_the_floor, "pacs": accuracy, "reg_grpo": fit}
