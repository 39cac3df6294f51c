"""State of an episode beside its container."""

from __future__ import annotations

from typing import NamedTuple


class ImageState(NamedTuple):
    """A moment: ``files`` is a hash of everything in the container, ``heard`` one of the last answer; ``done``: gold has acted."""

    task: str
    files: str
    heard: str = ""
    done: bool = False
