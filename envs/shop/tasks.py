"""Tasks of the shop: knobs → a catalogue and a goal, and a task → the world it describes."""

from __future__ import annotations

import dataclasses
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from random import Random

from turnwise.envs.planted import nonce
from turnwise.envs.shop.asking.requests import WrittenRequest, write_request
from turnwise.envs.shop.catalogue import Catalogue, Product, Spec, catalogue
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.datasets import RawGoal, WebShopSpec, fingerprint
from turnwise.envs.shop.goods.catalogues import GoodsSpec, Shelf
from turnwise.envs.shop.index import asked_words
from turnwise.envs.shop.knobs import ENV, GoodsKnobs, PageKnobs, ShopKnobs, WebShopKnobs
from turnwise.envs.shop.procedural import Columns, ProceduralSpec
from turnwise.envs.shop.reward import NO_CAP, ShopGoal, score
from turnwise.envs.shop.state import ShopLayout, ShopWorld, choose
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task

_ATTEMPTS = 1000
_REQUESTS = 100  # in one catalogue, before another one is tried
_FAMILIES = 10  # of one catalogue, before another one is tried


def draw_task(rng: Random, split: Split, knobs: ShopKnobs | GoodsKnobs | WebShopKnobs) -> Task:
    """A task that no other split can draw, and that can be solved by what a search finds.

    Raises:
        EnvError: the knobs leave no such goal.
    """
    kinds = {ShopKnobs: _draw_procedural, GoodsKnobs: _draw_goods, WebShopKnobs: _draw_webshop}
    draw: Callable[..., Task | None] = kinds[type(knobs)]
    for _ in range(_ATTEMPTS):
        task = draw(rng, split, knobs)
        if task is not None:
            return task
    raise EnvError(
        f"No goal of the {split} split was found in {_ATTEMPTS} attempts.",
        "Use more catalogues, more products or a larger vocabulary.",
    )


def world_of(task: Task) -> ShopWorld:
    """The world that a task describes; episodes of it that are played at once share one.

    Raises:
        EnvError: the task is not one of the shop's.
    """
    if (known := _worlds.get(task.id)) is None:
        known = _worlds[task.id] = _made_world(task)
    return known


_worlds = weakref.WeakValueDictionary[str, ShopWorld]()


def _made_world(task: Task) -> ShopWorld:
    try:
        shop = catalogue(_spec(task.options["catalogue"]))
        wanted = task.options["goal"]
        layout = ShopLayout(**{name: task.options[name] for name in ShopLayout._fields})
        product = _find(shop, wanted["asin"])
        goal = make_goal(product, wanted["attributes"], wanted["options"], wanted["price_cap"])
        conditions = tuple(map(Condition.from_json, wanted.get("conditions", ())))
        goal = dataclasses.replace(goal, conditions=conditions, nouns=tuple(wanted.get("nouns", goal.nouns)))
    except (KeyError, TypeError) as error:
        raise EnvError(f"This is no task of {ENV}: {error!r}.", "Take tasks from a shop suite.") from None
    return ShopWorld(task, shop, goal, layout, (task.gold or {}).get("query", product.title))


def without_kind(task: Task, rng: Random) -> Task | None:
    """Return a task that asks for a kind of thing which no catalogue has; None where the prompt does not name its kind."""
    nouns = [noun for noun in world_of(task).goal.nouns if re.search(rf"\b{re.escape(noun)}\b", task.prompt)]
    if not nouns:
        return None
    word = nonce(rng)
    prompt = re.sub(rf"\b{re.escape(nouns[-1])}\b", word, task.prompt)
    goal = {**task.options["goal"], "nouns": [word]}
    return Task(task.env, prompt, {**task.options, "goal": goal}, task.gold)


def make_goal(
    product: Product, attributes: Sequence[str], options: Sequence[str], price_cap: float
) -> ShopGoal:
    """A goal that asks for a product like this one."""
    return ShopGoal(
        asin=product.asin,
        category=product.category,
        query=product.query,
        nouns=product.kind_words,
        attributes=tuple(attributes),
        options=tuple(options),
        price_cap=price_cap,
    )


def draw_cap(rng: Random, price: float) -> float:
    """WebShop's cap: the larger of two of the first four multiples of ten above the price.

    There is none where fewer than two are left below 1000 dollars.
    """
    above = [10.0 * i for i in range(1, 100) if 10.0 * i > price][:4]
    return max(rng.sample(above, 2)) if len(above) >= 2 else NO_CAP


# --- procedural ----------------------------------------------------------------------------------


def _draw_procedural(rng: Random, split: Split, knobs: ShopKnobs) -> Task | None:
    shop = catalogue(knobs.spec(split, rng.randrange(knobs.catalogues)))
    columns: Columns = shop.details
    for family in rng.sample(range(columns.families), min(columns.families, _FAMILIES)):
        product = shop.product(columns.base(family))
        attributes = columns.in_order(product.attributes[: rng.randint(*knobs.attributes)])
        options = columns.wanted(family)
        if in_split(split, product.query, sorted(attributes), sorted(options.items())):
            break
    else:
        return None
    cap = draw_cap(rng, product.price) if knobs.price_cap else NO_CAP
    thing = " ".join((*attributes, product.query))
    prompt = (
        _compact_prompt(thing, options, cap) if knobs.layout.compact else _full_prompt(thing, options, cap)
    )
    goal = make_goal(product, attributes, list(options.values()), cap)
    return _task(shop, product, goal, options, thing, prompt, knobs)


def _compact_prompt(thing: str, options: Mapping[str, str], cap: float) -> str:
    price = [f"under ${cap:.0f}"] if cap < NO_CAP else []
    return "buy " + ", ".join((thing, *options.values(), *price))


def _full_prompt(thing: str, options: Mapping[str, str], cap: float) -> str:
    article = "an" if thing[0] in "aeiou" else "a"
    return f"i need {article} {thing}{_with(options)}{_lower_than(cap)}"


def _with(options: Mapping[str, str]) -> str:
    return " with " + ", and ".join(f"{name}: {value}" for name, value in options.items()) if options else ""


def _lower_than(cap: float) -> str:
    return f", and price lower than {cap:.2f} dollars" if cap < NO_CAP else ""


# --- goods -------------------------------------------------------------------------------------


def _draw_goods(rng: Random, split: Split, knobs: GoodsKnobs) -> Task | None:
    shop = catalogue(knobs.spec(split, rng.randrange(knobs.catalogues)))
    articles: Shelf = shop.details
    for _ in range(_REQUESTS):
        shelf = articles.alike(rng.randrange(len(shop)))
        request = write_request(rng, split, shelf, rng.randint(*knobs.asked), knobs.fitting)
        if request is not None and not _comes_first(shop, request):
            break
    else:
        return None
    product, demand = shop.product(request.chosen.place), request.demand
    goal = make_goal(product, (), demand.options, demand.cap)
    goal = dataclasses.replace(goal, conditions=demand.conditions)
    if score(product, request.chosen.options.values(), goal).total < 1.0:
        raise AssertionError(f"The request and the score disagree: {request}")
    task = _task(shop, product, goal, request.chosen.options, product.noun, request.text, knobs)
    if task is None:
        return None
    return dataclasses.replace(task, gold={**task.gold, "asked": list(request.asked)})


def _comes_first(shop: Catalogue, request: WrittenRequest) -> bool:
    """Say whether a search that understands nothing finds what is wanted in the first place."""
    noun = shop.product(request.chosen.place).noun
    searches = (noun, request.text, asked_words(request.text))
    return any({*shop.search(query)[:1]} & request.fitting for query in searches)


# --- the original files --------------------------------------------------------------------------


def _draw_webshop(rng: Random, split: Split, knobs: WebShopKnobs) -> Task | None:
    sha256 = knobs.sha256 or fingerprint(knobs.data)
    shop = catalogue(WebShopSpec(knobs.data, sha256, knobs.goals, knobs.limit))
    pool: list[RawGoal] = shop.details[split]
    if not pool:
        raise EnvError(f"The WebShop files have no goals for the {split} split.", "Use more products.")
    raw = (
        rng.choices(pool, [goal.weight for goal in pool])[0]
        if knobs.goals == "synthetic"
        else rng.choice(pool)
    )
    product = shop.product(raw.position)
    named = {name: rng.choice(values) for name, values in sorted(product.options.items())}
    wanted, text = (named.values(), _with(named)) if knobs.goals == "synthetic" else (raw.options, "")
    cap = draw_cap(rng, product.price) if knobs.price_cap else NO_CAP
    goal = make_goal(product, raw.attributes, list(wanted), cap)
    options = choose(product, goal)
    if score(product, options.values(), goal).total < 1.0:
        return None  # some human instructions name options that the product does not have
    thing = " ".join((*raw.attributes, *product.kind_words))
    prompt = f"{raw.instruction}{text}{_lower_than(cap)}"
    return _task(shop, product, goal, options, thing, prompt, knobs)


# --- both ----------------------------------------------------------------------------------------


def _task(
    shop: Catalogue,
    product: Product,
    goal: ShopGoal,
    options: Mapping[str, str],
    thing: str,
    prompt: str,
    knobs: PageKnobs,
) -> Task | None:
    query = _find_query(shop, product, thing, options)
    if query is None:
        return None
    wanted = {
        "asin": product.asin,
        "attributes": list(goal.attributes),
        "options": list(goal.options),
        "price_cap": goal.price_cap,
    }
    if goal.conditions:
        wanted["conditions"] = [condition.to_json() for condition in goal.conditions]
    settings = {"catalogue": shop.spec.to_json(), "goal": wanted, **knobs.layout._asdict()}
    settings["turn_limit"] = knobs.turn_limit
    return Task(ENV, prompt, settings, {"asin": product.asin, "options": dict(options), "query": query})


def _find_query(shop: Catalogue, product: Product, thing: str, options: Mapping[str, str]) -> str | None:
    """A query that finds the product: what is asked for, else more of what its page says."""
    position, wanted = shop.position(product.asin), " ".join(options.values())
    for query in (thing, f"{thing} {wanted}", product.title, f"{product.title} {wanted}"):
        if position in shop.search(query):
            return query.strip()
    return None


def _find(shop: Catalogue, asin: str) -> Product:
    position = shop.position(asin)
    if position is None:
        raise KeyError(asin)
    return shop.product(position)


def _spec(data: Mapping[str, Json]) -> Spec:
    if "goods" in data:
        return GoodsSpec.from_json(data)
    return WebShopSpec(**data) if "folder" in data else ProceduralSpec.from_json(data)
