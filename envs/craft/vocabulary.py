"""The words of crafting: raw materials, things that are made, and what may be said for a verb."""

from __future__ import annotations

_RAW = "ore wood sand clay wool reed stone bone resin salt hide flint"
_MADE = (
    "rod plate wire gear blade rope cloth brick glass lens frame hinge lamp hammer wheel cart pump valve coil "
    "bolt nail beam panel crate barrel bucket ladder anchor compass clock kiln forge loom plough saddle quiver "
    "helm shield banner bell"
)
RAW: tuple[str, ...] = tuple(_RAW.split())
MADE: tuple[str, ...] = tuple(_MADE.split())


VERBS = {
    **dict.fromkeys(("get", "fetch", "take", "gather", "collect", "mine", "grab"), "get"),
    **dict.fromkeys(("make", "craft", "build", "create", "assemble"), "make"),
    **dict.fromkeys(("recipe", "read", "recall", "ask", "how"), "recipe"),
    **dict.fromkeys(("inventory", "look", "inv", "have", "wait"), "inventory"),
}
