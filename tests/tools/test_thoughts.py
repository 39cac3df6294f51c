"""A call inside a thought is only weighed: in every dialect, and in text, however the thought was opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, tool
from turnwise.tools.dialects.registry import dialect_names, get_dialect, read_calls
from turnwise.tools.notations import read_written
from turnwise.tools.thoughts import left_open, read_beside_thoughts


def buy(item: str) -> None:
    """Buy it."""


def think(thought: str) -> None:
    """Note it."""


TOOLS = (tool(buy),)
SPECS = tuple(one.spec for one in TOOLS)
WEIGHED, MADE = ToolCall("buy", {"item": "A"}, "call_0"), ToolCall("buy", {"item": "B"}, "call_0")
PAIRS = [
    ("<think>\n", "\n</think>\n\n"),
    ("<THINK>", "</THINK>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("◁think▷", "◁/think▷"),
]


def meant(found: ParsedText) -> tuple[list[tuple[str, object]], bool]:
    return [(call.name, dict(call.arguments)) for call in found.calls], found.error is not None


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize(("opens", "closes"), PAIRS)
def test_a_message_with_a_thought_calls_what_it_calls_without(name: str, opens: str, closes: str) -> None:
    dialect = get_dialect(name)
    weighed = dialect.render([WEIGHED])
    thoughts = (f"I could {weighed} but no.", weighed, "I write <tool_call> or [TOOL_CALLS] or <buy>.", "Hm.")
    for rest in (
        dialect.render([MADE]),
        dialect.render([MADE, MADE]),
        "Nothing fits.",
        weighed[: len(weighed) // 2],
    ):
        alone = meant(dialect.parse(rest, SPECS))
        for thought in thoughts:
            told = f"{thought}{closes}{rest}"
            assert meant(dialect.parse(opens + told, SPECS)) == alone  # the opening tag is in the reply
            assert meant(dialect.parse(told, SPECS, opens)) == alone  # or it is in the prompt
            assert dialect.parse(told, SPECS, opens).content.startswith(opens + thought)  # which is kept


@pytest.mark.parametrize("name", dialect_names())
def test_a_thought_is_closed_by_its_tag_where_nobody_knows_how_it_was_opened(name: str) -> None:
    dialect = get_dialect(name)
    weighed, made = dialect.render([WEIGHED]), dialect.render([MADE])
    for thought in (f"I could {weighed} but no.", weighed, "I write <tool_call> or <|python_tag|>."):
        text = f"{thought}\n</think>\n\n{made}"
        assert meant(dialect.parse(text, SPECS)) == meant(dialect.parse(made, SPECS))
        assert meant(read_calls(text, SPECS)) == meant(read_calls(made, SPECS))


@pytest.mark.parametrize("name", dialect_names())
def test_of_a_thought_that_is_cut_nothing_is_carried_out(name: str) -> None:
    dialect = get_dialect(name)
    weighed = dialect.render([WEIGHED])
    for text, opened in (
        (f"<think>\nI could {weighed} or", ""),
        (f"I could {weighed} or", "<think>\n"),
        (weighed, "[THINK]"),
    ):
        assert meant(dialect.parse(text, SPECS, opened)) == ([], False)


@pytest.mark.parametrize("name", ["hermes", "qwen-xml", "tags"])
def test_thoughts_between_calls_are_none_and_stay_in_their_place(name: str) -> None:
    dialect = get_dialect(name)
    weighed, made = dialect.render([WEIGHED]), dialect.render([MADE])
    parsed = dialect.parse(f"a {made} b <think>{weighed}</think> c {made} d <think>{weighed}", SPECS)
    assert [call.arguments["item"] for call in parsed.calls] == ["B", "B"]
    assert parsed.content == f"a  b <think>{weighed}</think> c  d <think>{weighed}"


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize(
    "item",
    [
        "<think>",
        "</think>",
        "a </think> b <think> c",
        "<think>x</think>",
        "\n<think>\nx\n</think>\n",
        "[THINK]x",
    ],
)
def test_tags_in_arguments_are_data(name: str, item: str) -> None:
    dialect = get_dialect(name)
    if name == "tags":  # which writes them as entities
        item = item.strip("\n")
    calls = [ToolCall("buy", {"item": item}, "call_0"), ToolCall("buy", {"item": f"2 {item}"}, "call_1")]
    for before, opened in (("", ""), ("<think>no</think>", ""), ("no</think>", "<think>")):
        read = dialect.parse(before + dialect.render(calls), SPECS, opened)
        assert [call.arguments["item"] for call in read.calls] == [item, f"2 {item}"]


def test_a_tool_that_is_called_think_can_be_called_by_its_tag() -> None:
    tags = get_dialect("tags")
    specs = [tool(think).spec, *SPECS]
    assert [call.name for call in tags.parse("<think>so</think><buy>B</buy>", specs).calls] == [
        "think",
        "buy",
    ]
    assert [call.name for call in tags.parse("so</think><buy>B</buy>", specs, "<think>\n").calls] == ["buy"]


@pytest.mark.parametrize(
    "weighed", ["buy[A]", "I could buy[A].", '{"name": "buy", "arguments": {"item": "A"}}']
)
def test_as_text_too_what_stands_in_a_thought_is_no_action(weighed: str) -> None:
    for text in (
        f"<think>{weighed}</think>buy[B]",
        f"{weighed}\nno\n</think>\nbuy[B]",
        f"[THINK]{weighed}[/THINK]\nbuy[B]",
    ):
        assert [call.arguments["item"] for call in read_written(text, TOOLS).calls] == ["B"]


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("<|im_start|>assistant\n<think>\n", "<think>\n"),
        ("[/INST][THINK]", "[THINK]"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>analysis<|message|>"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ""),
        ("write <think> first<|im_end|>\n<|im_start|>assistant\n", ""),
        ("", ""),
    ],
)
def test_only_a_tag_at_the_end_of_a_prompt_opens_a_thought(prompt: str, opened: str) -> None:
    assert left_open(prompt) == opened


@given(
    st.lists(
        st.sampled_from(
            [
                "<think>",
                "</think>",
                "[THINK]",
                "<tool_call>",
                '{"name": "buy"}',
                "</tool_call>",
                "a",
                '"',
                "\n",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_any_order_of_tags_is_read_or_refused(text: str) -> None:
    for name in dialect_names():
        parsed = get_dialect(name).parse(text, SPECS)
        assert not (parsed.calls and parsed.error)


def test_reading_takes_time_linear_in_the_tags() -> None:
    for shape in (
        "<think></think>",
        "<tool_call><think>",
        "<tool_call></think>",
        "<think>",
        "</think>",
        '"</think>',
        "<tool_call>[</think>",
    ):
        for name in dialect_names():
            read, counted = get_dialect(name).read, [0]

            def count(
                text: str, specs: object, counted: list[int] = counted, read: object = read
            ) -> ParsedText:
                counted[0] += len(text)
                return read(text, specs)  # pyright: ignore

            read_beside_thoughts(count, shape * 2000, SPECS)
            assert counted[0] <= 40 * len(shape * 2000), (name, shape)
