"""Start vLLM in this process: what must be set before it is imported, and around it."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from turnwise.errors import EngineError, MissingDependencyError
from turnwise.library_log import follow


def use_cuda(device: str) -> bool:
    """Decide whether ``device`` (auto, cpu, cuda) means a GPU here.

    Raises:
        MissingDependencyError: a GPU is asked for, and there is none.
    """
    import torch

    there = torch.cuda.is_available()
    if device not in ("auto", "cpu", "cuda"):
        raise EngineError(f"There is no device {device!r}.", "Use auto, cpu or cuda.")
    if device == "cuda" and not there:
        raise MissingDependencyError(
            "A GPU was asked for, but torch sees none.", "Use device=cpu, or check `turnwise doctor`."
        )
    return there if device == "auto" else device == "cuda"


def check_context(model: str | os.PathLike[str], context_length: int) -> None:
    """Say in advance, for vLLM's server, what it would say in a traceback.

    Raises:
        EngineError: the model was made for shorter sequences.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False).get_text_config()
    except (
        OSError,
        ValueError,
        KeyError,
    ):  # vLLM knows more kinds of models, and says what is wrong with this one
        return
    rope = getattr(config, "rope_parameters", None) or {}
    limit = getattr(config, "max_position_embeddings", None)
    stretched = rope.get("rope_type", "default") != "default"  # vLLM works out how far
    if limit is not None and limit < context_length and not stretched:
        raise EngineError(
            f"context_length {context_length} is beyond the {limit} tokens that {model} was made for.",
            f"Set it to at most {limit} (--context-length {limit}).",
        )


def start(options: dict[str, Any], *, quiet: bool) -> Any:
    """vLLM's synchronous engine, in this process.

    Raises:
        MissingDependencyError: vLLM cannot be imported.
        EngineError: it does not start with these options.
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with _hushed() if quiet else nullcontext():
        try:
            import torch
            from vllm import EngineArgs, LLMEngine

            follow()
        except ImportError as error:
            raise MissingDependencyError(
                f"vLLM cannot be imported: {error}.",
                "Run `make install`, or sample with torch (policy `torch:MODEL`), which needs no vLLM.",
            ) from error
        set_num_threads = torch.set_num_threads
        # vLLM 0.32 asks every attribute of every module for its __dict__, which llvmlite's answers wrongly.
        llvmlite = sys.modules.pop("llvmlite.binding.ffi", None)
        try:
            return LLMEngine.from_engine_args(EngineArgs(**options))
        except pickle.UnpicklingError as error:
            from turnwise.agents.models.loading import unreadable

            raise unreadable(options["model"], error) from error
        except Exception as error:  # files may be broken in as many ways as there are formats
            said = _first_line(error)
            raise EngineError(
                f"vLLM does not start with {options['model']}: {said}", _remedy(said)
            ) from error
        finally:
            torch.set_num_threads = set_num_threads  # vLLM's CPU worker disables it for the whole process
            if llvmlite is not None:
                sys.modules["llvmlite.binding.ffi"] = llvmlite


@contextmanager
def _hushed() -> Iterator[None]:
    """vLLM's own log is for servers; what fails is raised as well."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    logging.getLogger("vllm.logging_utils.dump_input").setLevel(logging.CRITICAL)  # every request in flight
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    logging.getLogger("vllm.triton_utils.importing").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _remedy(said: str) -> str:
    """The remedy for an error of vLLM's, chosen by its message."""
    if "KV cache" in said or "cache blocks" in said:
        return "Raise gpu_memory_utilization or kv_cache_gib (on a CPU the latter alone), or lower context_length."
    if "memory profiling" in said:
        return "Give it a cache of a fixed size (kv_cache_gib; in a recipe: engine.options), or start when nothing else on this GPU takes or frees memory: vLLM measures what is free as it starts."
    if "memory" in said.lower():  # a trainer on the same GPU has its part already
        return "Lower gpu_memory_utilization (in a recipe: engine.options), or free memory on the GPU."
    return "Check the model's path and sizes; quiet=False shows what vLLM says."


def _first_line(error: BaseException) -> str:
    """The sentence that says it; pydantic's errors have it on the third line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("Value error, ")), lines[0] if lines else "")
    return said.removeprefix("Value error, ").partition(" [type=")[0][:300] or type(error).__name__
