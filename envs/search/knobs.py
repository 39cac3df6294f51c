"""The knobs of search tasks, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pydantic

from turnwise.envs.search.forms import FORMS
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.village import VillageSpec
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, digest

ENV = "turnwise/Search-v0"


class SearchLayout(pydantic.BaseModel, extra="forbid", frozen=True):
    """Knobs of the results' appearance and of the turn limit."""

    pages: Literal["full", "compact", "tags"] = "full"  # tags: Search-R1's <information>
    per_page: int = pydantic.Field(5, ge=1, le=50)
    snippet: int = pydantic.Field(160, ge=0)  # characters of a passage in results; 0: all
    semantic: str = ""  # an embedder's name; "": no semantic search
    turn_limit: int = pydantic.Field(20, ge=2)

    def layout(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in SearchLayout.model_fields}


class SearchKnobs(SearchLayout, extra="forbid", frozen=True):
    """Questions about generated worlds."""

    worlds: int = pydantic.Field(8, ge=1)  # different ones per split
    passages: int = pydantic.Field(1000, ge=60, le=1_000_000)
    aliases: float = pydantic.Field(0.25, ge=0, le=1)
    namesakes: float = pydantic.Field(0.1, ge=0, le=0.5)
    outdated: float = pydantic.Field(0.1, ge=0, le=0.2)
    stated: float = pydantic.Field(0.9, ge=0.5, le=1)
    hostile: float = pydantic.Field(0.02, ge=0, le=1)
    disputed: float = pydantic.Field(0.0, ge=0, le=0.3)
    long: float = pydantic.Field(0.0, ge=0, le=1)
    hops: tuple[int, int] = (1, 3)  # of chains, at least and at most
    forms: Mapping[str, float] = {"chain": 1.0}  # of questions, with their weights
    inquiry: int = pydantic.Field(1, ge=1, le=120)  # that come one after the other
    back: int = pydantic.Field(
        0, ge=0, le=60
    )  # of these, the last ones: each is about answers of earlier ones

    @pydantic.model_validator(mode="after")
    def _fits(self) -> SearchKnobs:
        if not 1 <= self.hops[0] <= self.hops[1] <= 8:
            raise ValueError("1 ≤ hops ≤ 8 must hold")
        if self.back >= self.inquiry and self.back:
            raise ValueError("back must be below inquiry: the first ones refer to nothing")
        if self.inquiry > 1 and set(self.forms) != {"chain"}:
            raise ValueError("questions that come one after the other are chains: leave forms out")
        unknown = set(self.forms) - set(FORMS)
        if unknown or not self.forms or min(self.forms.values()) < 0 or not sum(self.forms.values()):
            raise ValueError(f"forms are {', '.join(FORMS)}, each with a weight; one at least above 0")
        if self.forms.get("disputed") and not self.disputed:
            raise ValueError("questions of the form disputed need sources: set disputed above 0")
        return self

    def spec(self, split: Split, number: int) -> WorldSpec:
        """World ``number`` of a split. No two splits share one."""
        own = {name: getattr(self, name) for name in WorldSpec.model_fields if name not in ("seed", "part")}
        return WorldSpec(seed=digest(ENV, split.value, number), part=split.value, **own)


class VillageKnobs(SearchLayout, extra="forbid", frozen=True):
    """Knobs of questions about small worlds with few words."""

    vocabulary: Literal["small"]
    pages: Literal["full", "compact", "tags"] = "compact"
    worlds: int = pydantic.Field(100_000, ge=1)
    people: int = 8
    facts: tuple[int, int] = (2, 1)
    outdated: float = 0.0
    hops: tuple[int, int] = (1, 2)
    unanswerable: float = pydantic.Field(0.0, ge=0, le=1)

    def spec(self, split: Split, number: int) -> VillageSpec:
        own = {name: getattr(self, name) for name in VillageSpec.model_fields if name != "seed"}
        return VillageSpec(seed=digest(ENV, "village", split.value, number), **own)


class QuestionFileKnobs(SearchLayout, extra="forbid", frozen=True):
    """Knobs of questions from a file (HotpotQA, NQ, …), with a corpus file or their own passages."""

    questions: str
    corpus: str = ""  # JSONL; "": the passages that the questions bring along
    limit: int = pydantic.Field(0, ge=0)  # the first so many questions; 0: all
    index: int | None = None  # the question of this number, as in a published list; judged as published


def knobs_of(values: Mapping[str, Json]) -> SearchKnobs | VillageKnobs | QuestionFileKnobs:
    """Check knobs: ``questions`` makes them a file's, ``vocabulary`` a little world's.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    kind = (
        QuestionFileKnobs
        if "questions" in values
        else VillageKnobs
        if "vocabulary" in values
        else SearchKnobs
    )
    return check_knobs(kind, values, "search")
