"""Information gain: how much likelier each turn made the right answer, in the policy's own eyes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.collate import TrainingBatch, plain_rows
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.signal.answers import answer_ids, solutions
from turnwise.trainers.signal.core import Measured, SignalContext


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"information": 0.5 * wave(p)}


@component(
    "signal",
    "information",
    paper="2510.14967",
    gives=("information",),
    reads=("gold", "context"),
    stand_in=_stand_in,
)
def information(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """The rise of the right answer's log-probability over each turn, in nats per token of it (IGPO, Wang et al. 2025).

    The answer is the task's ``gold`` where that is a text, else all that the gold policy says and does.

    >>> information_gain.__name__
    'information_gain'
    """
    plans = solutions(groups, see.env_options)
    answers = [answer_ids(group[0], plan, see.renderer) for group, plan in zip(groups, plans, strict=True)]
    return Measured({"information": information_gain(see.learner, batch, groups, answers, see.context)})


def information_gain(
    learner: Learner,
    batch: TrainingBatch,
    groups: Sequence[Sequence[Episode]],
    answers: Sequence[Sequence[int]],
    context: int,
) -> Tensor:
    """Measure how much likelier each turn made the right answer, in nats per token of it, (B, K), on the CPU.

    s_k = mean log-probability of the answer's tokens, put where the policy would speak at turn k; a turn's
    information is s_{k+1} − s_k (IGPO, Wang et al. 2025). The last turn is followed by no other and gets 0. One
    sequence per turn goes through the model; contexts that leave no room for the answer are cut at their beginning.
    """
    rows, mask_BK = batch.rows, batch.turns.mask_BK
    answer_B = [answer for group, answer in zip(groups, answers, strict=True) for _ in group]
    where = mask_BK.nonzero().tolist()
    texts: list[list[int]] = []
    for b, k in where:
        end = int(rows.state_position_BK[b, k]) + 1
        before = rows.token_RT[rows.state_row_BK[b, k], :end].tolist()
        texts.append([*before[-max(1, context - len(answer_B[b])) :], *answer_B[b]][:context])
    starts = [max(1, len(text) - len(answer_B[b])) for text, (b, _) in zip(texts, where, strict=True)]
    asked = plain_rows(texts, starts)
    logp_N = learner.score(asked).sum(1) / asked.mask_RT.sum(1).clamp(min=1)
    score_BK = torch.zeros(mask_BK.shape)
    score_BK[mask_BK] = logp_N
    next_BK = torch.cat([score_BK[:, 1:], torch.zeros_like(score_BK[:, :1])], 1)
    followed_BK = torch.cat([mask_BK[:, 1:], torch.zeros_like(mask_BK[:, :1])], 1)
    return (next_BK - score_BK) * followed_BK
