"""The score against WebShop's formula, worked out by hand.

score = r_type · (n_att + n_opt + 1[price ≤ cap]) / (|A| + |O| + 1)
"""

from dataclasses import replace

import pytest

from turnwise.envs.shop.catalogue import Product
from turnwise.envs.shop.reward import NO_CAP, ShopGoal, ShopScore, first_colour, score, similar

SCARF = Product(
    asin="B01",
    title="Soft Wool Scarf",
    category="clothing › winter › scarfs",
    query="scarf",
    price=20.0,
    attributes=("soft", "wool"),
    options={"color": ("heather navy", "red"), "size": ("large", "small")},
    description="a scarf for cold days, machine washable",
    bullets=("Hand Made in Wales", "it is breathable"),
)
GOAL = ShopGoal(
    asin="B01",
    category="clothing › winter › scarfs",
    query="scarf",
    nouns=("scarf",),
    attributes=("soft", "wool"),
    options=("red", "large"),
    price_cap=30.0,
)  # |A| + |O| + 1 = 5
LONG = tuple(f"noun{i}" for i in "abcdefghijklmnopqrst")  # 20 nouns

CASES = {
    # everything right: 1 · (2 + 2 + 1) / 5
    "all": (SCARF, ("red", "large"), GOAL, ShopScore(5 / 5, 1.0, 2, 2, True)),
    # one option chosen: 1 · (2 + 1 + 1) / 5
    "one option": (SCARF, ("red",), GOAL, ShopScore(4 / 5, 1.0, 2, 1, True)),
    # no option chosen: (2 + 0 + 1) / 5
    "no option": (SCARF, (), GOAL, ShopScore(3 / 5, 1.0, 2, 0, True)),
    # wrong colour, right size: (2 + 1 + 1) / 5
    "wrong colour": (SCARF, ("heather navy", "large"), GOAL, ShopScore(4 / 5, 1.0, 2, 1, True)),
    # both dear and wrong: (2 + 0 + 0) / 5
    "too dear": (replace(SCARF, price=30.01), (), GOAL, ShopScore(2 / 5, 1.0, 2, 0, False)),
    # the cap itself is allowed: (2 + 2 + 1) / 5
    "exactly the cap": (replace(SCARF, price=30.0), ("red", "large"), GOAL, ShopScore(1.0, 1.0, 2, 2, True)),
    # without a cap every price will do
    "no cap": (
        replace(SCARF, price=5000.0),
        ("red", "large"),
        replace(GOAL, price_cap=NO_CAP),
        ShopScore(1.0, 1.0, 2, 2, True),
    ),
    # an attribute is missing, also from all texts: (1 + 2 + 1) / 5
    "attribute missing": (
        SCARF,
        ("red", "large"),
        replace(GOAL, attributes=("soft", "silk")),
        ShopScore(4 / 5, 1.0, 1, 2, True),
    ),
    # not annotated, but in the description, the features (lower-cased) and the title: (3 + 2 + 1) / 6
    "attribute in the texts": (
        SCARF,
        ("red", "large"),
        replace(GOAL, attributes=("machine washable", "hand made", "wool scarf")),
        ShopScore(6 / 6, 1.0, 3, 2, True),
    ),
    # the words of "merino wool" contain all of "wool", so the ratio is 100: (1 + 2 + 1) / 4
    "attribute fuzzily": (
        replace(SCARF, title="Scarf", attributes=("merino wool",)),
        ("red", "large"),
        replace(GOAL, attributes=("wool",)),
        ShopScore(4 / 4, 1.0, 1, 2, True),
    ),
    # both become "heather", the first colour word of the list that occurs: (2 + 1 + 1) / 4
    "colours normalised": (
        SCARF,
        ("heather navy",),
        replace(GOAL, options=("heather purple",)),
        ShopScore(4 / 4, 1.0, 2, 1, True),
    ),
    # another kind of product, nothing shared by the titles: r_type = 0
    "other noun": (
        replace(SCARF, title="Soft Wool Glove"),
        ("red", "large"),
        GOAL,
        ShopScore(0.0, 0.0, 2, 2, True),
    ),
    # the same, though the category and the query agree: t = 0 decides
    "other noun, same query": (
        replace(SCARF, title="Soft Wool Glove", query="scarf"),
        ("red", "large"),
        GOAL,
        ShopScore(0.0, 0.0, 2, 2, True),
    ),
    # t = 1/20 < 0.1: r_type = 0.1, so 0.1 · 5 / 5
    "a twentieth of the nouns": (
        replace(SCARF, title="nouna"),
        ("red", "large"),
        replace(GOAL, nouns=LONG),
        ShopScore(0.1, 0.1, 2, 2, True),
    ),
    # t = 3/20 ≤ 0.2, other query, no shared category: r_type = 0.5, so 0.5 · (2 + 1 + 1) / 5
    "unrelated": (
        replace(SCARF, title="nouna nounb nounc", query="x", category="a › b › c"),
        ("red",),
        replace(GOAL, nouns=LONG),
        ShopScore(0.5 * 4 / 5, 0.5, 2, 1, True),
    ),
    # the same with two shared category components: r_type = 1, so 4 / 5
    "related by category": (
        replace(SCARF, title="nouna nounb nounc", query="x"),
        ("red",),
        replace(GOAL, nouns=LONG),
        ShopScore(4 / 5, 1.0, 2, 1, True),
    ),
    # or with the same query only
    "related by query": (
        replace(SCARF, title="nouna nounb nounc", category="a › b › c"),
        ("red",),
        replace(GOAL, nouns=LONG),
        ShopScore(4 / 5, 1.0, 2, 1, True),
    ),
    # t = 5/20 > 0.2 makes it related by itself
    "related by title": (
        replace(SCARF, title="nouna nounb nounc nound noune", query="x", category="a › b › c"),
        ("red", "large"),
        replace(GOAL, nouns=LONG),
        ShopScore(1.0, 1.0, 2, 2, True),
    ),
    # a goal title without nouns counts as t = 0.2: not > 0.2, so 0.5 unless related
    "goal without nouns": (
        replace(SCARF, query="x", category="a › b › c"),
        ("red", "large"),
        replace(GOAL, nouns=()),
        ShopScore(0.5, 0.5, 2, 2, True),
    ),
    # one option answers two wanted ones: n_opt counts wanted options that something chosen matches
    "one choice for two": (
        SCARF,
        ("red",),
        replace(GOAL, options=("red", "dark red")),  # "dark" comes first in the list: (2 + 1 + 1) / 5
        ShopScore(4 / 5, 1.0, 2, 1, True),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_score_is_the_formula(case):
    product, chosen, goal, expected = CASES[case]
    assert tuple(score(product, chosen, goal)) == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("red", "red", True),
        ("Red!", "red", True),  # case and punctuation do not count
        ("navy blue", "blue navy", True),  # nor does order
        ("x-large", "large", True),  # {x, large} ⊃ {large}: ratio 100, as in WebShop
        ("large", "larger", True),  # 2·5/11 = 90.9
        ("abcdef", "abcdeg", False),  # 2·5/12 = 83.3
        ("abcdefg", "abcdefh", True),  # 2·6/14 = 85.71, rounded 86 > 85
        ("red", "", False),
        ("", "!", False),
    ],
)
def test_similarity_by_hand(a, b, expected):
    assert similar(a, b) is expected
    assert similar(b, a) is expected


def test_first_colour_is_first_in_the_list_not_in_the_text():
    assert first_colour("white and black") == "black"
    assert first_colour("tapered") == "red"  # a substring is enough: WebShop's rule
    assert first_colour("xl") == "xl"
