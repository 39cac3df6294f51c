"""Self-certainty of a thought: how far the policy's distributions in it are from chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.model import head_rows
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext
from turnwise.trainers.signal.entropy import mean_of_turns
from turnwise.trainers.signal.forced import thought_mask


@component("signal", "self_certainty", gives=("self_certainty",), reads=("forward pass",))
def self_certainty(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """The mean over the tokens of a turn's thoughts of KL(π ‖ uniform)/V, with V the size of the vocabulary; 0 without a thought.

    KL(π ‖ uniform) = log V − H(π). Shop-R1 pays it for the rationale alone, by .005:
    `reward: {name: from_signal, signal: self_certainty, weight: 0.005}`.

    Worked by hand: V = 4, p = .7 .1 .1 .1 and uniform: KL .4458 and 0, their mean by V .0557.

    >>> entropies = [-sum(p * math.log(p) for p in ps) for ps in ([0.7, 0.1, 0.1, 0.1], [0.25] * 4)]
    >>> round(sum(certainty(torch.tensor(entropies), 4).tolist()) / 2, 4)
    0.0557
    """
    rows, V = batch.rows, head_rows(see.learner.model)
    mask_RT = thought_mask(batch, see.tokenizer.decode)
    found_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        found_RT[seen.index_N, : seen.rows.mask_RT.shape[1]] = certainty(seen.scores.entropy_RT.cpu(), V)

    def done() -> Measured:
        B, K = batch.turns.mask_BK.shape
        turn_RT = torch.where(mask_RT, rows.turn_RT, -1)
        found_BK = mean_of_turns(found_RT, turn_RT, rows.trajectory_R, (B, K))
        return Measured({"self_certainty": found_BK})

    return Reading(read, done)


def certainty(entropy: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """KL(π ‖ uniform)/V of distributions of these entropies, in nats."""
    return (math.log(vocabulary) - entropy) / vocabulary
