"""Teachers: models, or the policy under another context; a teacher says how likely it finds the sampled tokens.

Losses, credit rules and signals ask for ``token_teacher_logp``, the teacher's log-probability of each sampled token; a
loss may also ask for ``teacher_top``, the tokens that the teacher finds likeliest in its place (the recipe's
``teacher.top``; all of the vocabulary, if it is as large).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from turnwise.errors import RunError
from turnwise.trainers.core import Group, PartState, TeacherTop
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import base_of, head_rows
from turnwise.trainers.signal.core import SignalContext

GIVES = ("token_teacher_logp", "teacher_top")


@dataclass(frozen=True)
class TeacherSetup:
    """Inputs with which teachers are made.

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
    """The model that teaches; None: the policy as it is now. Its head may have other rows than the policy's (:class:`CutModel`)."""

    of_reference: bool = False
    """True if the learner's frozen reference teaches."""

    writes_anew: bool = False
    """True if it renders conversations again, as the environment told them. A program (the recipe's ``agent``) may have told the
    policy another, so that the two do not go together."""

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        """The rows that the teacher reads, with the same sampled tokens in the same order; the policy's own unless replaced."""
        return batch.rows

    def learned(self, policy: nn.Module) -> None:
        """Called after each update, for teachers that follow the policy."""

    def state(self) -> PartState:
        """Return what a checkpoint keeps of it."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""


UNKNOWN = -20.0
"""The log-probability, in nats, of a token for which a teacher's head has no row: as good as impossible, and finite."""


class CutModel(nn.Module):
    """A model without the logits after the first ``rows``, so that its distribution is over these tokens alone.

    Models of one family share a tokeniser and pad their heads to different sizes (Qwen2.5 has 151936 rows at 0.5B and 152064 at
    7B). A policy with fewer rows could not say the others, and they would be no part of what it is to learn.
    """

    def __init__(self, model: nn.Module, rows: int) -> None:
        super().__init__()
        self._whole, self._rows = [base_of(model)], rows  # in a list: its weights are not this module's
        self.config = base_of(model).config

    def get_output_embeddings(self) -> nn.Module:
        """Return the head, whole, as models of Hugging Face do."""
        return self._whole[0].get_output_embeddings()

    def get_decoder(self) -> nn.Module:
        """Return the decoder, as models of Hugging Face do."""
        return self._whole[0].get_decoder()

    def forward(self, **given: Any) -> Any:
        """Return what the model does, with fewer logits."""
        found = self._whole[0](**given)
        found.logits = found.logits[..., : self._rows]
        return found


def _model_of(teacher: Teacher, learner: Learner, stack: contextlib.ExitStack) -> nn.Module:
    if teacher.of_reference:
        return learner.reference_model(stack)
    return learner.model if teacher.model is None else teacher.model


def taught(
    teacher: Teacher, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], top: int
) -> TrainingBatch:
    """The batch with the teacher's log-probabilities, and with its ``top`` likeliest tokens if that is above 0.

    Both are of its distribution over the tokens of the policy's head. A token beyond the teacher's own head is read as the last
    one that it has, and found :data:`UNKNOWN`.

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
    inside_RT = batch.rows.mask_RT

    def placed(found: Tensor) -> Tensor:
        x = found.new_zeros(*inside_RT.shape, *found.shape[2:])
        x[inside_RT] = found[rows.mask_RT]
        return x

    logp_RT = torch.zeros(rows.mask_RT.shape)
    tops: list[Tensor] = []
    with torch.no_grad(), contextlib.ExitStack() as stack:
        model = _model_of(teacher, learner, stack)
        known, wanted = head_rows(model), head_rows(learner.model)
        says = CutModel(model, wanted) if known > wanted else model
        asked, reader = rows._replace(token_RT=rows.token_RT.clamp(max=known - 1)), learner.reader
        for index_N in reader.cut(model, asked, learner.options.micro_tokens):
            part = asked.select(index_N)
            width = part.mask_RT.shape[1]
            with reader.precision():
                states = reader.states(model, part)
                scores = reader.tokens(says, part, states)
                likeliest = reader.likeliest(says, part, states, top) if top else ()
            logp_RT[index_N, :width] = scores.logp_RT.float().cpu()
            found = [x.cpu() for x in likeliest]
            if not tops:
                tops = [x.new_zeros(*rows.mask_RT.shape, x.shape[-1]) for x in found]
            for whole, x in zip(tops, found, strict=True):
                whole[index_N, :width] = x
    logp_RT[rows.mask_RT & (rows.token_RT >= known)] = UNKNOWN
    view = batch.turns.tokens
    assert view is not None
    signals = {**view.signals, GIVES[0]: placed(logp_RT).to(batch.turns.reward_BK.dtype)}
    turns = dataclasses.replace(batch.turns, tokens=dataclasses.replace(view, signals=signals))
    return batch._replace(turns=turns, top=TeacherTop(*map(placed, tops)) if tops else None)
