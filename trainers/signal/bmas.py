"""BMAS: how much of the right answer stands in what was said, and the other way round, by embeddings of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.tools.thoughts import left_open
from turnwise.trainers.core import Group
from turnwise.trainers.kit.thoughts import thought_length
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.shards import whole
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import last_turn, right_answers, spread


@component("signal", "bmas", gives=("bmas",), reads=("gold", "tokens"))
def bmas(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Bidirectional max-average similarity of the last words to the right answer, on every turn of a trajectory.

    (mean_i max_j S_ij + mean_j max_i S_ij)/2, S the cosine of the embeddings of token i of what the last turn says, after its thoughts, and token j of
    the right answer (as of `rlpr`): Mixed-R1's reward for free text. Embeddings are the policy's own of its input, as they are now (ours). Paid alone it is
    `reward: {name: own_probability, signal: bmas, weight: 1, format: 0}`.

    Worked by hand from the book: three tokens against two.

    >>> round(both_ways(torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.3, 0.4]])), 4)
    0.775
    """
    embedding_VD = whole(see.learner.model.get_input_embeddings().weight)  # pyright: ignore
    opened = left_open(see.tokenizer.decode(list(see.renderer.opening)))
    found: dict[int, float] = {}
    for b, answer in enumerate(right_answers(see, groups)):
        if batch.turns.length_B[b]:
            _, said = last_turn(batch, b)
            words = said[thought_length(said, see.tokenizer.decode, opened) :]
            found[b] = both_ways(_unit(embedding_VD, words) @ _unit(embedding_VD, answer).T)
    return Measured({"bmas": spread(batch, found)})


def both_ways(likeness_NM: Tensor) -> float:
    """The mean of each one's best likeness, by rows and by columns; 0 where there is none."""
    if not likeness_NM.numel():
        return 0.0
    return 0.5 * (likeness_NM.amax(1).mean() + likeness_NM.amax(0).mean()).item()


def _unit(embedding_VD: Tensor, tokens: Sequence[int]) -> Tensor:
    return torch.nn.functional.normalize(embedding_VD[list(tokens)].double().cpu(), dim=-1)
