"""Planning tokens: sampled tokens inside thoughts, and those of strategic phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext

STRATEGIC = re.compile(
    r"<think>.*?(?:</think>|\Z)"
    r"|\b(?:first(?:ly)?|next|then|finally|instead|alternatively|wait|however)\b[,:]?"
    r"|\b(?:let me|let's|i (?:should|need to|will|must)|we (?:should|need to)|the plan is|my plan|step \d+)\b[^.\n]*"
    r"|\b(?:check|verify|compare|try another|go back|because|so that)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Ours, in place of phrases mined from a corpus (HICRA clusters n-grams of solutions)."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"token_planning": turns_of(p) * (p.state_NK == 0)}


@component("signal", "planning", gives=("token_planning",), reads=("tokens",), stand_in=_stand_in)
def planning(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """1 at sampled tokens that touch a thought or a strategic phrase of their turn (HICRA, 2509.03646).

    >>> touched(["wait", ", ", "click"])
    [1.0, 1.0, 0.0]
    """
    return Measured(token={"token_planning": planning_tokens(batch.rows, see.tokenizer)})


def planning_tokens(rows: TokenRows, tokenizer: Any) -> Tensor:
    """1 at sampled tokens that touch a thought or a strategic phrase of their turn, (R, T)."""
    planning_RT = torch.zeros(rows.mask_RT.shape)
    for r in range(len(rows.mask_RT)):
        for k in rows.turn_RT[r][rows.mask_RT[r]].unique().tolist():
            place_N = (rows.turn_RT[r] == k).nonzero()[:, 0]
            pieces = [tokenizer.decode([token]) for token in rows.token_RT[r, place_N].tolist()]
            planning_RT[r, place_N] = torch.tensor(touched(pieces))
    return planning_RT


def touched(pieces: list[str]) -> list[float]:
    """1 for every piece of a text that shares a character with a strategic phrase.

    >>> touched(["Let", " me", " see", ". ", "click", "[", "B1", "]"])
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    spans = [match.span() for match in STRATEGIC.finditer("".join(pieces))]
    found: list[float] = []
    start = 0
    for piece in pieces:
        end = start + len(piece)
        found.append(float(any(start < stop and begin < end for begin, stop in spans)))
        start = end
    return found
