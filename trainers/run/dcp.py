"""Tensors of which each learner has a part, in a folder (PyTorch's distributed checkpoint, as safetensors).

Each learner writes its parts into a file of its own, with where they belong in the header. Any number of learners reads them
again, each what it then holds; so does a process that holds everything. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from turnwise.trainers.learn.weights import Weights

SHARDS = "shards"


def is_part(tensor: Tensor) -> bool:
    """Say whether other learners have other parts of this tensor."""
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def write_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write this learner's parts; all learners must do so at the same time."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    with _quiet():
        save(dict(tensors), storage_writer=HuggingFaceStorageWriter(str(folder), save_distributed=True))


def read_shards(folder: Path, weights: Sequence[Weights], wanted: Sequence[str]) -> dict[str, Tensor]:
    """Read what this process holds of the tensors whose names begin with one of these: parts, or all.

    Args:
        folder: of :func:`write_shards`, whose names are ``SORT/PLACE/NAME…``.
        weights: beside whose parameters they stand.
        wanted: how names begin.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = HuggingFaceStorageReader(str(folder))
    found = reader.read_metadata().state_dict_metadata
    own = {
        f"{place}/{name}": parameter
        for place, held in enumerate(weights)
        for name, parameter in zip(held.names(), held.trainable(), strict=True)
    }
    tensors: dict[str, Any] = {}
    for name, entry in found.items():
        about: Any = entry  # of tensors: nothing else was written
        if name.startswith(tuple(wanted)):
            beside = name.partition("/")[2]
            like = own.get(beside, own.get(beside.rpartition("/")[0]))
            divided = like if like is not None and is_part(like) and like.shape == about.size else None
            tensors[name] = (
                torch.zeros_like(divided, dtype=about.properties.dtype)
                if divided is not None
                else torch.empty(about.size, dtype=about.properties.dtype)
            )
    if tensors:
        with _quiet():
            load(tensors, storage_reader=reader, no_dist=True)
    return tensors


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Torch warns that each process reads for itself, which is meant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield
