"""Harmony, which gpt-oss writes: messages in channels, of which those to ``functions.NAME`` are calls.

Thoughts are in the channel ``analysis``, calls and words before them in ``commentary``, the answer in ``final``. A recipient
stands before the channel or after it; a call ends with ``<|call|>``. What is written to a tool in the channel of thoughts is
not carried out, and told. Written from "OpenAI harmony response format" (cookbook.openai.com/articles/openai-harmony, of
2025-08-05, and the README of pypi.org/project/openai-harmony, both read on 2026-11-27) and from the chat template of
gpt-oss as TRL 1.16 carries it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import load_json, value_end

_MESSAGE, _CALL = "<|message|>", "<|call|>"
_FUNCTIONS = "functions."
_OPENS = re.compile(r"<\|start\|>|<\|channel\|>|\A\s*+(?:assistant\s*+)?to=functions\.")
_HEADER = re.compile(
    r"\s*+(?:<\|start\|>\s*+)?(?:assistant)?\s*+(?:to=([^\s<]++)\s*+)?(?:<\|channel\|>\s*+(\w++)\s*+)?(?:to=([^\s<]++)\s*+)?"
    r"(?:<\|constrain\|>\s*+)?(?:\w++\s*+)?"
)
_END = re.compile(r"<\|end\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>|<\|channel\|>)")
_OBJECT = re.compile(r"\s*+\{")
_CALL_END = re.compile(r"\s*+(?:<\|call\|>|<\|end\|>|(?=<\|start\|>)|\Z)")
_USAGE = """To call one, write nothing after it, and its arguments as JSON:
<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>"""


class _Words(NamedTuple):
    """Words, of a channel or outside of all."""

    text: str


class _Called(NamedTuple):
    """A message to a tool: as it stands, to whom, in which channel, and its arguments as they are written."""

    text: str
    recipient: str
    channel: str
    body: str


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read('<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>').calls
    (ToolCall(name='f', arguments={'x': 1}, id='call_0'),)
    >>> read("<|channel|>final<|message|>It is 4.<|return|>").content
    'It is 4.'
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    try:
        for part in _parts(text):
            if isinstance(part, _Words):
                said.append(part.text)
            else:
                calls.append(_call(part, len(calls)))
    except ToolError as error:
        return refused(text, error)
    content = "".join(said)
    return ParsedText(content.strip() if calls else content, tuple(calls))


def render(calls: Sequence[ToolCall]) -> str:
    """
    Raises:
        ToolError: a tool's name cannot be a recipient.
    """
    return "<|start|>assistant".join(map(_written, calls))


def unwrap(text: str) -> str:
    """The words of all messages, without what stands around them; thoughts and calls stay as they are.

    >>> unwrap("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.")
    '<|channel|>analysis<|message|>Hm.<|end|>It is 4.'
    """
    try:
        return "".join(part.text for part in _parts(text))
    except ToolError:
        return text


def _parts(text: str) -> Iterator[_Words | _Called]:
    """The messages of a text, and what stands between them.

    Raises:
        ToolError: a message to a tool is not written to its end.
    """
    place = 0
    while opens := _OPENS.search(text, place):
        yield _Words(text[place : opens.start()])
        header = _HEADER.match(text, opens.start())
        assert header is not None
        recipient, channel = header[1] or header[3] or "", header[2] or ""
        if not text.startswith(_MESSAGE, header.end()):
            if recipient:
                raise ToolError(
                    f"A call is not written to its end: {_MESSAGE} and its arguments are missing."
                )
            place = opens.end()
            yield _Words(text[opens.start() : place])
            continue
        begin = header.end() + len(_MESSAGE)
        if recipient:
            end, place = _body(text, begin)
            yield _Called(text[opens.start() : place], recipient, channel, text[begin:end])
            continue
        ends = _END.search(text, begin)
        words, place = (text[begin : ends.start()], ends.end()) if ends else (text[begin:], len(text))
        yield _Words(f"<|channel|>analysis{_MESSAGE}{words}<|end|>" if channel == "analysis" else words)
    yield _Words(text[place:])


def _body(text: str, begin: int) -> tuple[int, int]:
    """Find the end of a call's arguments, and the end of its message.

    Raises:
        ToolError: something else follows.
    """
    end = value_end(text, begin) if _OBJECT.match(text, begin) else begin
    closes = _CALL_END.match(text, end)
    if closes is None:
        raise ToolError(f"After {_MESSAGE} stand a call's arguments as JSON, and then {_CALL}.")
    return end, closes.end()


def _call(part: _Called, number: int) -> ToolCall:
    name = part.recipient.removeprefix(_FUNCTIONS)
    if part.channel == "analysis":
        raise ToolError(
            f"A call goes to the commentary channel, and this one of {name[:80]} is in that of thoughts."
        )
    arguments = load_json(part.body) if part.body.strip() else {}
    if not isinstance(arguments, dict):
        raise ToolError("A tool call's arguments must be a JSON object.")
    return ToolCall(name, arguments, nth(number), part.body.strip())


def _written(call: ToolCall) -> str:
    if not re.fullmatch(r"[^\s<]+", call.name):
        raise ToolError(f"Harmony has no way to name a tool {call.name[:80]!r}.")
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return f"<|channel|>commentary to={_FUNCTIONS}{call.name} <|constrain|>json{_MESSAGE}{arguments}{_CALL}"


HARMONY = component(
    "dialect", "harmony", about="Messages in channels, calls to functions.NAME, as gpt-oss writes them."
)(Dialect("harmony", read, render, _USAGE, tried=7, ends=(_CALL,), unwrap=unwrap))
