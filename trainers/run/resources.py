"""Checks that this machine has what a recipe needs: the engine, the model, disk space."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from turnwise.agents.models.finding import find_model
from turnwise.agents.models.hub import reach
from turnwise.errors import RunError
from turnwise.trainers.recipe.schema import Model
from turnwise.trainers.run.door import DiskOptions
from turnwise.trainers.run.shapes import scratch_model

GIB = 1 << 30
_WEIGHT, _MOMENTS = 4, 8
"""Bytes in a checkpoint for each weight, and for each weight that is trained: float32, and AdamW's two moments."""


def find_source(model: Model) -> str | None:
    """Find the model: a folder or a Hugging Face id that can be reached; None where it is made from nothing.

    Raises:
        TurnwiseError: it is not there.
    """
    return reach(find_model(model.path)) if model.path is not None else None


def check_disk(options: DiskOptions, out: Path, source: str | None) -> str:
    """Refuse a run whose checkpoints do not fit on the disk; how large they will be, in words.

    Raises:
        RunError: with how much room is missing.
    """
    weights = scratch_model(options.scratch).shape.weights if options.scratch else _weights_in(source)
    if not weights:
        return "how large checkpoints will be is not known"
    trained = 0 if options.adapters else weights
    size = weights * _WEIGHT + trained * _MOMENTS
    # The newest ones, the best one, and the one that is being written; each may compare with a policy of its own.
    wanted = (size + options.anew * weights * _WEIGHT) * (options.keep + 2)
    free = shutil.disk_usage(next(place for place in (out, *out.absolute().parents) if place.exists())).free
    if wanted > free:
        raise RunError(
            f"Checkpoints of {_size(size)} each do not fit into the {_size(free)} that are free at {out}: "
            f"up to {options.keep + 2} of them are there at a time.",
            "Make room, choose another --out, or lower checkpoint.keep.",
        )
    return f"checkpoints of about {_size(size)}"


def _weights_in(source: str | None) -> int:
    """Weights in a folder's safetensors, as their headers list them; 0 where it is no folder."""
    return sum(map(_listed, Path(source).glob("*.safetensors"))) if source else 0


def _listed(file: Path) -> int:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as tensors:
            return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise RunError(
            f"The weights in {file} cannot be read: {error}.", "Copy or download the model again."
        ) from None


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / (1 << 20):.0f} MiB"
