"""Small worlds with few words, for models that learn within minutes: each page is a line of facts.

The names are the same in all worlds and mean something else in each, so nothing can be learned by heart.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from random import Random

import pydantic

from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.library import LocalLibrary, memory_library
from turnwise.envs.search.question import Rubric, SearchQuestion
from turnwise.tasks.core import derive_rng, digest

PEOPLE = (
    "beka", "dilo", "fama", "gori", "hule", "jiso", "kavu", "lemi", "moda", "nira", "posu", "rafe", "suki", "tamo",
    "vilu", "zeno",
)  # fmt: skip
PLACES = ("arbo", "corda", "elmin", "inta", "olve", "ulma", "ebro", "asko", "orun", "ivel")
TO_PEOPLE = ("mentor", "patron", "heir", "boss")
TO_PLACES = ("home", "guild", "grave", "market")
OLD = "old"


class VillageSpec(pydantic.BaseModel, extra="forbid", frozen=True):
    """Everything that determines a small world."""

    seed: str
    people: int = pydantic.Field(8, ge=4, le=len(PEOPLE))
    facts: tuple[int, int] = (2, 1)  # of a person: about people, about places
    outdated: float = pydantic.Field(0.0, ge=0, le=1)  # people of whom there is an old page too

    @pydantic.model_validator(mode="after")
    def _fits(self) -> VillageSpec:
        if not (1 <= self.facts[0] <= len(TO_PEOPLE) and 0 <= self.facts[1] <= len(TO_PLACES)):
            raise ValueError(
                f"facts must be at most ({len(TO_PEOPLE)}, {len(TO_PLACES)}), the first at least 1"
            )
        return self

    @property
    def key(self) -> str:
        return digest("village", 1, self.model_dump())


class Village:
    """A small world: who is whose mentor, and who lives where."""

    def __init__(self, spec: VillageSpec) -> None:
        self.spec = spec
        rng = derive_rng(spec.seed, "village")
        self.names = tuple(rng.sample(PEOPLE, spec.people))
        self.facts = tuple(self._draw(rng, i) for i in range(spec.people))
        pages = [(i, False) for i in range(spec.people)]
        pages += [(i, True) for i in range(spec.people) if rng.random() < spec.outdated]
        rng.shuffle(pages)
        self.passages = tuple(self._page(rng, position, *page) for position, page in enumerate(pages))
        self.position = {person: at for at, (person, old) in enumerate(pages) if not old}

    def draw(self, rng: Random, hops: int, unanswerable: float) -> SearchQuestion | None:
        """A question of so many facts; no text gives the last one with a probability of ``unanswerable``."""
        at = rng.randrange(len(self.names))
        path, relations = [at], []
        for left in range(hops, 0, -1):
            ways = sorted(r for r in self.facts[at] if left == 1 or r in TO_PEOPLE)
            if left == 1 and rng.random() < unanswerable:
                ways = sorted({*TO_PEOPLE, *TO_PLACES} - {*self.facts[at]})
                relations.append(rng.choice(ways))
                return self._question(path, relations, UNKNOWN)
            if not ways:
                return None
            relation = rng.choice(ways)
            relations.append(relation)
            target = self.facts[at][relation]
            if left > 1:
                at = self.names.index(target)
                if at in path:
                    return None
                path.append(at)
            elif target == self.names[path[0]]:
                return None
        return self._question(path, relations, self.facts[at][relations[-1]])

    def _question(self, path: list[int], relations: list[str], answer: str) -> SearchQuestion:
        known = answer != UNKNOWN
        asked = " of ".join([*reversed(relations), self.names[path[0]]])
        names = tuple(self.names[person] for person in path)
        entities = tuple((name,) for name in ((*names, answer) if known else names))
        rubric = tuple(
            Rubric((at, at + 1), tuple(i for i in (at, at + 1) if i > 0), (self.position[person],))
            for at, person in enumerate(path)
        )
        rivals = tuple(value for value in self.facts[path[-1]].values() if value != answer)
        return SearchQuestion(
            f"{asked} ?", "chain" if known else "unanswerable", (answer,), entities, len(path) if known else -1,
            tuple(self.position[person] for person in path), names, rubric if known else (), rivals, known, len(path),
        )  # fmt: skip

    def _draw(self, rng: Random, person: int) -> dict[str, str]:
        others = [name for i, name in enumerate(self.names) if i != person]
        people = rng.sample(TO_PEOPLE, self.spec.facts[0])
        places = rng.sample(TO_PLACES, self.spec.facts[1])
        named = rng.sample(others, min(len(people), len(others)))
        return {**dict(zip(people, named, strict=False)), **{r: rng.choice(PLACES) for r in places}}

    def _page(self, rng: Random, position: int, person: int, old: bool) -> Passage:
        facts = self.facts[person]
        if old:  # what was true before: the same things of other people and places
            facts = {r: rng.choice(PEOPLE if r in TO_PEOPLE else PLACES) for r in facts}
        lines = list(_said(facts))
        rng.shuffle(lines)
        title = f"{self.names[person]} {OLD}" if old else self.names[person]
        return Passage(title, " , ".join(lines), str(position), "old" if old else "page")


def _said(facts: dict[str, str]) -> Iterator[str]:
    for relation, value in facts.items():
        yield f"{relation} {value}"


@functools.lru_cache(maxsize=512)
def village(spec: VillageSpec) -> Village:
    """The little world of a spec."""
    return Village(spec)


@functools.lru_cache(maxsize=512)
def village_library(spec: VillageSpec) -> LocalLibrary:
    """Its pages."""
    return memory_library(f"village-{spec.key}", village(spec).passages)
