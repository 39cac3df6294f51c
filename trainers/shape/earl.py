"""EARL: only the tokens that the policy was unsure of learn."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens, sequences, token_signal


@component(
    "shape",
    "earl",
    paper="2511.12033",
    needs=("token_entropy",),
    bias="biased: tokens learn or not by their entropy",
)
def earl(
    credit: Tensor | TokenCredit,
    batch: TurnBatch,
    *,
    share: float = 0.2,
    per: Literal["turn", "trajectory"] = "turn",
) -> TokenCredit:
    """A on the tokens of highest entropy, 0 on the others.

    A′_t = A_t·1[H_t ≥ τ], τ the (1 − ρ)-quantile of the token entropies. Entropy-aware RL for RTL code (2025), over
    GRPO; from the abstract and summaries, so an interpretation: ρ = 0.2 and the linear quantile are those of "beyond
    80/20" (2506.01939). The paper's τ is a response's (``per="trajectory"``); per turn, short calls of tools are not
    starved.

    Worked by hand: τ = 0.66 of ten tokens; the 2nd and 5th are above. R = 1, 0: A = ±0.7071.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> entropies = {"token_entropy": [[0.01, 0.9, 0.3, 0.05, 1.2, 0.02, 0.6, 0.1, 0.03, 0.4], [1.0]]}
    >>> batch = turn_batch([[1], [0]], tokens=[[list(range(10))], [[1]]], token_signals=entropies)
    >>> [round(x, 4) for x in rounded(earl(grpo(batch), batch).advantage_RT)[0]]
    [0.0, 0.7071, 0.0, 0.0, 0.7071, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    entropy_RT = token_signal(batch, "token_entropy")
    at = sequences(batch)
    entropy_BM = at.pack(entropy_RT)
    unit_BM = at.turn_BM if per == "turn" else torch.zeros_like(at.turn_BM)
    kept_BM = torch.zeros_like(at.mask_BM)
    for unit in range(int(unit_BM.max()) + 1 if unit_BM.numel() else 0):
        here_BM = at.mask_BM & (unit_BM == unit)
        of_unit_BM = entropy_BM.masked_fill(~here_BM, float("nan"))
        kept_BM |= here_BM & (entropy_BM >= of_unit_BM.nanquantile(1 - share, dim=1, keepdim=True) - 1e-9)
    return TokenCredit(on_tokens(credit, batch) * at.unpack(kept_BM.to(entropy_RT.dtype), entropy_RT))
