"""The words that procedural catalogues are made of.

Lower-case single words, so that a byte-pair tokenizer trained on the shop makes each one token. The
order of every list matters: catalogues refer to words by position, and the small vocabulary is the
first few of each. tests/envs/test_shop_words.py keeps them apart: no word of one list is part of a
word of another list in a way that the score (substring and fuzzy matching) would take for a match.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Size: TypeAlias = Literal["small", "full"]

NOUNS: dict[str, str] = {  # noun → "department › aisle"
    "scarf": "clothing › winter",
    "mug": "home › kitchen",
    "lamp": "home › living",
    "chair": "office › furniture",
    "tent": "outdoor › camping",
    "shirt": "clothing › tops",
    "pillow": "home › bedroom",
    "bowl": "home › kitchen",
    "boot": "clothing › shoes",
    "rug": "home › living",
    "desk": "office › furniture",
    "speaker": "electronics › audio",
    "backpack": "outdoor › camping",
    "towel": "home › bath",
    "jacket": "clothing › tops",
    "clock": "home › living",
    "glove": "clothing › winter",
    "beanie": "clothing › winter",
    "parka": "clothing › winter",
    "sweater": "clothing › tops",
    "hoodie": "clothing › tops",
    "blouse": "clothing › tops",
    "jeans": "clothing › bottoms",
    "skirt": "clothing › bottoms",
    "shorts": "clothing › bottoms",
    "leggings": "clothing › bottoms",
    "sneaker": "clothing › shoes",
    "sandal": "clothing › shoes",
    "slipper": "clothing › shoes",
    "loafer": "clothing › shoes",
    "kettle": "home › kitchen",
    "pan": "home › kitchen",
    "plate": "home › kitchen",
    "teapot": "home › kitchen",
    "jar": "home › kitchen",
    "blanket": "home › bedroom",
    "mattress": "home › bedroom",
    "duvet": "home › bedroom",
    "sofa": "home › living",
    "curtain": "home › living",
    "mirror": "home › living",
    "vase": "home › living",
    "candle": "home › living",
    "bathrobe": "home › bath",
    "basket": "home › bath",
    "notebook": "office › supplies",
    "pencil": "office › supplies",
    "stapler": "office › supplies",
    "binder": "office › supplies",
    "bookcase": "office › furniture",
    "headphone": "electronics › audio",
    "microphone": "electronics › audio",
    "radio": "electronics › audio",
    "keyboard": "electronics › computing",
    "monitor": "electronics › computing",
    "charger": "electronics › computing",
    "tablet": "electronics › computing",
    "camera": "electronics › computing",
    "lantern": "outdoor › camping",
    "hammock": "outdoor › camping",
    "stove": "outdoor › camping",
    "racket": "outdoor › sports",
    "helmet": "outdoor › sports",
    "kayak": "outdoor › sports",
    "bicycle": "outdoor › sports",
    "shovel": "garden › tools",
    "hose": "garden › tools",
    "wheelbarrow": "garden › tools",
    "planter": "garden › decor",
    "birdhouse": "garden › decor",
    "leash": "pets › dogs",
    "kennel": "pets › dogs",
    "aquarium": "pets › fish",
    "puzzle": "toys › games",
    "doll": "toys › figures",
    "robot": "toys › figures",
    "kite": "toys › games",
    "violin": "music › strings",
    "guitar": "music › strings",
    "drum": "music › percussion",
}

ATTRIBUTES: tuple[str, ...] = (
    "soft", "wool", "cotton", "foldable", "waterproof", "vintage", "slim", "sturdy",
    "leather", "bamboo", "washable", "padded", "modern", "floral", "organic", "magnetic",
    "linen", "silk", "cork", "nylon", "velvet", "suede", "canvas", "oak",
    "marble", "rubber", "plastic", "titanium", "ceramic", "wicker", "fleece", "cashmere",
    "portable", "adjustable", "reusable", "cordless", "rechargeable", "insulated", "stackable", "reversible",
    "breathable", "ergonomic", "antique", "elegant", "rustic", "handmade", "seamless", "hooded",
    "plaid", "dotted", "glossy", "matte", "compact", "woven", "embossed", "engraved",
    "braided", "quiet", "heated", "inflatable", "biodegradable", "shockproof", "programmable", "luminous",
    "perforated", "asymmetric", "fragrant", "hypoallergenic", "telescopic", "vegan", "retro", "curved",
)  # fmt: skip

OPTIONS: dict[str, tuple[str, ...]] = {  # option group → values
    "color": (
        "red", "blue", "green", "black", "white", "pink", "brown", "yellow",
        "purple", "orange", "navy", "teal", "beige", "silver", "ivory", "olive",
    ),
    "size": ("small", "medium", "large", "huge", "mini", "oversized"),
    "style": ("classic", "sporty", "formal", "casual", "boho", "urban"),
    "pack": ("single", "double", "triple", "dozen", "pair", "bundle"),
}  # fmt: skip

SMALL = {"nouns": 16, "attributes": 16, "color": 8, "size": 4, "style": 4, "pack": 4}
"""Number of entries that the small vocabulary keeps of each list."""

_STOP = (
    "a an and are as at be by can for from has have in into is it its of on or our that the their this to "
    "up was we will with you your pack set pcs pc piece pieces new"
)

STOP_WORDS = frozenset(_STOP.split())
"""Words that name no kind of product. Listed for the score's replacement of part-of-speech tagging."""


_ASKING = (
    "a about above after again all also am an and any are as at be because been before below between both but buy "
    "by can could did do does down each else ever find few for from get had has have he her here him his how i if in "
    "into is it its just less like looking lower me more most my need no nor not of off on one only or other our out "
    "over own please price s same she should so some such t than that the their them then there these they this "
    "those to too under up us very want was we were what when where which while who why will with without would you "
    "your dollars color size style pack"
)
IDLE_WORDS = frozenset(_ASKING.split())
"""Words of requests that say nothing about a product."""


class Vocabulary(NamedTuple):
    """The words of one size. ``options`` keeps the order of the groups."""

    nouns: tuple[str, ...]
    aisles: tuple[str, ...]
    attributes: tuple[str, ...]
    options: tuple[tuple[str, tuple[str, ...]], ...]


def vocabulary(size: Size) -> Vocabulary:
    """The full vocabulary, or its first few words.

    >>> len(vocabulary("small").nouns), len(vocabulary("full").nouns) >= 60
    (16, True)
    """
    keep = SMALL if size == "small" else {}
    nouns = tuple(NOUNS)[: keep.get("nouns")]
    return Vocabulary(
        nouns,
        tuple(NOUNS[noun] for noun in nouns),
        ATTRIBUTES[: keep.get("attributes")],
        tuple((name, values[: keep.get(name)]) for name, values in OPTIONS.items()),
    )


_TEXT = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy "
    "camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral "
    "cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite "
    "grass gray green grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta "
    "maroon mauve merlot midnight mint mocha multicolor mushroom mustard natural navy nude olive orange "
    "peach pewter pink plum purple rainbow red rose royal rust sand sapphire seashell silver skull slate "
    "steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
)

COLOURS: tuple[str, ...] = tuple(_TEXT.split())
"""Order matters: the first one found in a text is taken, wherever in the text it stands."""
