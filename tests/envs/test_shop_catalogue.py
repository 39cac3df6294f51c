"""Procedural catalogues: the same everywhere, hard to choose from, quick to search."""

import itertools
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.shop import catalogue as catalogue_module
from turnwise.envs.shop.catalogue import catalogue
from turnwise.envs.shop.index import TOP, SearchIndex
from turnwise.envs.shop.procedural import ProceduralSpec

PRICED = ProceduralSpec(
    "seed", 600, "full", attributes=3, required=2, titled=2, option_groups=2, values=3, distractors=5,
    stray=0.5, differ=("attribute", "option", "price"), prices="fine",
)  # fmt: skip


@pytest.fixture(scope="module")
def shop():
    return catalogue(PRICED)


def differences(base, other, required):
    """What a goal for ``base`` would mind about ``other``."""
    found = [f"attribute {a}" for a in base.attributes[:required] if a not in other.attributes]
    found += [f"{n} {v}" for n in base.options for v in base.options[n] if v not in other.options[n]]
    return found + ["price"] * (other.price > base.price)


def test_a_stuffed_listing_repeats_every_word_of_what_it_imitates_four_times(shop):
    columns = shop.details
    words, documents = [*columns.word_ids], columns.documents()
    plain = len(documents[columns.base(0)])
    assert {*np.flatnonzero(columns.stuffed_N)} == {i for i, one in enumerate(documents) if len(one) > plain}
    for i in np.flatnonzero(columns.stuffed_N).tolist():
        family = int(columns.family_N[i])
        base = shop.product(columns.base(family))
        hidden = sorted(words[word] for word in documents[i][plain:])
        said = [*base.attributes, words[documents[columns.base(family)][columns.spec.titled]]]
        assert hidden == sorted([*said, *columns.wanted(family).values()] * 4)


@pytest.mark.slow
def test_near_duplicates_differ_in_exactly_one_thing_from_their_base(shop):
    columns = shop.details
    kinds = set()
    for i in range(len(shop)):
        family = columns.family_N[i]
        base, other = shop.product(columns.base(family)), shop.product(i)
        if base is other:
            continue
        assert base.query == other.query
        (difference,) = differences(base, other, PRICED.required)
        kinds.add(difference.split()[0])
        if difference == "price":
            assert other.price - base.price > 49.99  # above every cap
        if difference.split()[0] in base.options:
            assert columns.wanted(family)[difference.split()[0]] == difference.split()[1]
    assert kinds == {"attribute", "color", "size", "price"}


@pytest.mark.slow
def test_the_same_in_a_process_that_hashes_strings_otherwise(shop):
    program = f"""
import json
from turnwise.envs.shop import catalogue as catalogue_module
from turnwise.envs.shop.catalogue import catalogue
from turnwise.envs.shop.procedural import ProceduralSpec
shop = catalogue(ProceduralSpec.from_json(json.loads({json.dumps(json.dumps(PRICED.to_json()))})))
print(json.dumps([str(shop.product(7)), [list(shop.search(q)) for q in ("red soft mug", "oak", "mug small")]]))
"""
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    said = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    queries = ("red soft mug", "oak", "mug small")
    assert json.loads(said.stdout) == [str(shop.product(7)), [list(shop.search(q)) for q in queries]]


def test_asins_find_their_products_and_nothing_else_does(shop):
    asins = [shop.product(i).asin for i in range(len(shop))]
    assert len(set(asins)) == len(asins)
    assert [shop.position(asin) for asin in asins] == list(range(len(shop)))
    assert [shop.position(name) for name in ("", "B0", "B0________", "B0-0000001", "x", "B0ZZZZZZZZ")] == [
        None
    ] * 6


def test_titles_tell_only_the_titled_attributes(shop):
    for product in map(shop.product, range(50)):
        words = product.title.split()
        assert set(words[:-1]) == set(product.attributes[:2])
        assert product.bullets == (f"it is {product.attributes[2]}",)
        assert product.kind_words == (words[-1],)


@pytest.mark.parametrize(("stray", "low", "high"), [(0.0, 0.0, 0.0), (0.4, 0.33, 0.47), (1.0, 0.97, 1.0)])
def test_stray_is_the_probability_that_a_near_duplicate_outranks_the_right_product(stray, low, high):
    """Counted over near-duplicates that lack a word of the query, else order is chance, not rank."""
    above = total = 0
    for seed in range(8):
        spec = ProceduralSpec(
            f"stray {seed}", 400, "full", attributes=2, required=2, distractors=3, stray=stray
        )
        shop = catalogue(spec)
        columns = shop.details
        for family in range(columns.families):
            base = shop.product(columns.base(family))
            ranking = shop.search(f"{base.title} {' '.join(columns.wanted(family).values())}")
            place = {item: rank for rank, item in enumerate(ranking)}
            for i in np.flatnonzero(columns.family_N == family):
                if i != columns.base(family):
                    total += 1
                    above += place.get(int(i), TOP) < place.get(columns.base(family), TOP)
    assert low <= above / total <= high


@pytest.mark.parametrize("products", [4, 100, 20_000])
def test_any_size(products):
    shop = catalogue(ProceduralSpec("size", products, "full", distractors=6))
    assert len(shop) == products
    assert shop.product(products - 1).options["color"]


def test_a_pickled_catalogue_is_a_reference(shop):
    data = pickle.dumps(shop)
    assert len(data) < 1000
    assert pickle.loads(data) is shop


def test_many_small_catalogues_are_dropped_and_come_back_equal(monkeypatch):
    shelf = catalogue_module._Shelf()
    monkeypatch.setattr(catalogue_module, "_shelf", shelf)
    monkeypatch.setattr(catalogue_module, "_ROOM", 5000)
    specs = [ProceduralSpec(f"many {i}", 40) for i in range(9)]
    first = catalogue(specs[0])
    titles = [first.product(i).title for i in range(40)]
    assert catalogue(specs[0]) is first
    for spec in specs:
        catalogue(spec)
    assert len(shelf) == 4  # each counts for 1040 products
    assert catalogue(specs[0]) is not first
    assert [catalogue(specs[0]).product(i).title for i in range(40)] == titles


# --- search --------------------------------------------------------------------------------------

WORDS = st.sampled_from(["red", "blue", "mug", "scarf", "soft"])


@settings(max_examples=60)
@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=150), st.lists(WORDS, max_size=4)
)
def test_ranking_is_all_scores_sorted_with_ties_by_position(documents, query):
    import bm25s

    index = SearchIndex.of_texts(" ".join(words) for words in documents)
    vocabulary = sorted({word for words in documents for word in words})
    plain = bm25s.BM25()
    plain.index(
        (
            [[vocabulary.index(w) for w in words] for words in documents],
            {w: i for i, w in enumerate(vocabulary)},
        ),
        show_progress=False,
    )
    known = [vocabulary.index(w) for w in query if w in vocabulary]
    scores = plain.get_scores_from_ids(known) if known else np.zeros(len(documents))
    ranking = index.rank(" ".join(query))
    assert len(ranking) == min(TOP, np.count_nonzero(scores))
    for one, other in itertools.pairwise(ranking):
        # Sums in another order may differ in their last digits, so only equal texts are ties for certain.
        assert scores[one] >= scores[other] - 1e-5
        assert one < other or sorted(documents[one]) != sorted(documents[other])
    if len(ranking) < np.count_nonzero(scores):
        left_out = max(scores[i] for i in range(len(documents)) if i not in ranking)
        assert left_out <= scores[ranking[-1]] + 1e-5


def test_word_order_case_and_punctuation_do_not_matter(shop):
    assert shop.search("Mug, soft!") == shop.search("soft mug") != ()
    assert shop.search("zzz") == shop.search("!!!") == ()
