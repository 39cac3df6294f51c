"""The model that is trained: loaded or made, with adapters or without, and what is read off it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.errors import MissingDependencyError
from turnwise.trainers.schema import Lora

LARGE = 1 << 27
"""Logits (positions × vocabulary) above which they are computed twice instead of kept."""


class TokenStats(NamedTuple):
    """At each wanted position: log-probability of the token, and entropy of the distribution, in nats."""

    logp_N: Tensor
    entropy_N: Tensor


def choose_device(name: str) -> torch.device:
    """``auto`` is the GPU where there is one.

    Raises:
        MissingDependencyError: CUDA is asked for and not there.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise MissingDependencyError(
            "The recipe asks for a GPU, and none is visible.",
            "Set device: auto, or repair CUDA (`turnwise doctor`).",
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def load_model(path: str | Path, device: torch.device, lora: Lora | None = None) -> nn.Module:
    """A causal language model ready to train: float32 weights (computed in bfloat16 on CUDA).

    With adapters the base is frozen and, on CUDA, kept in bfloat16.
    """
    from transformers import AutoModelForCausalLM

    frozen_half = lora is not None and device.type == "cuda"
    model: Any = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.bfloat16 if frozen_half else torch.float32
    )
    if lora is not None:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=lora.rank, lora_alpha=lora.alpha, target_modules=lora.targets, task_type="CAUSAL_LM"
        )
        model = get_peft_model(model, config, autocast_adapter_dtype=True)
    return model.to(device)


def base_of(model: Any) -> Any:
    """The Hugging Face model inside a peft model, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def hidden_states(model: nn.Module, token_RT: Tensor) -> Tensor:
    """Last hidden states (R, T, D). Rows are right-padded, so causal attention needs no padding mask."""
    return base_of(model).get_decoder()(input_ids=token_RT, use_cache=False).last_hidden_state


def token_stats(model: nn.Module, hidden_ND: Tensor, token_N: Tensor, temperature: float) -> TokenStats:
    """Log-probability and entropy of the tokens that follow these hidden states."""
    head = base_of(model).get_output_embeddings()
    config = base_of(model).config
    scale, cap = _logit_scale(config), getattr(config, "final_logit_softcapping", None)

    def stats(hidden_MD: Tensor, token_M: Tensor) -> tuple[Tensor, Tensor]:
        logits_MV = head(hidden_MD).float() * scale
        if cap:
            logits_MV = torch.tanh(logits_MV / cap) * cap
        logp_MV = (logits_MV / temperature).log_softmax(-1)
        return logp_MV.gather(-1, token_M[:, None])[:, 0], -(logp_MV.exp() * logp_MV).sum(-1)

    vocabulary = head.weight.shape[0]
    if len(token_N) * vocabulary <= LARGE:
        return TokenStats(*stats(hidden_ND, token_N))
    chunk = max(1, LARGE // vocabulary)
    from torch.utils.checkpoint import checkpoint

    parts = [
        checkpoint(stats, h, t, use_reentrant=False)
        for h, t in zip(hidden_ND.split(chunk), token_N.split(chunk), strict=True)
    ]
    return TokenStats(torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts]))  # pyright: ignore


def _logit_scale(config: Any) -> float:
    scale = getattr(config, "logit_scale", None) or 1.0
    return scale / (getattr(config, "logits_scaling", None) or 1.0)


class ValueHead(nn.Module):
    """V(s) of the state before a turn, read off the hidden state of the last prompt token.

    The hidden state is detached: learning to predict returns does not disturb the policy.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )
        nn.init.zeros_(self.layers[-1].weight)  # pyright: ignore[reportArgumentType]
        nn.init.zeros_(self.layers[-1].bias)  # pyright: ignore[reportArgumentType]

    def forward(self, hidden_ND: Tensor) -> Tensor:
        return self.layers(hidden_ND.detach().float())[:, 0]


def trainable(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    return [p for module in modules for p in module.parameters() if p.requires_grad]
