"""What can be said, and what is meant."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.envs.lab.world import NOTHING

VERBS: dict[str, str] = {  # what may be said → the verb
    **dict.fromkeys(("go", "goto", "walk", "enter", "visit", "move"), "go"),
    "open": "open",
    "close": "close",
    "shut": "close",
    **dict.fromkeys(("take", "get", "grab", "pick", "fetch"), "take"),
    **dict.fromkeys(("put", "place", "insert", "set", "plant", "lay", "roll", "slide"), "put"),
    **dict.fromkeys(("drop", "leave"), "drop"),
    **dict.fromkeys(("pour", "water", "fill", "add"), "pour"),
    **dict.fromkeys(("mix", "stir", "combine"), "mix"),
    **dict.fromkeys(("empty", "discard"), "empty"),
    **dict.fromkeys(("activate", "start", "turn", "switch"), "activate"),
    **dict.fromkeys(("deactivate", "stop"), "deactivate"),
    **dict.fromkeys(("measure", "use"), "measure"),
    **dict.fromkeys(("connect", "attach", "wire"), "connect"),
    **dict.fromkeys(("disconnect", "detach"), "disconnect"),
    **dict.fromkeys(("cross", "pollinate", "breed"), "cross"),
    **dict.fromkeys(("focus", "choose"), "focus"),
    **dict.fromkeys(("wait", "rest"), "wait"),
    **dict.fromkeys(("look", "inventory", "inv"), "look"),
    **dict.fromkeys(("examine", "read", "inspect"), "examine"),
}


class Act(NamedTuple):
    """A verb with one or two things, or the number of a room."""

    verb: str
    a: int = NOTHING
    b: int = NOTHING
