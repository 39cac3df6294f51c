"""Layers of a model that can have adapters: looked at before anything is loaded or spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from turnwise.agents.models.loading import load_config, reading
from turnwise.errors import RunError
from turnwise.trainers.learn.options import LoraOptions

_SHOWN = 12


def check_adapters(source: str | Path, lora: LoraOptions) -> None:
    """Refuse adapters on layers that the model does not have, or that it shares between its ends.

    What is added to a tied head or embedding would have to be in both, which a checkpoint has no way to say.

    Raises:
        RunError: with the layers that there are.
    """
    if isinstance(lora.targets, str):
        return
    from transformers import AutoModelForCausalLM
    from transformers.pytorch_utils import Conv1D  # a linear layer, as GPT-2 has them

    config = load_config(source)
    with reading(source), torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    layers = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, nn.Embedding, Conv1D))
    }
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    there = sorted(
        {name.rpartition(".")[2] for name, one in layers.items() if not any(one is end for end in ends)}
    )
    told = f"It has {', '.join(there[:_SHOWN])}." if there else "It has no linear layers."
    for target in lora.targets:
        found = [one for name, one in layers.items() if name == target or name.endswith(f".{target}")]
        if not found:
            raise RunError(f"model.lora.targets: {source} has no layer {target}.", told)
        if _tied(config, model) and any(one is end for one in found for end in ends):
            raise RunError(
                f"model.lora.targets: {target} of {source} is tied: its input embedding and its output head are one weight, and "
                "an adapter on one of them is none on the other.",
                f"Leave it out, or train all weights. {told}",
            )


def _tied(config: Any, model: Any) -> bool:
    said = (
        getattr(config, "tie_word_embeddings", False),
        getattr(config.get_text_config(), "tie_word_embeddings", False),
    )
    head = model.get_output_embeddings()
    return any(said) or (head is not None and head.weight is model.get_input_embeddings().weight)
