"""Texts that a search shows: pages of results, passages, and what they name."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnwise.envs.acting import one_act_rules
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.index import words_of
from turnwise.envs.search.inquiry import answer_line, question_line
from turnwise.envs.search.knobs import SearchLayout
from turnwise.envs.search.state import Quest, SearchState, passage_at

SYSTEM = {
    "compact": "search[x] or answer[x] .",
    "tags": (
        "Answer the question. Think between <think> and </think>. To look something up, write <search> query "
        "</search> (further results: <search> query, page=2 </search>); what is found comes back between <information> and </information>. When you know the answer, "
        "write it between <answer> and </answer>, as short as possible; write unknown if no passage tells it."
    ),
    "full": (
        "Answer the question by searching a library about a world that you do not know. Each turn, take one action: "
        "search[words], {semantic}filter[words], count[words], open[number or title], find[words] in the open "
        "passage, cite[number] what your answer rests on, judge[yes or no] whether the latest results help, or "
        "answer[text], {then}. Further results are shown by search[words, page=2]; filter[words, "
        "kind=city, since=1930, until=1940] keeps a kind and years. Pages may be out of date, and names may be "
        "shared: look at the dates. search finds pages that have any of the words, filter and count "
        "only those that have all of them.{weigh} Answer as short as possible, and answer[unknown] if no page tells it."
    ),
}
_NAME = re.compile(r"(?:(?:The|the) )?[A-Z][\w-]+(?: (?:of )?[A-Z][\w-]+)*|\b\d[\d,]*\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NO_NAMES = frozenset(("Last", "Since", "From", "This", "The", "It"))
_DOC_LIMIT = 2000  # characters of one passage in Search-R1's format


_NEXT = (
    "once for each question, after which you are told what was right, and the next question, once; the last answer ends "
    "the episode"
)
_WEIGH = (
    " Where sources contradict each other, a register outweighs a newspaper, and a newspaper memoirs; of two of a kind "
    "the later one is right."
)


def system_message(quest: Quest) -> str:
    """Write the system message: the rules, and how to act."""
    layout = quest.layout
    weigh = _WEIGH if quest.task.options["library"].get("disputed") else ""
    then = _NEXT if len(quest.questions) > 1 else "which ends the episode"
    semantic = "semantic_search[text], " if layout.semantic else ""
    rules = one_act_rules("action", layout.turn_limit) if layout.pages == "full" else ""
    return f"{SYSTEM[layout.pages].format(semantic=semantic, weigh=weigh, then=then)}{rules}"


def noted(state: SearchState, *, right: bool) -> str:
    """The observation after an answer: whether it was right, what was right, and the next question."""
    questions, at = state.quest.questions, state.served
    told = f"{'Right' if right else 'Wrong'}. {answer_line(at, questions[at])}"
    return f"{told}\n{question_line(at + 1, len(questions), questions[at + 1].text)}"


def show_results(state: SearchState, total: int | None = None) -> str:
    """One page of results; ``total``: how many there are, if more than are kept."""
    layout, shown = state.quest.layout, state.shown
    if layout.pages == "tags":
        docs = (passage_at(state, position) for position in shown)
        lines = [f"Doc {i}(Title: {p.title}) {_one_line(p.text)}" for i, p in enumerate(docs, start=1)]
        return "\n".join(("<information>", *lines, "</information>"))
    if layout.pages == "compact":
        return "\n".join(_line(passage_at(state, position)) for position in shown) or "nothing ."
    if not shown:
        return "Nothing found."
    count = len(state.results) if total is None else total
    end = state.first + len(shown)
    more = f" (page={state.first // layout.per_page + 2} shows more)" if end < len(state.results) else ""
    lines = [f"Results {state.first + 1} to {end} of {count}{more}:"]
    wanted = frozenset(words_of(state.query.partition(": ")[2]))
    for position in shown:
        passage = passage_at(state, position)
        about = ", ".join(filter(None, (passage.kind, str(passage.date or ""))))
        lines.append(
            f"[{position}] {passage.title}{f' ({about})' if about else ''}: {_snippet(passage.text, wanted, layout.snippet)}"
        )
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return text[:_DOC_LIMIT].replace("\n", " ")


def show_page(passage: Passage, position: int, layout: SearchLayout) -> str:
    """A passage as a whole."""
    return _line(passage) if layout.pages == "compact" else f"[{position}] {passage.title}\n{passage.text}"


def candidates(state: SearchState) -> list[str]:
    """Names and numbers in the last observation, which trivial baselines use as queries and answers."""
    compact = state.quest.layout.pages == "compact"
    positions = [state.opened] if state.opened >= 0 else state.shown
    found: dict[str, None] = {}
    for position in positions:
        passage = passage_at(state, position)
        texts = [fact.value for fact in facts_of(passage)] if compact else _NAME.findall(passage.text[:3000])
        found.update(dict.fromkeys(text for text in texts if text not in _NO_NAMES))
    return list(found)


class ToldFact(NamedTuple):
    """A fact as a line of a little world tells it."""

    relation: str
    value: str


def facts_of(passage: Passage) -> list[ToldFact]:
    """The facts that a line of a little world tells.

    >>> facts_of(Passage("nira", "heir suki , home ebro"))
    [ToldFact(relation='heir', value='suki'), ToldFact(relation='home', value='ebro')]
    """
    told = [fact.rpartition(" ") for fact in passage.text.split(" , ")]
    return [ToldFact(relation, value) for relation, _, value in told]


def asked_about(question: str, compact: bool) -> list[str]:
    """Return the names in a question."""
    if compact:
        return question.rstrip(" ?").split()[-1:]
    found = _NAME.findall(question[question.find(" ") :])
    return [name for name in found if not name.isdecimal()] or [question]


def sentences_of(text: str) -> list[str]:
    """The sentences of a passage.

    >>> sentences_of("Ebro is a city. It has a mill!")
    ['Ebro is a city.', 'It has a mill!']
    """
    return _SENTENCE.split(text)


def _snippet(text: str, wanted: frozenset[str], most: int) -> str:
    """The beginning of a text or, where another sentence has more of the wanted words, that sentence.

    >>> _snippet("Ebro is a city. It lies by a lake. Its mayor is Suki.", frozenset({"mayor", "ebro", "suki"}), 20)
    '… Its mayor is Suki.'
    >>> _snippet("Ebro is a city. It lies by a lake. Its mayor is Suki.", frozenset({"city"}), 20)
    'Ebro is a city. It …'
    """
    if not most or len(text) <= most:
        return text
    head = text[:most].rsplit(" ", 1)[0]
    best = max(sentences_of(text), key=lambda sentence: len(wanted.intersection(words_of(sentence))))
    if len(wanted.intersection(words_of(best))) <= len(wanted.intersection(words_of(head))):
        return f"{head} …"
    if len(best) <= most:
        return f"… {best}"
    at = min(best.lower().find(word) for word in wanted.intersection(words_of(best)))
    start = max(0, min(at - most // 4, len(best) - most))
    return f"… {best[start : start + most].partition(' ')[2].rpartition(' ')[0]} …"


def _line(passage: Passage) -> str:
    return f"{passage.title} : {passage.text} ."
