"""Tasks of the shop: knobs → a catalogue and a goal, and a task → the world it describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from turnwise.envs.shop.catalogue import Catalogue, Product, Spec, catalogue
from turnwise.envs.shop.engine import Layout, World, choose
from turnwise.envs.shop.knobs import ENV, PageKnobs, ShopKnobs, WebShopKnobs
from turnwise.envs.shop.procedural import Columns, ProceduralSpec
from turnwise.envs.shop.reward import NO_CAP, Goal, score
from turnwise.envs.shop.webshop_data import RawGoal, WebShopSpec, fingerprint
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task

_ATTEMPTS = 1000
_FAMILIES = 10  # of one catalogue, before another one is tried


def draw_task(rng: Random, split: Split, knobs: ShopKnobs | WebShopKnobs) -> Task:
    """A task that no other split can draw, and that can be solved by what a search finds.

    Raises:
        EnvError: the knobs leave no such goal.
    """
    draw = _draw_procedural if isinstance(knobs, ShopKnobs) else _draw_webshop
    for _ in range(_ATTEMPTS):
        task = draw(rng, split, knobs)  # pyright: ignore[reportArgumentType]
        if task is not None:
            return task
    raise EnvError(
        f"No goal of the {split} split was found in {_ATTEMPTS} attempts.",
        "Use more catalogues, more products or a larger vocabulary.",
    )


def world_of(task: Task) -> World:
    """The world that a task describes.

    Raises:
        EnvError: the task is not one of the shop's.
    """
    try:
        shop = catalogue(_spec(task.options["catalogue"]))
        wanted = task.options["goal"]
        layout = Layout(**{name: task.options[name] for name in Layout._fields})
        product = _find(shop, wanted["asin"])
        goal = make_goal(product, wanted["attributes"], wanted["options"], wanted["price_cap"])
    except (KeyError, TypeError) as error:
        raise EnvError(f"This is no task of {ENV}: {error!r}.", "Take tasks from a shop suite.") from None
    return World(task, shop, goal, layout, (task.gold or {}).get("query", product.title))


def make_goal(product: Product, attributes: Sequence[str], options: Sequence[str], price_cap: float) -> Goal:
    """A goal that asks for a product like this one."""
    return Goal(
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
    goal: Goal,
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
    return WebShopSpec(**data) if "folder" in data else ProceduralSpec.from_json(data)
