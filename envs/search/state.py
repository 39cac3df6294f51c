"""Where a search stands, and how that is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.envs.search.answers import normalise
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.knobs import Layout, library_of
from turnwise.envs.search.library import Library
from turnwise.envs.search.question import Question
from turnwise.envs.search.remote import remote_library
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Task

_NAME = re.compile(r"(?:(?:The|the) )?[A-Z]\w+(?: (?:of )?[A-Z]\w+)*|\b\d[\d,]*\b")
_NO_NAMES = frozenset(("Last", "Since", "From", "This", "The", "It"))
_DOC_LIMIT = 2000  # characters of one passage in Search-R1's format


@dataclass(frozen=True, eq=False)
class Quest:
    """What stays the same all along: the task, its question, and where to search."""

    task: Task
    question: Question
    library: Library
    layout: Layout
    server: str = ""

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

    @property
    def shown(self) -> tuple[int, ...]:
        """The results on the present page."""
        return self.results[self.first : self.first + self.quest.layout.per_page]

    def read(self, positions: Sequence[int]) -> SearchState:
        """These passages were shown as a whole."""
        return self._replace(seen=tuple(sorted({*self.seen, *positions})))


def quest_of(task: Task, server: str = "") -> Quest:
    """What a task asks for.

    Raises:
        EnvError: it is no task of this environment.
    """
    try:
        question = Question.of(task.prompt, task.gold)
        layout = check_knobs(Layout, {key: task.options[key] for key in Layout.model_fields}, "search")
    except (KeyError, TypeError) as error:
        raise EnvError(f"This is no search task: {error!r}.", "Take tasks from a search suite.") from None
    return Quest(task, question, remote_library(server) if server else library_of(task), layout, server)


def passage_at(state: SearchState, position: int) -> Passage:
    """A passage that is known to exist."""
    found = state.quest.library.passage(position)
    assert found is not None, position
    return found


def show_results(state: SearchState, total: int | None = None) -> str:
    """One page of results; ``total``: how many there are, if more than are kept."""
    layout, shown = state.quest.layout, state.shown
    if layout.pages == "tags":
        docs = (passage_at(state, position) for position in shown)
        lines = [f"Doc {i}(Title: {p.title}) {p.text[:_DOC_LIMIT]}" for i, p in enumerate(docs, start=1)]
        return "\n".join(("<information>", *lines, "</information>"))
    if layout.pages == "compact":
        return "\n".join(_line(passage_at(state, position)) for position in shown) or "nothing ."
    if not shown:
        return "Nothing found."
    count = len(state.results) if total is None else total
    lines = [f"Results {state.first + 1} to {state.first + len(shown)} of {count}:"]
    for position in shown:
        passage = passage_at(state, position)
        about = ", ".join(filter(None, (passage.kind, str(passage.date or ""))))
        lines.append(
            f"[{position}] {passage.title}{f' ({about})' if about else ''}: {_snippet(passage.text, layout)}"
        )
    return "\n".join(lines)


def show_page(passage: Passage, position: int, layout: Layout) -> str:
    """A passage as a whole."""
    return _line(passage) if layout.pages == "compact" else f"[{position}] {passage.title}\n{passage.text}"


def shows_all(layout: Layout) -> bool:
    """Whether results show passages as a whole."""
    return layout.pages != "full" or layout.snippet == 0


def candidates(state: SearchState) -> list[str]:
    """Names and numbers in what was shown last: what a mindless agent would ask or answer."""
    compact = state.quest.layout.pages == "compact"
    positions = [state.opened] if state.opened >= 0 else state.shown
    found: dict[str, None] = {}
    for position in positions:
        passage = passage_at(state, position)
        texts = [fact.value for fact in facts_of(passage)] if compact else _NAME.findall(passage.text[:3000])
        found.update(dict.fromkeys(text for text in texts if text not in _NO_NAMES))
    return list(found)


class Told(NamedTuple):
    """A fact as a line of a little world tells it."""

    relation: str
    value: str


def facts_of(passage: Passage) -> list[Told]:
    """The facts that a line of a little world tells.

    >>> facts_of(Passage("nira", "heir suki , home ebro"))
    [Told(relation='heir', value='suki'), Told(relation='home', value='ebro')]
    """
    told = [fact.rpartition(" ") for fact in passage.text.split(" , ")]
    return [Told(relation, value) for relation, _, value in told]


def asked_about(question: str, compact: bool) -> list[str]:
    """What a question names."""
    if compact:
        return question.rstrip(" ?").split()[-1:]
    found = _NAME.findall(question[question.find(" ") :])
    return [name for name in found if not name.isdecimal()] or [question]


def entities_named(text: str, question: Question) -> set[int]:
    """Which gold entities a text names that the question does not (E-GRPO's match, on whole words)."""
    own, asked = f" {normalise(text[:20_000])} ", f" {normalise(question.text)} "
    return {
        at
        for at, names in enumerate(question.entities)
        if any(f" {n} " in own for n in map(normalise, names) if n)
        and not any(f" {n} " in asked for n in map(normalise, names) if n)
    }


def _snippet(text: str, layout: Layout) -> str:
    if not layout.snippet or len(text) <= layout.snippet:
        return text
    return f"{text[: layout.snippet].rsplit(' ', 1)[0]} …"


def _line(passage: Passage) -> str:
    return f"{passage.title} : {passage.text} ."
