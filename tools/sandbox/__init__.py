"""Sandboxes for a model's code: one interface, three backends (docs/sandboxes.md)."""

from __future__ import annotations

from turnwise.tools.sandbox.core import (
    Backend,
    Ended,
    ExecResult,
    FileInfo,
    PathError,
    Root,
    Sandbox,
    SandboxError,
    SandboxImage,
    SandboxLimits,
    Status,
)
from turnwise.tools.sandbox.files import Layer

__all__ = [
    "Backend",
    "Ended",
    "ExecResult",
    "FileInfo",
    "Layer",
    "PathError",
    "Root",
    "Sandbox",
    "SandboxError",
    "SandboxImage",
    "SandboxLimits",
    "Status",
]  # fmt: skip
