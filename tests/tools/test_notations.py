"""An action is the same in whatever notation it is written; what is none is explained."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.envs.acting import call_of, calls_of
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall, ToolError, tool
from turnwise.tools.notations import how_to_write, read_whole, read_written


def search(query: str, page: int = 1, kind: str = "") -> None:
    """Look words up."""


def swap(first: int, second: int) -> None:
    """Swap two things."""


def send(to: list[str], text: str) -> None:
    """Send something."""


def wait() -> None:
    """Do nothing."""


TOOLS = [tool(search), tool(swap), tool(send), tool(wait)]
RED = ("search", {"query": "red scarf"})
SECOND = ("search", {"query": "red", "page": 2})
SWAPPED = ("swap", {"first": 3, "second": 1})


def said(text: str) -> list[tuple[str, dict[str, object]]]:
    found = calls_of(Message("assistant", text), TOOLS, 8)
    given = {one.spec.name: one for one in TOOLS}
    checked = [(call.name, given[call.name].validate(call)) for call in found]
    return [
        (name, {k: v for k, v in values.items() if v not in ("", 1) or name == "swap"})
        for name, values in checked
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("search[red scarf]", [RED]),
        ("Search[red scarf]", [RED]),
        ('search["red scarf"]', [RED]),
        ("search(red scarf)", [RED]),
        ('search("red scarf")', [RED]),
        ('search(query="red scarf")', [RED]),
        ('search({"query": "red scarf"})', [RED]),
        ('search{"query": "red scarf"}', [RED]),
        ('search[{"query": "red scarf"}]', [RED]),
        ("I think so.\nAction: search[red scarf]", [RED]),
        ("Thought: I look.\n**Action:** `search[red scarf]`", [RED]),
        ("Action 2: search[red scarf].", [RED]),
        ("Action: search\nAction Input: red scarf", [RED]),
        ('Action: search\nAction Input: {"query": "red scarf"}', [RED]),
        ("Action: search red scarf", [RED]),
        ("<think>search[blue]</think>search[red scarf]", [RED]),
        ("<action>search[red scarf]</action>", [RED]),
        ("```\nsearch[red scarf]\n```", [RED]),
        ('I look.\n```json\n{"name": "search", "arguments": {"query": "red scarf"}}\n```', [RED]),
        ('{"name": "search", "arguments": {"query": "red scarf"}}', [RED]),
        ('{"search": {"query": "red scarf"}}', [RED]),
        ('{"type": "function", "function": {"name": "search", "arguments": "{\\"query\\": \\"red scarf\\"}"}}', [RED]),
        ('Thought: x\nAction:\n```\n{"action": "search", "action_input": "red scarf"}\n```', [RED]),
        ('<tool_call>{"name": "search", "arguments": {"query": "red scarf"}}</tool_call>', [RED]),
        ("<search>red scarf</search>", [RED]),
        ("search[red, page=2]", [SECOND]),
        ("search[query=red, page=2]", [SECOND]),
        ("search(query='red', page=2)", [SECOND]),
        ("swap[3, 1]", [SWAPPED]),
        ("swap[3 1]", [SWAPPED]),
        ("swap(3, 1)", [SWAPPED]),
        ("swap[second=1, first=3]", [SWAPPED]),
        ("wait", [("wait", {})]),
        ("wait[]", [("wait", {})]),
        ("Action: wait()", [("wait", {})]),
        ("search[red scarf]\nswap[3, 1]", [RED, SWAPPED]),
        ("search[red scarf] and then swap(3, 1)", [RED, SWAPPED]),
        ('[search(query="red scarf"), swap(3, 1)]', [RED, SWAPPED]),
        ('[{"name": "search", "arguments": {"query": "red scarf"}}, {"name": "wait"}]', [RED, ("wait", {})]),
        ("send[Ann and Bo, Hello, both]", [("send", {"to": ["Ann", "Bo"], "text": "Hello, both"})]),
    ],
)  # fmt: skip
def test_it_is_understood(text: str, meant: list[tuple[str, dict[str, object]]]) -> None:
    assert said(text) == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "No action found. Write one of: search[query], swap[first, second], send[to, text], wait[]."),
        ("search red", "No action found"),
        ("search[red", "No action found"),
        ("I think: search[red]", "No action found"),
        ("search[re\0d]", "no text"),
        ("search[\ud800]", "no text"),
        ("serch[red]", "There is no tool 'serch'. Did you mean 'search'?"),
        ("Action: serch(red)", "There is no tool 'serch'. Did you mean 'search'?"),
        ("12[red]", "No action found"),
        ("wait[long]", "wait takes no arguments"),
        ("search[a]\nsearch[b]", "A turn takes one action: this message has 2, and none was carried out."),
        ("search[a]" * 100, "too many"),
    ],
)
def test_what_is_no_action_is_explained(text: str, why: str) -> None:
    with pytest.raises(ToolError) as caught:
        call_of(Message("assistant", text), TOOLS)
    assert why in str(caught.value)


@given(
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\0[](){}\"'`,=<> \u2028\u2029\x85")
    )
)
def test_a_verb_takes_its_argument_as_it_stands(argument: str) -> None:
    (found,) = read_written(f"search[{argument}]", TOOLS).calls
    assert found.arguments == {"query": argument.strip()}


@given(
    st.dictionaries(
        st.sampled_from(["query", "page", "kind"]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.integers(),
        min_size=1,
    )
)
def test_json_says_anything(arguments: dict[str, object]) -> None:
    (found,) = read_written(json.dumps({"name": "search", "arguments": arguments}), TOOLS).calls
    assert found == ToolCall("search", arguments, "call_0")


@given(st.text(alphabet=st.sampled_from("search[](){}:\"'`\n,= Action<>/|x1"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_written(text, TOOLS).calls
    except ToolError:
        return
    for call in found:
        json.dumps(dict(call.arguments)).encode()


def test_a_program_is_no_call() -> None:
    assert not read_whole("def search(x):\n    return x\nsearch(3)", TOOLS).calls
    assert read_whole("search(3)", TOOLS).calls


def test_usage_names_what_is_needed() -> None:
    assert how_to_write([tool(swap)]) == "No action found. Write one of: swap[first, second]."
