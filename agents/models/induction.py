"""Structured initialisation: small models that can copy from their context before the first gradient step.

Acting in a text environment is mostly copying: a word of the goal into a query, a title from a page into
a click. Attention learns this as a pair of heads in two layers, an *induction* circuit (Olsson et al.
2022, 2209.11895): one head looks at the previous token, a later one looks for where the present token
occurred before and copies what followed. From random weights that pair took more than a million tokens
to form (docs/lab-notes/README.md, 2026-11-20); set by hand, as here, it is there at once and is then trained
like everything else. The idea of structured initialisation is that of mimetic initialisation (Trockman
& Kolter 2023, 2305.09828); this construction is our own.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

HEADS = 2  # of each kind: together they carry 2 · head_dim dimensions of the token's identity
ROPE_THETA = 1e6  # most pairs of dimensions then turn slowly: tokens match wherever they stand
_SHARPNESS = 60.0  # of the look at the previous token
_MATCH = 3.0  # of the look for the same token
_SLOW = 0.02  # radians per token below which a pair of dimensions hardly turns within a page


@torch.no_grad()
def induction_init(model: Any) -> None:
    """Set two heads of each of the first two layers of a Llama model with biases on q, k and v.

    The residual stream is laid out as [identity of the token | identity of the previous token | rest], the
    first two of ``2 · head_dim`` dimensions each. Uses torch's global generator for the random parts.

    Raises:
        ValueError: the model has fewer than 2 layers or 4 heads, or grouped keys.
    """
    config = model.config
    heads, width = config.num_attention_heads, config.hidden_size
    if config.num_hidden_layers < 2 or heads < 2 * HEADS or config.num_key_value_heads != heads:
        raise ValueError("induction needs at least 2 layers, 4 heads and as many key heads as heads")
    size = width // heads
    identity = HEADS * size
    vocabulary = config.vocab_size
    embedding_VD = torch.randn(vocabulary, width) * 0.5
    embedding_VD[:, identity : 2 * identity] = 0.0  # kept free for the previous token
    model.model.embed_tokens.weight.copy_(embedding_VD)
    turn_H = ROPE_THETA ** (-torch.arange(size // 2) / (size // 2))  # radians per token, each pair
    for head in range(HEADS):
        _look_back(model.model.layers[0].self_attn, head, size, identity, turn_H)
        _look_for_same(model.model.layers[1].self_attn, head, size, identity, turn_H)
    model.lm_head.weight.copy_(torch.randn(vocabulary, width) * 0.01)
    model.lm_head.weight[:, :identity] += 0.3 * embedding_VD[:, :identity]


def _look_back(attention: Any, head: int, size: int, identity: int, turn_H: Tensor) -> None:
    """Attend to the previous token and write its identity beside one's own.

    q and k are constants (biases). Rotary embedding turns them by their positions, so with k = (a, 0) and q
    turned back by one step in each pair, the score is Σ a² cos(turn · (distance − 1)): highest at distance 1.
    """
    own = slice(head * size, (head + 1) * size)
    amplitude = math.sqrt(_SHARPNESS / 2)
    attention.q_proj.weight[own] *= 0.1
    attention.k_proj.weight[own] *= 0.1
    attention.k_proj.bias[own] = amplitude * torch.cat([torch.ones_like(turn_H), torch.zeros_like(turn_H)])
    attention.q_proj.bias[own] = amplitude * torch.cat([turn_H.cos(), -turn_H.sin()])
    attention.v_proj.weight[own] = 0.0
    attention.v_proj.weight[own, own] = torch.eye(size)
    attention.o_proj.weight[:, own] = 0.0
    attention.o_proj.weight[identity + head * size : identity + (head + 1) * size, own] = 0.5 * torch.eye(
        size
    )


def _look_for_same(attention: Any, head: int, size: int, identity: int, turn_H: Tensor) -> None:
    """Attend to tokens whose previous token is the present one, and predict them again.

    Queries read the token, keys the previous token, in the pairs that hardly turn with distance.
    """
    own = slice(head * size, (head + 1) * size)
    slow = [i for i, turn in enumerate(turn_H.tolist()) if turn < _SLOW]
    kept = [*slow, *(i + size // 2 for i in slow)]
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight[own] = 0.0
    for column, row in enumerate(kept):
        attention.q_proj.weight[head * size + row, head * size + column] = math.sqrt(_MATCH)
        attention.k_proj.weight[head * size + row, identity + head * size + column] = math.sqrt(_MATCH)
    attention.v_proj.weight[own] = 0.0
    attention.v_proj.weight[own, own] = torch.eye(size)
    attention.o_proj.weight[:, own] = 0.0
    attention.o_proj.weight[own, own] = torch.eye(size)
