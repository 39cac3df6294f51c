"""Memory that vLLM takes, in this process or in a server of its own."""

from __future__ import annotations

GIB = 1 << 30
CPU_KV_CACHE_GIB = 1.0


def memory_options(*, cuda: bool, kv_cache_gib: float, gpu_memory_utilization: float) -> dict[str, float]:
    """vLLM's options for its memory, by its names. A cache of a given size is not measured on the card as it is at the start, so that others may use it too."""
    if not kv_cache_gib and cuda:
        return {"gpu_memory_utilization": gpu_memory_utilization}
    size: dict[str, float] = {"kv_cache_memory_bytes": int((kv_cache_gib or CPU_KV_CACHE_GIB) * GIB)}
    return (
        {**size, "gpu_memory_utilization": 0.01} if cuda else size
    )  # vLLM asks for this share to be free all the same
