"""The original WebShop files (Yao et al. 2022) as a catalogue and goals.

A folder holds ``items_shuffle.json`` (a list of products), ``items_ins_v2.json`` (asin → attributes and a
synthetic instruction) and ``items_human_ins.json`` (asin → human instructions). The reading follows
WebShop, quirks included: asins of more than ten characters are dropped, "/" in option values becomes
" | ", no price means $100, two prices mean one between them. That one is drawn from a hash of the asin,
and caps from a hash of the goal, so goals are the same in every process (WebShop's are not).

Left out: reviews and ratings, which are in a fourth file that nothing scores.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from turnwise.envs.shop.catalogue import Catalogue, Product
from turnwise.envs.shop.index import SearchIndex
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, derive_rng, digest

PRODUCTS, ATTRIBUTES, HUMAN = "items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


class RawGoal(NamedTuple):
    """An instruction before a price cap is added."""

    position: int
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class WebShopSpec:
    """Folder and checksum of WebShop's files, and the goals that are taken from them."""

    folder: str
    sha256: str
    goals: Literal["human", "synthetic"] = "human"
    limit: int = 0

    def to_json(self) -> dict[str, Json]:
        return {"folder": self.folder, "sha256": self.sha256, "goals": self.goals, "limit": self.limit}

    def build(self) -> Catalogue:
        """Read the files.

        Raises:
            EnvError: a file is missing, is not what ``sha256`` says, or is not in WebShop's format.
        """
        found = fingerprint(self.folder)
        if found != self.sha256:
            raise EnvError(
                f"The WebShop files in {self.folder} have sha256 {found[:12]}…, not {self.sha256[:12]}….",
                "Use the files that the tasks were made from, or make new tasks.",
            )
        try:
            raw, attributes = _read(self.folder, PRODUCTS), _read(self.folder, ATTRIBUTES)
            products = list(islice(_products(raw[: self.limit or None], attributes), len(raw)))
            goals = _cut(self._goals(products, attributes), products)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise EnvError(
                f"The files in {self.folder} are not in WebShop's format: {error!r}.",
                f"Expected {PRODUCTS}, {ATTRIBUTES} and {HUMAN} of github.com/princeton-nlp/WebShop.",
            ) from error
        if not any(goals.values()):
            raise EnvError(
                f"No {self.goals} goal in {self.folder} belongs to a product that was read.", "Raise `limit`."
            )
        positions = {product.asin: i for i, product in enumerate(products)}
        index = SearchIndex.of_texts(index_text(product) for product in products)
        return Catalogue(self, len(products), products.__getitem__, positions.get, index, goals)

    def _goals(self, products: Sequence[Product], attributes: Mapping[str, Json]) -> Sequence[RawGoal]:
        if self.goals == "human":
            return list(dict.fromkeys(_human_goals(products, _read(self.folder, HUMAN))))
        return _weighted(list(_synthetic_goals(products, attributes)))


def fingerprint(folder: str) -> str:
    """The sha256 of the three files, one after the other; a missing one counts as empty."""
    paths = [Path(folder) / name for name in (PRODUCTS, ATTRIBUTES, HUMAN)]
    stamps = [(path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None for path in paths]
    return _hash_files(tuple(paths), tuple(stamps))


@functools.lru_cache(maxsize=16)
def _hash_files(paths: tuple[Path, ...], stamps: tuple[tuple[int, int] | None, ...]) -> str:
    found = hashlib.sha256()
    for path, stamp in zip(paths, stamps, strict=True):
        found.update(f"{path.name}\0".encode())
        if stamp is not None:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    found.update(block)
    return found.hexdigest()


def parse_price(text: str | None, asin: str) -> float:
    """WebShop's price of an item in dollars.

    >>> parse_price("$1,299.99", "B01"), parse_price("", "B01"), parse_price(None, "B01")
    (1299.99, 100.0, 100.0)
    >>> 10 <= parse_price("$10.00 - $20.00", "B01") <= 20
    True
    """
    parts = [_NUMBER.search(part.replace(",", "")) for part in (text or "").split("$")[1:]]
    prices = [float(part.group()) for part in parts if part]
    if not prices:
        return 100.0
    if len(prices) == 1:
        return prices[0]
    return round(derive_rng("webshop price", asin).uniform(*sorted(prices[:2])), 2)


def index_text(product: Product) -> str:
    """Return the text of a product in WebShop's index: title, description, first feature, options."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options.items())
    return " ".join((product.title, product.description, *product.bullets[:1], options)).lower()


def _read(folder: str, name: str) -> Json:
    try:
        return json.loads((Path(folder) / name).read_text("utf-8"))
    except OSError as error:
        raise EnvError(
            f"{folder}/{name} cannot be read: {error.strerror}.", "Put WebShop's data files in this folder."
        ) from None


def _products(raw: Sequence[Mapping[str, Json]], attributes: Mapping[str, Json]) -> Iterator[Product]:
    seen: set[str] = set()
    for item in raw:
        asin = item["asin"]
        if asin == "nan" or len(asin) > 10 or asin in seen:
            continue
        seen.add(asin)
        bullets = item.get("small_description") or ()
        yield Product(
            asin=asin,
            title=item["name"],
            category=item["product_category"],
            query=item["query"].lower().strip(),
            price=parse_price(item.get("pricing"), asin),
            attributes=tuple(attributes.get(asin, {}).get("attributes") or ("DUMMY_ATTR",)),
            options=_options(item.get("customization_options")),
            description=item.get("full_description") or "",
            bullets=tuple(bullets) if isinstance(bullets, list) else (str(bullets),),
        )


def _options(raw: Mapping[str, Json] | None) -> dict[str, tuple[str, ...]]:
    groups = {
        " ".join(name.lower().split()): contents
        for name, contents in (raw or {}).items()
        if contents is not None
    }
    return {
        name: tuple(dict.fromkeys(_clean(content["value"]) for content in contents))
        for name, contents in groups.items()
    }


def _clean(value: str) -> str:
    return " ".join(value.strip().replace("/", " | ").lower().split())  # one space, as clicks are read


def _human_goals(products: Sequence[Product], human: Mapping[str, Json]) -> Iterator[RawGoal]:
    for position, product in enumerate(products):
        for entry in human.get(product.asin, ()):
            options = entry.get("instruction_options") or ()
            values = options.values() if isinstance(options, dict) else options
            wanted = tuple(entry["instruction_attributes"])
            if wanted:
                yield RawGoal(position, entry["instruction"].strip("."), wanted, tuple(values))


def _synthetic_goals(products: Sequence[Product], attributes: Mapping[str, Json]) -> Iterator[RawGoal]:
    """One goal per product; its options are drawn with the task, which is the same as listing the product."""
    for position, product in enumerate(products):
        entry = attributes.get(product.asin, {})
        wanted = tuple(entry.get("instruction_attributes") or ())
        if entry.get("instruction") and wanted:
            combinations = 1
            for values in product.options.values():
                combinations *= len(values)
            yield RawGoal(position, entry["instruction"], wanted, (), combinations)


def _weighted(goals: Sequence[RawGoal]) -> list[RawGoal]:
    """WebShop's weights: the mean over the attributes of 1 / (goals that have it), for all combinations."""
    counts: dict[str, float] = {}
    for goal in goals:
        for attribute in goal.attributes:
            counts[attribute] = counts.get(attribute, 0.0) + goal.weight
    return [
        goal._replace(weight=goal.weight * sum(1 / counts[a] for a in goal.attributes) / len(goal.attributes))
        for goal in goals
    ]


def _cut(goals: Sequence[RawGoal], products: Sequence[Product]) -> dict[Split, list[RawGoal]]:
    """Splits that share no product, in a fixed random order: about 500 test and 1000 dev goals as in WebShop,
    or a tenth each where there are few."""
    by_product: dict[int, list[RawGoal]] = {}
    for goal in goals:
        by_product.setdefault(goal.position, []).append(goal)
    order = sorted(by_product, key=lambda position: digest("webshop split", products[position].asin))
    room = {Split.TEST: min(500, -(-len(goals) // 10)), Split.DEV: min(1000, -(-len(goals) // 10))}
    splits: dict[Split, list[RawGoal]] = {split: [] for split in Split}
    for position in order:
        split = next((split for split, size in room.items() if len(splits[split]) < size), Split.TRAIN)
        splits[split] += by_product[position]
    return splits
