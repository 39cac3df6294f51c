"""The same replies under other contexts: what a teacher that is the policy itself is shown instead of what was played."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from turnwise.agents.core import ROOT, Episode, Trajectory, Turn
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate_rows
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.source.rendering import ToolsOfTasks

_logger = logging.getLogger(__name__)


def told_rows(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], tell: Callable[[Episode], str]
) -> TokenRows:
    """The batch's rows, as they would be had the first message ended in what ``tell`` says of the episode; where it says nothing
    they are what was played, token for token.

    Raises:
        RunError: an episode's environment cannot be made, of whose tools the prompt speaks.
    """
    told = [
        _retold(see.renderer, tools, episode.trajectory, tell(episode))
        for episode, tools in _with_tools(see, groups)
    ]
    return collate_rows(told, batch.sources)


Rewrite: TypeAlias = Callable[[Episode, int, Sequence[Message]], Sequence[Message]]
"""(episode, turn, what was said before the turn's reply) → what the teacher is shown instead."""


def rewritten_rows(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], rewrite: Rewrite
) -> TokenRows:
    """The batch's replies, each below a conversation of its own, so that what is shown may differ from turn to turn.

    Every turn is a row. A reply whose conversation does not fit the model's context is read as it was sampled, which a warning
    counts.

    Raises:
        RunError: an episode's environment cannot be made, of whose tools the prompt speaks.
    """
    shown: list[list[tuple[int, ...]]] = []
    for episode, tools in _with_tools(see, groups):
        said: list[Message] = []
        shown.append([])
        for k, turn in enumerate(episode.trajectory.turns):
            said.extend(turn.observation)
            shown[-1].append(see.renderer.start([*rewrite(episode, k, said)], tools))
            said.append(turn.action)
    return _reply_rows(see, batch, groups, shown)


def told_each_turn(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], tell: Callable[[Episode, int], str]
) -> TokenRows:
    """The batch's replies, each below what the policy read before it, whose last message ends in what ``tell`` says of the turn.

    What stands is not rendered again, so that rows have their beginnings in common with what was played, and nothing is
    rendered as often as there are turns. Rows and contexts are those of :func:`rewritten_rows`.

    Raises:
        RunError: an episode's environment cannot be made, of whose tools the prompt speaks.
    """
    shown: list[list[tuple[int, ...]]] = []
    tools = ToolsOfTasks(see.env_options)
    for episode in (episode for group in groups for episode in group):
        own, said = prompts(episode.trajectory), list[Message]()
        shown.append([])
        for k, turn in enumerate(episode.trajectory.turns):
            said.extend(turn.observation)
            text = tell(episode, k) if own[k] else ""
            told = see.renderer.told_last(own[k], text) if own[k] else ()
            if told is None and turn.acts is not None:
                told = own[k]  # what a program told the policy is known by its tokens alone
            elif told is None:
                *before, last = said
                noted = [*before, replace(last, content=f"{last.content}\n\n{text}".strip())]
                told = see.renderer.start(noted, tools(episode, episode.trajectory.agent))
            shown[-1].append(told)
            said.append(turn.action)
    return _reply_rows(see, batch, groups, shown)


def prompts(trajectory: Trajectory) -> list[tuple[int, ...]]:
    """All that the policy reads before each reply, as it is learned from; empty where it said nothing."""
    read: list[tuple[int, ...]] = []
    after: list[tuple[int, ...]] = []
    for k, turn in enumerate(trajectory.turns):
        reply = turn.reply
        if turn.acts and not reply.action_ids:
            read.append(())
            after.append(())
            continue
        parent = reply.parent.turn(k)
        before = () if parent is None else after[parent]
        read.append((*before, *(reply.prompt_ids if reply.scored_ids is None else reply.scored_ids)))
        after.append((*read[k], *reply.action_ids))
    return read


def _reply_rows(
    see: SignalContext,
    batch: TrainingBatch,
    groups: Sequence[Group],
    shown: Sequence[Sequence[tuple[int, ...]]],
) -> TokenRows:
    """A row for each reply, below what is shown before it; as it was sampled, where that is too long.

    In the order in which the replies lie in the batch's rows, which is not that of time where an agent has several conversations.
    """
    told, too_long = list[Trajectory](), 0
    episodes = [episode for group in groups for episode in group]
    for episode, prompts_K in zip(episodes, shown, strict=True):
        own, turns = prompts(episode.trajectory), list[Turn]()
        for k, turn in enumerate(episode.trajectory.turns):
            fits = len(prompts_K[k]) + len(turn.reply.action_ids) <= see.context
            too_long += not fits
            reply = turn.reply._replace(parent=ROOT, scored_ids=prompts_K[k] if fits else own[k])
            turns.append(replace(turn, reply=reply))
        told.append(Trajectory(tuple(turns), episode.trajectory.agent, episode.trajectory.final))
    if too_long:
        _logger.warning(
            "the teacher reads %d of %d replies as the policy did: what it is shown does not fit the model's context of %d tokens",
            too_long,
            sum(len(one.turns) for one in told),
            see.context,
        )
    return _in_order_of(batch, collate_rows(told, batch.sources))


def _in_order_of(batch: TrainingBatch, rows: TokenRows) -> TokenRows:
    """Rows of one reply each, in the order in which the batch's rows hold these replies; those of nobody's choice come last."""
    if not len(rows.length_R):
        return rows
    (B, K), played = batch.turns.mask_BK.shape, batch.rows
    place_N = (played.trajectory_R[:, None] * K + played.turn_RT)[played.mask_RT].unique_consecutive()
    order_N = torch.full((B * K,), B * K)
    order_N[place_N] = torch.arange(len(place_N))
    turn_R = rows.turn_RT.amax(1)
    key_R = torch.where(turn_R < 0, B * K, order_N[rows.trajectory_R * K + turn_R.clamp(min=0)])
    moved_R = key_R.argsort(stable=True)
    return rows.select(moved_R)._replace(state_row_BK=moved_R.argsort()[rows.state_row_BK])


def _with_tools(see: SignalContext, groups: Sequence[Group]) -> Iterator[tuple[Episode, Sequence[Tool]]]:
    """The episodes, each with the tools of its task."""
    tools = ToolsOfTasks(see.env_options)
    for episode in (episode for group in groups for episode in group):
        yield episode, tools(episode, episode.trajectory.agent)


def _retold(renderer: Renderer, tools: Sequence[Tool], trajectory: Trajectory, text: str) -> Trajectory:
    if not text:
        return trajectory
    turns: list[Turn] = []
    said: list[Message] = []
    for k, turn in enumerate(trajectory.turns):
        said.extend(turn.observation)
        reply = turn.reply
        if reply.parent.turn(k) is None:
            reply = reply._replace(scored_ids=renderer.start(told_below(said, text), tools))
        turns.append(replace(turn, reply=reply))
        said.append(turn.action)
    return Trajectory(tuple(turns), trajectory.agent, trajectory.final)
