"""Reads a model's config, tokeniser and weights, without running code of its own; an error names the model."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turnwise.errors import TurnwiseError

_FOLDER = "Give a folder with config.json, a tokeniser and weights in safetensors, or a Hugging Face id."
_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")
ADAPTER = "adapter_config.json"


def load_config(model: str | Path) -> Any:
    """A model's config.

    Raises:
        TurnwiseError: it cannot be read.
    """
    from transformers import AutoConfig

    with reading(model):
        return AutoConfig.from_pretrained(model, trust_remote_code=False)


def text_config(model: str | Path) -> Any:
    """The config of the part of a model that reads and writes text; all of it where there is no other part.

    Raises:
        TurnwiseError: it cannot be read.
    """
    return load_config(model).get_text_config()


def longest_sequence(config: Any) -> int | None:
    """The longest sequence that a model was made for, in tokens, as its config or the text part of it says."""
    for part in (config, config.get_text_config()):
        for name in _LENGTHS:
            value = getattr(part, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def load_tokenizer(model: str | Path) -> Any:
    """A model's tokeniser.

    Raises:
        TurnwiseError: it cannot be loaded.
    """
    from transformers import AutoTokenizer

    with reading(model):
        return AutoTokenizer.from_pretrained(model, trust_remote_code=False)


def load_causal(model: str | Path, dtype: Any) -> Any:
    """A causal language model in this type of numbers, on the CPU.

    Raises:
        TurnwiseError: there is none that can be loaded, or its files lack weights, which would be drawn at random.
    """
    from transformers import AutoModelForCausalLM

    with reading(model):
        found: Any = AutoModelForCausalLM.from_pretrained(
            model, dtype=dtype, trust_remote_code=False, output_loading_info=True
        )
    loaded, told = found
    if missing := sorted(map(str, told["missing_keys"])):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TurnwiseError(
            f"The weights of {model} are not all of {type(loaded).__name__}: {missing[0]}{more} would be drawn at random.",
            "Give a folder with all of a causal language model's weights, its output head too.",
        )
    return loaded


def stored_names(folder: str | Path) -> frozenset[str]:
    """The names of the weights in a model's folder; none where it has no safetensors."""
    from safetensors import safe_open

    found: set[str] = set()
    for path in Path(folder).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            found.update(file.keys())
    return frozenset(found)


def take_over(model: Any, tensors: Mapping[str, Any]) -> list[str]:
    """Give a loaded model the weights of a checkpoint; return the names that do not fit.

    Some architectures (mixtures of experts, those with pictures) hold weights fused, or under other names than their checkpoints.
    transformers converts them, which takes a second copy for a while.
    """
    wrong = list[str]()
    if tensors.keys() - model.state_dict().keys():
        with hushed():
            converted, told = type(model).from_pretrained(
                None,
                config=model.config,
                state_dict=dict(tensors),
                dtype=model.dtype,
                output_loading_info=True,
            )
        wrong = [*map(str, told["unexpected_keys"]), *(str(one[0]) for one in told["mismatched_keys"])]
        missing = set(map(str, told["missing_keys"]))
        model.load_state_dict(converted.state_dict())
    else:
        missing = {*model.load_state_dict(tensors, strict=False).missing_keys}
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    return sorted(missing - tied) + sorted(wrong)


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Within it transformers draws no bar and reports nothing: whoever loads says what is wrong."""
    from transformers.utils import logging as told

    level, bars = told.get_verbosity(), told.is_progress_bar_enabled()
    told.set_verbosity_error()
    told.disable_progress_bar()
    try:
        yield
    finally:
        told.set_verbosity(level)
        if bars:
            told.enable_progress_bar()


@contextlib.contextmanager
def reading(model: str | Path) -> Iterator[None]:
    """Tell whatever a library says of a model's files as one error that names the model."""
    try:
        yield
    except Exception as error:  # files may be broken in as many ways as there are formats
        raise unreadable(model, error) from error


def unreadable(model: str | Path, error: Exception) -> TurnwiseError:
    """The error for a model whose files cannot be read, with what was wrong and the remedy."""
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    remedy = _FOLDER
    if isinstance(error, pickle.UnpicklingError):
        said = "its weights are a pickle of more than tensors, or damaged; it could run a program, and was not run"
        remedy = "Ask for weights in safetensors, or save them so where they are trusted: model.save_pretrained(…)."
    elif "trust_remote_code" in str(error):
        said = "it comes with program code of its own, which is never run here"
        remedy = "Use a model of an architecture that transformers has itself, or one whose folder was converted to it."
    elif "for this kind of AutoModel" in str(error):
        found = str(error).partition("configuration class ")[2].partition(" for this kind")[0]
        name = found.rpartition(".")[2].strip("'<>")
        said = f"transformers has no causal language model for {name or 'its config'}"
        remedy = "Use a model of text alone of that family, or save its language model by itself and give that folder."
    return TurnwiseError(f"The model {model} cannot be loaded: {said.rstrip('.')}.", remedy)


def not_a_model(path: Path) -> TurnwiseError:
    """The error for a path that is there and holds no model, by what it holds."""
    quantised = sorted(path.glob("*.gguf")) if path.is_dir() else []
    if (path / ADAPTER).is_file():
        return TurnwiseError(f"{path} holds an adapter and no model.", _merge(path))
    if quantised:
        return TurnwiseError(
            f"{path} holds {len(quantised)} GGUF files, each of which may be a model: {', '.join(one.name for one in quantised[:4])}.",
            "Give one of them.",
        )
    inside = sorted(str(found.parent) for found in path.glob("**/config.json"))[:3]
    remedy = f"Inside it: {', '.join(inside)}." if inside else "A model's folder has a config.json."
    return TurnwiseError(f"{path} holds no model.", remedy)


def _merge(path: Path) -> str:
    from turnwise.agents.models.vocabulary import read_json

    base = read_json(path, ADAPTER).get("base_model_name_or_path") or "the model that it was trained on"
    return (
        f"It belongs to {base}. Merge the two and give the new folder: PeftModel.from_pretrained("
        f"AutoModelForCausalLM.from_pretrained({str(base)!r}), {str(path)!r}).merge_and_unload().save_pretrained(FOLDER), "
        "and the tokeniser's save_pretrained(FOLDER)."
    )
