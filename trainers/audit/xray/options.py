"""Options by which a set of tasks is read and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.tasks.core import Json, Split
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend, isolated_backend


class XrayOptions(NamedTuple):
    """Options by which a set is read and judged.

    Attributes:
        reward: FILE.py:function, for rows.
        columns: names of the columns prompt and answer.
        packages: that the judge imports; installed into the sandbox's root.
        n: at most so many tasks, drawn by ``seed``; 0: all.
        line: the score from which an answer counts as accepted.
        seconds: a verdict may take.
        unsafe: judge without isolation, as the machine's own process.
    """

    reward: str = ""
    columns: Mapping[str, str] = {}
    packages: Sequence[str] = ()
    arguments: Mapping[str, Json] = {}
    n: int = 0
    seed: int = 0
    line: float = 0.5
    seconds: float = 10.0
    split: Split = Split.TEST
    unsafe: bool = False

    @property
    def backend(self) -> Backend:
        """The place where a stranger's judge runs: isolated, unless that was declined."""
        return get_backend("process", unsafe=True) if self.unsafe else isolated_backend()
