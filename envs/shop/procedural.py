"""Procedural catalogues: families of near-duplicates around products that goals ask for.

Each family has one *base* product, which a goal may ask for, and ``distractors`` near-duplicates that
differ from it in exactly one thing a goal mentions: an attribute, an option value, or the price.
Products are numpy columns of word numbers; texts are written when a page shows them.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turnwise.envs.shop.catalogue import Catalogue, Product
from turnwise.envs.shop.index import SearchIndex
from turnwise.envs.shop.vocabulary import Size, Vocabulary, vocabulary
from turnwise.tasks.core import Json, derive_rng

Ints = NDArray[np.int64]
Difference: TypeAlias = Literal["attribute", "option", "price"]

_STUFFED = 4  # how often a stuffed listing repeats each keyword of the product it imitates
_DIGITS = string.digits + string.ascii_uppercase
_ASIN_SPACE = 36**8
_ASIN_STEP = 1_640_531_527_043  # coprime to 36**8, so that no two products share an asin
_ASIN_UNSTEP = pow(_ASIN_STEP, -1, _ASIN_SPACE)


@dataclass(frozen=True)
class ProceduralSpec:
    """The knobs of a catalogue. Equal specs make equal catalogues, on every machine."""

    seed: str
    products: int
    vocabulary: Size = "small"
    attributes: int = 2  # of each product
    required: int = 1  # every goal mentions at least so many of them, the first ones
    titled: int = 2  # how many of them the title tells; the others stand in the features
    option_groups: int = 1
    values: int = 3  # of each option group
    distractors: int = 3  # near-duplicates of each base product
    stray: float = 0.0  # probability that a near-duplicate is stuffed with the base's words
    differ: tuple[Difference, ...] = ("attribute", "option")  # in what near-duplicates may differ
    prices: Literal["coarse", "fine"] = "coarse"  # multiples of ten dollars, or to the cent

    def to_json(self) -> dict[str, Json]:
        return {**asdict(self), "differ": list(self.differ)}

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> ProceduralSpec:
        return ProceduralSpec(**{**data, "differ": tuple(data["differ"])})

    def build(self) -> Catalogue:
        columns = Columns.draw(self)
        index = SearchIndex.of_ids(columns.documents(), columns.word_ids)
        return Catalogue(self, self.products, columns.product, columns.position, index, columns)


class _Draw:
    """Random columns from one stream of doubles, which numpy keeps stable across versions."""

    def __init__(self, seed: str) -> None:
        self._generator = np.random.Generator(
            np.random.PCG64(derive_rng("shop catalogue", seed).getrandbits(128))
        )

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        return self._generator.random(shape)

    def below(self, high: int | Ints, *shape: int) -> Ints:
        return np.floor(self.uniform(*shape) * high).astype(np.int64)

    def subsets(self, rows: int, of: int, size: int) -> Ints:
        """``size`` different numbers below ``of`` per row, in random order."""
        parts = [self.uniform(min(65_536, rows - i), of) for i in range(0, rows, 65_536)]
        chosen = [np.argsort(part, axis=1, kind="stable")[:, :size] for part in parts]
        return np.concatenate(chosen) if chosen else np.zeros((0, size), np.int64)


@dataclass(frozen=True)
class Columns:
    """N products of F families; G option groups of V values each.

    Attributes:
        family_N: the family of each product.
        base_F: the position of each family's base product.
        noun_N, attribute_NA: numbers of words.
        option_NGV: numbers of values, in the order the page shows them.
        wanted_FG: the value of each group that goals ask for.
        cents_N: price.
        stuffed_N: whether the listing repeats the words of its family's base.
    """

    spec: ProceduralSpec
    words: Vocabulary
    family_N: NDArray[np.int32]
    base_F: Ints
    noun_N: NDArray[np.int16]
    attribute_NA: NDArray[np.int16]
    option_NGV: NDArray[np.int16]
    wanted_FG: NDArray[np.int16]
    cents_N: NDArray[np.int32]
    stuffed_N: NDArray[np.bool_]
    asin_start: int

    @staticmethod
    def draw(spec: ProceduralSpec) -> Columns:
        words, draw = vocabulary(spec.vocabulary), _Draw(spec.seed)
        bases = _draw_bases(draw, spec, words)
        rows = _draw_near_duplicates(draw, spec, bases)
        n, groups = spec.products, len(bases.value_GFV)
        stuffed_N = (rows.member_N > 0) & (draw.uniform(n) < spec.stray)
        shown = np.argsort(draw.uniform(n, groups, spec.values), axis=2, kind="stable")
        option_NGV = np.take_along_axis(rows.option_NGV, shown, axis=2)
        place = np.argsort(draw.uniform(n), kind="stable")  # position → row
        base_F = np.empty(len(bases.noun_F), np.int64)
        where = np.flatnonzero(rows.member_N[place] == 0)
        base_F[rows.family_N[place][where]] = where
        wanted_FG = np.zeros((len(base_F), groups), np.int16)
        for g, value_FV in enumerate(bases.value_GFV):
            wanted_FG[:, g] = value_FV[:, 0]
        return Columns(
            spec=spec,
            words=words,
            family_N=rows.family_N[place].astype(np.int32),
            base_F=base_F,
            noun_N=bases.noun_F[rows.family_N][place].astype(np.int16),
            attribute_NA=rows.attribute_NA[place].astype(np.int16),
            option_NGV=option_NGV[place].astype(np.int16),
            wanted_FG=wanted_FG,
            cents_N=rows.cents_N[place].astype(np.int32),
            stuffed_N=stuffed_N[place],
            asin_start=int(draw.below(_ASIN_SPACE, 1)[0]),
        )

    # --- goals -----------------------------------------------------------------------------------

    @property
    def families(self) -> int:
        return len(self.base_F)

    def base(self, family: int) -> int:
        """The position of a family's base product."""
        return int(self.base_F[family])

    def wanted(self, family: int) -> dict[str, str]:
        """The option values that goals of this family ask for."""
        return {name: values[self.wanted_FG[family, g]] for g, (name, values) in enumerate(self._groups)}

    def in_order(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Attributes in the vocabulary's order, in which titles and instructions name them."""
        return tuple(sorted(attributes, key=self.words.attributes.index))

    # --- texts -----------------------------------------------------------------------------------

    def product(self, i: int) -> Product:
        words, spec = self.words, self.spec
        noun = words.nouns[self.noun_N[i]]
        attributes = tuple(words.attributes[a] for a in self.attribute_NA[i].tolist())
        titled = attributes[: spec.titled]
        told = attributes[spec.titled :] or attributes
        return Product(
            asin=self._asin(i),
            title=" ".join((*titled, noun)),
            category=f"{words.aisles[self.noun_N[i]]} › {noun}s",
            query=noun,
            price=int(self.cents_N[i]) / 100,
            attributes=attributes,
            options={
                name: tuple(values[v] for v in self.option_NGV[i, g].tolist())
                for g, (name, values) in enumerate(self._groups)
            },
            description=f"a {noun} for every day",
            bullets=tuple(f"it is {attribute}" for attribute in told),
        )

    def _asin(self, i: int) -> str:
        number, digits = (self.asin_start + i * _ASIN_STEP) % _ASIN_SPACE, ""
        for _ in range(8):
            number, digit = divmod(number, 36)
            digits = _DIGITS[digit] + digits
        return f"B0{digits}"

    def position(self, asin: str) -> int | None:
        if len(asin) != 10 or not asin.upper().startswith("B0"):
            return None
        try:
            number = int(asin[2:], 36)
        except ValueError:
            return None
        i = (number - self.asin_start) * _ASIN_UNSTEP % _ASIN_SPACE
        return i if i < self.spec.products else None

    # --- search ----------------------------------------------------------------------------------

    @property
    def word_ids(self) -> dict[str, int]:
        """Nouns, attributes, then the values of each option group."""
        values = (value for _, group in self._groups for value in group)
        return {word: i for i, word in enumerate((*self.words.nouns, *self.words.attributes, *values))}

    @property
    def _groups(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return self.words.options[: self.spec.option_groups]

    def documents(self) -> list[list[int]]:
        """The words that the index knows of each product (WebShop: title, description, first feature, options).

        Words that every product has are left out: their weight is nearly zero. A stuffed listing also has
        hidden keywords, which no page shows and the score does not see.
        """
        n = len(self.noun_N)
        noun = self.noun_N[:, None].astype(np.int32)
        attribute = len(self.words.nouns) + self.attribute_NA.astype(np.int32)
        starts = (
            len(self.words.nouns)
            + len(self.words.attributes)
            + np.cumsum([0, *(len(values) for _, values in self._groups)])[:-1]
        )
        option = (self.option_NGV + starts[None, :, None]).reshape(n, -1).astype(np.int32)
        first = attribute[:, self.spec.titled : self.spec.titled + 1]
        documents = np.hstack([attribute[:, : self.spec.titled], noun, noun, first, option]).tolist()
        for i in np.flatnonzero(self.stuffed_N).tolist():
            base = int(self.base_F[self.family_N[i]])
            wanted = (self.wanted_FG[self.family_N[i]] + starts).tolist()
            documents[i] += [*attribute[base].tolist(), int(noun[base, 0]), *wanted] * _STUFFED
        return documents


class _Bases(NamedTuple):
    """One row per family. Past ``spec.attributes`` and ``spec.values`` stand spares for near-duplicates."""

    noun_F: Ints
    attribute_FA: Ints
    value_GFV: list[Ints]  # all values of each group, in random order
    cents_F: Ints


class _Rows(NamedTuple):
    """One row per product, family after family; member 0 is the base."""

    member_N: Ints
    family_N: Ints
    attribute_NA: Ints
    option_NGV: Ints
    cents_N: Ints


def _draw_bases(draw: _Draw, spec: ProceduralSpec, words: Vocabulary) -> _Bases:
    families = -(-spec.products // (spec.distractors + 1))
    spare = min(max(spec.distractors, 1), len(words.attributes) - spec.attributes)
    noun_F = draw.below(len(words.nouns), families)
    attribute_FA = draw.subsets(families, len(words.attributes), spec.attributes + spare)
    # Titles name attributes in the vocabulary's order, those that every goal asks for first.
    attribute_FA[:, : spec.required].sort(axis=1)
    attribute_FA[:, spec.required : spec.attributes].sort(axis=1)
    sizes = [len(values) for _, values in words.options[: spec.option_groups]]
    value_GFV = [draw.subsets(families, size, size) for size in sizes]
    coarse = spec.prices == "coarse"
    cents_F = 1000 * (1 + draw.below(6, families)) if coarse else 500 + draw.below(20_000, families)
    return _Bases(noun_F, attribute_FA, value_GFV, cents_F)


def _draw_near_duplicates(draw: _Draw, spec: ProceduralSpec, bases: _Bases) -> _Rows:
    """Copies of each base, all but the first changed in one thing."""
    copies, n, groups = spec.distractors + 1, spec.products, len(bases.value_GFV)
    member_N, family_N = np.arange(n) % copies, np.arange(n) // copies
    attribute_NA = bases.attribute_FA[family_N, : spec.attributes].copy()
    option_NGV = np.zeros((n, groups, spec.values), np.int64)
    for g, value_FV in enumerate(bases.value_GFV):
        option_NGV[:, g] = value_FV[family_N, : spec.values]
    cents_N = bases.cents_F[family_N]
    kinds = len(spec.differ)
    kind_N = (member_N - 1 + draw.below(kinds, len(bases.noun_F))[family_N]) % kinds
    nth_N = (member_N - 1) // kinds  # so that near-duplicates differ from each other as well
    for k, kind in enumerate(spec.differ):
        rows = np.flatnonzero((member_N > 0) & (kind_N == k))
        if kind == "attribute":  # one of those that every goal mentions becomes another
            other = spec.attributes + nth_N[rows] % (bases.attribute_FA.shape[1] - spec.attributes)
            changed = draw.below(spec.required, len(rows))
            attribute_NA[rows, changed] = bases.attribute_FA[family_N[rows], other]
        elif kind == "price":  # dearer than any cap: caps are at most 40 dollars above the price
            cents_N[rows] += 5000 + 1000 * (nth_N[rows] % 4)
        else:  # the value that goals ask for is not offered
            group_N = draw.below(groups, len(rows))
            for g, value_FV in enumerate(bases.value_GFV):
                mine = rows[group_N == g]
                other = spec.values + nth_N[mine] % (value_FV.shape[1] - spec.values)
                option_NGV[mine, g, 0] = value_FV[family_N[mine], other]
    return _Rows(member_N, family_N, attribute_NA, option_NGV, cents_N)
