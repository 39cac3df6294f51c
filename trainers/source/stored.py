"""Stored episodes: those of an episode log, imitated or learned from beside what is played."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent, is_known
from turnwise.trainers.source.held_out import HeldOut, require_learnable
from turnwise.trainers.source.rendering import Rendering, own_trajectories

REMEDY = "Name the episodes.jsonl.zst of a run or an evaluation."


@component("source", "stored")
class Stored:
    """``groups`` groups of an episode log in every update, drawn anew; each as it was logged, tokens and all. A group are the
    episodes that an update played on one task; in other logs (``eval --k 8``, hosted sessions) all of one policy on a task.

    Their episodes are imitated, only those that solved their task with ``solved``; or they ``join`` what is played,
    with rewards and the log-probabilities with which they were sampled, all members of a group (experience replay).
    Then give the source a correction, for an older policy sampled them; the whole ratio of a trajectory, ``{name: tis, level:
    trajectory, cap: 1e9}``, is exact and noisy, others are some degrees off (docs/recipe-bias.md).

    What somebody else played (a script, a person, a server, a model with another tokeniser or chat template) is rendered
    anew in this model's tokens, whose log-probabilities then are not known: no correction can weigh them.

    Episodes of tasks on which the run itself is evaluated are refused: `turnwise eval SUITE --split train --out FOLDER` plays others.

    >>> import asyncio
    >>> from turnwise.trainers.source.toy import example_context, example_log
    >>> stored = Stored(path=str(example_log()), groups=2, join=True)
    >>> drawn = asyncio.run(stored(example_context("shop/quick"), 0))
    >>> [len(group) for group in drawn.joined]
    [2, 2]

    Raises:
        RecipeError: there is no path.
        RunError: when it is asked: the log has no episode that could be learned from, or one on a task of the run's own evaluations.
    """

    def __init__(self, *, path: str = "", groups: int = 4, solved: bool = True, join: bool = False) -> None:
        self.path, self.groups = required_path("stored", path), groups
        self.solved, self.join = solved and not join, join

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        drawn = draw_groups(see, update, stored_groups(see, self.path, solved=self.solved), self.groups)
        if self.join:
            return SourceDraw(joined=drawn)
        return SourceDraw(shown=[one for group in drawn for episode in group for one in by_agent(episode)])

    def log_path(self) -> str:
        return self.path

    def joins_unknown(self) -> bool:
        file = Path(self.path)
        return self.join and file.is_file() and has_unknown(str(file.resolve()), file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=16)
def has_unknown(path: str, written_ns: int) -> bool:
    """Say whether an episode of a log that could be learned from lacks tokens, so that it will be rendered anew, or does not say of
    one how likely it was. What is written later (``written_ns``) is read anew.

    Raises:
        TurnwiseError: the log is damaged.
    """
    for record in LogReader(path):
        episode = own_trajectories(record.episode)
        turns = [turn for said in episode.trajectories.values() for turn in said.turns]
        if episode.outcome.counts and (
            not is_known(episode) or any(not turn.reply.action_ids for turn in turns)
        ):
            return True
    return False


def required_path(source: str, path: str) -> str:
    """The path that a source of stored episodes was given.

    Raises:
        RecipeError: it was given none.
    """
    if not path:
        raise RecipeError(f"source {source!r} has no path.", REMEDY)
    return path


def stored_groups(see: SourceContext, path: str, *, solved: bool) -> list[Group]:
    """The groups of a log, or those of their episodes that were ``solved``, in this model's tokens; outside of updates
    (evaluations, hosted sessions) one policy's episodes on a task are a group.

    Raises:
        RunError: the log has no such episode, or one on a task that the run itself is evaluated on.
    """
    options = json.dumps(dict(see.env_options))
    return _groups(str(Path(path).resolve()), solved, see.renderer, options, see.held_out)


def draw_groups(see: SourceContext, update: int, known: Sequence[Group], count: int) -> list[Group]:
    """So many of the groups, or all that there are, drawn without replacement by the run's seed and the update."""
    return derive_rng("stored", see.seed, update).sample(known, min(count, len(known)))


@functools.lru_cache(maxsize=4)
def _groups(
    path: str, solved: bool, renderer: Renderer, env_options: str, held_out: HeldOut | None
) -> list[Group]:
    if held_out is not None:
        require_learnable(path, solved, held_out)
    found: dict[tuple[object, ...], list[Episode]] = {}
    rendering = Rendering(renderer, json.loads(env_options), path)
    for record in LogReader(path):
        episode = own_trajectories(record.episode)
        if not episode.outcome.counts or (solved and not episode.success):
            continue
        if not episode.trajectories:
            continue
        place = (record.update, record.group)
        if record.group is None:
            place = (episode.task.id, record.policy)
        found.setdefault(place, []).append(rendering(episode))
    if not found:
        raise RunError(f"{path} has no{' solved' if solved else ''} episode to learn from.", REMEDY)
    rendering.tell()
    return list(found.values())
