"""The tasks that a recipe's sampler would choose, against made-up outcomes: nothing is played and nothing learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.tasks.core import canonical, derive_rng
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.recipe.compatible import make_sampler
from turnwise.trainers.recipe.phases import phases_of
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SeenGroup
from turnwise.trainers.sampler.mixture import Mixture

BINS = ("never", "seldom", "half", "often", "always")
"""Tasks by their chance of success: 0, up to ⅓, up to ⅔, below 1, and 1."""
PARTS = 3  # of the run, which are told apart


class PlayedTask(NamedTuple):
    """A task of an update: where it is from, how often it was played, in how many earlier updates, and its made-up chance of success."""

    suite: str
    knobs: str
    episodes: int
    weight: float
    visits: int
    chance: float


def chance_of(request: GroupRequest) -> float:
    """The made-up chance of success of a task, the same whenever it is played: a fifth are never solved, a fifth always, others evenly."""
    drawn = derive_rng("made up", request.task.id).random()
    return min(1.0, max(0.0, (drawn - 0.2) / 0.6))


def _answer(update: int, request: GroupRequest) -> SeenGroup:
    rng, likely = derive_rng("made up", update, request.task.id), chance_of(request)
    solved = [rng.random() < likely for _ in range(request.episodes)]
    played: list[Episode] = [
        episode([float(one)], end=EndReason.SOLVED if one else EndReason.FAILED) for one in solved
    ]
    rate = mean(solved)
    return SeenGroup(request, played, 2 * rate * (1 - rate), [one - rate for one in solved])


def _played(sampler: Sampler, update: int) -> list[SeenGroup]:
    """The tasks of an update, with the episodes that were added to them."""
    asked = sampler.plan(update, 0, sampler.setup.groups)
    while True:
        seen = [_answer(update, request) for request in asked]
        wanted = sampler.again(update, seen) if sampler.adds else asked
        if [one.episodes for one in wanted] == [one.episodes for one in asked]:
            return [group._replace(request=one) for group, one in zip(seen, wanted, strict=True)]
        asked = wanted


def rehearse_sampling(recipe: Recipe, updates: int) -> list[list[PlayedTask]]:
    """The tasks of each of the first ``updates`` of a recipe's first phase, as if each were solved with a chance of its own.

    A plain simulation: chances do not rise, and refill draws no more tasks.
    """
    phase = phases_of(recipe)[0].recipe
    sampler, found = make_sampler(phase, Mixture(phase.suites, phase.seed)), list[list[PlayedTask]]()
    for update in range(updates):
        seen = _played(sampler, update)
        found.append([
            PlayedTask(
                *(one.suite, canonical(dict(one.knobs)) if one.knobs else "", one.episodes, one.weight, one.visits),
                chance_of(one),
            )
            for one, *_ in seen
        ])  # fmt: skip
        sampler.seen(update, seen)
    return found


def sampling_lines(found: Sequence[Sequence[PlayedTask]]) -> list[str]:
    """Say how often tasks of which kind are played at first, in the middle and at last."""
    cuts = [len(found) * part // PARTS for part in range(PARTS + 1)]
    parts = [(a, b) for a, b in pairwise(cuts) if b > a]
    lines = [
        "Tasks that the sampler would play, if each were solved with a chance of its own that stays (nothing was played)",
        "",
    ]
    for a, b in parts:
        tasks = [task for update in found[a:b] for task in update]
        total = sum(task.episodes for task in tasks)
        sizes = [task.episodes for task in tasks]
        often = Counter[str]()
        where = Counter[str]()
        for task in tasks:
            often[_bin(task.chance)] += task.episodes
            where[f"{task.suite} {task.knobs}".rstrip()] += task.episodes
        again = mean(task.visits > 0 for task in tasks)
        each = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else f"{sizes[0]}"
        lines += [
            f"updates {a + 1} to {b}: {len(tasks)} tasks, {total} episodes, {each} a task; {again:.0%} were played before",
            "  solved     " + ", ".join(f"{name} {often[name] / total:.0%}" for name in BINS),
            "  from       " + ", ".join(f"{name} {n / total:.0%}" for name, n in where.most_common()),
        ]
    return lines


def _bin(chance: float) -> str:
    """
    >>> [_bin(chance) for chance in (0.0, 0.2, 0.5, 0.9, 1.0)] == [*BINS]
    True
    """
    if chance in (0.0, 1.0):
        return BINS[0] if chance == 0.0 else BINS[-1]
    return BINS[1 + min(2, int(3 * chance))]
