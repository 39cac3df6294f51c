"""The knobs of search tasks, checked, and the tasks that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal

import pydantic

from turnwise.envs.search.datasets import load_questions
from turnwise.envs.search.drafts import FORMS, Draft
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.library import (
    LocalLibrary,
    file_library,
    fingerprint,
    memory_library,
    world_library,
    world_pages,
)
from turnwise.envs.search.question import Question
from turnwise.envs.search.village import VillageSpec, village, village_library
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, digest

ENV = "turnwise/Search-v0"
_BATCH = 30  # tries on one world, before the next


class Layout(pydantic.BaseModel, extra="forbid", frozen=True):
    """How results look, and for how long one may search."""

    pages: Literal["full", "compact", "tags"] = "full"  # tags: Search-R1's <information>
    per_page: int = pydantic.Field(5, ge=1, le=50)
    snippet: int = pydantic.Field(160, ge=0)  # characters of a passage in results; 0: all
    semantic: str = ""  # an embedder's name; "": no semantic search
    turn_limit: int = pydantic.Field(20, ge=2)

    def layout(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in Layout.model_fields}


class SearchKnobs(Layout, extra="forbid", frozen=True):
    """Questions about generated worlds."""

    worlds: int = pydantic.Field(8, ge=1)  # different ones per split
    passages: int = pydantic.Field(1000, ge=60, le=1_000_000)
    aliases: float = pydantic.Field(0.25, ge=0, le=1)
    namesakes: float = pydantic.Field(0.1, ge=0, le=0.5)
    outdated: float = pydantic.Field(0.1, ge=0, le=0.2)
    stated: float = pydantic.Field(0.9, ge=0.5, le=1)
    hostile: float = pydantic.Field(0.02, ge=0, le=1)
    hops: tuple[int, int] = (1, 3)  # of chains, at least and at most
    forms: Mapping[str, float] = {"chain": 1.0}  # of questions, with their weights

    @pydantic.model_validator(mode="after")
    def _fits(self) -> SearchKnobs:
        if not 1 <= self.hops[0] <= self.hops[1] <= 8:
            raise ValueError("1 ≤ hops ≤ 8 must hold")
        unknown = set(self.forms) - set(FORMS)
        if unknown or not self.forms or min(self.forms.values()) < 0 or not sum(self.forms.values()):
            raise ValueError(f"forms are {', '.join(FORMS)}, each with a weight; one at least above 0")
        return self

    def spec(self, split: Split, number: int) -> WorldSpec:
        """World ``number`` of a split. No two splits share one."""
        own = {name: getattr(self, name) for name in WorldSpec.model_fields if name != "seed"}
        return WorldSpec(seed=digest(ENV, split.value, number), **own)


class VillageKnobs(Layout, extra="forbid", frozen=True):
    """Questions about little worlds in few words."""

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


class FileKnobs(Layout, extra="forbid", frozen=True):
    """Questions from a file (HotpotQA, 2Wiki, MuSiQue, NQ), over a corpus file or the passages they bring."""

    questions: str
    corpus: str = ""  # JSONL; "": the passages that the questions bring along
    limit: int = pydantic.Field(0, ge=0)  # the first so many questions; 0: all


def knobs_of(values: Mapping[str, Json]) -> SearchKnobs | VillageKnobs | FileKnobs:
    """Check knobs: ``questions`` makes them a file's, ``vocabulary`` a little world's.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    kind = FileKnobs if "questions" in values else VillageKnobs if "vocabulary" in values else SearchKnobs
    return check_knobs(kind, values, "search")


def draw_task(rng: Random, split: Split, knobs: SearchKnobs | VillageKnobs | FileKnobs) -> Task:
    """A task that no other split can draw.

    Raises:
        EnvError: the knobs leave none.
    """
    if isinstance(knobs, FileKnobs):
        return _draw_loaded(rng, split, knobs)
    if isinstance(knobs, VillageKnobs):
        return first_drawn(lambda rng: _draw_village(rng, split, knobs), rng, split, "village")
    return first_drawn(lambda rng: _draw_world(rng, split, knobs), rng, split, "world")


def library_of(task: Task) -> LocalLibrary:
    """The passages that a task is about.

    Raises:
        EnvError: it is no task of this environment.
    """
    try:
        source = dict(task.options["library"])
        match source.pop("type"):
            case "world":
                return world_library(WorldSpec(**source))
            case "village":
                return village_library(VillageSpec(**source))
            case "corpus":
                return file_library(source["path"], source["sha256"])
            case _:
                _questions, library = _loaded(source["path"], source["sha256"])
                return library
    except (KeyError, TypeError, ValueError) as error:
        raise EnvError(f"This is no task of {ENV}: {error!r}.", "Take tasks from a search suite.") from None


def _draw_world(rng: Random, split: Split, knobs: SearchKnobs) -> Task | None:
    spec = knobs.spec(split, rng.randrange(knobs.worlds))
    pages = world_pages(spec)
    form = rng.choices(list(knobs.forms), list(knobs.forms.values()))[0]
    for _ in range(_BATCH):
        question = FORMS[form](Draft(pages, rng, rng.randint(*knobs.hops)))
        if question is not None:
            return _task(question, {"type": "world", **spec.model_dump()}, knobs)
    return None


def _draw_village(rng: Random, split: Split, knobs: VillageKnobs) -> Task | None:
    spec = knobs.spec(split, rng.randrange(knobs.worlds))
    question = village(spec).draw(rng, rng.randint(*knobs.hops), knobs.unanswerable)
    if question is None:
        return None
    return _task(question, {"type": "village", **spec.model_dump(mode="json")}, knobs)


def _draw_loaded(rng: Random, split: Split, knobs: FileKnobs) -> Task:
    from pathlib import Path

    sha256 = fingerprint(Path(knobs.questions))
    questions, _ = _loaded(knobs.questions, sha256)
    source: dict[str, Json] = {"type": "questions", "path": knobs.questions, "sha256": sha256}
    if knobs.corpus:
        source = {"type": "corpus", "path": knobs.corpus, "sha256": fingerprint(Path(knobs.corpus))}
    chosen = [q for q in questions[: knobs.limit or None] if in_split(split, q.text)]
    if not chosen:
        raise EnvError(
            f"{knobs.questions} has no question of the {split} split.", "Use a file with more questions."
        )
    question = rng.choice(chosen)
    if knobs.corpus:  # positions are those of the passages that the questions bring
        question = question._replace(evidence=(), rubric=())
    return _task(question, source, knobs)


def _task(question: Question, source: Mapping[str, Json], knobs: Layout) -> Task:
    return Task(ENV, question.text, {"library": dict(source), **knobs.layout()}, question.gold())


_kept: dict[tuple[str, str], tuple[list[Question], LocalLibrary]] = {}


def _loaded(path: str, sha256: str) -> tuple[list[Question], LocalLibrary]:
    """The questions of a file, and a library of the passages that they bring."""
    if (path, sha256) not in _kept:
        questions, passages = load_questions(path)
        library = memory_library(f"questions-{sha256}", passages)
        if len(_kept) >= 8:
            _kept.pop(next(iter(_kept)))
        _kept[path, sha256] = questions, library
    return _kept[path, sha256]
