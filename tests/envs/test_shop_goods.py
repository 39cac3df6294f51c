"""Goods and requests: coherent, told by the pages, judged exactly, held out by split, and not solved without reading."""

import itertools
import json

import pytest

from turnwise.data_file import data_file
from turnwise.envs.check.walks import walk
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.shop.actions import clickables, do_click, do_search
from turnwise.envs.shop.asking.core import AskSituation, asking_words
from turnwise.envs.shop.asking.requests import (
    ASKS,
    Demand,
    fitting_variant,
    write_request,
)
from turnwise.envs.shop.catalogue import catalogue
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.catalogues import GoodsSpec
from turnwise.envs.shop.goods.tables import (
    dimensions,
    features,
    impossible,
    kinds_of_goods,
    names,
    opinions,
    review_words,
)
from turnwise.envs.shop.goods.units import OTHER_UNITS, amount
from turnwise.envs.shop.reward import ShopGoal, first_colour, score, similar
from turnwise.envs.shop.state import ShopState, every_choice
from turnwise.envs.shop.tasks import world_of
from turnwise.envs.wordings import Wordings
from turnwise.tasks.core import Split, derive_rng

NATURAL = ("shop/standard", "shop/hard")


@pytest.fixture(scope="module")
def shop():
    return catalogue(GoodsSpec("test goods", "train", 800))


def tasks(suite, split, n):
    return list(suite_tasks(get_suite(suite), split, n))


def wordings():
    yield asking_words().openings
    yield from (ask.frames for ask in ASKS)
    for dimension in dimensions().values():
        yield from (dimension.at_most, dimension.at_least)
    for feature in features().values():
        yield from (each for each in (feature.wants, feature.shuns) if each is not None)
    yield from (opinion.wants for opinion in opinions().values())
    yield from (need.said for goods in kinds_of_goods() for need in goods.needs)


# --- kinds -----------------------------------------------------------------------------------------


def test_there_are_many_kinds_of_asking_and_each_has_wordings_for_every_split():
    assert len({ask.name for ask in ASKS}) == len(ASKS) >= 60
    assert len({ask.frames for ask in ASKS}) >= 60
    assert {*data_file("turnwise.envs.shop.asking", "frames", dict[str, Wordings])} == {
        ask.name for ask in ASKS
    }
    assert all(len(words.train) >= 2 and words.dev and words.test for words in wordings())


@pytest.mark.parametrize(("one", "other"), itertools.combinations(Split, 2))
def test_no_two_splits_share_a_wording_or_a_name(one, other):
    said = {split: {text for words in wordings() for text in words.of(split)} for split in Split}
    assert not said[one] & said[other]
    for field in ("brands", "lines"):
        assert not {*getattr(names().splits[one], field)} & {*getattr(names().splits[other], field)}


def test_kinds_name_only_what_there_is_and_stand_apart_in_titles():
    nouns = [goods.noun for goods in kinds_of_goods()]
    assert len(set(nouns)) == len(nouns) >= 36
    for goods in kinds_of_goods():
        assert {*goods.features} <= {*features()}, goods.noun
        assert {*goods.opinions} <= {*opinions()}, goods.noun
        assert all(quantity.dimension in dimensions() for quantity in goods.quantities)
        assert all(list(q.ladder) == sorted(set(q.ladder)) for q in goods.quantities), goods.noun
        facts = {q.name for q in goods.quantities} | {"features", "material"}
        assert all(condition.fact in facts for need in goods.needs for condition in need.conditions)
    assert not [
        pair for pair in itertools.combinations(names().colours, 2) if similar(*map(first_colour, pair))
    ]


def test_what_is_said_of_a_quantity_is_a_noun_and_comparisons_say_of_what():
    spoken = {quantity.spoken for goods in kinds_of_goods() for quantity in goods.quantities}
    verbs = ("keeps", "sleeps", "holds")
    assert not [name for name in spoken if name.startswith(verbs)]
    by_name = {ask.name: ask for ask in ASKS}
    shelf = catalogue(GoodsSpec("counts", "test", 800)).details
    told = set()
    for place in range(0, 800, 3):
        near = shelf.alike(place)
        meant = dict(near)[place]
        situation = AskSituation(
            derive_rng("counts", place), Split.TEST, meant, 1.0, [one for at, one in near if at != place]
        )
        part = by_name["more than another"].make(situation)
        quantities = {quantity.name: quantity for quantity in meant.article.goods.quantities}
        if part and dimensions()[quantities[part.about].dimension].named:
            assert part.slots["more"].endswith(f" in {quantities[part.about].spoken}")
            told.add(part.about)
    assert {"slots", "torque", "keeps hot for"} & told


def test_other_units_are_none_of_the_metric_system():
    metric = ("watt", "minute", "gram", "metre", "meter", "litre")
    assert not [unit for unit in OTHER_UNITS.values() if any(part in unit.unit for part in metric)]


def test_nothing_says_the_opposite_of_what_it_asks():
    """A thing without rechargeable cells may hang on a cable; a sentence that says nothing complains of nothing."""
    shuns = features()["rechargeable"].shuns
    assert not [text for split in Split for text in shuns.of(split) if "cable" in text or "cells" in text]
    assert not [text for text in review_words().idle if "damage" in text or "cheaper" in text]


# --- products --------------------------------------------------------------------------------------


def test_incompatible_attributes_never_meet(shop):
    for article in shop.details.articles:
        assert not article.facts["features"] & impossible().get(article.facts["material"], frozenset())


def test_titles_differ_and_tell_little(shop):
    titles = shop.details.titles
    assert len(set(titles)) == len(titles)
    for article, title in zip(shop.details.articles, titles, strict=True):
        told = [q for q in article.goods.quantities if amount(article.facts[q.name], q.unit) in title]
        assert len(told) <= 2
        assert sum(name in title for name in article.facts["features"]) <= 2
        assert article.goods.noun in title.lower()


def test_pages_tell_every_fact_and_the_prose_tells_no_opinion(shop):
    for place in range(0, len(shop), 5):
        article, product = shop.details.articles[place], shop.product(place)
        table = dict(product.specification)
        for quantity in article.goods.quantities:
            assert table[quantity.name.capitalize()] == amount(article.facts[quantity.name], quantity.unit)
        assert (table["Brand"], table["Material"]) == (article.brand, article.facts["material"])
        assert {"Warranty", "Returns", "Delivery", "Country of origin"} <= {*table}
        for name in article.goods.features:
            assert (features()[name].bullet in product.bullets) == (name in article.facts["features"])
        written = " ".join(product.reviews)
        for name in article.goods.opinions:
            heard = any(said in written for said in opinions()[name].said)
            assert heard == (name in article.facts["opinions"]), (name, written)
        assert not any(said in product.description for each in opinions().values() for said in each.said)
        assert len(product.reviews) >= 1


def test_the_same_seed_makes_the_same_goods_and_texts():
    spec = GoodsSpec("again", "test", 240)
    one, two = spec.build(), GoodsSpec.from_json(json.loads(json.dumps(spec.to_json()))).build()
    assert [str(one.product(i)) for i in range(240)] == [str(two.product(i)) for i in range(240)]
    brands = {one.product(i).facts["brand"] for i in range(240)}
    assert brands <= {*names().splits[Split.TEST].brands}


def test_variants_have_prices_of_their_own_and_sold_out_ones_cannot_be_chosen(shop):
    priced = [i for i in range(len(shop)) if shop.product(i).surcharges]
    assert priced
    for place in priced[:40]:
        article, product = shop.details.articles[place], shop.product(place)
        for value, cents in product.surcharges.items():
            assert product.price_with([value]) == pytest.approx(product.price + cents / 100)
        offered = {value for values in product.options.values() for value in values}
        assert not offered & {*article.sold_out}


def test_option_values_can_be_clicked_and_are_not_alike_to_the_score(shop):
    """A click is read in lower case, and the score matches values fuzzily."""
    for goods in kinds_of_goods():
        values = (*goods.sizes, *(names().colours if goods.coloured else ()))
        assert all(value == value.lower() for value in values)
        assert not [pair for pair in itertools.combinations(values, 2) if similar(*map(first_colour, pair))]


# --- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.name)
def test_each_kind_of_asking_is_fulfilled_by_what_it_means_and_not_by_everything(shop, ask):
    rng, made, others = derive_rng("kinds", ask.name), 0, 0
    for place in range(0, len(shop), 9):
        shelf = shop.details.alike(place)
        meant = dict(shelf)[place]
        near = [listed for at, listed in shelf if at != place]
        part = ask.make(AskSituation(rng, Split.TEST, meant, meant.article.price(), near))
        if part is None:
            continue
        demand = Demand().joined(part)
        assert fitting_variant(meant.article, demand) is not None
        text = ask.frames.test[0].format(**part.slots)
        assert "{" not in text
        made += 1
        others += any(fitting_variant(listed.article, demand) is None for listed in near)
    assert made >= 2
    assert others >= 1


def test_what_fits_is_exactly_what_scores_one(shop):
    rng, written = derive_rng("exact"), 0
    while written < 12:
        shelf = shop.details.alike(rng.randrange(len(shop)))
        request = write_request(rng, Split.TRAIN, shelf, 3, 3)
        if request is None:
            continue
        written += 1
        demand = request.demand
        product = shop.product(request.chosen.place)
        goal = ShopGoal(
            product.asin, product.category, product.query, product.kind_words, (), demand.options, demand.cap,
            demand.conditions,
        )  # fmt: skip
        right = {
            place
            for place, _ in shelf
            if any(
                score(shop.product(place), c.values(), goal).total == 1.0
                for c in every_choice(shop.product(place))
            )
        }
        assert right == request.fitting


def test_conditions_by_hand():
    facts = {"weight": 500.0, "material": "wool", "features": frozenset({"hood", "zip"})}
    assert Condition("weight", "at most", 500.0).holds(facts)
    assert not Condition("weight", "at least", 500.1).holds(facts)
    assert Condition("material", "is", ("silk", "wool")).holds(facts)
    assert not Condition("material", "is not", ("silk", "wool")).holds(facts)
    assert Condition("features", "any", ("hood", "belt")).holds(facts)
    assert not Condition("features", "all", ("hood", "belt")).holds(facts)
    assert Condition("features", "none", ("belt",)).holds(facts)
    assert not Condition("colour", "is not", ("red",)).holds(facts)  # unknown is never right
    for condition in (Condition("a", "at most", 2.0), Condition("b", "none", ("x", "y"))):
        assert Condition.from_json(json.loads(json.dumps(condition.to_json()))) == condition


def test_the_score_counts_conditions_as_attributes():
    """(1 of 2 conditions + 1 of 1 options + affordable) / (2 + 1 + 1) = 3/4."""
    task = tasks("shop/standard", Split.TRAIN, 1)[0]
    world = world_of(task)
    product = world.catalogue.product(world.target)
    goal = ShopGoal(
        product.asin, product.category, product.query, product.kind_words, (), (), 1e6,
        (Condition("price", "at least", 0.0), Condition("price", "at most", 0.0)),
    )  # fmt: skip
    got = score(product, (), goal)
    assert (got.attributes, got.options, got.total) == (1, 0, pytest.approx(2 / 3))


# --- shoppers without a model ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suite", NATURAL)
def test_who_does_not_read_does_not_succeed(suite):
    env, drawn = make("turnwise/Shop-v0"), tasks(suite, Split.TEST, 20)
    walked = {script: [walk(env, task, script) for task in drawn] for script in ("first", "scan")}
    assert not any(each.success for each in walked["first"])
    assert sum(each.score for each in walked["first"]) / len(drawn) < 0.7
    assert sum(each.success for each in walked["scan"]) / len(drawn) <= 0.2


def test_the_scan_solves_the_small_language():
    env = make("turnwise/Shop-v0")
    walked = [walk(env, task, "scan") for task in tasks("shop/quick", Split.TEST, 20)]
    assert sum(each.success for each in walked) >= 18


# --- sorting and filtering -------------------------------------------------------------------------


def test_results_are_sorted_and_filtered_and_a_second_click_undoes_it():
    world = world_of(tasks("shop/standard", Split.TRAIN, 1)[0])
    plain = do_search(ShopState(world), world.goal.query)
    facts = world.catalogue.facts
    cheap = do_click(plain, "sort by price")
    prices = [facts(item)["price"] for item in cheap.results]
    assert prices == sorted(prices)
    assert {*cheap.results} == {*plain.results}
    good = do_click(cheap, "4 stars and up")
    assert good.results == tuple(item for item in cheap.results if facts(item)["rating"] >= 4.0)
    assert do_click(do_click(good, "4 stars and up"), "sort by price") == plain
    brand = next(name for name in clickables(plain) if name.startswith("brand: "))
    assert {str(facts(item)["brand"]).lower() for item in do_click(plain, brand).results} == {
        brand.removeprefix("brand: ")
    }


def test_of_two_brands_one_is_enough_and_prices_bound_each_other():
    world = world_of(tasks("shop/standard", Split.TRAIN, 1)[0])
    plain = do_search(ShopState(world), world.goal.query)
    one, two, *_ = [name for name in clickables(plain) if name.startswith("brand: ")]
    found = [{*do_click(plain, name).results} for name in (one, two)]
    assert {*do_click(do_click(plain, one), two).results} == found[0] | found[1]
    dear, cheap = do_click(plain, "under $100"), do_click(plain, "under $25")
    assert do_click(dear, "under $25").results == cheap.results
    material = next(name for name in clickables(plain) if name.startswith("material: "))
    facts = world.catalogue.facts
    assert {facts(item)["material"] for item in do_click(plain, material).results} == {
        material.removeprefix("material: ")
    }


@pytest.mark.parametrize("suite", NATURAL)
def test_whatever_must_have_the_most_or_least_can_be_sorted_by(suite):
    """Else all products of its kind would have to be read, for which no number of turns is enough."""
    extremes = {ask.name for ask in ASKS if ask.extreme}
    seen = 0
    for task in tasks(suite, Split.TEST, 16):
        if not extremes & {*task.gold["asked"]}:
            continue
        world = world_of(task)
        last = world.goal.conditions[-1] if "cheapest" not in task.gold["asked"] else None
        fact = last.fact if last else "price"
        order = "least" if last is None or last.test == "at most" else "most"
        plain = do_search(ShopState(world), world.goal.nouns[0])
        ways = {"price": "sort by price", "rating": "sort by rating", "reviews": "sort by number of ratings"}
        found = do_click(plain, ways.get(fact, f"sort by {fact}, {order} first")).results
        numbers = [world.catalogue.facts(item)[fact] for item in found]
        assert numbers == sorted(numbers, reverse=order == "most")
        seen += 1
    assert seen >= 3


def test_the_small_language_offers_no_sorting():
    world = world_of(tasks("shop/easy", Split.TRAIN, 1)[0])
    assert not [name for name in clickables(do_search(ShopState(world), "mug")) if "sort" in name]
