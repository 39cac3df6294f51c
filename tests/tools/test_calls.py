"""Tool calls as models write them, well and badly."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.tasks.core import canonical
from turnwise.tools.core import ToolCall, ToolError, tool
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.notations import read_written


def search(query: str, limit: int = 5) -> str:
    """Look words up."""
    return query * limit


def wait() -> None:
    """Do nothing."""


TOOLS = [tool(search), tool(wait)]


def tagged(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


def called(arguments: str) -> str:
    return tagged(f'{{"name": "search", "arguments": {arguments}}}')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.sampled_from(["query", "{", "</tool_call>"]), json_values), max_size=3))
def test_what_is_well_written_is_read(arguments: list[dict[str, object]]) -> None:
    calls = tuple(ToolCall("search", given, f"call_{n}") for n, given in enumerate(arguments))
    text = "I look. " + "\n".join(
        tagged(json.dumps({"name": c.name, "arguments": c.arguments})) for c in calls
    )
    parsed = HERMES.parse(text)
    assert parsed.calls == calls
    assert parsed.error is None
    assert parsed.content == ("I look." if calls else text)


def test_brackets_and_tags_inside_strings_are_no_structure() -> None:
    query = "{[" * 500 + '</tool_call><tool_call>"'
    assert HERMES.parse(called(json.dumps({"query": query}))).calls[0].arguments == {"query": query}


def test_arguments_may_be_left_out() -> None:
    assert HERMES.parse(tagged('{"name": "wait"}')).calls == (ToolCall("wait", {}, "call_0"),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (called('{"query": NaN}'), "NaN is not JSON"),
        (called('{"query": -Infinity}'), "-Infinity is not JSON"),
        (called('{"query": 1e999}'), "too large"),
        (called('{"query": "a", "query": "b"}'), "a key occurs twice"),
        (called('{"x": {"a": 1, "a": 2}}'), "a key occurs twice"),
        (called('{"query": "\\ud800"}'), "half of a surrogate pair"),
        (called('{"\\udfff": 1}'), "half of a surrogate pair"),
        (called('{"query": "a\\u0000b"}'), "NUL"),
        (called('{"query": "a\0b"}'), "not valid JSON"),
        (called("[1]"), "must be a JSON object"),
        (called('"red"'), "must be a JSON object"),
        (called('{"query": ' + "9" * 5000 + "}"), "not valid JSON"),
        (tagged("[]"), 'A tool call is {"name"'),
        (tagged('{"name": 3}'), 'A tool call is {"name"'),
        (tagged(""), "not valid JSON"),
        (tagged("search(red)"), "not valid JSON"),
        (tagged('{"name": "search"} or so'), "not valid JSON"),
        ('<tool_call>{"name": "search"}', "not closed"),
        (called("{}") + "<tool_call>", "not closed"),
    ],
)
def test_what_is_badly_written_is_explained(text: str, why: str) -> None:
    parsed = HERMES.parse(text)
    assert parsed.calls == ()
    assert parsed.content == text
    assert why in (parsed.error or "")
    with pytest.raises(ToolError, match="tool call"):
        read_written(text, TOOLS)


def test_a_literal_escape_is_not_a_nul() -> None:
    assert HERMES.parse(called('{"query": "\\\\u0000"}')).calls[0].arguments == {"query": "\\u0000"}


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        called("[" * DEEP + "]" * DEEP),
        called('{"a":' * DEEP + "1" + "}" * DEEP),
        tagged("[" * DEEP),
        "<tool_call>" * DEEP,
        "<tool_call></tool_call>" * DEEP,
        tagged('"' + '\\"' * DEEP),
        tagged('"' * DEEP),
        called(json.dumps({"query": "x" * 10 * DEEP})),
        "search[" * DEEP,
        "search[" + "] " * DEEP + "x",
        " " * DEEP + "[",
    ],
)  # fmt: skip
def test_huge_input_is_read_or_refused(text: str) -> None:
    HERMES.parse(text)
    with contextlib.suppress(ToolError):
        assert read_written(text, TOOLS).calls == ()


def test_too_deep_is_said() -> None:
    assert "too deeply" in (HERMES.parse(called("[" * 50 + "]" * 50)).error or "")


@given(st.text(alphabet=st.sampled_from('<tool_call>/{}[]":,\\ u0d8a1eNn\0'), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    parsed = HERMES.parse(f"<tool_call>{text}</tool_call>")
    assert bool(parsed.calls) != bool(parsed.error)
    for call in parsed.calls:
        canonical(dict(call.arguments)).encode()  # what is accepted can be logged
