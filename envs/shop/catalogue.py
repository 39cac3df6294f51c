"""Products and catalogues: read-only, shared by all environments of a process."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from turnwise.envs.shop.conditions import Fact, Facts
from turnwise.envs.shop.index import SearchIndex, words_of
from turnwise.envs.shop.refine import refinements
from turnwise.envs.shop.vocabulary import STOP_WORDS

_FULL_BUTTONS = ("back to search", "< prev", "next >", "buy now")
_COMPACT_BUTTONS = ("back", "prev", "next", "buy")
_SUB_PAGES = ("description", "features", "specification", "reviews", "attributes")
BUTTONS = frozenset((*_FULL_BUTTONS, *_COMPACT_BUTTONS, *_SUB_PAGES))
"""Everything that a shop page may call a button."""


@dataclass(frozen=True)
class Product:
    """Facts about a product that a shop page shows or the score looks at.

    ``attributes`` are hidden annotations; the page shows them only as far as the texts mention them.
    ``query`` is the search that WebShop's crawler found the product with.
    """

    asin: str
    title: str
    category: str  # "A › B › C"
    query: str
    price: float  # dollars
    attributes: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    description: str = ""
    bullets: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()
    rating: str = "N.A."
    noun: str = ""  # the word for its kind, where that is known
    specification: tuple[tuple[str, str], ...] = ()  # name and value of each row
    surcharges: Mapping[str, int] = field(default_factory=dict[str, int])  # option value → cents
    facts: Facts = field(
        default_factory=dict[str, Fact]
    )  # what conditions are tested on; no page shows them so

    def price_with(self, values: Iterable[str]) -> float:
        """In dollars, with these option values."""
        if not self.surcharges:
            return self.price
        return round(self.price + sum(self.surcharges.get(value, 0) for value in values) / 100, 2)

    @functools.cached_property
    def option_names(self) -> Mapping[str, tuple[str, str]]:
        """Clickable name → (group, value). A value is its own name unless two groups or a button share it.

        >>> options = {"color": ("red", "natural"), "scent": ("natural",)}
        >>> list(Product("B0", "candle", "", "", 1.0, options=options).option_names)
        ['red', 'color: natural', 'scent: natural']
        """
        values = [value for group in self.options.values() for value in dict.fromkeys(group)]
        names: dict[str, tuple[str, str]] = {}
        for group, offered in self.options.items():
            for value in offered:
                alone = values.count(value) == 1 and value not in BUTTONS
                names[value if alone else f"{group}: {value}"] = (group, value)
        return names

    @functools.cached_property
    def kind_words(self) -> tuple[str, ...]:
        """The words of the title that say what kind of product it is.

        This is the score's replacement of a part-of-speech tagger: no stop words, no numbers, no words of the
        product's own attributes and options. A procedural title is attributes and a noun, which remains.

        >>> Product("B0", "Soft 2 Pack of Wool Scarf", "", "", 1.0, ("soft", "wool")).kind_words
        ('scarf',)
        """
        if self.noun:
            return (self.noun,)
        values = (value for group in self.options.values() for value in group)
        described = {word for text in (*self.attributes, *values) for word in words_of(text)}
        words = (word for word in words_of(self.title) if word not in described and word not in STOP_WORDS)
        return tuple(word for word in words if not any(character.isdigit() for character in word))

    @functools.cached_property
    def tells_all(self) -> bool:
        """True if the title mentions every attribute."""
        return all(attribute in self.title for attribute in self.attributes)


class Spec(Protocol):
    """A recipe for a catalogue: hashable, comparable, and enough to build it again."""

    def build(self) -> Catalogue: ...

    def to_json(self) -> dict[str, Any]: ...

    def __hash__(self) -> int: ...


class Catalogue:
    """Products by position and by asin, and a search over them.

    Products are rendered when they are first looked at, and the last few thousand are kept. ``facts`` are those of the
    product at a position, without its texts, in catalogues that know any.
    """

    def __init__(
        self,
        spec: Spec,
        size: int,
        render: Callable[[int], Product],
        position: Callable[[str], int | None],
        index: SearchIndex,
        details: Any = None,
        facts: Callable[[int], Facts] | None = None,
    ) -> None:
        self.spec = spec
        self.product = functools.lru_cache(maxsize=8192)(render)
        self.position = position
        self.index = index
        self.details = details
        self.facts = facts
        self.refinements: Callable[[str], Sequence[str]] = functools.lru_cache(maxsize=1024)(
            lambda query: refinements(facts, index.rank(query)) if facts else ()
        )
        self._size = size

    def __len__(self) -> int:
        return self._size

    def search(self, query: str) -> Sequence[int]:
        """Positions of the products that match, best first."""
        return self.index.rank(query)

    def __reduce__(self) -> tuple[Callable[[Spec], Catalogue], tuple[Spec]]:
        return catalogue, (self.spec,)  # another process builds or finds its own


_ROOM = 2_000_000  # products
_OVERHEAD = 1000  # a catalogue costs as much memory as so many products, however small it is


class _Shelf:
    """The catalogues of this process, least recently used first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Spec, Catalogue] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, spec: Spec) -> Catalogue:
        with self._lock:
            found = self._kept.get(spec)
            if found is not None:
                self._kept.move_to_end(spec)
                return found
            found = self._kept[spec] = spec.build()
            self._size += len(found) + _OVERHEAD
            while self._size > _ROOM and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped) + _OVERHEAD
            return found

    def __len__(self) -> int:
        return len(self._kept)


_shelf = _Shelf()


def catalogue(spec: Spec) -> Catalogue:
    """The catalogue of this spec, built once per process and then shared.

    The least recently used are dropped when all together exceed about two million products;
    environments that still use one keep it alive, and building a small one again takes a millisecond.
    """
    return _shelf.get(spec)
