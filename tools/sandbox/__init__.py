"""Places to run a model's code in: one interface, three back ends (docs/sandboxes.md)."""

from __future__ import annotations

from turnwise.tools.sandbox.core import (
    Backend,
    Ended,
    ExecResult,
    FileInfo,
    Image,
    Limits,
    PathError,
    Root,
    Sandbox,
    SandboxError,
    Status,
)
from turnwise.tools.sandbox.files import Layer

__all__ = [
    "Backend", "Ended", "ExecResult", "FileInfo", "Image", "Layer", "Limits", "PathError", "Root", "Sandbox",
    "SandboxError", "Status",
]  # fmt: skip
