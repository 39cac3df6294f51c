"""A question with everything that judging an answer to it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.tasks.core import Json


class Rubric(NamedTuple):
    """One fact that an answer rests on (CaRR): which entities it links, which passages state it.

    ``hidden``: the entities that the question does not name and an answer therefore must.
    """

    links: tuple[int, ...]
    hidden: tuple[int, ...]
    evidence: tuple[int, ...]


class SearchQuestion(NamedTuple):
    """A question, its right answers, and the reasons.

    Entities are tuples of names; the answer is one of them.

    ``evidence``: positions of the passages one must have read, in the order in which to read them, and
    ``queries`` that find them. ``rivals``: names that would also be answers, but wrong ones.
    """

    text: str
    form: str
    answers: tuple[str, ...]
    entities: tuple[tuple[str, ...], ...] = ()
    answer: int = (
        -1
    )  # the entity at which all facts meet, mostly the answer itself; −1: a number that the last fact tells
    evidence: tuple[int, ...] = ()
    queries: tuple[str, ...] = ()
    rubric: tuple[Rubric, ...] = ()
    rivals: tuple[str, ...] = ()
    answerable: bool = True
    hops: int = 1
    refers: tuple[int, ...] = ()  # earlier questions of an inquiry, from 0, whose answers it is about

    def gold(self) -> dict[str, Json]:
        """As a task's gold; the text is its prompt."""
        data = self._asdict()
        del data["text"]
        if not self.refers:
            del data["refers"]
        data["rubric"] = [rubric._asdict() for rubric in self.rubric]
        return {key: _plain(value) for key, value in data.items()}

    @staticmethod
    def of(text: str, gold: Mapping[str, Json]) -> SearchQuestion:
        """The question of a task.

        Raises:
            KeyError, TypeError: the gold is none of a question's.
        """
        rubric = tuple(Rubric(*(tuple(item[key]) for key in Rubric._fields)) for item in gold["rubric"])
        tuples = {key: tuple(gold[key]) for key in ("answers", "evidence", "queries", "rivals")}
        entities = tuple(tuple(names) for names in gold["entities"])
        tuples["refers"] = tuple(gold.get("refers", ()))
        plain = {key: gold[key] for key in ("form", "answer", "answerable", "hops")}
        return SearchQuestion(text=text, entities=entities, rubric=rubric, **tuples, **plain)


def _plain(value: Json) -> Json:
    """Tuples as lists, so that a task equals its copy from JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return (
        [_plain(item) for item in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else value
    )
