"""State of an episode beside its sandbox."""

from __future__ import annotations

from typing import NamedTuple


class SweState(NamedTuple):
    """A moment: ``files`` is a hash of everything in the sandbox, ``heard`` one of the last answer.

    ``handed_in`` is the hash of the files that a ``submit`` was about which may be taken back, as long as they are those.
    ``progress`` is the share of failing tests that pass by now (known only where shaping asks for it).
    """

    task: str
    files: str
    heard: str = ""
    looked: bool = False
    located: bool = False
    attempts: int = 0
    handed_in: str = ""
    progress: float = 0.0
