"""The words of the desk, one token each: customers, trees that name orders, things, colours."""

NAMES = [
    "anna", "ben", "carl", "dora", "emil", "fay", "gus", "hana", "ida", "jon", "kim", "leo", "mia", "nora",
    "otto", "pia",
]  # fmt: skip
TREES = [
    "oak", "elm", "ash", "fir", "yew", "box", "fig", "bay", "may", "gum", "plum", "pear", "lime", "palm",
    "pine", "beech", "birch", "cedar", "maple", "alder", "hazel", "holly", "rowan", "larch", "aspen",
    "linden", "willow", "walnut", "cherry", "laurel", "olive", "poplar",
]  # fmt: skip
THINGS = ["lamp", "mug", "scarf", "chair", "tent", "bowl", "rug", "desk"]
COLOURS = ["red", "blue", "green", "black", "white", "pink", "brown", "gray"]
