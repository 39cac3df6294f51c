"""The hazards, importable in worker processes too."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def hazards(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # a worker process gets its parent's sys.path
    module = sys.modules.get("hazards") or importlib.import_module("hazards")
    module.register_hazards()
    return module
