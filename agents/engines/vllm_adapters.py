"""Adapters that vLLM adds up as it computes, in place of weights that have them merged in.

vLLM reads adapters from a folder in peft's form and from nowhere else, so each version is written to memory-backed files. Its prefix
cache knows adapters by name and folder: with a folder for each version, nothing that older ones computed is read again.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnwise.agents.models.loading import load_config, reading
from turnwise.agents.remote.transfer import PREFIX, save_in_memory, shared_memory, sweep
from turnwise.errors import EngineError
from turnwise.tools.owner import name_of

if TYPE_CHECKING:
    from turnwise.agents.remote.adapters import AdaptedWeights, Adapter

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""vLLM's sizes for adapters (``vllm.config.lora.MaxLoRARanks``)."""
NAME, NUMBER = "policy", 1


def check_rank(adapter_rank: Any, trained: int, *, elsewhere: bool) -> None:
    """Refuse an ``adapter_rank`` that does not go with the adapters of rank ``trained``, before anything is spent.

    Raises:
        EngineError: there are none, they are larger, or the engine is in another process.
    """
    if not isinstance(adapter_rank, int) or not adapter_rank:  # what is no number, the engine refuses
        return
    asked = f"engine.options.adapter_rank: {adapter_rank} has vLLM add adapters as it computes"
    if elsewhere:
        raise EngineError(
            f"{asked}, and an engine in another process is sent adapters and merges them itself.",
            "Leave it out, or leave engines out of --on.",
        )
    if trained > adapter_rank or not trained:
        has = f"the recipe trains adapters of rank {trained}" if trained else "the recipe trains no adapters"
        raise EngineError(
            f"{asked}, and {has}.", f"Set it to {trained}." if trained else "Leave it out, or set model.lora."
        )


def rank_options(adapter_rank: int, model: str | os.PathLike[str]) -> dict[str, Any]:
    """vLLM's options for one set of adapters of at most this rank on the model's inner layers; none for 0.

    The output head is left out: with it vLLM 0.32 cannot say log-probabilities of a prompt, by which new weights are proved.

    Raises:
        EngineError: it has no room for so many.
    """
    if not adapter_rank:
        return {}
    size = next((rank for rank in RANKS if rank >= adapter_rank), 0)
    if adapter_rank < 0 or not size:
        raise EngineError(
            f"adapter_rank is {adapter_rank}, and vLLM takes adapters of a rank from 1 to {RANKS[-1]}.",
            "Set it to model.lora.rank, or leave it out: adapters are then merged.",
        )
    layers = {"lora_target_modules": inner_layers(model)}
    return {"enable_lora": True, "max_loras": 1, "max_cpu_loras": 1, "max_lora_rank": size, **layers}


def inner_layers(model: str | os.PathLike[str]) -> list[str]:
    """Return the names that a model's linear layers have, but for the output head."""
    import torch
    from transformers import AutoModelForCausalLM

    with reading(str(model)), torch.device("meta"):
        made: Any = AutoModelForCausalLM.from_config(load_config(str(model)), trust_remote_code=False)
    head = made.get_output_embeddings()
    layers = (
        name for name, one in made.named_modules() if isinstance(one, torch.nn.Linear) and one is not head
    )
    return sorted({name.rpartition(".")[2] for name in layers})


class AddedAdapters:
    """The adapters of a vLLM engine, one set at a time.

    Args:
        engine: vLLM's, started with :func:`rank_options`.
        rank: the largest that is taken.

    Attributes:
        request: names them to vLLM with each prompt; None: there are none.
    """

    def __init__(self, engine: Any, rank: int) -> None:
        sweep()  # of runs that were killed
        self._engine, self._rank = engine, rank
        self._folder: Path | None = None
        self._owner: weakref.ref[object] | None = None  # the model whose base the engine has
        self.request: Any = None

    def load(self, weights: AdaptedWeights, load_base: Callable[[Mapping[str, Any]], None]) -> None:
        """Have vLLM use these adapters from now on, on their base, which ``load_base`` gives it where it has another.

        Raises:
            EngineError: they are larger than was said, or vLLM has no such layer.
        """
        rank = max((adapter.a_KI.shape[0] for adapter in weights.adapters.values()), default=1)
        if rank > self._rank:
            raise EngineError(
                f"Adapters of rank {rank} do not fit: the engine was started for {self._rank}.",
                f"Set engine.options.adapter_rank to {rank} (model.lora.rank).",
            )
        if self._owner is None or self._owner() is not weights.owner:
            load_base(weights.base)
            self._owner = weakref.ref(weights.owner)
        self._add(weights.adapters)

    def drop(self) -> None:
        """The engine was given whole weights, or has lost its own: there are no adapters, and the base is another."""
        self.request = self._owner = None
        self.close()

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _add(self, adapters: Mapping[str, Adapter]) -> None:
        from vllm.lora.request import LoRARequest

        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name_of(os.getpid())}-", dir=shared_memory()))
        try:
            write_adapters(folder, adapters)
            self._engine.add_lora(LoRARequest(NAME, NUMBER, str(folder), load_inplace=True))
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, EngineError):
                raise
            raise EngineError(
                f"vLLM does not take the adapters: {str(error).strip().partition(chr(10))[0][:300]}",
                "Leave engine.options.adapter_rank out: adapters are then merged.",
            ) from error
        self.close()
        self._folder = folder
        self.request = LoRARequest(
            NAME, NUMBER, str(folder)
        )  # one that says load_inplace is read again at each step


def write_adapters(folder: Path, adapters: Mapping[str, Adapter]) -> None:
    """Write adapters in peft's form; their scale is in B, so that each may have its own. EngineError: there is no room."""
    tensors, largest = dict[str, Any](), 1
    for name, adapter in adapters.items():
        place = f"base_model.model.{name.removesuffix('.weight')}"
        tensors[f"{place}.lora_A.weight"] = adapter.a_KI.cpu().contiguous()
        tensors[f"{place}.lora_B.weight"] = (adapter.b_OK * adapter.scale).cpu().contiguous()
        largest = max(largest, adapter.a_KI.shape[0])
    layers = sorted({name.removesuffix(".weight").rpartition(".")[2] for name in adapters})
    own = {
        name.removesuffix(".weight"): a.a_KI.shape[0]
        for name, a in adapters.items()
        if a.a_KI.shape[0] != largest
    }
    config = {
        "peft_type": "LORA", "r": largest, "lora_alpha": largest, "target_modules": layers, "bias": "none",
        "rank_pattern": own, "alpha_pattern": own,
    }  # fmt: skip
    save_in_memory(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(config))
