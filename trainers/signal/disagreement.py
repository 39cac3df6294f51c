"""Disagreement of a group's members on how to go on, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"token_disagreement": (0.5 + 0.5 * wave(p)) * turns_of(p)}


@component(
    "signal",
    "disagreement",
    paper="2505.24718",
    gives=("token_disagreement",),
    reads=("forward pass",),
    stand_in=_stand_in,
)
def disagreement(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], *, turns: int = 1, most: int = 32
) -> Reading:
    """Distance of the group's distributions from one another at a token's place, from 0 where they are least to 1; for the shape `tw_grpo`.

    D_t = mean_i Σ_v (e^{m_v − l_iv} − (m_v − l_iv) − 1), l_i the log-probabilities of the whole vocabulary at place t of member
    i, m their mean over the group; a member that has no token there finds all alike. From a group's least to its greatest
    D it is 0 to 1; 0 where no place differs. TW-GRPO (Dang et al. 2025). Ours: places are those of the same turn, of the first
    ``turns`` turns and their first ``most`` tokens, for later ones have nothing in common; all other tokens have 0, and e's
    exponent is at most 20. The distributions of all these places are kept at once: members · ``turns`` · ``most`` · vocabulary.

    Worked by hand with three words and two places: D = 1.0237 and 0.0085.

    >>> rows = [[[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], [[0.4, 0.4, 0.2], [0.4, 0.35, 0.25]]]
    >>> [round(apart(torch.tensor(place).log()), 4) for place in rows]
    [1.0237, 0.0085]
    >>> round(apart(torch.tensor([[0.0, -80], [-80, 0]], dtype=torch.float64)), 1)  # e²⁰ − 20 − 1 and, as e⁻⁴⁰ is nothing, 40 − 1
    485165213.4

    Raises:
        RecipeError: no turn or no token would be compared.
    """
    if turns < 1 or most < 1:
        raise RecipeError(
            f"signal 'disagreement': with turns={turns} and most={most} nothing is compared.",
            "Give 1 or more of each.",
        )
    rows, group_B = batch.rows, batch.turns.group_B
    told: dict[int, dict[tuple[int, int], dict[tuple[int, int], Tensor]]] = {}

    def read(seen: PassPart) -> None:
        rank_RT = _rank(seen.rows.turn_RT, turns)
        wanted_RT = (rank_RT >= 0) & (rank_RT < most)
        places = wanted_RT.nonzero().tolist()
        for (r, t), logp_V in zip(places, seen.distributions(wanted_RT).float().cpu(), strict=True):
            row, k = int(seen.index_N[r]), int(seen.rows.turn_RT[r, t])
            group = int(group_B[rows.trajectory_R[row]])
            place = k, int(rank_RT[r, t])
            told.setdefault(group, {}).setdefault(place, {})[row, t] = logp_V

    def done() -> Measured:
        found_RT = torch.zeros(rows.mask_RT.shape)
        for group, places in told.items():
            members = int((group_B == group).sum())
            apart_J = [_of_place([*said.values()], members) for said in places.values()]
            low, high = min(apart_J), max(apart_J)
            for x, said in zip(apart_J, places.values(), strict=True):
                for row, t in said:
                    found_RT[row, t] = (x - low) / (high - low) if high > low else 0.0
        return Measured(token={"token_disagreement": found_RT})

    return Reading(read, done)


def apart(logp_MV: Tensor) -> float:
    """D of one place, from the log-probabilities of its members."""
    more_MV = (logp_MV.mean(0) - logp_MV).clamp(max=20)
    return float((more_MV.exp() - more_MV - 1).sum(-1).mean())


def _of_place(said: Sequence[Tensor], members: int) -> float:
    logp_MV = torch.stack([*said]).double()
    count, vocabulary = logp_MV.shape
    alike_MV = logp_MV.new_full((members - count, vocabulary), -math.log(vocabulary))
    return apart(torch.cat([logp_MV, alike_MV]))


def _rank(turn_RT: Tensor, turns: int) -> Tensor:
    """Count the tokens of its turn that come before each token of the first ``turns`` turns, −1 elsewhere, (R, T)."""
    rank_RT = torch.full_like(turn_RT, -1)
    for k in range(turns):
        own_RT = turn_RT == k
        rank_RT = torch.where(own_RT, own_RT.cumsum(1) - 1, rank_RT)
    return rank_RT
