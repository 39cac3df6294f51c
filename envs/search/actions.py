"""Actions of an agent: the tools, how they are read out of a message, and what each does."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from turnwise.envs.acting import call_of
from turnwise.envs.messages import Message
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.index import words_of
from turnwise.envs.search.knobs import SearchLayout
from turnwise.envs.search.render import asked_about, candidates, sentences_of, show_page, show_results
from turnwise.envs.search.state import SearchState, passage_at, shows_all
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import arguments_of
from turnwise.tools.thoughts import without_thoughts

KEPT = 50
"""Number of results that a search keeps."""

_LONGEST_QUERY, _LONGEST_ANSWER, _LONGEST_TEXT = 500, 1000, 50_000
_COUNTED = 2000  # passages that `count` sorts by kind or date
_MANY = 12  # answers and queries that `admissible` lists of each kind
_TAGS = re.compile(r"<(search|answer)>")
_PAGE = re.compile(r"[,;]?\s+\(?page\s*[=:]?\s*(\d{1,4})\)?\s*\Z", re.IGNORECASE)
"""A page that stands among the words of a search."""
_WORDS = {"search": "query", "semantic_search": "query", "filter": "words"}
"""Tool → the argument in which a page may stand."""
_LINE = re.compile(r"(\d{1,11})\]\s*\S.*", re.DOTALL)
"""A line of results, or its beginning: the number of a passage and its title."""
_ABOUT = re.compile(r"\s*\(\w+(?:, \d{1,4})?\)\Z")
"""Text that follows the title of a passage in a line of results."""


def search(query: str, page: int = 1) -> None:
    """Search all passages by keywords (BM25). Further pages show further results."""


def semantic_search(query: str, page: int = 1) -> None:
    """Search all passages by meaning."""


def filter(words: str = "", kind: str = "", since: int = 0, until: int = 0, page: int = 1) -> None:
    """List every passage that contains all the words, if wanted of one kind or dated within these years.

    Words or a kind must be given.
    """


def count(
    words: str = "", kind: str = "", since: int = 0, until: int = 0, by: Literal["", "kind", "date"] = ""
) -> None:
    """Count the passages that contain all the words, in all or by kind or date."""


def open(target: str) -> None:
    """Read a passage as a whole, given by its number in brackets or by its title."""


def find(words: str) -> None:
    """Show the sentences of the open passage that contain any of the words."""


def cite(target: str) -> None:
    """Name a passage that you have read as evidence for your answer."""


def judge(verdict: Literal["yes", "no"]) -> None:
    """Say whether what was retrieved last helps to answer the question."""


def answer(text: str) -> None:
    """Give the answer, as short as possible, and end. Answer "unknown" if no passage tells it."""


_SEARCH = tool(search)
TOOLS = tuple(map(tool, (search, semantic_search, filter, count, open, find, cite, judge, answer)))


class Done(NamedTuple):
    """Outcome of a tool: the next state and what is said; ``judged``: the agent's judgement of a retrieval."""

    state: SearchState
    text: str
    judged: bool | None = None


def read_call(action: Message, tools: Sequence[Tool] = TOOLS) -> ToolCall:
    """The one call in a message, in Search-R1's tags or any other notation.

    As in Search-R1 a message is cut after its first ``</search>``, else after its first ``</answer>``, and the
    first pair of tags in what is left decides. Thoughts between ``<think>`` tags are no action.

    >>> read_call(Message("assistant", "<think>Who?</think> <search>Velmora</search> <answer>x</answer>"))
    ToolCall(name='search', arguments={'query': 'Velmora'}, id='')

    Raises:
        ToolError: there is no call, or more than one.
    """
    if action.tool_calls:
        return call_of(action, tools)
    text = action.content
    if len(text) > _LONGEST_TEXT:
        raise ToolError(f"A message has at most {_LONGEST_TEXT} characters.")
    text = without_thoughts(text)
    for end in ("</search>", "</answer>"):
        if end in text:
            text = text[: text.index(end) + len(end)]
            break
    if tagged := _tagged(text):
        name, said = tagged
        if name == "search" and "page=" in said:
            return ToolCall(name, arguments_of(_SEARCH.spec, said.strip()))
        return ToolCall(name, {"query" if name == "search" else "text": said.strip()})
    return call_of(Message("assistant", text), tools)


def offered(layout: SearchLayout) -> tuple[Tool, ...]:
    """The tools of a task: searching by meaning only where the library can."""
    return tuple(one for one in TOOLS if layout.semantic or one.spec.name != "semantic_search")


def _tagged(text: str) -> tuple[str, str] | None:
    """The first tag that is closed, and what it holds."""
    unclosed: set[str] = set()
    for tag in _TAGS.finditer(text):
        end = -1 if tag[1] in unclosed else text.find(f"</{tag[1]}>", tag.end())
        if end >= 0:
            return tag[1], text[tag.end() : end]
        unclosed.add(tag[1])
    return None


def perform(state: SearchState, call: ToolCall) -> Done:
    """Do what a call asks for; ``answer`` is not handled here.

    Raises:
        ToolError: it cannot be done.
    """
    given = find_tool(TOOLS, call.name).validate(_as_meant(call))
    match call.name:
        case "search" | "semantic_search":
            return _search(state, call.name, given)
        case "filter":
            return _filter(state, given)
        case "count":
            return Done(state, _count(state, given))
        case "open":
            return _open(state, given["target"])
        case "find":
            return Done(state, _find(state, given["words"]))
        case "cite":
            return _cite(state, given["target"])
        case _:
            return _judge(state, given["verdict"] == "yes")


def _as_meant(call: ToolCall) -> ToolCall:
    """A call whose words end in a page, or whose verdict is written large, as what it means."""
    given = dict(call.arguments)
    words = _WORDS.get(call.name, "")
    paged = _PAGE.search(given[words]) if isinstance(given.get(words), str) else None
    if paged and "page" not in given:
        given |= {words: given[words][: paged.start()], "page": int(paged[1])}
    if isinstance(given.get("verdict"), str):
        given["verdict"] = given["verdict"].strip().lower()
    return dataclasses.replace(call, arguments=given)


def answer_text(call: ToolCall) -> str:
    """Return the text of a call of ``answer``.

    Raises:
        ToolError: it says nothing, or too much.
    """
    text: str = find_tool(TOOLS, call.name).validate(call)["text"].strip()
    if not text:
        raise ToolError("An answer must say something; say unknown if no passage tells it.")
    if len(text) > _LONGEST_ANSWER:
        raise ToolError(f"An answer has at most {_LONGEST_ANSWER} characters.")
    return text


def possible(state: SearchState) -> Sequence[str]:
    """Searches and answers that what is shown suggests, and the passages that can be opened."""
    compact = state.quest.layout.pages == "compact"
    names = candidates(state) if state.query or state.opened >= 0 else []
    asked = asked_about(state.question.text, compact)
    found = [("search", name) for name in dict.fromkeys((*asked, *names[:_MANY]))]
    if state.quest.layout.pages == "full":
        found += [("open", str(position)) for position in state.shown]
    found += [("answer", name) for name in dict.fromkeys((*names[:_MANY], UNKNOWN))]
    return [write(verb, name, compact) for verb, name in found]


def write(verb: str, argument: str, compact: bool) -> str:
    """An action as ``verb[argument]``."""
    # With a space before the bracket a word is the same token as on a page (agents/models/small.py).
    return f"{verb}[{argument} ]" if compact else f"{verb}[{argument}]"


def _search(state: SearchState, name: str, given: Mapping[str, Any]) -> Done:
    quest, query = state.quest, given["query"].strip()
    if not query or len(query) > _LONGEST_QUERY:
        raise ToolError(f"A query has 1 to {_LONGEST_QUERY} characters.")
    if name == "search":
        hits = quest.library.search(query, KEPT if not quest.server else quest.layout.per_page)
    elif quest.layout.semantic:
        hits = quest.library.semantic(query, KEPT, quest.layout.semantic)
    else:
        raise ToolError("There is no semantic search here: use search.")
    results = tuple(hit.position for hit in hits)
    return _list(state, f"{name}: {query}", results, given["page"], None)


def _filter(state: SearchState, given: Mapping[str, Any]) -> Done:
    found = _selected(state, given)
    query = f"filter: {given['words']} {given['kind']} {given['since']} {given['until']}"
    return _list(state, query, tuple(found[: 4 * KEPT]), given["page"], len(found))


def _list(state: SearchState, query: str, results: tuple[int, ...], page: int, total: int | None) -> Done:
    first = (page - 1) * state.quest.layout.per_page
    if page < 1 or (results and first >= len(results)):
        raise ToolError(f"There is no page {page}.")
    after = state._replace(
        query=query, results=results, first=first, opened=-1, searches=state.searches + 1, unjudged=True
    )
    if shows_all(state.quest.layout):
        after = after.read(after.shown)
    return Done(after, show_results(after, total))


def _selected(state: SearchState, given: Mapping[str, Any]) -> list[int]:
    if not words_of(given["words"]) and not given["kind"]:
        raise ToolError("Give at least one word that is no mere filler, or a kind.")
    found = state.quest.library.select(given["words"], given["kind"], given["since"], given["until"])
    return found.tolist()


def _count(state: SearchState, given: Mapping[str, Any]) -> str:
    found = _selected(state, given)
    if not given["by"]:
        return f"{len(found)} passages."
    counted = Counter(str(getattr(passage_at(state, position), given["by"])) for position in found[:_COUNTED])
    said = ", ".join(f"{name or 'none'}: {n}" for name, n in sorted(counted.items())[:100])
    cut = f" (of the first {_COUNTED})" if len(found) > _COUNTED else ""
    return f"{len(found)} passages; by {given['by']}{cut}: {said or 'none'}."


def _open(state: SearchState, target: str) -> Done:
    position = _position(state, target)
    passage = passage_at(state, position)
    after = state._replace(opened=position, unjudged=True).read((position,))
    return Done(after, show_page(passage, position, state.quest.layout))


def _find(state: SearchState, words: str) -> str:
    if state.opened < 0:
        raise ToolError("No passage is open: open one first.")
    wanted = set(words_of(words))
    found = [
        sentence
        for sentence in sentences_of(passage_at(state, state.opened).text)
        if wanted & set(words_of(sentence))
    ]
    return "\n".join(found) or "No sentence of this passage contains these words."


def _cite(state: SearchState, target: str) -> Done:
    position = _position(state, target)
    if position not in state.seen:
        raise ToolError("Cite only what you have read: open it first.")
    if position in state.cited:
        raise ToolError("This passage is cited already.")
    return Done(state._replace(cited=(*state.cited, position)), f"Cited [{position}].")


def _judge(state: SearchState, trusted: bool) -> Done:
    if not state.unjudged:
        raise ToolError("Nothing was retrieved since the last judgement.")
    return Done(
        state._replace(unjudged=False), "Noted: go on." if trusted else "Noted: search again.", trusted
    )


def _position(state: SearchState, target: str) -> int:
    """The passage that a number or a title means; titles among the results come first."""
    library, wanted = state.quest.library, target.strip().strip("[]").strip()
    line = _LINE.fullmatch(wanted)
    number = line[1] if line else wanted
    if number.isdecimal() and len(number) < 12 and library.passage(int(number)) is not None:
        return int(number)
    titles = dict.fromkeys((wanted, _ABOUT.sub("", wanted)))
    for title in titles:
        for position in state.results:
            if passage_at(state, position).title.casefold() == title.casefold():
                return position
    found = next(
        (at for title in titles if title and (at := library.titled(title[:_LONGEST_QUERY])) is not None), None
    )
    if found is None:
        raise ToolError(f"There is no passage {wanted[:60]!r}: give the number in brackets, or a title.")
    return found
