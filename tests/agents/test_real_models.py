"""What the files of real models say is followed: end tokens, template options, the clock, rows, forms that are no model."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from turnwise.agents.models.finding import find_model
from turnwise.agents.models.loading import load_config, load_tokenizer, longest_sequence
from turnwise.agents.models.vocabulary import check_rows, end_ids
from turnwise.agents.policies.model import ChatFormat, make_renderer, read_chat_format, write_chat_format
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tools.core import ToolCall, tool

CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|observation|>", "<|call|>")
ADDED = ("<think>", "</think>", "<tool_call>", "</tool_call>")
HEAD = (
    "{%- if tools %}{{- '<|im_start|>system\n' }}{% for t in tools %}{{- (t | tojson) + '\n' }}{% endfor %}{{- '<|im_end|>\n' }}{% endif %}"
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + m.content }}"
    "{%- for c in m.tool_calls or [] %}{{- '<tool_call>' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) + '</tool_call>' }}{% endfor %}"
    "{{- '<|im_end|>\n' }}{%- endfor %}"
)
ASKS = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}OPEN{% endif %}"
THINKS = HEAD + ASKS.replace("OPEN", "{{- '<think>\n' }}")
DATED = (
    "{{- '<|im_start|>system\nToday is ' + strftime_now('%Y-%m-%d') + '<|im_end|>\n' }}"
    + HEAD
    + ASKS.replace("OPEN", "")
)
OPTION = HEAD + ASKS.replace(
    "OPEN",
    "{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{% endif %}",
)


def buy(item: str) -> None:
    """Buy it."""


TOOLS = (tool(buy),)


def tokenizer(template: str, control: tuple[str, ...] = CONTROL) -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={one: n for n, one in enumerate(letters)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in control])
    backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", chat_template=template)


def ids(made: Renderer, text: str) -> list[int]:
    return made.tokenizer.encode(text, add_special_tokens=False)


# --- thoughts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools_format", ["template", "hermes", "tags", "llama", "qwen-xml", "none"])
def test_a_thought_that_the_prompt_opens_calls_nothing(tools_format: str) -> None:
    made = Renderer(tokenizer(THINKS), tools_format=tools_format)
    prompt = made.start([Message("user", "u")], TOOLS)
    weighed, done = (made.template.dialect.render([ToolCall("buy", {"item": one})]) for one in "AB")
    said = made.parse(ids(made, f"I could {weighed} but no.\n</think>\n\n{done}"), TOOLS, prompt)
    assert said.content.startswith(f"<think>\nI could {weighed}")
    if tools_format != "none":
        assert [call.arguments["item"] for call in said.tool_calls] == ["B"]
        assert not made.parse(
            ids(made, f"{weighed} or"), TOOLS, prompt
        ).tool_calls  # cut before it was closed


def test_a_demonstration_closes_the_thought_that_the_prompt_opens_and_is_read_as_what_it_is() -> None:
    made = Renderer(tokenizer(THINKS))
    prompt = made.start([Message("user", "u")], TOOLS)
    call = Message("assistant", "", (ToolCall("buy", {"item": "B"}),))
    for shown in (call, Message("assistant", "<think>\nWhy not?\n</think>\n\n", call.tool_calls)):
        read = made.parse(made.reply_ids(shown), TOOLS, prompt)
        assert [one.arguments["item"] for one in read.tool_calls] == ["B"]
    assert (
        made.parse(made.reply_ids(Message("assistant", "Yes.")), TOOLS, prompt).content
        == "<think>\n\n</think>\n\nYes."
    )


# --- ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"generation_config.json": {"eos_token_id": [5, 7]}, "config.json": {"eos_token_id": 5}}, (5, 7)),
        ({"config.json": {"text_config": {"eos_token_id": [3]}}}, (3,)),
        ({"generation_config.json": {"eos_token_id": None}, "config.json": {"eos_token_id": -1}}, ()),
        ({"generation_config.json": {"eos_token_id": True}}, ()),
        ({}, ()),
    ],
)
def test_the_ends_are_those_of_both_configs(
    tmp_path: Path, files: dict[str, Any], ends: tuple[int, ...]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert end_ids(tmp_path) == ends


def test_a_reply_ends_where_the_model_says_and_defaults_of_configs_that_are_text_end_none(
    tmp_path: Path,
) -> None:
    made = tokenizer(THINKS)
    call, word = made.convert_tokens_to_ids("<|call|>"), made.convert_tokens_to_ids("a")
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [call, word]}))
    renderer = make_renderer(made, tmp_path, ChatFormat())
    assert renderer.stop_ids == tuple(sorted((made.eos_token_id, call)))  # type: ignore[type-var]
    assert renderer.ends == "<|im_end|> or <|call|>"
    assert renderer.parse([word, call]).content == "a"


def test_a_damaged_generation_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(TurnwiseError, match=r"generation_config.json is no JSON"):
        end_ids(tmp_path)


# --- the clock ----------------------------------------------------------------------------------------------------


def test_a_template_is_told_one_time_always() -> None:
    made = Renderer(tokenizer(DATED), clock=datetime(2024, 5, 6, 23, 59))
    assert "Today is 2024-05-06" in made.tokenizer.decode(list(made.start([Message("user", "u")])))
    assert made.append_only
    assert made.reply_ids(Message("assistant", "a")) == Renderer(tokenizer(DATED)).reply_ids(
        Message("assistant", "a")
    )


def test_without_a_clock_the_time_stands_as_soon_as_the_renderer_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers.utils import chat_template_utils

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2099, 1, 1)

    made = Renderer(tokenizer(DATED))
    before = made.start([Message("user", "u")])
    monkeypatch.setattr(chat_template_utils, "datetime", Tomorrow)
    assert made.start([Message("user", "u")]) == before
    talk = [Message("user", "u"), Message("assistant", "a"), Message("user", "v")]
    assert not made.extend(talk, 1, None).fresh  # a row of tokens goes on past midnight


# --- options ------------------------------------------------------------------------------------------------------


def test_options_of_a_template_reach_it_and_are_kept_beside_the_model(tmp_path: Path) -> None:
    asked = ChatFormat(template={"enable_thinking": False}, clock="2024-05-06T07:08:09")
    write_chat_format(tmp_path, asked)
    assert read_chat_format(tmp_path) == asked
    for told, shown in ((asked, True), (ChatFormat(), False)):
        made = make_renderer(tokenizer(OPTION), None, told)
        prompt = str(made.tokenizer.decode(list(made.start([Message("user", "u")]))))
        assert prompt.endswith("</think>\n\n") == shown


def test_an_option_that_the_template_does_not_read_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="enable_thinking"):
        Renderer(tokenizer(OPTION), options={"enable_thinkng": False})
    with pytest.raises(TurnwiseError, match="sampled here"):
        make_policy("scripted:gold", template={"enable_thinking": False})


def test_a_template_that_drops_what_a_message_says_is_refused() -> None:
    parts = HEAD.replace(
        "m.content }}", "'' }}{% if m.content is not string %}{{- m.content[0].text }}{% endif %}"
    )
    with pytest.raises(TurnwiseError, match="does not write what a message says"):
        Renderer(tokenizer(parts + ASKS.replace("OPEN", "")))


def test_a_clock_that_is_no_time_is_refused() -> None:
    with pytest.raises(TurnwiseError, match="Write a time"):
        make_renderer(tokenizer(DATED), None, ChatFormat(clock="yesterday"))


# --- rows ---------------------------------------------------------------------------------------------------------


def test_tokens_without_rows_are_refused_if_anything_writes_them() -> None:
    made = tokenizer(THINKS)
    check_rows(made, len(made), "m")
    check_rows(made, len(made) + 64, "m")  # padding
    with pytest.raises(TurnwiseError, match=r"'<think>' with the id \d+ and 3 more") as refused:
        check_rows(made, made.convert_tokens_to_ids("<think>"), "m")
    assert "resize_token_embeddings" in str(refused.value)
    made.add_special_tokens({"pad_token": "[PAD]"})
    check_rows(made, len(made) - 1, "m")  # nothing writes it


# --- forms --------------------------------------------------------------------------------------------------------


def test_what_is_no_model_is_named_with_the_way_to_one(tmp_path: Path) -> None:
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora/adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "OWNER/BASE"}))
    with pytest.raises(
        TurnwiseError, match=r"an adapter and no model(.|\n)*OWNER/BASE(.|\n)*merge_and_unload"
    ):
        find_model(str(tmp_path / "lora"))


def test_a_tokeniser_without_a_backend_is_named_with_the_way_to_one() -> None:
    class MistralCommonBackend:
        chat_template = None

    with pytest.raises(
        TurnwiseError, match=r"MistralCommonBackend has no `tokenizers` backend(.|\n)*tokenizer\.json"
    ):
        Renderer(MistralCommonBackend())  # type: ignore[arg-type]


def test_program_code_of_a_model_is_never_asked_about(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps(
            {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine", "AutoTokenizer": ["mine.T", None]}}
        )
    )
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["mine.T", None]}})
    )
    (tmp_path / "mine.py").write_text("raise SystemExit('it ran')")
    for load in (load_config, load_tokenizer):
        with pytest.raises(TurnwiseError, match="code of its own, which is never run"):
            load(tmp_path)
    assert "[y/N]" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"model_type": "gemma3", "text_config": {"max_position_embeddings": 77}}, 77),
        ({"model_type": "llama", "max_position_embeddings": 66}, 66),
        ({"model_type": "gpt2", "n_positions": 55}, 55),
        ({"model_type": "mpt", "max_seq_len": 44}, 44),
        ({"model_type": "bloom"}, None),
    ],
)
def test_the_longest_sequence_is_read_off_whatever_form_a_config_has(
    tmp_path: Path, config: dict[str, Any], longest: int | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert longest_sequence(load_config(tmp_path)) == longest
