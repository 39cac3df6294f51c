"""Requirements for sources, on a small suite."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import replace
from typing import Any

from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART
from turnwise.trainers.core import PartState, Stateful
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.source.core import Source, SourceDraw
from turnwise.trainers.source.toy import example_context, example_log, failed_groups, worse_log

SUITE = "shop/quick"


def made(entry: Component) -> Source:
    """The source; one that reads a file reads that of an untrained model, solved or not; one that gathers gives each."""
    known: dict[str, Any] = {
        "path": str(example_log()),
        "over": str(worse_log()),
        "solved": False,
        "batch": 1,
    }
    built: Any = entry.build({name: value for name, value in known.items() if name in entry.options})
    return built() if inspect.isclass(entry.target) else built


def drawn(entry: Component, source: Source, update: int) -> SourceDraw:
    """Return what the source gives for an update, in a run whose policy is told what the source asks for."""
    see = replace(example_context(SUITE), played=failed_groups(2 * update, 2))

    async def draw() -> SourceDraw:
        return await source(replace(see, renderer=see.renderer.instructed(entry.instruction)), update)

    return asyncio.run(draw())


def said(entry: Component, source: Any, update: int) -> list[tuple[str, object]]:
    """List the tasks and trajectories of the episodes of a draw, clocks aside."""
    found = drawn(entry, source, update)
    episodes = [*found.shown, *(episode for group in found.joined for episode in group)]
    return [(episode.task.id, episode.trajectories) for episode in episodes]


def gives_what_can_be_learned(entry: Component) -> str:
    """Episodes whose outcomes count, with tokens; joined ones in groups of one task each."""
    found = drawn(entry, made(entry), 0)
    require(found.shown or found.joined, "It gives nothing.")
    for group in [[episode] for episode in found.shown] + [[*group] for group in found.joined]:
        require(all(episode.outcome.counts for episode in group), "It gives an episode that failed.")
        require(len({episode.task.id for episode in group}) == 1, "A group has several tasks.")
        require(bool(collate([group]).rows.mask_RT.any()), "It gives an episode without a token to learn.")
    return f"{len(found.shown)} shown, {len(found.joined)} groups joined"


def draws_by_seed_and_update(entry: Component) -> None:
    """Equal draws for equal updates, from a source that is made anew."""
    one, other = made(entry), made(entry)
    for update in range(2):
        require(
            said(entry, one, update) == said(entry, other, update),
            "Two of them with one seed draw otherwise.",
        )


def goes_on_where_it_was(entry: Component) -> str:
    """Its state, through JSON and into another one of it, gives the same draws from there on."""
    one, other = made(entry), made(entry)
    if not isinstance(one, Stateful) or not isinstance(other, Stateful):
        return "it keeps nothing"
    said(entry, one, 0)
    state = one.state()
    other.restore(PartState(json.loads(json.dumps({**state.numbers})), state.tensors))
    require(said(entry, one, 1) == said(entry, other, 1), "It draws otherwise after its state was restored.")
    return "what it remembers is in its state"


REQUIREMENTS: dict[str, Requirements] = {
    "source": {
        **EVERY_PART,
        "gives what can be learned": gives_what_can_be_learned,
        "draws by seed and update": draws_by_seed_and_update,
        "goes on where it was": goes_on_where_it_was,
    }
}
