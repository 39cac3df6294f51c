"""Samplers that choose by how tasks and suites went: each beside its formula, over updates of made-up outcomes."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy
from drawn import LATER, SETUP, fair, refused
from plain import agree, mean, reference

from turnwise.envs.core import EndReason
from turnwise.trainers.check.sampler import outcomes
from turnwise.trainers.core import PartState
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SeenGroup

Make = Callable[..., Any]
SUITES = ["sort/4", "shop/quick"]


def updates(
    sampler: Sampler, n: int, first: int = 0
) -> Iterator[tuple[int, list[GroupRequest], list[SeenGroup]]]:
    """Plan and answer; some groups lose episodes, one now and then loses all."""
    for update in range(first, first + n):
        asked = sampler.plan(update, 0, 6)
        if update < first + 2:
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


def stored(sampler: Any, make: Make) -> None:
    """Another one that goes on from what was written of it is like it."""
    written = json.dumps({**sampler.state().numbers})
    other = make(SETUP)
    other.restore(PartState(json.loads(written)))
    assert json.dumps({**other.state().numbers}) == written
    assert other.plan(90, 0, 6) == sampler.plan(90, 0, 6)
    assert other.figures() == sampler.figures()


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


def _advantages(n: int) -> list[float]:
    return [(-1) ** i * ((7 * i) % 11) / 16 for i in range(n)]


@reference("sampler", "dump", temperature=[0.5], window=[5])
def dump(make: Make, temperature: float = 0.1, window: int = 300) -> None:
    for wrong in ({"temperature": 0.0}, {"window": 0}):
        refused(make, **wrong)
    assert make(SETUP, window=1).window == 1
    new_ones(make(SETUP), make)
    sampler = make(SETUP)
    for one, other in ((0, 0), (0, 1), (310, 0), (8, 305), (3, 6)):  # episodes of both suites, in two groups
        sampler, found = make(SETUP), dict(zip(SUITES, map(_advantages, (one, other)), strict=True))
        asked = sampler.setup.request(0, suite=SUITES[0]), sampler.setup.request(0, suite=SUITES[1])
        for some in (slice(0, 2), slice(2, None)):
            groups = [SeenGroup(ask, (), 9.0, found[ask.suite][some]) for ask in asked]
            sampler.seen(0, groups)
            sampler.seen(0, ())
        total = max(1, one + other)
        bounds = [
            mean([abs(a) for a in x[-window:]] or [0.0]) + math.sqrt(2 * math.log(total + 1) / (len(x) + 1))
            for x in found.values()
        ]
        for a, b in zip(sampler.weights(), softened(bounds, temperature), strict=True):
            agree(a, b, "weight")
    stored(sampler, make)
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
    for option, wrong in (
        *(("temperature", 0.0), ("target", 0.0), ("target", 1.1), ("keep", 1.0)),
        *(("keep", -0.1), ("every", 0), ("buffer", -1)),
    ):
        assert f"{wrong:g} " in refused(make, **{option: wrong})
    assert make(SETUP, every=1).every == 1
    from_its_own_begin(make, every)
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
    stored(sampler, make)
    first = [[one.suite for one in sampler.plan(update, 0, 6)] for update in range(100, 112)]
    assert len({tuple(drawn) for drawn in first}) > 1, "their order says nothing"


def from_its_own_begin(make: Make, every: int) -> None:
    """Weights follow success after ``every`` updates of the phase, which begins with update 2."""
    sampler = make(LATER)
    for update in range(2, 2 + every):
        assert [*sampler.weights()] == [0.5, 0.5]
        sampler.seen(update, [SeenGroup(SETUP.request(0, suite=SUITES[0]), [_ended(True)], 0.0)])
    low, high = sampler.weights()
    assert low < high


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


def remembers(sampler: Any, counted: Mapping[int, tuple[int, int]]) -> None:
    """Give it a memory: episodes and successes of some tasks."""
    sampler.restore(PartState({str(i): [1, float(n), float(c), 0] for i, (n, c) in counted.items()}))


def worth_more(n: int, p: Fraction) -> Fraction:
    """v(n + 1, p) − v(n, p), exactly."""

    def v(n: int) -> Fraction:
        return (1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2

    return v(n + 1) - v(n)


MEMORIES: list[list[tuple[int, int] | None]] = [
    [None],
    [(4, 4)],
    [(4, 0)],
    [(4, 2)],
    [(4, 4), (4, 4), (4, 4), (4, 4), (4, 1)],
    [(4, 0), (4, 0), (4, 4), (4, 0), (4, 4), (4, 2), (20, 1)],
    [(4, 0), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4), (4, 2)],
    [None, (20, 1), (20, 19), (20, 7), (9, 3), (6, 2), (20, 10)],
    [None, (20, 1), (4, 0), (20, 7), (4, 4)],
    [None, (4, 4)],
]
"""Episodes and successes of tasks, over and over."""


def is_packed(
    rates: Sequence[Fraction | None], counts: Sequence[int], least: int, most: int, sure: float
) -> None:
    """24 episodes of six tasks are packed as the book says."""
    assert sum(counts) == 24
    assert max(counts) <= most
    live = [i for i, p in enumerate(rates) if p is not None and 0 < p < 1]
    dead = [i for i, p in enumerate(rates) if p == 0]
    expected = [4 if p is None else least for p in rates]
    spare, tries = 24 - sum(expected), 0
    for i in live:
        p = float(rates[i] or 0)
        needs = math.ceil(math.log(1 - sure) / math.log(max(p, 1 - p)))
        tries += max(0, min(needs, most) - least)
    while spare > tries and any(expected[i] < most for i in dead):
        for i in dead:
            if spare > tries and expected[i] < most:
                expected[i], spare = expected[i] + 1, spare - 1
    theirs = min(spare, len(live) * (most - least))
    spare -= theirs
    for i in live:
        expected[i] = most  # if some is left, and is not asked for otherwise
    while spare:
        for i, n in enumerate(expected):
            if spare and n < most:
                expected[i], spare = n + 1, spare - 1
    assert [n for i, n in enumerate(counts) if i not in live] == [
        n for i, n in enumerate(expected) if i not in live
    ]
    assert sum(counts[i] - least for i in live) == theirs
    for i in live:  # v is concave: where no exchange of one episode is worth more, no packing is
        for j in live:
            if counts[i] > least and counts[j] < most:
                p, q = rates[i], rates[j]
                assert p is not None
                assert q is not None
                assert worth_more(counts[i] - 1, p) >= worth_more(counts[j], q)


@reference("sampler", "knapsack", size=[8], least=[3], most=[9], confidence=[0.5])
def knapsack(make: Make, size: int = 256, least: int = 2, most: int = 128, confidence: float = 0.9) -> None:
    for wrong in ({"confidence": 0.0}, {"confidence": 1.0}):
        refused(make, **wrong)
    for low, high in ((1, 9), (5, 9), (2, 3)):
        assert f"least={low} and most={high} " in refused(make, least=low, most=high)
    sampler = make(SETUP)
    assert sampler.unbiased
    of_pool(make, sampler, size)
    assert sampler.sizes == {*range(least, most + 1)}
    known: Known = {}
    for _, asked, seen in updates(sampler, 4 if size == 8 else 2):
        visited(asked, known)
        told(known, seen)
    stored(sampler, make)
    for place, memory in enumerate(MEMORIES):
        counted = {i: memory[i % len(memory)] for i in range(size)}
        remembers(sampler, {i: one for i, one in counted.items() if one})
        asked = sampler.plan(place, 0, 6)
        rates = [Fraction(c, n) for one in asked for n, c in [counted[one.index] or (1, 0)]]
        seen_once = [p if counted[one.index] else None for one, p in zip(asked, rates, strict=True)]
        is_packed(seen_once, [one.episodes for one in asked], least, most, confidence)
    drawn = [[one.index for one in sampler.plan(update, 0, 6)] for update in range(30)]
    assert len({i for one in drawn for i in one}) > (40 if size == 256 else 7)


@reference("sampler", "insight", size=[40], candidates=[3], eta=[1.0], mu=[0.6], keep=[0.5])
def insight(
    make: Make, size: int = 512, candidates: int = 16, eta: float = 3.0, mu: float = 0.3, keep: float = 1.0
) -> None:
    for option, wrong in (
        *(("candidates", 1), ("eta", -1.0), ("mu", 1.5), ("mu", -0.5)),
        *(("keep", 0.0), ("keep", 1.5)),
    ):
        assert f"{wrong:g} " in refused(make, **{option: wrong})
    make(SETUP, candidates=2, eta=0.0, mu=0.0)
    make(SETUP, mu=1.0)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.candidates == candidates
    known: Known = {}
    for _, asked, seen in updates(sampler, 8):
        visited(asked, known)
        told(known, seen, keep)
    stored(sampler, make)
    for i, (_, n, c) in [*known.items()][:12]:
        expected = _worth_asking(1 + c, 1 + n - c, 4, eta, mu)
        assert math.isclose(sampler.score(i), expected, rel_tol=1e-5), "by integrals, not by gamma functions"
    if candidates * 6 >= size:  # all of the pool are candidates
        chosen = {one.index for one in sampler.plan(50, 0, 6)}
        every = {i: sampler.score(i) for i in range(size)}
        assert min(every[i] for i in chosen) >= max(every[i] for i in every if i not in chosen) - 1e-9
    places = {tuple(one.visits for one in sampler.plan(update, 0, 6)) for update in range(60, 75)}
    assert len(places) > 1 or all(not any(place) for place in places)
    if candidates == 3:
        drawn = {one.index for update in range(60, 75) for one in sampler.plan(update, 0, 6)}
        assert len(drawn) > 12, "candidates are drawn anew"


def _worth_asking(a: float, b: float, k: int, eta: float, mu: float) -> float:
    """By integrals over the unit interval."""
    x, weight = numpy.polynomial.legendre.leggauss(200)
    x, weight = (1 + x) / 2, weight / 2

    def surprise(density: Any) -> float:
        """The entropy of a density, which need not be normed."""
        density = density / (density @ weight)
        return -float((density * numpy.log(density)) @ weight)

    now = x ** (a - 1) * (1 - x) ** (b - 1)
    after = 0.0
    for s in range(k + 1):
        found = math.comb(k, s) * x**s * (1 - x) ** (k - s) * now
        after += float(found @ weight) / float(now @ weight) * surprise(found)
    rate = a / (a + b)
    return rate * (1 - rate) * math.exp(-eta * (rate - mu) ** 2) * (surprise(now) - after)


@reference("sampler", "cures", size=[10], temperature=[0.5], least=[3], most=[7])
def cures(make: Make, size: int = 256, temperature: float = 0.1, least: int = 4, most: int = 16) -> None:
    refused(make, temperature=0.0)
    assert "[1, 8] " in refused(make, least=1, most=8)
    assert "[9, 8] " in refused(make, least=9, most=8)
    assert make(SETUP, least=2, most=2).sizes == {2}
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.sizes == {*range(least, most + 1)}
    remembers(sampler, {i: (4, 4 * (i % 2)) for i in range(size)})
    assert [one.episodes for one in sampler.plan(0, 0, 6)] == [least] * 6, "no task has noise"

    def shared(asked: Sequence[GroupRequest], known: Known) -> None:
        rates = [c / n if n else 0.5 for one in asked for _, n, c in [known.get(one.index, (0, 0.0, 0.0))]]
        noises = [math.sqrt(p * (1 - p)) for p in rates]
        for one, noise in zip(asked, noises, strict=True):
            share = 24 * noise / sum(noises)
            assert one.episodes == max(least, min(most, round(share))) or abs(share % 1 - 0.5) < 1e-9

    for solved in range(1, 8):  # half of the pool is known
        remembers(sampler, dict.fromkeys(range(0, size, 2), (20, solved)))
        asked = sampler.plan(solved, 0, 6)
        shared(asked, {i: (1, 20.0, float(solved)) for i in range(0, size, 2)})
    sampler, known = make(SETUP), Known()
    for _, asked, seen in updates(sampler, 8 if size == 10 else 4):
        visited(asked, known)
        shared(asked, known)
        told(known, seen)
    stored(sampler, make)
    posterior = [(c + 1) / (n + 2) for _, n, c in (known.get(i, (0, 0.0, 0.0)) for i in range(size))]
    likely = softened([math.sqrt(d * (1 - d)) for d in posterior], temperature)
    for a, b in zip(sampler.weights(), likely, strict=True):
        agree(a, b, "weight")
    rarest, commonest = min(range(size), key=likely.__getitem__), max(range(size), key=likely.__getitem__)
    if size == 10:
        drawn = [[one.index for one in sampler.plan(update, 0, 6)] for update in range(100, 180)]
        for index in (rarest, commonest):
            chance = _among_six(likely, index)
            fair(sum(index in one for one in drawn), 80, chance)
            fair(sum(index in one[:2] for one in drawn), 80, chance / 3)


def _among_six(likely: Sequence[float], index: int) -> float:
    """The chance that a task is among six that are drawn one by one without replacement."""

    @functools.cache
    def missed(left: frozenset[int], draws: int) -> float:
        if not draws:
            return 1.0
        total = sum(likely[i] for i in left)
        return sum(likely[i] / total * missed(left - {i}, draws - 1) for i in left if i != index)

    return 1 - missed(frozenset(range(len(likely))), 6)


COURSES = [  # eighths that are solved, visit by visit
    [4, 3, 3, 2, 1],
    [0, 0, 3, 0, 0],  # flat, but for rounding
    [3, 3, 2, 2, 1],
    [3, 2, 0, 0, 0],
    [0, 1, 1, 2, 3],
    [1, 2, 3, 3, 2],
    [3, 2, 2, 3, 2],
]


@reference(
    "sampler",
    "sws",
    size=[7],
    epochs=[2],
    low=[0.9],
    new=[30],
    also=[
        {"size": 7, "epochs": 3, "low": 0.9, "new": 10},
        {"size": 7, "epochs": 2, "new": 10},
        {"size": 7, "low": 0.05},  # none is weak
    ],
)
def sws(make: Make, size: int = 128, epochs: int = 5, low: float = 0.5, new: int = 128) -> None:
    for option, wrong in (("epochs", 1), ("low", 0.0), ("low", 1.1), ("new", 0)):
        assert f"{wrong:g}" in refused(make, **{option: wrong})
    assert make(SETUP, new=1).new == 1
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    past: dict[tuple[int, str], list[float]] = {}
    made: list[int] | None = None
    pool = [(i, SETUP.mixture.suite_of(i).name) for i in range(size)]
    joined: set[int] = set()
    for update, asked, seen in updates(sampler, 2 if size == 128 else 12):
        for one in asked:
            assert one.visits == len(past.get((one.index, one.suite), []))
        if made is None:
            counts = sorted(len(past.get(key, [])) for key in pool)
            assert sorted(one.visits for one in asked) == counts[:6], "those that were played least"
        else:
            for one in asked:
                fresh = one.index - size
                assert fresh < made[SUITES.index(one.suite)]
                assert fresh >= 0 or one.suite == SETUP.mixture.suite_of(one.index).name
                joined |= {fresh} - {*range(-size, 0)}
        for place, group in enumerate(seen):
            if group.episodes:
                key = group.request.index, group.request.suite
                course, n = COURSES[group.request.index % 7], len(past.setdefault(key, []))
                past[key].append(course[n % 5] / 8)
                seen[place] = group._replace(episodes=[_ended(i < course[n % 5]) for i in range(8)])
        if made is None and all(len(past.get(key, [])) >= epochs for key in pool):
            weak = [key for key in pool if max(past[key]) < low and _falls(past[key])]
            made = [new * sum(suite == s for _, s in weak) // max(1, len(weak)) for suite in SUITES]
        sampler.seen(update, seen)
        given = sampler.figures()
        assert given == {f"new/{suite}": n for suite, n in zip(SUITES, made or [0, 0], strict=True)}
        assert (sampler.state().numbers["made"] is None) == (made is None)
        seen.clear()
    stored(sampler, make)
    assert (made is None) == (size == 128)
    assert bool(joined) == (sum(made or [0]) > 0)


@functools.cache
def _ended(solved: bool) -> Any:
    return episode([0.0], end=EndReason.SOLVED if solved else EndReason.FAILED)


def _falls(history: Sequence[float]) -> bool:
    """By whole eighths, exactly: over all pairs, how far they are apart times what was gained."""
    return sum((m - k) * round(8 * (y - x)) for k, x in enumerate(history) for m, y in enumerate(history)) < 0


@reference("sampler", "fleming", size=[10], window=[2, 1], more=[6])
def fleming(make: Make, size: int = 256, window: int = 3, more: int = 0) -> None:
    assert "window=0 " in refused(make, window=0)
    assert "more=3 " in refused(make, more=3)
    assert make(SETUP, more=4).sizes == {4}
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.sizes == {4, more or 8}
    known: Known = {}
    frozen: list[int] | None = None
    anew: set[int] | None = None  # what of the pool was not played since success stood still
    dev: list[float] = []
    passes = 0
    for update, asked, seen in updates(sampler, 36 if size == 10 else 16):
        visited(asked, known)
        chosen = {one.index for one in asked}
        rates = {i: c / n for i, (_, n, c) in known.items() if n}
        if anew is not None:
            assert len(chosen & anew) == min(6, len(anew))
            assert {one.episodes for one in asked} == {4}
        else:
            failed = [i for i, p in rates.items() if p < 0.5] if frozen is None else frozen
            solved = [i for i, p in rates.items() if p >= 0.5 and i not in failed]
            hard, simple = (1, 1) if frozen is None else (2, 1)
            units = min(6 // (hard + simple), len(failed) // hard, len(solved) // simple)
            assert {one.episodes for one in asked} == {4 if frozen is None else more or 8}
            assert len(chosen & {*failed}) >= units * hard
            assert len(chosen & {*solved}) >= units * simple
            if units * (hard + simple) == 6:
                assert len(chosen & {*failed}) == units * hard
        told(known, seen)
        if anew is not None:
            anew -= {i for i, (_, n, _) in known.items() if n}
            if not anew:
                frozen = sorted(i for i in range(size) if known[i][2] < 0.5 * known[i][1])
                anew, passes = None, passes + 1
        sampler.seen(update, seen)
        seen.clear()  # it was told
        value = [0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.3, 0.2, 0.2][update % 10]
        sampler.evaluated(value)
        if anew is None:
            dev = [*dev, value]
            if len(dev) >= 2 * window and mean(dev[-window:]) <= mean(dev[-2 * window : -window]):
                dev, anew = [], {*range(size)}
                known = {i: (visits, 0.0, 0.0) for i, (visits, *_) in known.items()}
        figures = {
            "stage": 1 if frozen is None else 2,
            "failures": len(frozen or ()),
            "to_play": len(anew or ()),
        }
        assert sampler.figures() == figures
        memory = sampler.state().numbers["memory"]
        assert {int(i): tuple(numbers[:3]) for i, numbers in memory.items()} == known
        if update % 4 == 3:
            stored(sampler, make)
    assert passes > 1 if size == 10 else anew is not None
