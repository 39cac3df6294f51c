"""What a teacher is: a model, or the policy under another context, that says how likely it finds the sampled tokens.

Losses, credit rules and signals ask for ``token_teacher_logp``, the teacher's log-probability of each sampled token; a
loss may also ask for ``teacher_top``, the tokens that the teacher finds likeliest in its place (the recipe's
``teacher.top``; all of the vocabulary, if it is as large).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from turnwise.agents.core import NO_PARENT, Episode, Trajectory, Turn
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.tools.core import Tool
from turnwise.trainers.core import Group, PartState, TeacherTop
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate_rows, micro_batches
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.source.rendering import ToolsOfTasks

_logger = logging.getLogger(__name__)
GIVES = ("token_teacher_logp", "teacher_top")


@dataclass(frozen=True)
class TeacherSetup:
    """What teachers are made with.

    Attributes:
        load: a frozen model, from its Hugging Face id or folder, on the policy's device.
        copy_policy: a copy of the policy as it is when reinforcement begins.
        tokenizer: the policy's.
    """

    load: Callable[[str], nn.Module]
    copy_policy: Callable[[], nn.Module]
    tokenizer: Any


class Teacher:
    """A teacher; subclasses replace what applies to them."""

    model: nn.Module | None = None
    """Who teaches; None: the policy as it is now."""

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        """The rows that the teacher reads, with the same sampled tokens in the same order; the policy's own unless replaced."""
        return batch.rows

    def learned(self, policy: nn.Module) -> None:
        """Called after each update, for teachers that follow the policy."""

    def state(self) -> PartState:
        """What a checkpoint keeps of it."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""


def taught(
    teacher: Teacher, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], top: int
) -> TrainingBatch:
    """The batch with the teacher's log-probabilities, and with its ``top`` likeliest tokens if that is above 0.

    Raises:
        RunError: the teacher reads rows with other tokens than those that were sampled, or longer than it can.
    """
    rows, learner = teacher.rows(see, batch, groups), see.learner
    if not torch.equal(rows.token_RT[rows.mask_RT], batch.rows.token_RT[batch.rows.mask_RT]):
        raise RunError("The teacher reads other tokens than those that were sampled.", "Repair its `rows`.")
    if len(rows.length_R) and int(rows.length_R.max()) > see.context:
        raise RunError(
            f"A teacher's context of {int(rows.length_R.max())} tokens does not fit the model's {see.context}.",
            "Shorten what it is told, or raise the model's context.",
        )
    model = learner.model if teacher.model is None else teacher.model
    inside_RT = batch.rows.mask_RT

    def placed(found: Tensor) -> Tensor:
        x = found.new_zeros(*inside_RT.shape, *found.shape[2:])
        x[inside_RT] = found[rows.mask_RT]
        return x

    logp_RT = torch.zeros(rows.mask_RT.shape)
    tops: list[Tensor] = []
    with torch.no_grad():
        for index_N in micro_batches(rows, learner.options.micro_tokens):
            part = rows.select(index_N)
            width = part.mask_RT.shape[1]
            logp_RT[index_N, :width] = learner.reader.scores(model, part).logp_RT.float().cpu()
            if top:
                found = [x.cpu() for x in learner.reader.likeliest(model, part, top)]
                if not tops:
                    tops = [x.new_zeros(*rows.mask_RT.shape, x.shape[-1]) for x in found]
                for whole, x in zip(tops, found, strict=True):
                    whole[index_N, :width] = x
    view = batch.turns.tokens
    assert view is not None
    signals = {**view.signals, GIVES[0]: placed(logp_RT).to(batch.turns.reward_BK.dtype)}
    turns = dataclasses.replace(batch.turns, tokens=dataclasses.replace(view, signals=signals))
    return batch._replace(turns=turns, top=TeacherTop(*map(placed, tops)) if tops else None)


def told_rows(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], tell: Callable[[Episode], str]
) -> TokenRows:
    """The batch's rows, as they would be had the first message ended in what ``tell`` says of the episode.

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

    Every turn is a row: the tokens that are read grow with the square of the turns. A reply whose conversation does not fit the
    model's context is read below its own, as it was sampled, which a warning counts.

    Raises:
        RunError: an episode's environment cannot be made, of whose tools the prompt speaks.
    """
    told, too_long = list[Trajectory](), 0
    for episode, tools in _with_tools(see, groups):
        turns: list[Turn] = []
        said: list[Message] = []
        for k, turn in enumerate(episode.trajectory.turns):
            said.extend(turn.observation)
            shown = see.renderer.start([*rewrite(episode, k, said)], tools)
            if len(shown) + len(turn.reply.action_ids) > see.context:
                shown, too_long = turn.reply.prompt_ids, too_long + 1
            turns.append(replace(turn, reply=turn.reply._replace(parent=NO_PARENT, scored_ids=shown)))
            said.append(turn.action)
        told.append(Trajectory(tuple(turns), episode.trajectory.agent, episode.trajectory.final))
    if too_long:
        _logger.warning(
            "the teacher reads %d of %d replies as the policy did: what it is shown does not fit the model's context of %d tokens",
            too_long,
            sum(len(one.turns) for one in told),
            see.context,
        )
    return collate_rows(told, batch.sources)


def _with_tools(see: SignalContext, groups: Sequence[Group]) -> Iterator[tuple[Episode, Sequence[Tool]]]:
    """The episodes, each with the tools of its task."""
    tools = ToolsOfTasks(see.env_options)
    for episode in (episode for group in groups for episode in group):
        yield episode, tools(episode, episode.trajectory.agent)


def _retold(renderer: Renderer, tools: Sequence[Tool], trajectory: Trajectory, text: str) -> Trajectory:
    turns: list[Turn] = []
    said: list[Message] = []
    for k, turn in enumerate(trajectory.turns):
        said.extend(turn.observation)
        reply = turn.reply
        if k == 0 or reply.parent == NO_PARENT:
            reply = reply._replace(scored_ids=renderer.start(told_below(said, text), tools))
        turns.append(replace(turn, reply=reply))
        said.append(turn.action)
    return Trajectory(tuple(turns), trajectory.agent, trajectory.final)
