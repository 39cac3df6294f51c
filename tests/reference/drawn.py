"""Samplers: which tasks an update has, how often each is played, and how refilled updates are weighed."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

from plain import agree, mean, reference, refuses

from turnwise.envs.core import EndReason
from turnwise.envs.registry import suite_task
from turnwise.tasks.core import Split, Task
from turnwise.trainers.check.sampler import outcomes
from turnwise.trainers.core import PartState
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup, example_setup
from turnwise.trainers.sampler.mixture import Mixture

Make = Callable[[SamplerSetup], Sampler]


class MadeOnce(Mixture):
    """Makes each task once, however many samplers ask for it."""

    @functools.cache  # noqa: B019  (it lives as long as the tests)
    def _made(self, index: int, suite: str) -> Task:
        return super().task(index, suite)

    def task(self, index: int, suite: str = "", knobs: Mapping[str, Any] | None = None) -> Task:
        return super().task(index, suite, knobs) if knobs else self._made(index, suite)


SETUP = dataclasses.replace(
    example_setup(groups=4, group_size=4, most=6), mixture=MadeOnce({"sort/4": 1.0, "shop/quick": 3.0}, 0)
)
LATER = dataclasses.replace(SETUP, since=2, before=5)
"""Of a phase that begins with update 2, after updates that may have played five tasks."""


def refused(make: Callable[..., Sampler], **options: Any) -> str:
    """What is said of options that must be refused."""
    return refuses(lambda: make(SETUP, **options))


def is_task(request: GroupRequest, index: int, episodes: int, visits: int) -> None:
    """The request is for this training task of the mixture, played so often, and weighs as one task."""
    suite = SETUP.mixture.suite_of(index)
    assert (request.index, request.episodes, request.weight, request.visits) == (index, episodes, 1.0, visits)
    assert (request.suite, request.task) == (suite.name, suite_task(suite, Split.TRAIN, index))


def fair(count: int, trials: int, chance: float) -> None:
    assert abs(count - trials * chance) < 4.5 * sqrt(trials * chance * (1 - chance)), f"{count} of {trials}"


@reference("sampler", "uniform")
def uniform(make: Make) -> None:
    sampler = make(SETUP)
    assert sampler.sizes == {4}
    later = make(LATER)
    for update, played, groups in ((0, 0, 6), (0, 4, 2), (3, 0, 4), (3, 5, 1)):
        for asked, first in (
            (sampler.plan(update, played, groups), 0),
            (later.plan(update + 2, played, groups), 5),
        ):
            assert len(asked) == groups
            for place, request in enumerate(asked):
                is_task(request, first + 6 * update + played + place, 4, 0)


@reference("sampler", "pool", size=[8], hard=[9, 4])
def pool(make: Make, size: int = 256, hard: int = 0) -> None:
    for options, fits in (
        ({"size": 5}, False),
        ({"size": 6}, True),
        ({"hard": 3}, False),
        ({"hard": -1}, False),
    ):
        if fits:
            make(SETUP, **options)
        else:
            refused(make, **options)
    sampler = make(SETUP)
    assert sampler.returns
    assert (sampler.size, sampler.sizes) == (size, {4, hard or 4})  # pyright: ignore
    past: dict[int, list[bool]] = {}
    visits: dict[int, int] = {}
    drawn: list[list[int]] = []
    updates = 150 if size == 8 else 8
    for update in range(updates):
        asked = sampler.plan(update, 0, 6)
        drawn.append([request.index for request in asked])
        assert [*sampler.plan(update, 0, 2), *sampler.plan(update, 2, 4)] == asked
        assert len({*drawn[-1]}) == 6
        assert all(0 <= index < size for index in drawn[-1])
        if update >= 8:
            continue
        for request in asked:
            tries = past.get(request.index, [])
            fails = bool(tries) and sum(tries) < len(tries) / 2
            is_task(request, request.index, hard if hard and fails else 4, visits.get(request.index, 0))
        seen = [
            group._replace(episodes=group.episodes[: 2 + group.request.index % 3])
            for group in outcomes(update, asked)
        ]
        seen[0] = seen[0]._replace(episodes=())  # one whose episodes all failed
        sampler.seen(update, seen)
        for group in seen:
            index = group.request.index
            past.setdefault(index, []).extend(one.success for one in group.episodes)
            visits[index] = visits.get(index, 0) + 1
        known = {int(name): numbers for name, numbers in sampler.state().numbers.items()}
        assert {i: numbers[:3] for i, numbers in known.items()} == {
            i: [visits[i], len(past[i]), sum(past[i])] for i in visits
        }
    if size == 8:
        for index in range(8):
            fair(sum(index in one for one in drawn), updates, 6 / 8)
            fair(sum(index in one[:2] for one in drawn), updates, 2 / 8)
            fair(sum(index == one[5] for one in drawn), updates, 1 / 8)


Known = dict[int, tuple[int, float, float, int]]
"""By task: visits, episodes, successes (older ones weigh less), the update of the last visit."""


def remembered(
    known: Known, update: int, seen: Sequence[SeenGroup], low: float, high: float, most: int
) -> Known:
    """Each earlier visit weighs half as much as the next; what is in the band stays, the newest first."""
    known = dict(known)
    for group in seen:
        index = group.request.index
        visits, episodes, successes, _ = known.pop(index, (0, 0.0, 0.0, -1))
        episodes = episodes / 2 + len(group.episodes)
        successes = successes / 2 + sum(one.success for one in group.episodes)
        if group.episodes and low <= successes / episodes <= high:
            known[index] = (visits + 1, episodes, successes, update)
    while len(known) > most:
        oldest = min(visit[3] for visit in known.values())
        del known[max(index for index, visit in known.items() if visit[3] == oldest)]
    return known


@reference("sampler", "band", low=[0.25], high=[0.75], first=[3])
def band(make: Make, low: float = 0.2, high: float = 0.8, first: int = 0) -> None:
    for wrong in ({"low": -0.1}, {"low": 0.7, "high": 0.6}, {"low": 0.0, "high": 1.1}, {"first": -1}):
        refused(make, **wrong)
    for fits in ({"low": 0.0, "high": 1.0}, {"low": 0.5, "high": 0.5}):
        make(SETUP, **fits)
    assert {one.index for one in make(LATER).plan(3, 0, 6)} == {*range(5 + 6, 5 + 12)}, "of no phase before"
    sampler = make(SETUP)
    assert sampler.sizes == {4, first or 4}
    assert sampler.returns
    assert sampler.by_success
    known: Known = {}
    early = returned = places = 0.0
    for update in range(40):
        if update == 20:  # more than fit, some of which are new tasks of later updates
            known = {i: (400 - i, 4.0, 2.0, 10 + i % 3) for i in (3, 5, 9, 121, 122, 126, 127, 300)}
            sampler.restore(PartState({str(i): [*numbers] for i, numbers in known.items()}))
        asked = sampler.plan(update, 0, 6)
        assert [*sampler.plan(update, 0, 2), *sampler.plan(update, 2, 4)] == asked
        new = [i for i in range(6 * update, 6 * update + 6) if i not in known]
        wanted = {*known, *new[: max(0, 6 - len(known))]}
        indices = [request.index for request in asked]
        assert len(indices) == 6
        assert {*indices} == wanted if len(known) <= 6 else {*indices} < wanted
        for request in asked:
            again = known.get(request.index)
            is_task(request, request.index, 4 if again or not first else first, again[0] if again else 0)
        if 0 < len(known) < 6:
            early += sum(i in known for i in indices[:2])
            returned += len(known) / 3
            places += 2
        seen = [_by_index(group, update) for group in outcomes(update, asked[: 4 if update % 3 else 6])]
        sampler.seen(update, seen)
        known = remembered(known, update, seen, low, high, 6)
        state = {int(i): numbers for i, numbers in sampler.state().numbers.items()}
        assert state == {i: [*numbers] for i, numbers in known.items()}
    if places:
        assert abs(early - returned) < 4.5 * sqrt(places / 4), "where tasks return says something of them"


def _by_index(group: SeenGroup, update: int) -> SeenGroup:
    """Some groups lost all or some of their episodes, others are solved to the border of a band."""
    index = group.request.index
    if index % 7 == 0:
        return group._replace(episodes=())
    solved = (index + update) % 5  # of four
    found = [episode([0.0], end=EndReason.SOLVED if i < solved else EndReason.FAILED) for i in range(4)]
    return group._replace(episodes=found[: 2 if index % 11 == 0 else 4])


# --- refill: by trying every order -----------------------------------------------------------------------------


@reference("sampler", "refill")
def refill(weights: Any) -> None:
    module = getattr(weights, "func", weights).__globals__
    for seed in range(120):
        rng = random.Random(f"refill {seed}")
        likely = rng.choice([0.0, 0.3, 0.5, 0.5, 1.0])
        rounds = [rng.choice([0, 1, 1, 2, 2, 3]) for _ in range(rng.randint(1, 4))]
        rounds = rounds if 0 < sum(rounds) < 8 else [1, 2, 1]
        flags = [rng.random() < likely for _ in range(sum(rounds))]
        last = [n for n in rounds if n][-1]
        enough = sum(flags[:-last]) + rng.choice([1, 1, 2, 3])
        orders = [
            order
            for order in {*itertools.permutations(flags)}
            if all(
                sum(order[:end]) < enough
                for end in itertools.accumulate(n for n in rounds if n)
                if end < len(flags)
            )
        ]
        begin = mean([float(order[0]) for order in orders])
        k, n = sum(flags), len(flags)
        places = iter(flags)
        found = weights([[next(places) for _ in range(size)] for size in rounds], enough)
        assert len(found) == n
        for flag, weight in zip(flags, found, strict=True):
            agree(weight, n * begin / k if flag else n * (1 - begin) / (n - k), f"refill {seed}")
    assert weights([], 2) == []
    sizes, given = [3, 5, 4], [0.5, 2.0, 1.0]
    for size, weight, found in zip(sizes, given, module["size_weights"](sizes, given), strict=True):
        agree(found * size, 4 * weight, "a group's weight is spread over its trajectories")
    assert module["size_weights"]([], []) == []
    assert module["size_weights"]([3], [0.5]) == [0.5]
    for one, other, differ in (
        ([0, 1], [0, 1, 0], False), ([0, 1], [1], True), ([0.0], [], False), ([1.0], [], True), ([0, 1], [1, 0], True),
        ([2, 1], [2, 1], False),
    ):  # fmt: skip
        assert module["is_informative"]([episode(one), episode(other), episode(one)]) is differ
    assert not module["is_informative"]([])
