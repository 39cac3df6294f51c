"""Tasks of searching: knobs → a question about a library, and a task → the library that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random

from turnwise.envs.published import PublishedRows, published_suite
from turnwise.envs.search.datasets import load_published_questions, load_questions
from turnwise.envs.search.forms import FORMS, QuestionDraft
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.inquiry import drawn_inquiry, question_line
from turnwise.envs.search.knobs import ENV, QuestionFileKnobs, SearchKnobs, SearchLayout, VillageKnobs
from turnwise.envs.search.library import (
    LocalLibrary,
    file_library,
    fingerprint,
    memory_library,
    world_library,
    world_pages,
)
from turnwise.envs.search.question import SearchQuestion
from turnwise.envs.search.village import VillageSpec, village, village_library
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task


def draw_task(rng: Random, split: Split, knobs: SearchKnobs | VillageKnobs | QuestionFileKnobs) -> Task:
    """A task that no other split can draw.

    Raises:
        EnvError: the knobs leave none.
    """
    if isinstance(knobs, QuestionFileKnobs):
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
                load = _published if task.options.get("judged") else _loaded
                return load(source["path"], source["sha256"])[1]
    except (KeyError, TypeError, ValueError) as error:
        raise EnvError(f"This is no task of {ENV}: {error!r}.", "Take tasks from a search suite.") from None


def _draw_world(rng: Random, split: Split, knobs: SearchKnobs) -> Task | None:
    spec = knobs.spec(split, rng.randrange(knobs.worlds))
    pages = world_pages(spec)
    if knobs.inquiry > 1:
        return _inquiry(QuestionDraft(pages, rng, rng.randint(*knobs.hops)), spec, knobs)
    form = rng.choices(list(knobs.forms), list(knobs.forms.values()))[0]
    for _ in range(_BATCH):
        question = FORMS[form](QuestionDraft(pages, rng, rng.randint(*knobs.hops)))
        if question is not None:
            return _task(question, {"type": "world", **spec.model_dump()}, knobs)
    return None


def _inquiry(draft: QuestionDraft, spec: WorldSpec, knobs: SearchKnobs) -> Task | None:
    questions = drawn_inquiry(draft, knobs.inquiry, knobs.back)
    if questions is None:
        return None
    first = question_line(0, len(questions), questions[0].text)
    task = _task(questions[0]._replace(text=first), {"type": "world", **spec.model_dump()}, knobs)
    later: list[Json] = [{"text": one.text, **one.gold()} for one in questions[1:]]
    return Task(ENV, first, task.options, {**task.gold, "later": later})


def _draw_village(rng: Random, split: Split, knobs: VillageKnobs) -> Task | None:
    spec = knobs.spec(split, rng.randrange(knobs.worlds))
    question = village(spec).draw(rng, rng.randint(*knobs.hops), knobs.unanswerable)
    if question is None:
        return None
    return _task(question, {"type": "village", **spec.model_dump(mode="json")}, knobs)


def _draw_loaded(rng: Random, split: Split, knobs: QuestionFileKnobs) -> Task:
    sha256 = fingerprint(Path(knobs.questions))
    source: dict[str, Json] = {"type": "questions", "path": knobs.questions, "sha256": sha256}
    if knobs.corpus:
        source = {"type": "corpus", "path": knobs.corpus, "sha256": fingerprint(Path(knobs.corpus))}
    if knobs.index is not None:
        question = _published(knobs.questions, sha256)[0].rows[knobs.index]
        question = question._replace(evidence=(), rubric=()) if knobs.corpus else question
        task = _task(question, source, knobs)
        return replace(task, options={**task.options, "judged": "squad"})
    questions, _ = _loaded(knobs.questions, sha256)
    chosen = [q for q in questions[: knobs.limit or None] if in_split(split, q.text)]
    if not chosen:
        raise EnvError(
            f"{knobs.questions} has no question of the {split} split.", "Use a file with more questions."
        )
    question = rng.choice(chosen)
    if knobs.corpus:  # positions are those of the passages that the questions bring
        question = question._replace(evidence=(), rubric=())
    return _task(question, source, knobs)


def _task(question: SearchQuestion, source: Mapping[str, Json], knobs: SearchLayout) -> Task:
    return Task(ENV, question.text, {"library": dict(source), **knobs.layout()}, question.gold())


def searchqa_suite(path: str) -> Suite:
    """The suite ``searchqa:QUESTIONS`` or ``searchqa:QUESTIONS+CORPUS``: a published list of questions, in its order.

    Raises:
        EnvError: there is no such file, or it has no question.
    """
    questions, _, corpus = path.partition("+")
    rows, _ = _published(questions, fingerprint(Path(questions)))
    knobs: dict[str, Json] = {"questions": questions, "corpus": corpus, "pages": "tags", "per_page": 3}
    suite = published_suite("searchqa", ENV, f"The questions of {questions}, in their order.", knobs, rows)
    return replace(suite, name=f"searchqa:{path}")


@lru_cache(8)
def _published(path: str, sha256: str) -> tuple[PublishedRows[SearchQuestion], LocalLibrary]:
    rows, passages = load_published_questions(path)
    return rows, memory_library(f"questions-{sha256}", passages)


@lru_cache(8)
def _loaded(path: str, sha256: str) -> tuple[list[SearchQuestion], LocalLibrary]:
    """The questions of a file, and a library of the passages that they bring."""
    questions, passages = load_questions(path)
    return questions, memory_library(f"questions-{sha256}", passages)


_BATCH = 30  # tries on one world, before the next
