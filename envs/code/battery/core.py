"""The attack type, and three ways of writing an attack down.

``ENTRY`` stands for the function that is asked for, ``SECRET_FILE`` and ``HOST_PORT`` for what lies on the host.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple


class CodeAttack(NamedTuple):
    """``acts`` are (tool, program); ``absent`` is what no observation may show."""

    name: str
    rows: str
    about: str
    acts: tuple[tuple[str, str], ...]
    absent: str = ""
    seconds: float = 10.0


def submit(name: str, rows: str, about: str, code: str, *, seconds: float = 10.0) -> CodeAttack:
    """An attack in what is submitted."""
    return CodeAttack(name, rows, about, (("submit", inspect.cleandoc(code)),), "", seconds)


def look(name: str, rows: str, about: str, code: str, *, absent: str = "REACHED") -> CodeAttack:
    """An attack that looks for what it must not reach, by the tool ``run``."""
    text = inspect.cleandoc(code)
    return CodeAttack(
        name, rows, about, (("run", text), ("submit", f"def ENTRY(*a):\n    return {text[:0]!r}")), absent
    )


def plant(name: str, rows: str, about: str, plant: str, then: str, *, absent: str = "REACHED") -> CodeAttack:
    """An attack in two parts: what the first leaves behind, the second looks for."""
    acts = (
        ("run", inspect.cleandoc(plant)),
        ("run", inspect.cleandoc(then)),
        ("submit", "def ENTRY(*a):\n    return 0"),
    )
    return CodeAttack(name, rows, about, acts, absent)
