"""Samplers that choose by how tasks and suites went: each beside its formula, over updates of made-up outcomes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from drawn import LATER, SETUP, fair, refused
from plain import agree, mean, reference

from turnwise.trainers.check.sampler import outcomes
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup

Make = Callable[[SamplerSetup], Any]
SUITES = ["sort/4", "shop/quick"]


def updates(
    sampler: Sampler, n: int, first: int = 0
) -> Iterator[tuple[int, list[GroupRequest], list[SeenGroup]]]:
    """Plan and answer; some groups lose episodes, one now and then loses all."""
    for update in range(first, first + n):
        asked = sampler.plan(update, 0, 6)
        assert [*sampler.plan(update, 0, 2), *sampler.plan(update, 2, 4)] == asked
        assert len({(one.suite, one.index) for one in asked}) == 6
        assert all(one.episodes in sampler.sizes for one in asked)
        seen = [
            group._replace(
                episodes=group.episodes[: 0 if (place + update) % 7 == 0 else 4 if place % 3 else 3]
            )
            for place, group in enumerate(outcomes(update, asked))
        ]
        yield update, asked, seen
        sampler.seen(update, seen)


def softened(scores: Sequence[float], temperature: float) -> list[float]:
    raised = [math.exp(score / temperature) for score in scores]
    return [one / sum(raised) for one in raised]


def new_ones(sampler: Any, make: Make) -> None:
    """Of whatever suite they are, the tasks of an update are those that no earlier one may play."""
    assert not sampler.returns
    assert [one.index for one in sampler.plan(3, 0, 6)] == [*range(18, 24)]
    assert [one.index for one in make(LATER).plan(3, 0, 6)] == [*range(11, 17)]


def by_weight(sampler: Any) -> None:
    weights, drawn = sampler.weights(), [sampler.plan(update, 0, 6) for update in range(100, 130)]
    for suite, weight in zip(SUITES, weights, strict=True):
        fair(sum(one.suite == suite for asked in drawn for one in asked), 180, weight)
        agree(sampler.figures()[f"weight/{suite}"], weight, "figure")


@reference("sampler", "dump", temperature=[0.5], window=[5])
def dump(make: Make, temperature: float = 0.1, window: int = 300) -> None:
    for wrong in ({"temperature": 0.0}, {"window": 0}):
        refused(make, **wrong)
    sampler = make(SETUP)
    new_ones(sampler, make)
    found: dict[str, list[float]] = {suite: [] for suite in SUITES}
    for _, _, seen in updates(sampler, 6):
        for group in seen:
            found[group.request.suite] += [abs(a) for a in group.advantages]
        sampler.seen(0, ())
    total = max(1, sum(map(len, found.values())))
    bounds = [
        mean(found[suite][-window:] or [0.0]) + math.sqrt(2 * math.log(total + 1) / (len(found[suite]) + 1))
        for suite in SUITES
    ]
    for a, b in zip(sampler.weights(), softened(bounds, temperature), strict=True):
        agree(a, b, "weight")
    by_weight(sampler)


@reference("sampler", "rule_reasoner", temperature=[0.8], target=[0.6], keep=[0.25], every=[2], buffer=[3])
def rule_reasoner(
    make: Make,
    temperature: float = 0.3,
    target: float = 1.0,
    keep: float = 0.5,
    every: int = 8,
    buffer: int = 0,
) -> None:
    for wrong in (
        {"temperature": 0.0},
        {"target": 0.0},
        {"target": 1.1},
        {"keep": 1.0},
        {"keep": -0.1},
        {"every": 0},
        {"buffer": -1},
    ):
        refused(make, **wrong)
    sampler = make(SETUP)
    new_ones(sampler, make)
    assert [*sampler.weights()] == [0.5, 0.5]
    goal = target * sum(1 / k for k in range(1, buffer + 1)) / buffer if buffer else target
    new: dict[str, list[float]] = {suite: [] for suite in SUITES}
    means: dict[str, list[float]] = {suite: [] for suite in SUITES}
    short = dict.fromkeys(SUITES, goal)
    for update, asked, seen in updates(sampler, 24):
        weights = softened([short[suite] for suite in SUITES], temperature)
        counts = [math.floor(6 * w) for w in weights]
        for suite in sorted(SUITES, key=lambda s: -weights[SUITES.index(s)])[: 6 - sum(counts)]:
            counts[SUITES.index(suite)] += 1
        assert [sum(one.suite == suite for one in asked) for suite in SUITES] == counts
        if update in (8, 16):  # one suite is not in the window
            seen[:] = [group for group in seen if group.request.suite != SUITES[update // 8 % 2]]
        for group in seen:
            new[group.request.suite] += [float(one.success) for one in group.episodes]
        if (update + 1) % every == 0:
            for suite in (suite for suite in SUITES if new[suite]):
                batch = mean(new[suite])
                if buffer:
                    means[suite] = [batch, *means[suite]][:buffer]
                    smooth = mean([m / (k + 1) for k, m in enumerate(means[suite])])
                else:
                    old = means[suite][0] if means[suite] else 0.0
                    smooth = batch if old == 0 else keep * old + (1 - keep) * batch
                    means[suite] = [smooth]
                short[suite] = max(0.0, goal - smooth)
            new = {suite: [] for suite in SUITES}
    for suite in SUITES:
        agree(
            sampler.figures()[f"weight/{suite}"],
            softened([short[s] for s in SUITES], temperature)[SUITES.index(suite)],
            suite,
        )
    first = [[one.suite for one in sampler.plan(update, 0, 6)] for update in range(100, 140)]
    assert len({tuple(drawn) for drawn in first}) > 1, "their order says nothing"


# --- pools ---------------------------------------------------------------------------------------------------------


Known = dict[int, tuple[int, float, float]]
"""By task: visits, episodes, successes."""


def told(known: Known, seen: Sequence[SeenGroup], keep: float = 1.0) -> None:
    for group in seen:
        visits, n, c = known.get(group.request.index, (0, 0.0, 0.0))
        solved = sum(one.success for one in group.episodes)
        known[group.request.index] = (visits + 1, keep * n + len(group.episodes), keep * c + solved)


def of_pool(make: Make, sampler: Any, size: int) -> None:
    refused(make, size=5)
    assert sampler.returns
    assert sampler.by_success
    assert sampler.size == size


def visited(asked: Sequence[GroupRequest], known: Known) -> None:
    for one in asked:
        assert one.visits == known.get(one.index, (0,))[0]
        assert one.suite == SETUP.mixture.suite_of(one.index).name


def worth(n: int, p: float) -> float:
    return (1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2


@reference("sampler", "knapsack", size=[8], least=[3], most=[9], confidence=[0.5])
def knapsack(make: Make, size: int = 256, least: int = 2, most: int = 128, confidence: float = 0.9) -> None:
    for wrong in ({"least": 1}, {"least": 5}, {"most": 3}, {"confidence": 0.0}, {"confidence": 1.0}):
        refused(make, **wrong)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.sizes == {*range(least, most + 1)}
    known: Known = {}
    for _, asked, seen in updates(sampler, 16 if size == 8 else 3):
        visited(asked, known)
        counts = {one.index: one.episodes for one in asked}
        assert sum(counts.values()) == 24, "the budget"
        rates = {i: c / n for i in counts for _, n, c in [known.get(i, (0, 0.0, 0.0))] if n}
        live = [i for i, p in rates.items() if 0 < p < 1]
        dead = [i for i, p in rates.items() if p == 0]
        assert all(least <= n <= most for n in counts.values())
        spare = 24 - sum(4 if i not in rates else least for i in counts)
        needs = {
            i: min(most, math.ceil(math.log(1 - confidence) / math.log(max(rates[i], 1 - rates[i]))))
            for i in live
        }
        surplus = max(0, spare - sum(max(0, needs[i] - least) for i in live))
        if dead and surplus:
            assert abs(
                sum(counts[i] - least for i in dead) - min(surplus, len(dead) * (most - least))
            ) <= 6 * (sum(counts[i] for i in live) == most * len(live))
            assert max(counts[i] for i in dead) - min(counts[i] for i in dead) <= 1
        if live and not surplus:  # no other packing is worth more
            here = sum(worth(counts[i], rates[i]) for i in live)
            total = sum(counts[i] for i in live)
            others = (
                [
                    sum(worth(n, rates[i]) for i, n in zip(live, given, strict=True))
                    for given in itertools.product(range(least, min(most, total) + 1), repeat=len(live))
                    if sum(given) == total
                ]
                if len(live) < 4
                else [here]
            )
            agree(here, max(others), "the best packing")
            assert all(counts[i] == least for i in dead)
        told(known, seen)
    if size == 256:
        many = [sampler.plan(update, 0, 6) for update in range(300, 315)]
        assert len({one.index for asked in many for one in asked}) > 40


@reference("sampler", "insight", size=[40], candidates=[3], eta=[1.0], mu=[0.6], keep=[0.5])
def insight(
    make: Make, size: int = 512, candidates: int = 16, eta: float = 3.0, mu: float = 0.3, keep: float = 1.0
) -> None:
    for wrong in ({"candidates": 1}, {"eta": -1.0}, {"mu": 1.5}, {"mu": -0.5}, {"keep": 0.0}, {"keep": 1.5}):
        refused(make, **wrong)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.candidates == candidates
    known: Known = {}
    for _, asked, seen in updates(sampler, 8):
        visited(asked, known)
        told(known, seen, keep)
    scores = {i: _worth_asking(1 + c, 1 + n - c, 4, eta, mu) for i, (_, n, c) in known.items()}
    for i, score in [*scores.items()][:6]:
        assert math.isclose(sampler.score(i), score, rel_tol=1e-3), "by numbers, not by gamma functions"
    if candidates * 6 >= size:  # all of the pool are candidates
        chosen = {one.index for one in sampler.plan(50, 0, 6)}
        every = {i: sampler.score(i) for i in range(size)}
        assert min(every[i] for i in chosen) >= max(every[i] for i in every if i not in chosen) - 1e-9
    places = {tuple(one.visits for one in sampler.plan(update, 0, 6)) for update in range(60, 75)}
    assert len(places) > 1 or all(not any(place) for place in places)
    if candidates == 3:
        drawn = {one.index for update in range(60, 75) for one in sampler.plan(update, 0, 6)}
        assert len(drawn) > 12, "candidates are drawn anew"


def _density(x: float, a: float, b: float) -> float:
    return math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) * x ** (a - 1) * (1 - x) ** (b - 1)


def _surprise(a: float, b: float) -> float:
    """The entropy by a sum over the unit interval."""
    n = 600
    each = [_density((k + 0.5) / n, a, b) for k in range(n)]
    return -sum(d * math.log(d) for d in each if d > 0) / n


def _worth_asking(a: float, b: float, k: int, eta: float, mu: float) -> float:
    n = 600
    after = 0.0
    for s in range(k + 1):
        likely = (
            sum(
                math.comb(k, s) * x**s * (1 - x) ** (k - s) * _density(x, a, b)
                for x in ((j + 0.5) / n for j in range(n))
            )
            / n
        )
        after += likely * _surprise(a + s, b + k - s)
    rate = a / (a + b)
    return rate * (1 - rate) * math.exp(-eta * (rate - mu) ** 2) * (_surprise(a, b) - after)


@reference("sampler", "cures", size=[10], temperature=[0.5], least=[3], most=[7])
def cures(make: Make, size: int = 256, temperature: float = 0.1, least: int = 4, most: int = 16) -> None:
    for wrong in ({"temperature": 0.0}, {"least": 1}, {"least": 9, "most": 8}):
        refused(make, **wrong)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.sizes == {*range(least, most + 1)}
    known: Known = {}
    for _, asked, seen in updates(sampler, 8):
        visited(asked, known)
        rates = [c / n if n else 0.5 for one in asked for _, n, c in [known.get(one.index, (0, 0.0, 0.0))]]
        noises = [math.sqrt(p * (1 - p)) for p in rates]
        for one, noise in zip(asked, noises, strict=True):
            share = 24 * noise / sum(noises) if sum(noises) else 0.0
            assert one.episodes == max(least, min(most, round(share))) or abs(share % 1 - 0.5) < 1e-9
        told(known, seen)
    posterior = [(c + 1) / (n + 2) for _, n, c in (known.get(i, (0, 0.0, 0.0)) for i in range(size))]
    likely = softened([math.sqrt(d * (1 - d)) for d in posterior], temperature)
    rarest, commonest = min(range(size), key=likely.__getitem__), max(range(size), key=likely.__getitem__)
    if size == 10:
        drawn = [{one.index for one in sampler.plan(update, 0, 6)} for update in range(100, 200)]
        for index in (rarest, commonest):
            fair(sum(index in one for one in drawn), 100, _among_six(likely, index))


def _among_six(likely: Sequence[float], index: int) -> float:
    """The chance that a task is among six that are drawn one by one without replacement."""

    @functools.cache
    def missed(left: frozenset[int], draws: int) -> float:
        if not draws:
            return 1.0
        total = sum(likely[i] for i in left)
        return sum(likely[i] / total * missed(left - {i}, draws - 1) for i in left if i != index)

    return 1 - missed(frozenset(range(len(likely))), 6)


@reference(
    "sampler",
    "sws",
    size=[7],
    epochs=[2],
    low=[0.9],
    new=[30],
    also=[{"size": 7, "epochs": 3, "low": 0.9, "new": 10}],
)
def sws(make: Make, size: int = 128, epochs: int = 5, low: float = 0.5, new: int = 128) -> None:
    for wrong in ({"epochs": 1}, {"low": 0.0}, {"low": 1.1}, {"new": 0}):
        refused(make, **wrong)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    past: dict[tuple[int, str], list[float]] = {}
    made: list[int] | None = None
    for update, asked, seen in updates(sampler, 12 if size == 128 else 24):
        for one in asked:
            assert one.visits == len(past.get((one.index, one.suite), []))
        if made is None:
            least = min(len(past.get((i, SETUP.mixture.suite_of(i).name), [])) for i in range(size))
            assert least < epochs
            assert min(one.visits for one in asked) == least
            assert all(one.index < size for one in asked)
        else:
            for one in asked:
                fresh = one.index - size
                assert fresh < made[SUITES.index(one.suite)]
                assert fresh >= 0 or one.suite == SETUP.mixture.suite_of(one.index).name
        for place, group in enumerate(seen):  # as time goes by they are solved less
            solved = max(0, 2 - update // 3 - group.request.index % 2)
            seen[place] = group._replace(
                episodes=[_with(one, i < solved) for i, one in enumerate(group.episodes)]
            )
        for group in seen:
            if group.episodes:
                rate = sum(one.success for one in group.episodes) / len(group.episodes)
                past.setdefault((group.request.index, group.request.suite), []).append(rate)
        pool = [(i, SETUP.mixture.suite_of(i).name) for i in range(size)]
        if made is None and all(len(past.get(key, [])) >= epochs for key in pool):
            weak = [key for key in pool if max(past[key]) < low and _falls(past[key])]
            made = [new * sum(suite == s for _, s in weak) // max(1, len(weak)) for suite in SUITES]
    assert (made is None) == (size == 128)
    made = made or [0, 0]
    assert sampler.figures() == {f"new/{suite}": n for suite, n in zip(SUITES, made, strict=True)}
    assert sum(made) > 0 or low == 0.5 or size == 128


def _with(one: Any, solved: bool) -> Any:
    from turnwise.envs.core import EndReason
    from turnwise.trainers.kit.toy_batches import episode

    return episode([0.0], end=EndReason.SOLVED if solved else EndReason.FAILED)


def _falls(history: Sequence[float]) -> bool:
    n = len(history)
    return n * sum(k * x for k, x in enumerate(history)) < sum(range(n)) * sum(history) - 1e-12


@reference("sampler", "fleming", size=[10], window=[2], more=[6])
def fleming(make: Make, size: int = 256, window: int = 3, more: int = 0) -> None:
    for wrong in ({"window": 0}, {"more": 3}):
        refused(make, **wrong)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.sizes == {4, more or 8}
    known: Known = {}
    frozen: list[int] | None = None
    dev: list[float] = []
    for update, asked, seen in updates(sampler, 24 if size == 10 else 14):
        visited(asked, known)
        rates = {i: c / n for i, (_, n, c) in known.items() if n}
        failed = [i for i, p in rates.items() if p < 0.5] if frozen is None else frozen
        solved = [i for i, p in rates.items() if p >= 0.5 and i not in failed]
        hard, simple = (1, 1) if frozen is None else (2, 1)
        units = min(6 // (hard + simple), len(failed) // hard, len(solved) // simple)
        assert {one.episodes for one in asked} == {4 if frozen is None else more or 8}
        assert sum(one.index in failed for one in asked) >= units * hard
        assert sum(one.index in solved for one in asked) >= units * simple
        if units * (hard + simple) == 6:
            assert sum(one.index in failed for one in asked) == units * hard
        told(known, seen)
        if update > 1:
            value = [0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.3, 0.2, 0.2][update % 10]
            sampler.seen(update, ())
            sampler.evaluated(value)
            dev = [*dev, value]
            if len(dev) >= 2 * window and mean(dev[-window:]) <= mean(dev[-2 * window : -window]) + 0.0:
                dev = []
                # the sampler has not been told of this update's groups yet
                frozen = sorted(i for i, p in rates.items() if p < 0.5)
        assert sampler.figures()["stage"] == (1 if frozen is None else 2)
        assert sampler.figures()["failures"] == len(frozen or ())
    assert frozen is not None
