"""Memory that vLLM takes in this process, before it is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.agents.engines.memory import EngineBytes, EngineLoad, bytes_of_number, most_kv, number_of
from turnwise.agents.remote.vllm_memory import CPU_KV_CACHE_GIB, GIB

SHARE = "gpu_memory_utilization"


def vllm_bytes(load: EngineLoad, options: Mapping[str, Any]) -> EngineBytes:
    """Return what vLLM takes: a cache of the size that is asked for, or its share of the card, its weights included."""
    number, parts = (
        bytes_of_number(options, cuda=load.cuda),
        max(1.0, number_of(options, "tensor_parallel_size", 1)),
    )
    gib, share = number_of(options, "kv_cache_gib", 0), number_of(options, SHARE, 0.6)
    weights, sleep = number * load.weights / parts, options.get("sleep", "no")
    if gib or not load.cuda:
        kv, how = (gib or CPU_KV_CACHE_GIB) * GIB, "engine.options.kv_cache_gib"
    elif load.card:
        kv, how = max(0.0, share * load.card - weights), f"what {SHARE} {share:g} leaves of the card"
    else:
        kv, how = most_kv(load, number) / parts, f"of {load.sequences} sequences of {load.context:,} tokens"
    return EngineBytes(weights, kv, how, sleep in ("kv", "weights"), sleep == "weights")
