"""RLP: how much a thought helps to foretell what the environment answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, PartState
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.kit.thoughts import thought_length
from turnwise.trainers.learn.collate import TrainingBatch, plain_rows
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup
from turnwise.trainers.signal.forced import Score
from turnwise.trainers.signal.moving_copy import MovingCopy


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"rlp": 0.3 * wave(p)}


@component(
    "signal", "rlp", paper="2510.01265", gives=("rlp",), reads=("tokens", "context", "copy of the policy"), stand_in=_stand_in,
)  # fmt: skip
class Rlp(Signal):
    """log π(x | thought) − log π_φ(x | no thought) of each turn with a thought, x the environment's answer to it; 0 for others.

    Both are means over the tokens of x, which are those between a turn and the next one (ours: the paper foretells one token of a text at
    a time, so that a turn's thought has one token to answer for). φ is an average of the policy that reads the same text without the turn's
    thoughts: φ ← ``decay``·φ + (1 − decay)·θ after each update. RLP (Hatamizadeh et al. 2025); the credit rule `rlp` gives it to the
    thought's tokens. The last turn has no next one, and 0, as has a turn whose next one begins another row, where a renderer forgets thoughts.

    >>> Rlp.__name__
    'Rlp'
    """

    def __init__(self, setup: SignalSetup, *, decay: float = 0.999) -> None:
        self.copy = MovingCopy(setup, "signal 'rlp'", decay, 1)

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        rows, found_BK = batch.rows, torch.zeros(batch.turns.mask_BK.shape, dtype=torch.float64)
        where: list[tuple[int, int]] = []
        told, bare, starts = list[list[int]](), list[list[int]](), list[int]()
        for b, turns in enumerate(batch.turns.length_B.tolist()):
            for k in range(turns - 1):
                r = int(rows.state_row_BK[b, k])
                at_N = (rows.turn_RT[r] == k).nonzero().flatten().tolist()
                end = int(rows.state_position_BK[b, k + 1]) + 1
                if not at_N or int(rows.state_row_BK[b, k + 1]) != r:
                    continue
                begin, text = at_N[0], rows.token_RT[r, :end].tolist()
                thought = thought_length(text[begin : at_N[-1] + 1], see.tokenizer.decode)
                if thought:
                    where.append((b, k))
                    told.append(text)
                    bare.append([*text[:begin], *text[begin + thought :]])
                    starts.append(at_N[-1] + 1)
        shorter = [start - len(a) + len(c) for start, a, c in zip(starts, told, bare, strict=True)]
        gain = [
            x - y
            for x, y in zip(
                means(see.learner.score, told, starts), means(self.copy.score, bare, shorter), strict=True
            )
        ]
        for (b, k), x in zip(where, gain, strict=True):
            found_BK[b, k] = x
        self.copy.follow(see.learner.model)
        return Measured({"rlp": found_BK})

    def state(self) -> PartState:
        return self.copy.state()

    def restore(self, state: PartState) -> None:
        self.copy.restore(state)


def means(score: Score, texts: Sequence[Sequence[int]], starts: Sequence[int]) -> list[float]:
    """The mean log-probability of the tokens of each text from a place on."""
    if not texts:
        return []
    rows = plain_rows(texts, starts)
    logp_RT = score(rows).double()
    return (logp_RT.sum(1) / rows.mask_RT.sum(1).clamp(min=1)).tolist()
