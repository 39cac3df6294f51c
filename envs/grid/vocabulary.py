"""The words of the grid: directions, what else they are called, colours, what is asked for."""

from __future__ import annotations

from collections.abc import Mapping

DIRECTIONS = ("up", "down", "left", "right")
COLOURS = "rgbypw"
SIDEWAYS: Mapping[str, tuple[str, str]] = {
    "up": ("left", "right"),
    "down": ("left", "right"),
    "left": ("up", "down"),
    "right": ("up", "down"),
}
SYNONYMS: Mapping[str, str] = dict(
    zip(("north", "south", "west", "east", "u", "d", "l", "r"), DIRECTIONS * 2, strict=True)
)
FILLERS = frozenset(("go", "move", "push", "step", "walk", "one", "and", "box", "towards"))
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
