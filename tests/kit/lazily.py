"""Libraries that are imported when a test first uses them: each worker collects every file, and runs a few."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import pytest


class Lazily:
    """Is a library, once something of it is asked for.

    >>> Lazily("json").dumps({})
    '{}'
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pytest asks everything in a file for `__test__`, as it collects
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def needs(name: str, reason: str = "") -> None:
    """Skip this file's tests where a library is not installed."""
    if find_spec(name) is None:
        pytest.skip(reason or f"{name} is not installed", allow_module_level=True)
