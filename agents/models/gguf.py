"""GGUF files: converted once into a Hugging Face folder in the cache, which is read like any other."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from turnwise.agents.models.loading import hushed, reading
from turnwise.cache_folder import cache_folder
from turnwise.durable import LOCK, folder_whole
from turnwise.extras import needing

SUFFIX = ".gguf"


def converted(file: Path) -> Path:
    """The folder of a GGUF file's model, its weights unpacked into bfloat16; made where it is missing.

    It is named by the file's content, so that a file of the same name with other weights is another folder. Of two processes
    that ask at once one converts, and the other waits.

    Raises:
        MissingDependencyError: a library is missing that reads GGUF.
        TurnwiseError: the file is damaged, or of an architecture that transformers does not read from GGUF.
    """
    with needing(f"reading {file.name}", extra="smol"):
        import gguf  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]
    with needing(f"reading {file.name}"):
        import transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]
    folder = _folder_of(file)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / LOCK):
        if not folder.is_dir():
            print(f"{file.name} is converted into {folder}, once", file=sys.stderr, flush=True)
            with folder_whole(folder) as aside, reading(file), hushed(), _no_bar():
                _convert(file, aside)
    return folder


def already_converted(file: Path) -> Path | None:
    """The folder of a GGUF file's model, if it is there."""
    try:
        folder = _folder_of(file)
    except (OSError, PackageNotFoundError):
        return None
    return folder if folder.is_dir() else None


def _folder_of(file: Path) -> Path:
    told = file.stat()
    return cache_folder("models") / f"{file.stem}-{_digest(file, told.st_size, told.st_mtime_ns)}"


@functools.cache
def _digest(file: Path, _size: int, _changed: int) -> str:
    """A hash of the file, and of the version of the library that unpacks it; read once, as long as it stays as it is."""
    with file.open("rb") as opened:
        content = hashlib.file_digest(opened, "sha256").hexdigest()
    return hashlib.sha256(f"{content} {version('transformers')}".encode()).hexdigest()[:12]


def _no_bar() -> contextlib.AbstractContextManager[object]:
    """Within it nothing is drawn on standard error: this bar of transformers heeds no setting."""
    return contextlib.redirect_stderr(io.StringIO())


def _convert(file: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),  # else it keeps packed weights, which nothing saves
    )
    model.save_pretrained(folder)
