"""Titles, tables, prose and reviews of a product. A title names few of its facts; the other pages tell all of them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random

from turnwise.envs.shop.goods.draw import Article
from turnwise.envs.shop.goods.tables import features, opinions, review_words
from turnwise.envs.shop.goods.units import amount


def title(article: Article) -> str:
    """Return the product's name in lists, in the manner of its brand. It says two or three of its facts.

    Two products of a catalogue differ in brand, line or model, so no two titles are the same.
    """
    facts, goods = article.facts, article.goods
    voice = zlib.crc32(f"{article.brand} {article.goods.noun}".encode()) % 5
    noun, material = goods.noun.capitalize(), str(facts["material"])
    first = goods.quantities[voice % len(goods.quantities)]
    size = amount(float(facts[first.name]), first.unit)  # pyright: ignore[reportArgumentType]
    has = sorted(facts["features"])  # pyright: ignore[reportArgumentType]
    told = has[voice % len(has)] if has else f"made in {facts['origin']}"
    match voice:
        case 0:
            return f"{article.brand} {article.name} {noun}, {material}, {size}"
        case 1:
            return f"{noun} {article.brand} {article.name} – {told}"
        case 2:
            return f"{article.brand} {article.name} {noun} ({size})"
        case 3:
            return f"{article.brand} {material} {noun} “{article.name}”"
        case _:
            return f"{article.name} by {article.brand}: {noun} with {size}, {told}"


def specification(article: Article) -> tuple[tuple[str, str], ...]:
    """The table of a product: name and value of each row."""
    facts, rows = article.facts, [("Brand", article.brand), ("Model", article.name)]
    rows.append(("Material", str(facts["material"])))
    for quantity in article.goods.quantities:
        value = amount(float(facts[quantity.name]), quantity.unit)  # pyright: ignore[reportArgumentType]
        rows.append((quantity.name.capitalize(), value))
    has = facts["features"]
    assert isinstance(has, frozenset)
    for name in article.goods.features[::2]:  # the others stand in the features where a product has them
        rows.append((name[0].upper() + name[1:], "yes" if name in has else "no"))
    rows += [
        ("Country of origin", str(facts["origin"])),
        ("Warranty", _many(facts["warranty"], "year")),
        ("Returns", f"within {_many(facts['returns'], 'day')}"),
        ("Delivery", _many(facts["delivery"], "day")),
    ]
    if article.surcharges:
        dearer = (f"{value} +${cents / 100:.2f}" for value, cents in article.surcharges.items())
        rows.append(("Price of variants", ", ".join(dearer)))
    if article.sold_out:
        rows.append(("Sold out", ", ".join(article.sold_out)))
    return tuple(rows)


def bullets(article: Article) -> tuple[str, ...]:
    """The features that a product has, one sentence each."""
    has = article.facts["features"]
    assert isinstance(has, frozenset)
    return tuple(features()[name].bullet for name in article.goods.features if name in has) or (
        "Simple and plain.",
    )


def description(article: Article, rng: Random) -> str:
    """Prose that sells the product and names little."""
    goods, place = article.goods, article.facts["origin"]
    opening = rng.choice(
        (
            f"The {article.name} is our {goods.noun} for every day.",
            f"{article.brand} has made this {goods.noun} for people who look twice.",
            f"Meet the {article.name}, a {goods.noun} without fuss.",
            f"We took two years to get this {goods.noun} right.",
        )
    )
    middle = rng.choice(
        (goods.prose, f"{goods.prose} It is put together in {place}.", f"Made in {place}. {goods.prose}")
    )
    body = rng.choice(
        (f"The main material is {article.facts['material']}.", "Details are in the specification.")
    )
    return f"{opening} {middle} {body}"


def reviews(article: Article, rng: Random) -> tuple[str, ...]:
    """Write people's reviews: each opinion at least once, a sentence that says nothing now and then."""
    heard = article.facts["opinions"]
    assert isinstance(heard, frozenset)
    words = review_words()
    idle = iter(rng.sample(words.idle, len(words.idle)))
    written = [_review(rng, name, next(idle, "")) for name in sorted(heard)]
    written += [f"{rng.choice(words.people)}: {next(idle, words.idle[0])}" for _ in range(rng.randint(1, 2))]
    return _shuffled(rng, written)


def _review(rng: Random, opinion: str, idle: str) -> str:
    told = opinions()[opinion]
    words = review_words()
    parts = [rng.choice(told.said)]
    if rng.random() < 0.4:
        parts.insert(0, idle)
    if rng.random() < 0.4:
        parts.append(rng.choice(words.glad if told.good else words.sorry))
    return f"{rng.choice(words.people)}: {' '.join(parts)}"


def _shuffled(rng: Random, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(rng.sample(texts, len(texts)))


def _many(count: object, unit: str) -> str:
    assert isinstance(count, float)
    return f"{int(count)} {unit}{'' if count == 1 else 's'}"
