"""Products and catalogues: read-only, shared by all environments of a process."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from turnwise.envs.shop.search import SearchIndex


@dataclass(frozen=True, slots=True)
class Product:
    """What a shop page shows of a product, and what the score looks at.

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


class Spec(Protocol):
    """A recipe for a catalogue: hashable, comparable, and enough to build it again."""

    def build(self) -> Catalogue: ...

    def __hash__(self) -> int: ...


class Catalogue:
    """Products by position and by asin, and a search over them.

    Products are rendered when they are first looked at, and the last few thousand are kept.
    """

    def __init__(
        self,
        spec: Spec,
        size: int,
        render: Callable[[int], Product],
        position: Callable[[str], int | None],
        index: SearchIndex,
        details: Any = None,
    ) -> None:
        self.spec = spec
        self.product = functools.lru_cache(maxsize=8192)(render)
        self.position = position
        self.index = index
        self.details = details
        self._size = size

    def __len__(self) -> int:
        return self._size

    def search(self, query: str) -> Sequence[int]:
        """Positions of the products that match, best first."""
        return self.index.rank(query)

    def __reduce__(self) -> tuple[Callable[[Spec], Catalogue], tuple[Spec]]:
        return catalogue, (self.spec,)  # another process builds or finds its own


_KEPT_PRODUCTS = 2_000_000
_kept: OrderedDict[Spec, Catalogue] = OrderedDict()
_lock = threading.Lock()


def catalogue(spec: Spec) -> Catalogue:
    """The catalogue of this spec, built once per process.

    The least recently used are dropped when all together exceed two million products; environments
    that still use one keep it alive.
    """
    with _lock:
        found = _kept.get(spec)
        if found is None:
            found = _kept[spec] = spec.build()
            while len(_kept) > 1 and sum(map(len, _kept.values())) > _KEPT_PRODUCTS:
                _kept.popitem(last=False)
        _kept.move_to_end(spec)
        return found
