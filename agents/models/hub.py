"""Finding models by their Hugging Face id, on the Hub or in the cache; a missing one is noticed quickly."""

from __future__ import annotations

import threading
from pathlib import Path

from turnwise.errors import TurnwiseError

SECONDS = 4.0
"""Seconds in which the Hub has to answer; its own client asks again and again, for a minute."""


def reach(name: str, seconds: float = SECONDS) -> str:
    """Find a model: ``name`` where that is a folder or an id that the Hub knows, else its cached copy.

    Raises:
        TurnwiseError: the Hub does not know the id, or cannot be reached, and the cache has no whole copy.
    """
    if Path(name).exists():
        return name
    problem = _ask(name, seconds)
    if problem is None:
        return name
    cached = cached_model(name)
    if cached is not None:
        return str(cached)
    raise problem


def cached_model(name: str) -> Path | None:
    """The cache's folder of a model, if it has config, tokeniser and weights."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    whole = all(any(folder.glob(pattern)) for pattern in ("*.safetensors", "tokenizer_config.json"))
    return folder if whole else None


def _ask(name: str, seconds: float) -> TurnwiseError | None:
    """Ask the Hub for an id, and return the problem with it; None where the Hub knows it."""
    found: list[TurnwiseError | None] = []
    asking = threading.Thread(target=lambda: found.append(_looked_up(name, seconds)), daemon=True)
    asking.start()
    asking.join(seconds)  # resolving a name knows no time limit of its own
    return found[0] if found else _unreachable(name, f"no answer within {seconds:g} s")


def _looked_up(name: str, seconds: float) -> TurnwiseError | None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    try:
        HfApi().model_info(name, timeout=seconds)
    except GatedRepoError:
        return TurnwiseError(
            f"The model {name!r} asks for consent on Hugging Face.",
            f"Give it at https://huggingface.co/{name}, and log in (`hf auth login`).",
        )
    except (RepositoryNotFoundError, HFValidationError):
        return TurnwiseError(
            f"Hugging Face knows no model {name!r}, or shows it only to those who have logged in.",
            "Check its spelling (OWNER/NAME), log in (`hf auth login`), or give a folder with a config.json.",
        )
    except Exception as error:  # noqa: BLE001 (which library it asks with changes with its version)
        return _unreachable(name, " ".join(str(error).split())[:120] or type(error).__name__)
    return None


def _unreachable(name: str, why: str) -> TurnwiseError:
    return TurnwiseError(
        f"The model {name!r} is not in this machine's cache, and Hugging Face cannot be reached: {why}.",
        "Connect, or give the folder of a model that is here already.",
    )
