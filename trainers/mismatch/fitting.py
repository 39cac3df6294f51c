"""Tells what differs where no candidate explains a log: what the engine read, or its weights.

A few numbers are fitted to the differences of half of the rows: an offset to the embedding of each token that prompts have in common, in the rows
as they are or after a system prompt that is put before them, or the gains of norms and the biases. What they explain of the other rows tells these apart.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from turnwise.trainers.learn.model import decode, own_logits
from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Floats, Ints, LoggedRow
from turnwise.trainers.mismatch.sampled import betas
from turnwise.trainers.mismatch.templates import SYSTEMS, OwnTemplate

TOKENS, READ, STEPS = 400, 2000, 32
"""Sampled tokens of each half, tokens that they may be read with, and steps of the optimizer."""
MOST_WORK = 1e13
"""Floating-point operations that a fit may cost on a CPU; it is left out where it would cost more."""
_COMMON, _MOST_IDS, _CAP, _RATE = 0.5, 64, 20.0, 0.05


class FitRows(NamedTuple):
    """Rows that are read together. Axes: R row, T token, M sampled token, which is the case's token ``index_M``. ``base_M``: the
    model's own log-probability of it."""

    ids_RT: Tensor
    row_M: Tensor
    place_M: Tensor
    token_M: Tensor
    beta_M: Tensor
    unit_M: Tensor
    gap_M: Tensor
    base_M: Tensor
    index_M: Ints


class Offsets(NamedTuple):
    """Numbers that are fitted, the optimizer's rate, the hidden states that follow from them, and the rows' tokens where they are read otherwise."""

    parameters: Sequence[Tensor]
    rate: float
    hidden: Callable[[Tensor], Tensor]
    model: Any
    ids: Mapping[int, tuple[int, ...]] = {}


class Fitted(NamedTuple):
    """The share of the differences that is left on rows that were not fitted, and what is expected of their tokens."""

    left: float
    expected_N: Floats


def worth(case: MismatchCase) -> bool:
    """Say whether a fit costs little enough."""
    model = case.models.model
    size = sum(one.numel() for one in model.parameters())
    return next(model.parameters()).is_cuda or 8.0 * size * READ * STEPS <= MOST_WORK


def fitted(case: MismatchCase, offsets: Offsets) -> Fitted | None:
    """Fit offsets to half of the rows that were looked at, and set them against the others; None where there are too few."""
    rows = np.unique(case.row_N[case.looked_N])
    if len(rows) < 4:
        return None
    fit, held = (_rows(case, np.isin(case.row_N, rows[part::2]), offsets.ids) for part in (0, 1))
    optimizer = torch.optim.Adam([*offsets.parameters], lr=offsets.rate)
    best = Fitted(1.0, case.expected_N)
    for step in range(STEPS):
        optimizer.zero_grad()
        miss_M = (fit.gap_M + fit.base_M - _logp(offsets, fit)) / fit.unit_M
        torch.sqrt(miss_M.clamp(-_CAP, _CAP) ** 2 + 1e-4).mean().backward()
        optimizer.step()
        if step % 4 == 3:
            best = min(best, _held_out(case, offsets, held), key=lambda one: one.left)
    return best


def _held_out(case: MismatchCase, offsets: Offsets, held: FitRows) -> Fitted:
    with torch.no_grad():
        moved_M = (_logp(offsets, held) - held.base_M).double().cpu().numpy()
    expected_N = np.full(len(case.row_N), np.nan)
    expected_N[held.index_M] = case.expected_N[held.index_M] + moved_M
    return Fitted(case.left(expected_N, held.index_M), expected_N)


def of_prompts(case: MismatchCase, ids: Mapping[int, tuple[int, ...]] | None = None) -> Offsets:
    """Let the tokens that most prompts have in common be read as something else; ``ids`` are rows that are read in place of others."""
    ids = ids or {}
    model = copy.deepcopy(case.models.model).requires_grad_(requires_grad=False)
    weight_VD: Tensor = model.get_input_embeddings().weight
    common = _common([(ids.get(r, row.ids), row) for r, row in enumerate(case.rows) if row.turns])
    which_V = torch.full((weight_VD.shape[0],), len(common), device=weight_VD.device)
    which_V[torch.tensor(common, dtype=torch.long)] = torch.arange(len(common), device=weight_VD.device)
    offset_CD = torch.zeros(len(common), weight_VD.shape[1], device=weight_VD.device, requires_grad=True)
    none_1D = torch.zeros(1, weight_VD.shape[1], device=weight_VD.device)

    def hidden(ids_RT: Tensor) -> Tensor:
        moved_RTD = torch.cat([offset_CD, none_1D])[which_V[ids_RT]]
        return decode(model, inputs_embeds=weight_VD[ids_RT] + moved_RTD)

    return Offsets([offset_CD], _RATE * float(weight_VD.pow(2).mean().sqrt()), hidden, model, ids)


def after_a_system_prompt(case: MismatchCase) -> dict[int, tuple[int, ...]]:
    """Rows by their numbers, each with a system prompt of our own in place of its own or before it; without those that the template does not tell."""
    own, found = OwnTemplate(case.models.tokenizer), dict[int, tuple[int, ...]]()
    for r, row in enumerate(case.rows):
        changed = own.with_system(row, SYSTEMS[0]) if row.turns else None
        if changed is not None:  # what was sampled in earlier turns keeps its tokens
            found[r] = changed
            continue
        messages = own.read(row, 0) if row.turns else None
        if not messages:
            continue
        talk = [one for one in messages if one.get("role") != "system"]
        text = own.render([{"role": "system", "content": SYSTEMS[0]}, *talk], row.tools)
        if text is not None:
            found[r] = (*own.encode(text), *row.ids[row.turns[0][0] :])
    return found


def of_weights(case: MismatchCase) -> Offsets:
    """Let gains of norms and biases differ."""
    model = copy.deepcopy(case.models.model).requires_grad_(requires_grad=False)
    free = [one.requires_grad_() for one in model.parameters() if one.ndim == 1]
    return Offsets(free, 0.01, lambda ids_RT: decode(model, input_ids=ids_RT), model)


def _common(rows: Sequence[tuple[tuple[int, ...], LoggedRow]]) -> list[int]:
    """Tokens that stand before the first turn of most rows."""
    counts = Counter(
        token for ids, row in rows for token in {*ids[: len(ids) - len(row.ids) + row.turns[0][0]]}
    )
    return [token for token, count in counts.most_common(_MOST_IDS) if count >= _COMMON * len(rows)]


def _rows(case: MismatchCase, of_N: np.ndarray, ids: Mapping[int, tuple[int, ...]]) -> FitRows:
    """Some of the tokens that were looked at, as tensors."""
    index_M = case.some(case.looked_N & of_N, TOKENS, READ)
    device = next(case.models.model.parameters()).device
    rows = np.unique(case.row_N[index_M])
    read = [ids.get(int(r), case.rows[r].ids) for r in rows]
    later = np.array([len(one) - len(case.rows[r].ids) for one, r in zip(read, rows, strict=True)])
    row_M = np.searchsorted(rows, case.row_N[index_M])
    place_M = case.position_N[index_M] + later[row_M]
    ids_RT = torch.zeros(len(rows), int(place_M.max()) + 1, dtype=torch.long)
    for r, one in enumerate(read):
        kept = one[: ids_RT.shape[1]]
        ids_RT[r, : len(kept)] = torch.tensor(kept)
    declared = [case.declared_N[n] for n in index_M]
    beta_M = np.where(case.raw_N[index_M], 1.0, betas(declared))
    base_M = case.found.at(index_M).tempered(beta_M)
    token_M = ids_RT[torch.tensor(row_M), torch.tensor(place_M)]
    beta, unit, gap, base = (
        torch.tensor(one, dtype=torch.float32, device=device)
        for one in (beta_M, case.unit_N[index_M], case.gap_N[index_M], base_M)
    )
    at, place = (torch.tensor(one, device=device) for one in (row_M, place_M))
    return FitRows(ids_RT.to(device), at, place, token_M.to(device), beta, unit, gap, base, index_M)


def _logp(offsets: Offsets, rows: FitRows) -> Tensor:
    hidden_RTD = offsets.hidden(rows.ids_RT)
    logits_MV = own_logits(offsets.model, hidden_RTD[rows.row_M, rows.place_M - 1])
    logp_MV = (logits_MV * rows.beta_M[:, None]).log_softmax(-1)
    return logp_MV.gather(-1, rows.token_M[:, None])[:, 0]
