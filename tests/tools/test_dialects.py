"""Dialects of tool calling: what is written is read again, what is broken is explained, in bounded time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.errors import NotFoundError
from turnwise.tasks.core import canonical
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.registry import dialect_names, dialects, get_dialect, read_calls

FIELDS = {
    "query": {"type": "string"},
    "limit": {"type": "integer"},
    "ratio": {"type": "number"},
    "exact": {"type": "boolean"},
    "words": {"type": "array"},
    "where": {"type": "object"},
}
SPECS = (
    ToolSpec("search", "Look words up.", {"type": "object", "properties": FIELDS}),
    ToolSpec("wait", "Do nothing.", {"type": "object", "properties": {}}),
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20) | st.sampled_from(
    ["</parameter>", "</arg_value>", "<|call|>", "<|end|>", "<search>", "</search>", "a < b && c", "&lt;", "[TOOL_CALLS]", "'''", '"}; {"', "\n x \n", "5", "null"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
of_type = {
    "string": texts,
    "integer": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "array": st.lists(values, max_size=3),
    "object": st.dictionaries(texts, values, max_size=3),
}
calls = st.builds(
    ToolCall,
    st.just("search"),
    st.fixed_dictionaries({}, optional={name: of_type[field["type"]] for name, field in FIELDS.items()}),
) | st.builds(ToolCall, st.just("wait"))


def plain(found: tuple[ToolCall, ...]) -> list[tuple[str, str]]:
    return [(call.name, canonical(dict(call.arguments))) for call in found]


@pytest.mark.slow
@pytest.mark.parametrize("name", dialect_names())
@settings(max_examples=60)
@given(given=st.lists(calls, min_size=1, max_size=3))
def test_what_is_written_is_read(name: str, given: list[ToolCall]) -> None:
    dialect = get_dialect(name)
    try:
        text = dialect.render(given)
    except ToolError:
        said = [value for call in given for value in call.arguments.values()]
        ends = {"qwen-xml": "</parameter>", "glm": "</arg_value>"}[name]
        assert any(ends in str(value) for value in said)
        return
    parsed = dialect.parse(text, SPECS)
    assert parsed.error is None
    assert plain(parsed.calls) == plain(tuple(given))
    assert parsed.content == ""


@pytest.mark.parametrize("name", ["glm", "harmony", "hermes", "mistral", "qwen-xml", "tags"])
def test_words_around_calls_are_content(name: str) -> None:
    dialect = get_dialect(name)
    parsed = dialect.parse("I look. " + dialect.render([ToolCall("search", {"query": "red"})]), SPECS)
    assert parsed.content == "I look."
    assert parsed.calls[0].arguments == {"query": "red"}


@pytest.mark.parametrize("name", dialect_names())
@given(text=st.text(st.characters(exclude_characters="<[{`|")))
def test_text_without_marks_is_content(name: str, text: str) -> None:
    parsed = get_dialect(name).parse(text, SPECS)
    assert parsed == (text, (), None)


NATIVE = {
    "glm": "<think></think>\n<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>red</arg_value>\n<arg_key>limit</arg_key>\n"
    "<arg_value>5</arg_value>\n</tool_call>",
    "harmony": "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary to=functions.search "
    '<|constrain|>json<|message|>{"query": "red", "limit": 5}<|call|>',
    "hermes": '<tool_call>\n{"name": "search", "arguments": {"query": "red", "limit": 5}}\n</tool_call>',
    "llama": '<|python_tag|>{"name": "search", "parameters": {"query": "red", "limit": 5}}<|eom_id|>',
    "mistral": '[TOOL_CALLS] [{"name": "search", "arguments": {"query": "red", "limit": 5}, "id": "abcdefghi"}]</s>',
    "python": '```tool_code\nprint(search("red", limit=5))\n```',
    "qwen-xml": "<tool_call>\n<function=search>\n<parameter=query>\nred\n</parameter>\n<parameter=limit>\n5\n"
    "</parameter>\n</function>\n</tool_call>",
    "tags": "<search><query>red</query><limit>5</limit></search>",
}
OTHER_FORMS = [
    (
        "glm",
        "<tool_call>search<arg_key>query</arg_key><arg_value>red</arg_value><arg_key>limit</arg_key><arg_value>5</arg_value></tool_call>",
    ),
    (
        "harmony",
        ' to=functions.search<|channel|>commentary json<|message|>{"query": "red", "limit": 5}<|call|>',
    ),
    (
        "harmony",
        '<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.search<|message|>{"query": "red", "limit": 5}',
    ),
    ("llama", '{"name": "search", "parameters": {"query": "red", "limit": 5}}'),
    ("llama", '{"name": "search", "arguments": {"query": "red", "limit": 5}}'),
    ("mistral", '[TOOL_CALLS]search[ARGS]{"query": "red", "limit": 5}'),
    ("mistral", '[TOOL_CALLS]search[CALL_ID]abc[ARGS]{"query": "red", "limit": 5}</s>'),
    ("mistral", '[TOOL_CALLS]search{"query": "red", "limit": 5}'),
    ("python", "[search(query='red', limit=5)]"),
    ("python", "<|python_start|>[search(query='red', limit=5)]<|python_end|>"),
    ("python", "```tool_code\nresult = search(query='red', limit=5)\n```"),
    (
        "qwen-xml",
        "<function=search><parameter=query>red</parameter><parameter=limit>5</parameter></function>",
    ),
]


@pytest.mark.parametrize(("name", "text"), [*NATIVE.items(), *OTHER_FORMS])
def test_the_forms_of_published_templates_are_read(name: str, text: str) -> None:
    (call,) = get_dialect(name).parse(text, SPECS).calls
    assert (call.name, call.arguments) == ("search", {"query": "red", "limit": 5})
    (again,) = read_calls(text, SPECS).calls
    assert (again.name, again.arguments) == (call.name, call.arguments)


def test_a_tag_alone_gives_its_text_to_the_first_parameter() -> None:
    assert get_dialect("tags").parse("<search> 5 < 6 </search>", SPECS).calls[0].arguments == {
        "query": "5 < 6"
    }


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("glm", "<tool_call>", "the name of a tool"),
        ("glm", "<tool_call>two words</tool_call>", "stand its arguments"),
        ("glm", "<tool_call>f<arg_key>x</arg_key><arg_value>1", "not closed"),
        ("glm", "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value>", "and then </tool_call>"),
        ("glm", "<tool_call>f" + "<arg_key>x</arg_key><arg_value>1</arg_value>" * 2 + "</tool_call>", "given twice"),
        ("harmony", "<|channel|>commentary to=functions.f <|constr", "not written to its end"),
        ("harmony", "<|channel|>commentary to=functions.f<|message|>{} and so on", "arguments as JSON"),
        ("harmony", "<|channel|>commentary to=functions.f<|message|>x=1<|call|>", "arguments as JSON"),
        ("harmony", '<|channel|>commentary to=functions.f<|message|>{"x": 1, "x": 2}<|call|>', "twice"),
        ("harmony", "<|channel|>analysis to=functions.f<|message|>{}<|call|>", "channel, and this one of f is in that of thoughts"),
        ("llama", '{"name": "f", "parameters": [1]}', "must be a JSON object"),
        ("llama", '{"name": "f", "parameters": {"x": NaN}}', "NaN is not JSON"),
        ("llama", '{"name": "f", "parameters": {}} and so on', "nothing but the calls"),
        ("llama", "<|python_tag|>print(1)", "nothing but the calls"),
        ("llama", '{"name": "f", "parameters": {"x": 1}', "not valid JSON"),
        ("mistral", '[TOOL_CALLS] [{"name": "f"', "not valid JSON"),
        ("mistral", "[TOOL_CALLS]", "No call follows"),
        ("mistral", "[TOOL_CALLS]f(x=1)", "name[ARGS]"),
        ("python", "[f(x=open('a'))]", "must be a literal"),
        ("python", "[f(x=1e999)]", "must be a literal"),
        ("python", "[f(x=-1e999)]", "must be a literal"),
        ("python", "[f(x=0x" + "f" * 10_000 + ")]", "too large"),
        ("python", "[f" + ".a" * 1000 + "(x=1)]", "nested too deeply"),
        ("python", "[f(x=b'a')]", "must be a literal"),
        ("python", "[f(x=1, **{'x': 2})]", "given twice"),
        ("python", "[f(x={[1]: 2})]", "must be a literal"),
        ("python", "[f(1)]", "arguments by name"),
        ("python", "[f(x=1), 2]", "A call is written"),
        ("python", "[f(x=1]]", "not valid Python"),
        ("python", "```tool_code\nimport os\n```", "no other Python"),
        ("python", "```tool_code\n```", "holds no call"),
        ("qwen-xml", "<tool_call>search</tool_call>", "<function=NAME>"),
        ("qwen-xml", "<function=f><parameter=x>1", "not closed"),
        ("qwen-xml", "<function=f><parameter=x>1</parameter><parameter=x>1</parameter></function>", "given twice"),
        ("qwen-xml", "<function=f><parameter=x>1</parameter>", "write </function>"),
        ("tags", "<search>red", "not closed"),
        ("tags", "<wait>x</wait>", "takes no arguments"),
        ("tags", "<search><query>a</query><query>a</query></search>", "given twice"),
        ("tags", "<search><query>a</query> or so</search>", "no argument of it"),
    ],
)  # fmt: skip
def test_what_is_badly_written_is_explained(name: str, text: str, why: str) -> None:
    parsed = get_dialect(name).parse(text, SPECS)
    assert parsed.calls == ()
    assert parsed.content == text
    assert why in (parsed.error or "")


DEEP = 100_000
HUGE = [
    '{"name": ' + "[" * DEEP,
    '{"name": "f", "parameters": ' + '{"a":' * DEEP,
    "{}; " * DEEP,
    "[TOOL_CALLS] " + "[" * DEEP,
    "[TOOL_CALLS]" * DEEP,
    "[TOOL_CALLS]" + "f{}" * DEEP,
    "[f(" * DEEP,
    "[f(x=" + "[" * DEEP + "]" * DEEP + ")]",
    "[f(x=" + "-" * DEEP + "1)]",
    "[f" + ".a" * 40_000 + "()]",
    "[f(x=" + "9" * DEEP + ")]",
    "```tool_code\n" * DEEP,
    "<function=f>" * DEEP,
    "<function=f>" + "<parameter=x>" * DEEP,
    "<search>" * DEEP,
    "<search>" + "<query>" * DEEP + "</search>",
    "<tool_call>" * DEEP,
    "<tool_call>f" + "<arg_key>x</arg_key><arg_value>" * DEEP,
    "<|channel|>commentary to=functions.f<|message|>" + '{"a":' * DEEP,
    "<|channel|>final<|message|>" * DEEP,
]


@pytest.mark.parametrize("text", HUGE, ids=[text[:20] for text in HUGE])
def test_huge_input_is_read_or_refused(text: str) -> None:
    read_calls(text, SPECS)


alphabet = ["<search>", "</search>", "<function=f>", "<parameter=x>", "</parameter>", "</function>", "[TOOL_CALLS]",
            "[f(", "x=", ")]", "```tool_code\n", "```", '{"name":', '"f"', '"parameters":', "{", "}", "[", "]", ",",
            ";", "1", "-", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
            "<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", " to=functions.f", "analysis", "final", "'", '"', "\\", "\0", "\ud800", " ", "\n", "a", "**", "<|python_tag|>"]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(alphabet), max_size=20).map("".join))
def test_any_text_is_read_or_explained(text: str) -> None:
    for dialect in dialects():
        parsed = dialect.parse(text, SPECS)
        assert not (parsed.calls and parsed.error)
        assert parsed.calls or parsed.content == text or dialect.name == "harmony"
        for call in parsed.calls:
            canonical([call.name, dict(call.arguments)]).encode()  # what is accepted can be logged


@pytest.mark.parametrize("thought", ["", "<|channel|>analysis<|message|>Four?<|end|><|start|>assistant"])
@pytest.mark.parametrize("end", ["<|return|>", "<|end|>", ""])
def test_words_in_channels_are_said_without_the_channels(thought: str, end: str) -> None:
    parsed = get_dialect("harmony").parse(f"{thought}<|channel|>final<|message|>It is 4.{end}", SPECS)
    assert parsed == (f"{thought.removesuffix('<|start|>assistant')}It is 4.", (), None)


def test_an_unknown_dialect_is_named_with_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'hermes'"):
        get_dialect("hermess")


def test_names_that_are_no_python_names_find_back_to_their_tools() -> None:
    spec = ToolSpec("get-time", "", {"properties": {"time zone": {"type": "string"}}})
    call = ToolCall("get-time", {"time zone": "UTC"})
    text = get_dialect("python").render([call])
    assert text == '[get_time(**{"time zone": "UTC"})]'
    assert plain(get_dialect("python").parse(text, [spec]).calls) == plain((call,))
    assert json.loads(plain((call,))[0][1]) == {"time zone": "UTC"}
