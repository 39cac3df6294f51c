"""The words of crafting: raw materials, things that are made, and what may be said for a verb."""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.wordings import ways
from turnwise.envs.worlds.one_command import Forms
from turnwise.envs.worlds.vocabulary import NUMBERS
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
"""Names of things, different in each split; in few words (``text: compact``) all use those of train."""
_MORE_RAW = {
    Split.TRAIN: (
        "copper zinc nickel silver marble granite basalt linen cotton jute hemp rubber ivory sulphur lime gypsum cement tar "
        "willow cedar"
    ),
    Split.DEV: (
        "brass bronze chrome cobalt quartz jade opal onyx velvet muslin denim twine raffia latex graphite borax alum "
        "shellac birch maple"
    ),
    Split.TEST: (
        "steel titanium tungsten mica talc agate garnet ruby coral satin flannel burlap yarn thatch soot potash beeswax "
        "walnut rosewood sisal"
    ),
}
_MORE_MADE = {
    Split.TRAIN: "kettle funnel trowel rake stove ladle trunk pestle",
    Split.DEV: (
        "hatchet awl trough cradle sieve churn lute drum fife easel abacus hoe sickle yoke stirrup gauntlet pennant "
        "lectern toboggan thimble"
    ),
    Split.TEST: "spade sled hammock bobbin trivet tripod teapot goblet",
}
STORE: Mapping[Split, tuple[str, ...]] = {
    split: (*RAW[split], *text.split()) for split, text in _MORE_RAW.items()
}
GOODS: Mapping[Split, tuple[str, ...]] = {
    split: (*MADE[split], *text.split()) for split, text in _MORE_MADE.items()
}
"""Names of a day of orders, which has more of them than a recipe tree."""
ASKS = ways("Make {thing}. | Produce {thing}. | What is wanted is {thing}: craft it.")


VERBS = {
    **dict.fromkeys(
        ("get", "fetch", "take", "gather", "collect", "mine", "grab", "obtain", "acquire", "pick"), "get"
    ),
    **dict.fromkeys(("make", "craft", "build", "create", "assemble", "produce", "construct"), "make"),
    **dict.fromkeys(("recipe", "recipes", "read", "recall", "ask", "how"), "recipe"),
    **dict.fromkeys(
        ("inventory", "look", "inv", "have", "wait", "check", "show", "view", "list", "tell", "what"),
        "inventory",
    ),
}
TAILS = frozenset(("with", "using", "from", "out", "for", "because", "since", "so", "as", "instead", "not"))
"""Behind these words stands no longer what is got or made, nor how many."""

IDIOMS = frozenset(
    [
        "rid", "started", "ready", "sure", "use", "progress", "sense", "note", "way", "thoughts", "plan",
        "going", "care", "time",
    ]
)  # fmt: skip
"""Behind a verb these make something else of it: "get rid of", "make sure", "take note"."""


def plurals(name: str) -> tuple[str, ...]:
    """Return the words that several of a thing may be called by.

    >>> plurals("shelf")
    ('shelfs', 'shelfes', 'shelves')
    """
    return (
        f"{name}s",
        f"{name}es",
        *([f"{name.rstrip('e')[:-1]}ves"] if name.rstrip("e")[-1] == "f" else []),
    )


_NAMES = [name for names in (STORE, GOODS) for split in Split for name in names[split]]
AMOUNTS: Mapping[str, int] = {word: number for number, word in enumerate(NUMBERS)} | {"twice": 2, "couple": 2}
NO_AMOUNT = frozenset(("all", "every", "many", "much", "dozen", "several"))
NAMES = frozenset(called for name in _NAMES for called in (name, *plurals(name)))
FORMS = Forms(
    # What only looks is left out: said beside a command, it is no second one.
    verbs=frozenset(word for word, verb in VERBS.items() if verb in ("get", "make") or word == verb),
    names=NAMES,
    traits=frozenset(
        ("x", "piece", "pieces", "unit", "units", "more", "another", "recipe", *AMOUNTS, *NO_AMOUNT)
    ),
    pairs=frozenset(word for word, verb in VERBS.items() if verb == "make"),
    behind=frozenset(("with", "using", "from", "of")),
    needy=frozenset(word for word, verb in VERBS.items() if verb in ("get", "make")),
    asked=frozenset(("how", "what")),
)
