"""The original files' format: prices, options, goals, splits, and an episode on them."""

import json
import shutil

import pytest

from turnwise.envs.registry import make
from turnwise.envs.shop.catalogue import catalogue
from turnwise.envs.shop.datasets import WebShopSpec, fingerprint, index_text, parse_price
from turnwise.envs.shop.reward import NO_CAP
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng


def item(number, name, **more):
    return {
        "asin": f"B{number:09d}", "name": name, "category": "beauty", "query": " Candle ",
        "product_category": "Home › Candles › Scented", "full_description": "Burns long.",
        "small_description": ["Soy wax", "Hand poured"], "pricing": "$12.50", "images": ["x"],
        "customization_options": {"Color": [{"value": "Ivory/  White "}, {"value": "Red"}], "Size": None}, **more,
    }  # fmt: skip


ITEMS = [
    item(1, "Vanilla Soy Candle"),
    item(2, "Rose Candle", pricing="$10.00$20.00"),
    item(3, "Plain Candle", pricing="", customization_options={}, small_description="One line"),
    item(4, "Luxury Candle", pricing="$1,299.99", customization_options=None),
    item(5, "Natural Candle", customization_options={
        "color": [{"value": "natural"}, {"value": "Buy Now"}], "scent": [{"value": "natural"}],
    }),
    item(1, "A second one with the first's asin"),
    {**item(6, "Too long an asin"), "asin": "B0000000006"},
    {**item(7, "No asin"), "asin": "nan"},
    *(item(100 + i, f"Jar number{i} Candle") for i in range(60)),
]  # fmt: skip
ATTRIBUTES = {
    "B000000001": {"attributes": ["soy wax", "long lasting"], "instruction": "find a candle",
                   "instruction_attributes": ["soy wax"]},
    "B000000005": {"attributes": ["natural"], "instruction": None, "instruction_attributes": None},
    "B000000002": {"attributes": ["rose"], "instruction": "find a rose candle",
                   "instruction_attributes": ["rose"]},
}  # fmt: skip
HUMAN = {
    "B000000001": [
        {"instruction": "i want a soy candle.", "instruction_attributes": ["soy wax"], "instruction_options": ["red"]},
        {"instruction": "nothing is wanted", "instruction_attributes": [], "instruction_options": []},
        {"instruction": "a mauve one", "instruction_attributes": ["soy wax"], "instruction_options": ["mauve"]},
    ],
    "B000000005": [
        {"instruction": "a natural one", "instruction_attributes": ["natural"], "instruction_options": ["natural"]}
    ],
    "B000000004": [{"instruction": "luxury", "instruction_attributes": ["hand poured"], "instruction_options": []}],
    "B999999999": [{"instruction": "no such item", "instruction_attributes": ["x"], "instruction_options": []}],
} | {
    f"B{100 + i:09d}": [{"instruction": f"jar {i}", "instruction_attributes": ["hand poured"],
                         "instruction_options": {"color": "red"}}]
    for i in range(60)
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("webshop")
    for name, content in (("items_shuffle", ITEMS), ("items_ins_v2", ATTRIBUTES), ("items_human_ins", HUMAN)):
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def shop(folder):
    return catalogue(WebShopSpec(str(folder), fingerprint(str(folder))))


def find(shop, number):
    return shop.product(shop.position(f"B{number:09d}"))


def test_bad_asins_and_repetitions_are_dropped(shop):
    assert len(shop) == 65
    assert find(shop, 1).title == "Vanilla Soy Candle"
    assert shop.position("B0000000006") is shop.position("nan") is None


def test_products_are_read_as_webshop_reads_them(shop):
    product = find(shop, 1)
    assert product.options == {
        "color": ("ivory | white", "red")
    }  # lower case, "/" spaced, null group dropped
    assert product.attributes == ("soy wax", "long lasting")
    assert product.query == "candle"
    assert find(shop, 3).attributes == ("DUMMY_ATTR",)
    assert find(shop, 3).bullets == ("One line",)
    assert index_text(product) == "vanilla soy candle burns long. soy wax color: ivory | white, red"


def test_prices(shop):
    assert find(shop, 1).price == 12.5
    assert 10 <= find(shop, 2).price <= 20
    assert find(shop, 2).price == parse_price(
        "$10.00$20.00", "B000000002"
    )  # drawn from the asin, not at load
    assert find(shop, 3).price == 100
    assert find(shop, 4).price == 1299.99
    assert parse_price("$20.00 - $10.00 - $5.00", "B1") == pytest.approx(15, abs=5)
    assert parse_price("call us", "B1") == parse_price("$", "B1") == 100


def tasks(folder, split, n=40, **knobs):
    env = make("turnwise/Shop-v0")
    return [env.generate(derive_rng("t", i), split, data=str(folder), **knobs) for i in range(n)]


def test_human_goals_skip_what_cannot_score_1_and_splits_share_no_product(folder):
    asins = {split: {task.gold["asin"] for task in tasks(folder, split, 150)} for split in Split}
    assert not asins["train"] & asins["test"] | asins["train"] & asins["dev"] | asins["dev"] & asins["test"]
    assert len(asins["test"]) >= 3
    prompts = [task.prompt for split in Split for task in tasks(folder, split, 150)]
    assert not [p for p in prompts if p.startswith(("a mauve", "nothing", "no such"))]


def test_caps_are_webshops_and_the_same_every_time(folder):
    first, again = tasks(folder, Split.TRAIN), tasks(folder, Split.TRAIN)
    assert [task.id for task in first] == [task.id for task in again]
    for task in first:
        cap = task.options["goal"]["price_cap"]
        if "luxury" in task.prompt:
            assert cap == NO_CAP  # dearer than 980 dollars
            assert "price" not in task.prompt
        elif task.prompt.startswith("jar"):
            assert cap in (30.0, 40.0, 50.0)  # the larger of two of 20, 30, 40, 50
            assert task.prompt.endswith(f", and price lower than {cap:.2f} dollars")
    assert len({task.options["goal"]["price_cap"] for task in first}) > 1


@pytest.mark.parametrize("goals", ["human", "synthetic"])
def test_the_gold_agent_solves_every_task(folder, goals):
    env = make("turnwise/Shop-v0")
    splits = Split if goals == "human" else [Split.TEST, Split.DEV]  # two products have synthetic goals
    for split in splits:
        for task in tasks(folder, split, goals=goals):
            env.reset(seed=1, options={"task": Task.from_json(json.loads(json.dumps(task.to_json())))})
            end = None
            while end is None:
                step = env.step(env.gold(env.state))
                end = step.info["end"]
            assert (end, step.reward) == ("solved", 1.0)


def test_synthetic_instructions_name_every_option(folder):
    prompts = [
        task.prompt for split in (Split.TEST, Split.DEV) for task in tasks(folder, split, goals="synthetic")
    ]
    assert {p.partition(",")[0] for p in prompts} == {
        f"find a {kind}candle with color: {color}"
        for kind in ("", "rose ")
        for color in ("red", "ivory | white")
    }


def test_a_value_in_two_groups_is_named_with_its_group(shop):
    assert find(shop, 5).option_names == {
        "color: natural": ("color", "natural"),
        "color: buy now": ("color", "buy now"),
        "scent: natural": ("scent", "natural"),
    }


def test_changed_missing_and_foreign_files_are_refused(folder, tmp_path):
    env = make("turnwise/Shop-v0")
    task = tasks(folder, Split.TRAIN, 1)[0]
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    options = json.loads(json.dumps(dict(task.options)))
    options["catalogue"]["folder"] = str(other)
    env.reset(options={"task": Task(task.env, task.prompt, options, task.gold)})  # the same files elsewhere
    (other / "items_ins_v2.json").write_text("{}")
    with pytest.raises(EnvError, match="sha256"):
        catalogue(WebShopSpec(str(other), task.options["catalogue"]["sha256"], limit=5))
    (other / "items_shuffle.json").write_text('[{"asin": "B1"}]')
    with pytest.raises(EnvError, match="not in WebShop's format"):
        env.generate(derive_rng(0), Split.TRAIN, data=str(other))
    with pytest.raises(EnvError, match="cannot be read"):
        env.generate(derive_rng(0), Split.TRAIN, data=str(tmp_path / "nowhere"))
