"""Samplers of curricula: what comes back by its last visit, and suites whose success moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from allocated import ended
from chosen import SUITES, by_weight, new_ones, stored, updates
from drawn import SETUP, MadeOnce, fair, refused
from plain import agree, mean, reference

from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import SeenGroup

Make = Callable[..., Any]


def mixed_by_age(scores: list[float], ages: list[int], beta: float, stale: float) -> list[float]:
    """By the place of each score among them all, a tie standing at the middle of its places."""
    ordered = sorted(scores, reverse=True)
    places = {s: mean([1.0 + i for i, other in enumerate(ordered) if other == s]) for s in scores}
    weights = [1 / places[s] ** (1 / beta) for s in scores]
    return [
        (1 - stale) * w / sum(weights) + stale * age / sum(ages) for w, age in zip(weights, ages, strict=True)
    ]


@reference(
    "sampler",
    "plr",
    size=[8],
    beta=[1.0],
    stale=[1.0, 0.5],
    replay=[0.7],
    also=[{"size": 8, "beta": 0.5}, {"size": 8, "replay": 1.0}, {"size": 8, "beta": 0.02, "stale": 0.0}],
)
def plr(make: Make, size: int = 256, beta: float = 0.1, stale: float = 0.1, replay: float = 0.0) -> None:
    for option, wrong in (
        *(("size", 5), ("beta", 0.01), ("stale", -0.1)),
        *(("stale", 1.1), ("replay", -0.1), ("replay", 1.1)),
    ):
        assert f"{wrong:g} " in refused(make, **{option: wrong})
    assert make(SETUP, size=6).size == 6
    sampler = make(SETUP)
    assert (sampler.size, sampler.beta, sampler.stale, sampler.replay) == (size, beta, stale, replay)
    assert sampler.returns
    assert sampler.by_success
    known: dict[int, list[float]] = {}
    for update, asked, seen in updates(sampler, 4):
        assert all(one.index < size for one in asked)
        assert all(one.visits == known.get(one.index, [0])[0] for one in asked)
        for group in (group for group in seen if group.episodes):
            visits = known.get(group.request.index, [0])[0]
            known[group.request.index] = [visits + 1, group.advantage, update]
    assert {int(i): [*level] for i, level in sampler.state().numbers.items()} == known
    assert sampler.figures() == {"levels": len(known)}
    stored(sampler, make)
    fresh = [make(dataclasses.replace(SETUP, seed=seed)).plan(0, 0, 6) for seed in range(12)]
    assert {one.visits for asked in fresh for one in asked} == {0}
    fair(sum(one.index < size // 2 for asked in fresh for one in asked), 72, 0.5)
    if size == 8:
        redrawn(make, size, beta, stale, replay)


def redrawn(make: Make, size: int, beta: float, stale: float, replay: float) -> None:
    """How often each of a small pool is drawn after five of its tasks were."""
    scores, ages = (
        {i: (7 * i % 5) // 2 / 4 for i in range(size - 3)},
        {i: 1 + 3 * i % 7 for i in range(size - 3)},
    )
    remembered = PartState({str(i): [2, scores[i], 20 - ages[i]] for i in scores})
    chance = replay or (size - 3) / size
    likely = mixed_by_age([*scores.values()], [*ages.values()], beta, stale)
    first: list[int] = []
    for seed in range(100):
        one = make(dataclasses.replace(SETUP, most=1, seed=seed))
        one.restore(remembered)
        (asked,) = one.plan(20, 0, 1)
        assert asked.visits == (2 if asked.index in scores else 0)
        first.append(asked.index)
    by_score = {i: chance * p for i, p in zip(scores, likely, strict=True)}
    for i in range(size):
        fair_or_never(first.count(i), 100, by_score.get(i, (1 - chance) / 3))
    fair_or_never(sum(i in scores for i in first), 100, chance)
    old = sorted(ages.values())[len(ages) // 2]
    fair_or_never(
        sum(ages.get(i, 0) > old for i in first), 100, sum(p for i, p in by_score.items() if ages[i] > old)
    )
    early: list[int] = []  # six of five that return and three that are new, in an order that says nothing
    for seed in range(24):
        one = make(dataclasses.replace(SETUP, seed=seed))
        one.restore(remembered)
        asked = [request.index for request in one.plan(20, 0, 6)]
        assert len({*asked}) == 6
        early += [int(asked[0] in scores) - int(asked[-1] in scores)]
    assert abs(sum(early)) < 4.5 * 24**0.5


def fair_or_never(count: int, trials: int, chance: float) -> None:
    if chance in (0, 1):
        assert count == trials * chance
    elif trials * min(chance, 1 - chance) > 1e-3:
        fair(count, trials, chance)
    else:
        assert count in (0, trials)


@reference(
    "sampler", "learning_progress", window=[3, 1], explore=[0.1, 1.0], also=[{"window": 7, "explore": 0.2}]
)
def learning_progress(make: Make, window: int = 300, explore: float = 0.4) -> None:
    for option, wrong in (("window", 0), ("explore", 0.0), ("explore", 1.5)):
        assert f"{wrong:g} " in refused(make, **{option: wrong})
    sampler = make(SETUP)
    new_ones(sampler, make)
    assert sampler.window == window
    assert [*sampler.weights()] == [0.5, 0.5]
    one = SeenGroup(SETUP.request(0, suite=SUITES[1]), [ended(False), ended(True)], 0.0)
    sampler.seen(0, [one])
    for weight, expected in zip(sampler.weights(), (explore / 2, 1 - explore / 2), strict=True):
        agree(weight, expected, "one moves, of the other nothing is known")
    sampler = make(SETUP)
    past: dict[str, list[int]] = {suite: [] for suite in SUITES}
    for _, _, seen in updates(sampler, 40 if window == 7 else 12):
        moved: list[float] = []
        for suite in SUITES:
            n = min(window, len(past[suite]) // 2)
            newer, older = past[suite][::-1][:n], past[suite][::-1][n : 2 * n]
            moved.append(abs(sum(newer) - sum(older)) / max(1, n))
        for weight, one in zip(sampler.weights(), moved, strict=True):
            agree(weight, explore / 2 + (1 - explore) * one / sum(moved) if sum(moved) else 0.5, "weight")
        for group in seen:
            past[group.request.suite] += [one.success for one in group.episodes]
    stored(sampler, make)
    by_weight(sampler)


def walked(edge: int, levels: int, seen: list[list[int]], window: int, low: float, high: float) -> list[int]:
    """The edge after each update, of whose episodes at the edge these are the outcomes."""
    told: list[int] = []
    edges: list[int] = []
    for some in seen:
        told = [*told, *some]
        if len(told) >= window:
            up, down = sum(told) >= high * len(told), sum(told) <= low * len(told)
            edge, told = sorted((0, edge + up - (down and not up), levels - 1))[1], []
        edges.append(edge)
    return edges


@reference(
    "sampler",
    "adr",
    knob=["items"],
    values=[([3, 3], [4, 5])],
    window=[3],
    at_edge=[1.0],
    low=[0.5],
    high=[0.9],
    also=[
        {"knob": "items", "values": ([3, 3], [5, 6], [4, 4]), "window": 4, "low": 0.25, "high": 0.75},
        {"window": 1, "low": 0.0, "high": 0.5, "at_edge": 0.2},
    ],
)
def adr(
    make: Make,
    knob: str = "",
    values: tuple[int, ...] = (),
    at_edge: float = 0.5,
    window: int = 64,
    low: float = 0.2,
    high: float = 0.8,
) -> None:
    if bool(knob) != bool(values):
        assert "goes with" in refused(make)
        return
    setup = dataclasses.replace(SETUP, mixture=MadeOnce({"sort/4": 1.0}, 0)) if knob else SETUP
    for wrong, said in (
        *(({"at_edge": 0.0}, "at_edge 0 "), ({"at_edge": 1.1}, "at_edge 1.1 "), ({"window": 0}, "window=0 ")),
        *(
            ({"low": 0.9, "high": 0.9}, "low 0.9, high 0.9"),
            ({"low": -0.1}, "low -0.1"),
            ({"high": 1.1}, "1.1"),
        ),
        ({"knob": "items", "values": ([3, 3], [3, 3])}, "stands twice"),
    ):
        assert said in refused(make, **wrong)
    assert make(SETUP, low=0.0, high=1.0).levels == max(2, len(values))
    one = make(setup)
    assert (one.low, one.high, one.at_edge, one.window) == (low, high, at_edge, window)
    levels: list[Any] = [*values] if knob else SUITES
    sampler, told = make(setup), list[list[int]]()
    assert not sampler.returns
    assert sampler.by_success
    edge = 0
    for update in range(40):
        asked = sampler.plan(update, 0, 6)
        assert [*sampler.plan(update, 0, 2), *sampler.plan(update, 2, 4)] == asked
        assert [one.index for one in asked] == [*range(6 * update, 6 * update + 6)]
        placed = [levels.index(one.knobs[knob] if knob else one.suite) for one in asked]
        assert max(placed) <= edge
        assert at_edge < 1 or {*placed} == {edge}
        wave = (update // 8) % 3  # all solved, then none, then half
        ends = [[wave == 0 or (wave == 2 and n % 2 == 0) for n in range(place % 3 + 1)] for place in range(6)]
        sampler.seen(update, [
            SeenGroup(one, [ended(end) for end in some], 0.0) for one, some in zip(asked, ends, strict=True)
        ])  # fmt: skip
        told.append(
            [int(end) for level, some in zip(placed, ends, strict=True) if level == edge for end in some]
        )
        edge = walked(0, len(levels), told, window, low, high)[-1]
        assert sampler.figures() == {"edge": edge}
    other = make(setup)
    other.restore(PartState({**sampler.state().numbers}))
    assert other.plan(90, 0, 6) == sampler.plan(90, 0, 6)
    assert other.state() == sampler.state()
    other.restore(PartState())
    assert other.state() == make(setup).state()
    wide = make(setup)
    wide.restore(PartState({"edge": len(levels) - 1, "outcomes": []}))
    drawn = [one for update in range(60) for one in wide.plan(update, 0, 6)]
    for level, name in enumerate(levels):
        chance = (1 - at_edge) / len(levels) + at_edge * (level == len(levels) - 1)
        fair_or_never(sum((one.knobs[knob] if knob else one.suite) == name for one in drawn), 360, chance)
