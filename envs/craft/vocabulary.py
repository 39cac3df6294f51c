"""The words of crafting: raw materials, things that are made, and what may be said for a verb."""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.wordings import ways
from turnwise.tasks.core import Split

_RAW = {
    Split.TRAIN: "ore wood sand clay wool reed stone bone resin salt hide flint",
    Split.DEV: "coal straw chalk flax bark wax slate horn",
    Split.TEST: "tin cork silk peat pearl amber moss gravel",
}
_MADE = {
    Split.TRAIN: (
        "rod plate wire gear blade rope cloth brick glass lens frame hinge lamp hammer wheel cart pump valve coil "
        "bolt nail beam panel crate barrel bucket ladder anchor compass clock kiln forge loom plough saddle quiver "
        "helm shield banner bell"
    ),
    Split.DEV: (
        "peg disc chain cog knife cord felt tile pane prism trellis latch candle chisel axle sledge bellows tap spring "
        "rivet plank shutter basket keg jug stool rudder dial"
    ),
    Split.TEST: (
        "pin sheet cable cam scythe net canvas slab jar mirror rack clasp lantern mallet pulley wagon siphon nozzle spool "
        "screw rafter shelf chest cask pitcher bench mast sundial oven anvil spindle harrow bridle scabbard visor buckler flag gong"
    ),
}
RAW: Mapping[Split, tuple[str, ...]] = {split: tuple(text.split()) for split, text in _RAW.items()}
MADE: Mapping[Split, tuple[str, ...]] = {split: tuple(text.split()) for split, text in _MADE.items()}
"""What things are called, in each split otherwise; in few words (``text: compact``) all say it as train does."""
ASKS = ways("Make {thing}. | Produce {thing}. | What is wanted is {thing}: craft it.")


VERBS = {
    **dict.fromkeys(("get", "fetch", "take", "gather", "collect", "mine", "grab"), "get"),
    **dict.fromkeys(("make", "craft", "build", "create", "assemble"), "make"),
    **dict.fromkeys(("recipe", "read", "recall", "ask", "how"), "recipe"),
    **dict.fromkeys(("inventory", "look", "inv", "have", "wait"), "inventory"),
}
