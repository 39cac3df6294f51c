"""Which dialect a chat template writes is found out by trial, and tools can be called as text in any."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall, tool
from turnwise.tools.dialects.registry import dialect_names

CONTROL = (
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    "<|return|>",
    "<|call|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|start|>",
    "<|end|>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
)
TURNS = (
    "{%- if tools %}{{- '<|im_start|>system\n' }}{% for one in tools %}{{- (one | tojson) + '\n' }}{% endfor %}"
    "{{- '<|im_end|>\n' }}{% endif %}{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + m.content }}"
    "{%- if m.tool_calls %}{% for c in m.tool_calls %}CALL{% endfor %}{% endif %}{{- '<|im_end|>\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}"
)
WRITTEN = {
    "hermes": "{{- '<tool_call>\n' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) "
    "+ '\n</tool_call>' }}",
    "llama": "{{- '<|python_tag|>' + ({'name': c.function.name, 'parameters': c.function.arguments} | tojson) }}",
    "mistral": "{{- '[TOOL_CALLS]' + c.function.name + '[ARGS]' + (c.function.arguments | tojson) }}",
    "python": "{{- '[' + c.function.name + '(' }}{% for k, v in c.function.arguments.items() %}"
    "{{- k + '=' + (v | tojson) }}{% if not loop.last %}, {% endif %}{% endfor %}{{- ')]' }}",
    "qwen-xml": "{{- '<tool_call>\n<function=' + c.function.name + '>\n' }}{% for k, v in c.function.arguments.items() %}"
    "{{- '<parameter=' + k + '>\n' + (v if v is string else v | tojson) + '\n</parameter>\n' }}{% endfor %}"
    "{{- '</function>\n</tool_call>' }}",
}
OWN = {
    "harmony": "{%- if tools %}<|start|>developer<|message|>{% for one in tools %}{{ one | tojson }}{% endfor %}<|end|>{% endif %}"
    "{%- set last = namespace(name='') %}{%- for m in messages %}{%- if m.role == 'assistant' and m.tool_calls %}"
    "{%- for c in m.tool_calls %}{%- set last.name = c.function.name %}{{- '<|start|>assistant to=functions.' + c.function.name }}"
    "{{- '<|channel|>commentary json<|message|>' + (c.function.arguments | tojson) + '<|call|>' }}{% endfor %}"
    "{%- elif m.role == 'assistant' %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content }}"
    "{{- '<|return|>' if loop.last else '<|end|>' }}"
    "{%- elif m.role == 'tool' %}{{- '<|start|>functions.' + last.name + ' to=assistant<|channel|>commentary<|message|>' + m.content + '<|end|>' }}"
    "{%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{%- if add_generation_prompt %}<|start|>assistant{% endif %}",
    "glm": "{%- if tools %}{{- '<|user|>\n' }}{% for one in tools %}{{- (one | tojson) + '\n' }}{% endfor %}{% endif %}"
    "{%- for m in messages %}{{- ('<|observation|>' if m.role == 'tool' else '<|' + m.role + '|>') + '\n' + m.content }}"
    "{%- for c in m.tool_calls or [] %}{{- '\n<tool_call>' + c.function.name + '\n' }}{% for k, v in c.function.arguments.items() %}"
    "{{- '<arg_key>' + k + '</arg_key>\n<arg_value>' + (v if v is string else v | tojson) + '</arg_value>\n' }}{% endfor %}"
    "{{- '</tool_call>' }}{% endfor %}{% endfor %}{%- if add_generation_prompt %}{{- '<|assistant|>\n' }}{% endif %}",
}
"""Whole templates of dialects in which a call ends with a token of its own."""
LETTERS = pre_tokenizers.ByteLevel.alphabet()
UNKNOWN = "{{- 'CALLING ' + c.function.name + ' WITH ' + (c.function.arguments | tojson) }}"


def look(query: str, limit: int = 5) -> str:
    """Look words up."""
    return query * limit


@functools.cache
def renderer(written: str, tools_format: Any = "auto") -> Renderer:
    backend = Tokenizer(models.BPE(vocab={one: n for n, one in enumerate(sorted(LETTERS))}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in CONTROL])
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        chat_template=OWN.get(written) or TURNS.replace("CALL", written),
    )
    return Renderer(made, tools_format=tools_format)


CALL = ToolCall("look", {"query": 'a "b" < c\n', "limit": 2}, "call_0")


@pytest.mark.parametrize("name", [*WRITTEN, *OWN])
def test_the_dialect_of_a_template_is_found_out(name: str) -> None:
    made = renderer(WRITTEN.get(name, name))
    assert made.template.tools_format == "template"
    assert made.template.dialect.name == name
    ids = made.reply_ids(Message("assistant", "", (CALL,)))
    (read,) = made.parse(ids, [tool(look)]).tool_calls
    assert (read.name, read.arguments) == (CALL.name, CALL.arguments)


@pytest.mark.parametrize("name", [*WRITTEN, *OWN])
def test_turn_by_turn_gives_the_tokens_of_the_whole(name: str) -> None:
    made, tools = renderer(WRITTEN.get(name, name)), [tool(look)]
    talk = [
        Message("user", "u"),
        Message("assistant", "", (CALL,)),
        Message("tool", "r", tool_call_id="call_0"),
    ]
    first, said = made.start(talk[:1], tools), made.reply_ids(talk[1])
    then = made.extend(talk, 1, said[-1], tools)
    assert not then.fresh
    assert (*first, *said, *then.ids) == made.start(talk, tools)


@pytest.mark.parametrize(("name", "ends"), [("harmony", "<|call|>"), ("glm", "<|observation|>")])
def test_a_call_ends_with_its_own_token_and_a_reply_that_ended_is_not_ended_again(
    name: str, ends: str
) -> None:
    made, tools = renderer(name), [tool(look)]
    end = made.tokenizer.convert_tokens_to_ids(ends)
    assert end in made.stop_ids
    assert made.reply_ids(Message("assistant", "", (CALL,)))[-1] == end
    said = [Message("user", "u"), Message("assistant", "four"), Message("user", "v")]
    ids = made.reply_ids(said[1])
    shown = str(made.tokenizer.decode([*ids, *made.extend(said, 1, ids[-1], tools).ids]))
    assert (
        shown
        == {
            "harmony": "<|channel|>final<|message|>four<|return|><|start|>user<|message|>v<|end|><|start|>assistant",
            "glm": "four<|user|>\nv<|assistant|>\n",
        }[name]
    )


def test_the_words_of_a_channel_are_the_message_where_tools_are_not_the_template_s() -> None:
    for way in ("none", "hermes"):
        made = renderer("harmony", way)
        ids = made.tokenizer.encode(
            "<|channel|>final<|message|>search[red]<|return|>", add_special_tokens=False
        )
        assert made.parse(ids, [tool(look)]).content == "search[red]"


def test_where_a_template_writes_something_unknown_tools_are_text() -> None:
    made = renderer(UNKNOWN)
    assert (made.template.tools_format, made.template.dialect.name) == ("text", "hermes")


@pytest.mark.parametrize("name", dialect_names())
def test_any_dialect_can_be_asked_for(name: str) -> None:
    made, tools = renderer(UNKNOWN, name), [tool(look)]
    shown = str(made.tokenizer.decode(list(made.start([Message("user", "u")], tools))))
    assert "Look words up." in shown
    assert made.template.dialect.usage in shown
    ids = made.reply_ids(Message("assistant", "", (CALL,)))
    (read,) = made.parse(ids, tools).tool_calls
    assert (read.name, read.arguments) == (CALL.name, CALL.arguments)
    half = made.template.dialect.render([CALL])
    cut = made.parse(made.reply_ids(Message("assistant", half[: len(half) // 2])), tools)
    assert not cut.tool_calls
    assert cut.malformed
