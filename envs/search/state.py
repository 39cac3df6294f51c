"""State of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.envs.search.answers import normalise
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.knobs import SearchLayout
from turnwise.envs.search.library import Library
from turnwise.envs.search.question import SearchQuestion
from turnwise.envs.search.remote import remote_library
from turnwise.envs.search.tasks import library_of
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Task


@dataclass(frozen=True, eq=False)
class Quest:
    """The constants of an episode: the task, its questions, which are told one after the other, and the library."""

    task: Task
    questions: tuple[SearchQuestion, ...]
    library: Library
    layout: SearchLayout
    server: str = ""

    @property
    def question(self) -> SearchQuestion:
        """The question that the task begins with."""
        return self.questions[0]

    def __repr__(self) -> str:
        return f"Quest({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quest) and (other.task.id, other.server) == (self.task.id, self.server)

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[object, ...]:
        return quest_of, (self.task, self.server)


class SearchState(NamedTuple):
    """Results are positions of passages; ``first`` is the place of the first that is shown."""

    quest: Quest
    query: str = ""
    results: tuple[int, ...] = ()
    first: int = 0
    opened: int = -1
    seen: tuple[int, ...] = ()  # passages that were shown as a whole
    cited: tuple[int, ...] = ()
    searches: int = 0
    unjudged: bool = False  # something was retrieved since the last judgement
    named: tuple[int, ...] = ()  # of the gold entities, in the agent's own words
    malformed: int = 0
    served: int = 0  # questions that were answered
    scored: float = 0.0  # for their answers, in all

    @property
    def question(self) -> SearchQuestion:
        """The question that is to be answered now."""
        return self.quest.questions[self.served]

    def answered(self, score: float) -> SearchState:
        """The question is answered, and the next one's turn has come."""
        fresh = SearchState(self.quest, seen=self.seen, malformed=self.malformed)
        return fresh._replace(served=self.served + 1, scored=self.scored + score)

    @property
    def shown(self) -> tuple[int, ...]:
        """The results on the present page."""
        return self.results[self.first : self.first + self.quest.layout.per_page]

    def read(self, positions: Sequence[int]) -> SearchState:
        """These passages were shown as a whole."""
        return self._replace(seen=tuple(sorted({*self.seen, *positions})))


def quest_of(task: Task, server: str = "") -> Quest:
    """Return the quest of a task.

    Raises:
        EnvError: it is no task of this environment.
    """
    try:
        first = SearchQuestion.of(task.prompt, task.gold)
        questions = (first, *(SearchQuestion.of(one["text"], one) for one in task.gold.get("later", ())))
        layout = check_knobs(
            SearchLayout, {key: task.options[key] for key in SearchLayout.model_fields}, "search"
        )
    except (KeyError, TypeError) as error:
        raise EnvError(f"This is no search task: {error!r}.", "Take tasks from a search suite.") from None
    return Quest(task, questions, remote_library(server) if server else library_of(task), layout, server)


def passage_at(state: SearchState, position: int) -> Passage:
    """A passage that is known to exist."""
    found = state.quest.library.passage(position)
    assert found is not None, position
    return found


def shows_all(layout: SearchLayout) -> bool:
    """Say whether results show passages as a whole."""
    return layout.pages != "full" or layout.snippet == 0


def entities_named(text: str, question: SearchQuestion) -> set[int]:
    """Find the gold entities that a text names and the question does not (E-GRPO's match, on whole words)."""
    own, asked = f" {normalise(text[:20_000])} ", f" {normalise(question.text)} "
    return {
        at
        for at, names in enumerate(question.entities)
        if any(f" {n} " in own for n in map(normalise, names) if n)
        and not any(f" {n} " in asked for n in map(normalise, names) if n)
    }
