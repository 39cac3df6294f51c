"""Questions from files: HotpotQA, 2WikiMultihopQA, MuSiQue, NQ and the like, as JSON or JSONL.

Read as their authors publish them, and as FlashRAG and Search-R1 rewrite them (``golden_answers``). Which
format a record is in shows by its keys; files may mix them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.envs.published import PublishedRows, read_rows
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.question import Rubric, SearchQuestion
from turnwise.errors import EnvError
from turnwise.tasks.core import Json
from turnwise.texts import read_json_lines, read_utf8, reading

_MOST_RIVALS = 40


class Paragraph(NamedTuple):
    """A passage that a record brings along, and whether the answer rests on it."""

    title: str
    text: str
    supports: bool


_KNOWN = "Known: HotpotQA, 2Wiki, MuSiQue, NQ, Bamboogle, and FlashRAG's `golden_answers`."
_FORMS = "Give a JSON array or JSONL."


def load_questions(path: str | Path) -> tuple[list[SearchQuestion], list[Passage]]:
    """All questions of a file, and the passages that they bring along, each once.

    Raises:
        EnvError: the file is not there, or a record is none of a known format; it is named.
    """
    passages: dict[tuple[str, str], int] = {}
    questions: list[SearchQuestion] = []
    for n, record in enumerate(_records(path), start=1):
        try:
            questions.append(_question(record, passages))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise EnvError(
                f"{path}, record {n} is no question of a known format: {error!r}.", _KNOWN
            ) from None
    return questions, _passages(passages)


def load_published_questions(path: str) -> tuple[PublishedRows[SearchQuestion], list[Passage]]:
    """The same as published rows: a record that is none of a known format is left out, and named.

    Raises:
        EnvError: the file has no question.
    """
    passages: dict[tuple[str, str], int] = {}
    rows = read_rows(path, "a question of a known format", lambda row: _question(row, passages), _KNOWN)
    return rows, _passages(passages)


def _passages(found: Mapping[tuple[str, str], int]) -> list[Passage]:
    return [Passage(title, text, str(at)) for (title, text), at in found.items()]


def _records(path: str | Path) -> Iterator[Any]:
    with reading(path, _FORMS) as place, place.open("rb") as file:
        is_array = file.read(4).removeprefix(codecs.BOM_UTF8).startswith(b"[")
    if not is_array:
        yield from (row.value for row in read_json_lines(path, _FORMS))
        return
    try:  # HotpotQA and 2Wiki publish one array
        yield from json.loads(read_utf8(path, _FORMS))
    except ValueError as error:
        raise EnvError(f"The questions {path} cannot be read: {error}.", _FORMS) from None


def _question(record: Any, passages: dict[tuple[str, str], int]) -> SearchQuestion:
    """A record as a question.

    Raises:
        KeyError, TypeError, ValueError, IndexError: it is none of a known format.
    """
    if not isinstance(record, dict):
        raise TypeError("no object")
    # Bamboogle has Question, Answer
    record = {key[:1].lower() + key[1:]: value for key, value in record.items()}
    text = record["question"]
    answers = _answers(record)
    paragraphs = list(_paragraphs(record))
    if not isinstance(text, str) or not answers:
        raise KeyError("answer")
    at = [passages.setdefault((p.title, p.text), len(passages)) for p in paragraphs]
    support = list(dict.fromkeys(i for i, p in zip(at, paragraphs, strict=True) if p.supports))
    titles = list(dict.fromkeys(p.title for p in paragraphs if p.supports))
    answerable = bool(record.get("answerable", True))
    answers = answers if answerable else (UNKNOWN,)
    entities = (*((title,) for title in titles), answers)
    rivals = [p.title for p in paragraphs if p.title not in answers and p.title not in text]
    links = [(n, n + 1) for n in range(len(titles))]
    rubric = [
        Rubric(link, tuple(i for i in link if entities[i][0] not in text), (position,))
        for link, position in zip(links, support, strict=False)
    ]
    return SearchQuestion(
        text, str(record.get("type") or "open"), answers, entities, len(titles), tuple(support),
        tuple(titles) or (text,), tuple(rubric) if answerable else (), tuple(dict.fromkeys(rivals))[:_MOST_RIVALS],
        answerable, max(1, len(titles)),
    )  # fmt: skip


def _answers(record: Mapping[str, Json]) -> tuple[str, ...]:
    given: list[Json] = []
    for key in ("golden_answers", "answer", "answers", "answer_aliases", "aliases"):
        value = record.get(key, [])
        given += value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(str(answer) for answer in given if str(answer).strip()))


def _paragraphs(record: Mapping[str, Json]) -> Iterator[Paragraph]:
    """Of MuSiQue (``paragraphs``), HotpotQA and 2Wiki (``context``, as published or as columns)."""
    for item in record.get("paragraphs", []):
        yield Paragraph(item["title"], item["paragraph_text"], bool(item.get("is_supporting")))
    metadata = record.get("metadata") or {}
    context = record.get("context", metadata.get("context", []))
    facts = record.get("supporting_facts", metadata.get("supporting_facts", []))
    titles = facts["title"] if isinstance(facts, dict) else [fact[0] for fact in facts]
    for title, sentences in _context(context):
        text = sentences if isinstance(sentences, str) else "".join(sentences)
        yield Paragraph(title, text.strip(), title in titles)


def _context(context: Json) -> Iterator[tuple[str, Sequence[str] | str]]:
    if isinstance(context, dict):
        texts = context["sentences"] if "sentences" in context else context["content"]
        yield from zip(context["title"], texts, strict=True)
    else:
        yield from context
