"""Requirements for samplers, on two small suites."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.tasks.core import derive_rng
from turnwise.trainers.check.options import EVERY_PART
from turnwise.trainers.core import PartState
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SeenGroup, example_setup

UPDATES = 4


def outcomes(update: int, requests: Sequence[GroupRequest]) -> list[SeenGroup]:
    """Return the outcomes of requests as if a policy succeeded by chance, each task with a chance of its own."""
    seen: list[SeenGroup] = []
    for request in requests:
        rng = derive_rng("outcome", request.index)
        likely, rng = rng.random(), derive_rng("outcome", update, request.index)
        played: list[Episode] = []
        for _ in range(request.episodes):
            solved = rng.random() < likely
            played.append(episode([float(solved)], end=EndReason.SOLVED if solved else EndReason.FAILED))
        rate = sum(one.success for one in played) / max(1, len(played))
        seen.append(SeenGroup(request, played, 2 * rate * (1 - rate), [one.success - rate for one in played]))
    return seen


def advanced(sampler: Sampler, updates: int = UPDATES) -> Sampler:
    """The sampler after some updates of two rounds."""
    setup = sampler.setup
    for update in range(updates):
        asked = [
            *sampler.plan(update, 0, setup.groups),
            *sampler.plan(update, setup.groups, setup.most - setup.groups),
        ]
        sampler.seen(update, outcomes(update, asked))
    return sampler


def _made(entry: Component) -> Sampler:
    return entry.build({})(example_setup())


def plans_training_tasks(entry: Component) -> str:
    """As many requests as are asked for, each for the training task of its index, of a suite of the mixture."""
    sampler = _made(entry)
    setup = sampler.setup
    for update in range(UPDATES):
        asked = sampler.plan(update, 0, setup.groups)
        require(len(asked) == setup.groups, f"It plans {len(asked)} of {setup.groups} groups.")
        for request in asked:
            require(request.suite in setup.suites, f"{request.suite!r} is no suite of the mixture.")
            own = setup.mixture.task(request.index, request.suite, request.knobs)
            require(request.task == own, f"It plans what is not training task {request.index}.")
            require(math.isfinite(request.weight) and request.weight > 0, f"A weight is {request.weight}.")
            require(
                request.episodes in sampler.sizes, f"{request.episodes} episodes are not among its sizes."
            )
        sampler.seen(update, outcomes(update, asked))
    return f"{UPDATES} updates"


def plans_by_seed_and_update(entry: Component) -> None:
    """Equal plans from equal histories, however often it is asked; nothing of Python's own chance."""
    random.seed(1)
    one = advanced(_made(entry))
    random.seed(2)
    other = advanced(_made(entry))
    plan = one.plan(UPDATES, 0, 4)
    require(plan == one.plan(UPDATES, 0, 4), "Asked twice, it answers otherwise.")
    require(plan == other.plan(UPDATES, 0, 4), "Two of them with one seed and one history differ.")


def plans_in_rounds(entry: Component) -> None:
    """An update that is planned in two rounds has the tasks of one that is planned at once, none of them twice unless it ``repeats``."""
    sampler = advanced(_made(entry))
    whole = sampler.plan(UPDATES, 0, 8)
    rounds = [*sampler.plan(UPDATES, 0, 3), *sampler.plan(UPDATES, 3, 5)]
    require(rounds == whole, "In two rounds it plans other tasks.")
    tasks = {(request.suite, request.index, str(request.knobs)) for request in whole}
    require(
        sampler.repeats or len(tasks) == len(whole),
        "It plans a task twice in an update, and does not say so (repeats = True).",
    )


def says_whether_tasks_return(entry: Component) -> str:
    """``returns`` is declared where an earlier task is planned again."""
    sampler = _made(entry)
    known, again = set[tuple[str, int]](), False
    for update in range(3 * UPDATES):
        asked = sampler.plan(update, 0, sampler.setup.most)
        again |= any((request.suite, request.index) in known for request in asked)
        for request in asked:
            visited = (request.suite, request.index) in known
            require(not request.visits or visited, "It counts visits that were not made.")
        known |= {(request.suite, request.index) for request in asked}
        sampler.seen(update, outcomes(update, asked))
    require(sampler.returns or not again, "Tasks return, and it does not say so (returns = True).")
    return "tasks return" if again else "tasks are new"


def adds_episodes(entry: Component) -> str:
    """One that ``adds`` wants what was just played as often or more often, to an end, within its sizes, and does not remember it."""
    sampler = advanced(_made(entry))
    asked, before = sampler.plan(UPDATES, 0, 8), sampler.state()
    first = [request.episodes for request in asked]
    for _ in range(max(sampler.sizes) * len(asked)):
        wanted = sampler.again(UPDATES, outcomes(UPDATES, asked))
        require(
            wanted == sampler.again(UPDATES, outcomes(UPDATES, asked)), "Asked twice, it wants otherwise."
        )
        require([w.task for w in wanted] == [a.task for a in asked], "It wants another task.")
        more = [w.episodes - a.episodes for w, a in zip(wanted, asked, strict=True)]
        require(min(more) >= 0, "It wants fewer episodes than were played.")
        require(all(w.episodes in sampler.sizes for w in wanted), "It wants sizes that it does not name.")
        asked = wanted
        if not any(more):
            break
    else:
        require(False, "It comes to no end.")
    require(sampler.state().numbers == before.numbers, "It remembers what it was asked within the update.")
    added = [request.episodes for request in asked] != first
    require(sampler.adds or not added, "It adds episodes, and does not say so (adds = True).")
    return "adds episodes" if added else "adds none"


def goes_on_where_it_was(entry: Component) -> None:
    """Its state, through JSON and into another one of it, gives the same plans from there on."""
    one, other = advanced(_made(entry)), _made(entry)
    state = one.state()
    other.restore(PartState(json.loads(json.dumps({**state.numbers})), state.tensors))
    for update in range(UPDATES, 2 * UPDATES):
        asked = one.plan(update, 0, 8)
        require(asked == other.plan(update, 0, 8), "It plans otherwise after its state was restored.")
        for sampler in (one, other):
            sampler.seen(update, outcomes(update, asked))


REQUIREMENTS: dict[str, Requirements] = {
    "sampler": {
        **EVERY_PART,
        "plans training tasks": plans_training_tasks,
        "plans by seed and update": plans_by_seed_and_update,
        "plans in rounds": plans_in_rounds,
        "says whether tasks return": says_whether_tasks_return,
        "adds episodes": adds_episodes,
        "goes on where it was": goes_on_where_it_was,
    }
}
