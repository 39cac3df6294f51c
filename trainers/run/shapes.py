"""The shape of a recipe's model, read from its config alone: nothing is loaded, and nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.models.finding import find_model
from turnwise.agents.models.small import inner_width
from turnwise.errors import TurnwiseError
from turnwise.trainers.learn.memory import ModelShape
from turnwise.trainers.recipe.schema import Scratch


class LlamaKind(NamedTuple):
    """How an architecture of the Llama kind differs: which matrices have biases if the config's key (or None) says so, and norms of heads."""

    query_bias: str | bool = False
    output_bias: str | bool = False
    inner_bias: str | bool = False
    normed_heads: bool = False


KINDS: Mapping[str, LlamaKind] = {
    "llama": LlamaKind("attention_bias", "attention_bias", "mlp_bias"),
    "mistral": LlamaKind(),
    "qwen2": LlamaKind(query_bias=True),
    "qwen3": LlamaKind("attention_bias", "attention_bias", normed_heads=True),
}


class KnownModel(NamedTuple):
    """A model's shape, and the longest sequence that it was made for."""

    shape: ModelShape
    context: int


def scratch_model(scratch: Scratch) -> KnownModel:
    """Return the model that a recipe makes from nothing; its vocabulary is at most what the recipe asks for."""
    own = scratch.width // scratch.heads
    shape = ModelShape(
        scratch.layers, scratch.width, inner_width(scratch.width), scratch.heads, scratch.heads, scratch.vocab_size,
        False, own, bias=4 * scratch.width, biases=4,
    )  # fmt: skip
    return KnownModel(shape, scratch.context)


def named_model(name: str) -> KnownModel:
    """Return the model of a folder, a registered name, a config.json, or an id whose config is in Hugging Face's cache.

    Raises:
        TurnwiseError: there is none, its config is not here or cannot be read, or it is of another kind.
    """
    config = _config(name)
    try:
        text = {**config, **config["text_config"]} if isinstance(config.get("text_config"), dict) else config
        return KnownModel(shape_of(text, name), int(text["max_position_embeddings"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise TurnwiseError(
            f"The config of {name} does not say all that a plan needs: {type(error).__name__} {error}.",
            "Give the config.json of a model as it was published.",
        ) from None


def shape_of(config: Mapping[str, Any], name: str) -> ModelShape:
    """Return the shape that a config describes.

    Raises:
        TurnwiseError: it is no model of the Llama kind.
        KeyError: a size is missing.
    """
    kind = KINDS.get(str(config.get("model_type")))
    if kind is None:
        raise TurnwiseError(
            f"{name} is a {str(config.get('model_type'))[:40]!r}, of which no plan can be made: the arithmetic is of {', '.join(KINDS)}.",
            "Measure it: `turnwise bench train --model` says what an update takes.",
        )
    heads, width, inner = (
        int(config[key]) for key in ("num_attention_heads", "hidden_size", "intermediate_size")
    )
    kv_heads, own = (
        int(config.get("num_key_value_heads") or heads),
        int(config.get("head_dim") or width // heads),
    )

    def said(key: str | bool) -> bool:
        return bool(config.get(key)) if isinstance(key, str) else key

    biased = (
        ([heads * own, kv_heads * own, kv_heads * own] if said(kind.query_bias) else [])
        + ([width] if said(kind.output_bias) else [])
        + ([inner, inner, width] if said(kind.inner_bias) else [])
    )
    shape = ModelShape(
        int(config["num_hidden_layers"]), width, inner, heads, kv_heads, int(config["vocab_size"]),
        bool(config.get("tie_word_embeddings", False)), own, sum(biased), len(biased),
        kind.normed_heads,
    )  # fmt: skip
    if min(shape[:6]) < 1 or own < 1:
        raise ValueError("a size below 1")
    return shape


def _config(name: str) -> Mapping[str, Any]:
    given = Path(name).expanduser()
    file = given if given.suffix == ".json" and given.is_file() else Path(find_model(name)) / "config.json"
    if not file.is_file():
        file = _cached(name)
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TurnwiseError(
            f"{file} cannot be read: {str(error)[:200]}.", "Copy or download the model's config.json again."
        ) from None
    if not isinstance(found, dict):
        raise TurnwiseError(f"{file} is no model's config: it is no object.", "Give a model's config.json.")
    return found


def _cached(name: str) -> Path:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json")
    if isinstance(found, str):
        return Path(found)
    raise TurnwiseError(
        f"The config of {name} is not on this machine, and a plan downloads nothing.",
        f"`hf download {name} config.json` fetches it; or give its folder or file: --set model.path=…/config.json.",
    )
