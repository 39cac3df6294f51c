"""Callers that understand nothing: words of a request taken for a function, and its words compared with what is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from turnwise.envs import baselines, rivals
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.messages import Message
from turnwise.envs.rivals import Rivals, guessed, is_spoken, of_script, words_of
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall

_ASKS = re.compile(r"\?|^(?:what|which|how|who|when|where|count|tell)\b", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def scan() -> Script:
    """Fetches all that is stored of the kind that a request names, takes the row with most of its words, and acts on it.

    A question it answers with the field that the request names, or with the number of rows that fit equally well.
    """
    general = rivals.scan()
    acted: set[str] = set()

    def play(now: ScriptMoment) -> Message | str:
        if is_spoken(now) or not now.env.tools:
            return general(now)
        heard = now.observation[-1]
        if heard.role != "tool":
            acted.clear()
            acted.add(heard.content)
            return _call(now, _nearest(now.env.tools, heard.content, finding=True), {})
        request, rows = next(iter(acted), now.env.task.prompt), _rows(heard.content)
        if not rows:
            return "Done."
        best = max(rows, key=lambda row: _shared(row, request))
        if _ASKS.search(request):
            return f"It is {_asked(best, request, rows)}."
        tool = _nearest(now.env.tools, request, finding=False)
        return _call(now, tool, {**guessed(tool, request), **_ids(tool, best)})

    return play


def _words(name: str) -> set[str]:
    return words_of(" ".join(_HUMP.split(name)))


def _nearest(tools: Sequence[Tool], text: str, *, finding: bool) -> Tool:
    """The tool that shares most words with a text, of those that fetch or of the others."""
    said = words_of(text)
    own = [one for one in tools if ("find" in _words(one.spec.name)) == finding] or list(tools)
    return max(own, key=lambda one: len((_words(one.spec.name) | words_of(one.spec.description)) & said))


def _rows(text: str) -> list[Mapping[str, Json]]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []  # pyright: ignore


def _shared(row: Mapping[str, Json], request: str) -> int:
    """Count the values of a row that a request says."""
    return sum(str(value).lower() in request.lower() for value in row.values())


def _asked(best: Mapping[str, Json], request: str, rows: Sequence[Mapping[str, Json]]) -> Json:
    named = [name for name in best if _words(name) & words_of(request) and str(best[name]) not in request]
    most = _shared(best, request)
    return best[named[0]] if named else sum(_shared(row, request) == most for row in rows)


def _ids(tool: Tool, row: Mapping[str, Json]) -> dict[str, Json]:
    """The row's identifier for whatever argument is one."""
    names = tool.spec.parameters.get("properties", {})
    return {name: row["id"] for name in names if "id" in _words(name) and "id" in row}


def _call(now: ScriptMoment, tool: Tool, arguments: Mapping[str, Json]) -> Message:
    return Message("assistant", "", (ToolCall(tool.spec.name, dict(arguments), f"call_{now.turn}"),))


RIVALS = Rivals(
    rivals.keyword,
    scan,
    {
        "random": of_script(baselines.random),
        "scan": scan,
        "demonstrator": of_script(baselines.demonstrator),
    },
)
