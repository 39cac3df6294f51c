"""Requests: several kinds of asking about one product, put together so that few products of the shop fulfil them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, asking_words
from turnwise.envs.shop.asking.matter import MATTER
from turnwise.envs.shop.asking.measures import MEASURES
from turnwise.envs.shop.asking.money import MONEY
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.draw import Article, Listed
from turnwise.envs.shop.reward import NO_CAP
from turnwise.tasks.core import Split

ASKS: tuple[AskKind, ...] = (*MONEY, *MEASURES, *MATTER)
"""All kinds of asking."""

_VARIANT = ("color", "size", "price")
_RIVALS = (
    3,
    12,
)  # so many products must fulfil the rest where the most or the least of something is asked for


class Demand(NamedTuple):
    """Demands that all parts of a request together make of a purchase."""

    conditions: tuple[Condition, ...] = ()
    cap: float = NO_CAP
    options: tuple[str, ...] = ()

    def joined(self, part: AskedPart) -> Demand:
        return Demand(
            (*self.conditions, *part.conditions), min(self.cap, part.cap), (*self.options, *part.options)
        )


class Chosen(NamedTuple):
    """An article with option values (group → value) and what it costs so."""

    place: int
    listed: Listed
    options: dict[str, str]
    price: float


class WrittenRequest(NamedTuple):
    """A request in words, what it demands, and a purchase that fulfils it."""

    text: str
    demand: Demand
    chosen: Chosen
    asked: tuple[str, ...]  # names of the kinds of asking
    fitting: frozenset[int]  # places of all articles that fulfil it


def fitting_variant(article: Article, demand: Demand) -> tuple[dict[str, str], float] | None:
    """The option values with which an article fulfils a demand, fewest and cheapest first; None where none do."""
    fixed = [condition for condition in demand.conditions if condition.fact not in _VARIANT]
    if not all(condition.holds(article.facts) for condition in fixed):
        return None
    varying = [condition for condition in demand.conditions if condition.fact in _VARIANT]
    found: list[tuple[int, float, dict[str, str]]] = []
    for chosen in variants(article):
        values = tuple(chosen.values())
        price = article.price(values)
        if price > demand.cap or not {*demand.options} <= {*values}:
            continue
        if all(condition.holds({**chosen, "price": price}) for condition in varying):
            found.append((len(chosen), price, chosen))
    if not found:
        return None
    _, price, chosen = min(found, key=lambda each: each[:2])
    return chosen, price


def variants(article: Article) -> Iterator[dict[str, str]]:
    """All ways to choose options, or to leave them."""
    groups = [[(group, value) for value in (None, *values)] for group, values in article.options.items()]
    for pairs in itertools.product(*groups):
        yield {group: value for group, value in pairs if value is not None}


def write_request(
    rng: Random, split: Split, shelf: Sequence[tuple[int, Listed]], parts: int, most: int
) -> WrittenRequest | None:
    """A request of ``parts`` kinds for one of these products, all of one kind, that at most ``most`` of them fulfil.

    Returns None where too few kinds of asking suit, or too many products fit.
    """
    meant = rng.choice(shelf)
    said: list[tuple[AskKind, AskedPart]] = []
    demand, chosen = Demand(), Chosen(*meant, {}, meant[1].article.price())
    for kinds in _pick(rng, parts):
        spoken = {part.about for _, part in said}
        found = next(_suiting(rng, split, shelf, kinds, demand, chosen, spoken), None)
        if found is None:
            return None
        ask, part, chosen = found
        said.append((ask, part))
        demand = demand.joined(part)
    fit = fitting_variant(chosen.listed.article, demand)
    assert fit is not None
    chosen = Chosen(chosen.place, chosen.listed, *fit)
    fitting = frozenset(place for place, listed in shelf if fitting_variant(listed.article, demand))
    if len(fitting) > most:
        return None
    text = _text(rng, split, meant[1].article.goods.noun, said)
    return WrittenRequest(text, demand, chosen, tuple(ask.name for ask, _ in said), fitting)


def _pick(rng: Random, parts: int) -> list[list[AskKind]]:
    """For each part the kinds of asking to try, in random order: prices after variants, on which they depend.

    A request asks for at most one extreme, last.
    """
    drawn = rng.sample(ASKS, parts)
    extreme = any(ask.extreme for ask in drawn)
    money = sum(ask in MONEY for ask in drawn if not ask.extreme)
    pools = [
        *[[ask for ask in ASKS if ask not in MONEY and not ask.extreme]] * (parts - money - extreme),
        *[[ask for ask in MONEY if not ask.extreme]] * money,
        *[[ask for ask in ASKS if ask.extreme]] * extreme,
    ]
    return [rng.sample(pool, len(pool)) for pool in pools]


def _suiting(
    rng: Random,
    split: Split,
    shelf: Sequence[tuple[int, Listed]],
    kinds: Sequence[AskKind],
    demand: Demand,
    chosen: Chosen,
    spoken: set[str],
) -> Iterator[tuple[AskKind, AskedPart, Chosen]]:
    """Kinds of asking that the product meant fulfils along with the rest, and how it is then bought."""
    for ask in kinds:
        if ask.extreme:
            found = _extreme(rng, split, shelf, ask, demand, spoken)
            if found is not None:
                yield ask, *found
            continue
        part = ask.make(_situation(rng, split, shelf, chosen))
        if part is None or part.about in spoken:
            continue
        fit = fitting_variant(chosen.listed.article, demand.joined(part))
        if fit is not None:
            yield ask, part, Chosen(chosen.place, chosen.listed, *fit)


def _situation(
    rng: Random, split: Split, shelf: Sequence[tuple[int, Listed]], chosen: Chosen
) -> AskSituation:
    others = [listed for place, listed in shelf if place != chosen.place]
    return AskSituation(rng, split, chosen.listed, chosen.price, others)


def _extreme(
    rng: Random,
    split: Split,
    shelf: Sequence[tuple[int, Listed]],
    ask: AskKind,
    demand: Demand,
    spoken: set[str],
) -> tuple[AskedPart, Chosen] | None:
    """The one product that has the most or least of something among all that fulfil the demand so far."""
    rivals = [
        Chosen(place, listed, *fit)
        for place, listed in shelf
        if (fit := fitting_variant(listed.article, demand)) is not None
    ]
    low, high = _RIVALS
    if not low <= len(rivals) <= high:
        return None
    seed = rng.getrandbits(32)  # so that the same quantity is spoken of, whichever product is tried
    for rival in rivals:
        part = ask.make(_situation(Random(seed), split, shelf, rival))
        if part is None or part.about in spoken:
            return None
        narrower = demand.joined(part)
        if sum(fitting_variant(each.listed.article, narrower) is not None for each in rivals) == 1:
            return part, rival
    return None


def _text(rng: Random, split: Split, noun: str, said: Sequence[tuple[AskKind, AskedPart]]) -> str:
    thing = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    opening = rng.choice(asking_words().openings.of(split)).format(thing=thing)
    plain = [(ask, part) for ask, part in said if not ask.extreme]
    told = [*rng.sample(plain, len(plain)), *((ask, part) for ask, part in said if ask.extreme)]
    sentences = [rng.choice(ask.frames.of(split)).format(**part.slots) for ask, part in told]
    return " ".join((opening, *(sentence[0].upper() + sentence[1:] for sentence in sentences)))
