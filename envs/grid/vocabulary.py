"""The words of the grid: directions, what else they are called, colours, what is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.worlds.one_command import Forms
from turnwise.envs.worlds.vocabulary import NUMBERS

DIRECTIONS = ("up", "down", "left", "right")
COLOURS = "rgbypw"
SIDEWAYS: Mapping[str, tuple[str, str]] = {
    "up": ("left", "right"),
    "down": ("left", "right"),
    "left": ("up", "down"),
    "right": ("up", "down"),
}
_CALLED = (
    "north south west east u d l r upward downward leftward rightward upwards downwards leftwards rightwards"
)
SYNONYMS: Mapping[str, str] = dict(zip(_CALLED.split(), DIRECTIONS * 4, strict=True))
_VERBS = frozenset(
    ("go", "move", "push", "step", "walk", "head", "turn", "travel", "take", "continue", "choose", "try")
)
_BESIDE = frozenset(
    [
        "steps", "cell", "cells", "square", "squares", "tile", "tiles", "space", "spaces", "time", "times",
        "x", "by", "more", "further", "straight", "again", "back", "once", "and", "box", "towards",
        "direction", "moves", "it",
    ]
)  # fmt: skip
FILLERS = _VERBS | _BESIDE
COUNTS: Mapping[str, int] = {word: n for n, word in enumerate(NUMBERS)} | {"twice": 2, "thrice": 3}
TAILS = frozenset(("because", "since", "so", "instead", "rather", "not"))
"""Behind these words stands no move any more."""
_MOVES = frozenset((*DIRECTIONS, *SYNONYMS))
FORMS = Forms(
    verbs=_VERBS | _MOVES,
    names=_MOVES,
    traits=frozenset((*_BESIDE, *COUNTS, "step")),
    pairs=_VERBS | _MOVES,
    needy=_VERBS,
)
SIGNS = {
    "sokoban": "# wall, _ floor, @ you, o box, x target, * box on a target, + you on a target. You push a box by "
    "walking into it; you cannot pull, nor push two at once.",
    "maze": "# wall, _ floor, @ you, x exit, a small letter is a key, its capital the door that it opens. You "
    "take a key by walking over it.",
    "lake": "# shore, _ ice, @ you, x target, ~ hole.",
}
ASK = {
    "sokoban": ("Push every box onto a target.", "push o to x ."),
    "maze": ("Find the keys, open their doors and reach the exit.", "go to x ."),
    "lake": ("Cross the ice to the target; do not fall into a hole.", "go to x ."),
}
