"""An engine of a few lines: samples replies from a model of transformers, and reports log-probabilities as engines do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from turnwise.trainers.mismatch.scoring import in_half


class Settings(NamedTuple):
    """How tokens are chosen; one of the three cuts at most."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0


class Engine(NamedTuple):
    """Weights, settings and what is reported."""

    model: Any
    settings: Settings = Settings()
    mode: Literal["raw", "processed"] = "processed"


class Reply(NamedTuple):
    """Sampled tokens, the end token included where it was sampled.

    Attributes:
        logprobs: as reported, one a token.
        cut: the probability that the settings cut off before each token.
    """

    ids: list[int]
    logprobs: list[float]
    cut: list[float]


def processed(logits_BV: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Log-probabilities after temperature and cuts, float32, and the probability of each row that was cut off."""
    logp_BV = (logits_BV.float() / settings.temperature).log_softmax(-1)
    p_BV = logp_BV.exp()
    keep_BV = torch.ones_like(p_BV, dtype=torch.bool)
    if settings.top_k:
        least_B1 = p_BV.topk(min(settings.top_k, p_BV.shape[-1]), -1).values[:, -1:]
        keep_BV &= p_BV >= least_B1
    if settings.top_p < 1:
        sorted_BV, order_BV = p_BV.sort(-1, descending=True)
        kept_BV = sorted_BV.cumsum(-1) - sorted_BV < settings.top_p
        keep_BV &= torch.zeros_like(keep_BV).scatter(-1, order_BV, kept_BV)
    if settings.min_p:
        keep_BV &= p_BV >= settings.min_p * p_BV.max(-1, keepdim=True).values
    left_BV = logp_BV.masked_fill(~keep_BV, -torch.inf)
    mass_B = p_BV.masked_fill(~keep_BV, 0).sum(-1)
    return left_BV - left_BV.logsumexp(-1, keepdim=True), 1 - mass_B


@torch.no_grad()
def sample(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    ends: Sequence[int],
    most: Sequence[int],
    draws: torch.Generator,
) -> list[Reply]:
    """Sample a reply to each prompt, of at most so many tokens, the batch at once."""
    replies = [Reply([], [], []) for _ in prompts]
    if not prompts or not max(most):
        return replies
    width = max(map(len, prompts))
    ids_BT = torch.zeros(len(prompts), width, dtype=torch.long)
    mask_BT = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids_BT[row, width - len(prompt) :] = torch.tensor(prompt)
        mask_BT[row, width - len(prompt) :] = 1
    going, cache = [bool(limit) for limit in most], None
    for _ in range(max(most)):
        places_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)[:, -ids_BT.shape[1] :]
        out = engine.model(
            input_ids=ids_BT,
            attention_mask=mask_BT,
            position_ids=places_BT,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache, logits_BV = out.past_key_values, out.logits[:, -1]
        logp_BV, cut_B = processed(logits_BV, engine.settings)
        chosen_B = torch.multinomial(logp_BV.exp(), 1, generator=draws)[:, 0]
        told_BV = logits_BV.float().log_softmax(-1) if engine.mode == "raw" else logp_BV
        for row, reply in enumerate(replies):
            if going[row]:
                token = int(chosen_B[row])
                reply.ids.append(token)
                reply.logprobs.append(float(told_BV[row, token]))
                reply.cut.append(float(cut_B[row]))
                going[row] = token not in ends and len(reply.ids) < most[row]
        if not any(going):
            break
        ids_BT = chosen_B[:, None]
        mask_BT = torch.cat([mask_BT, torch.ones_like(ids_BT)], 1)
    return replies


@torch.no_grad()
def expected(engine: Engine, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[float]:
    """The log-probabilities of the tokens in the spans of a row, as this engine would report them, read all at once."""
    at = [place for start, end in spans for place in range(start, end)]
    asked = torch.tensor([place - 1 for place in at], dtype=torch.long)
    told_NV = engine.model(input_ids=torch.tensor([list(ids)]), logits_to_keep=asked).logits[0].float()
    logp_NV = told_NV.log_softmax(-1) if engine.mode == "raw" else processed(told_NV, engine.settings)[0]
    return [float(logp_NV[n, ids[place]]) for n, place in enumerate(at)]


def in_dtype(model: Any, dtype: torch.dtype) -> Any:
    """The model with its weights in another format; the model itself where nothing changes."""
    return model if next(model.parameters()).dtype == dtype else in_half(model, dtype)
