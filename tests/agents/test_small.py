"""A model from scratch is a model like any other."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

import pytest
import torch
import transformers

from turnwise.agents.models.small import HEAD_DIMS, build_small_model, train_tokenizer
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.tools.core import ToolCall, tool

TEXTS = [
    text
    for n in range(200)
    for text in (
        f"Find a red scarf in size {n % 40} for less than ${n % 50}.99.",
        f"Page {n % 7}\n[{n % 9}] wool scarf, red, ${n % 50}.99\n[{n % 9 + 1}] next page",
        "search[red scarf]",
        f"click[{n % 9}]",
    )
]


def look(query: str) -> None:
    """Look words up."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small_model(
        tmp_path_factory.mktemp("small"), TEXTS, vocab_size=400, layers=2, width=64, heads=2, context=256
    )


def fingerprint(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_it_loads_as_any_model_does_and_speaks(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = Renderer(tokenizer).start([Message("user", "Find a red scarf.")])
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    assert logits.shape == (len(ids), len(tokenizer))
    assert torch.isfinite(logits).all()
    # Untrained: nearly uniform, and no token is more likely than one may hope.
    assert torch.log_softmax(logits, -1).exp().max() < 0.1
    assert 300 < model.config.vocab_size == len(tokenizer) <= 400  # no id without a token
    assert not model.config.tie_word_embeddings
    assert model.model.layers[0].self_attn.q_proj.bias is not None
    assert model.config.max_position_embeddings == tokenizer.model_max_length == 256
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_the_loaded_tokenizer_is_the_trained_one(folder: Path) -> None:
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    trained = train_tokenizer(TEXTS, vocab_size=400, context=256)
    for text in [*TEXTS[:40], "Ünseen wörds 中 🙂\x00\n\n  x", "<|end|><tool_call>{}</tool_call>"]:
        ids = loaded.encode(text, add_special_tokens=False)
        assert ids == trained.encode(text, add_special_tokens=False)
        assert loaded.decode(ids) == text


def test_the_same_arguments_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    build = functools.partial(
        build_small_model, texts=TEXTS, vocab_size=400, layers=2, width=64, heads=2, context=256
    )
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    again = build(tmp_path / "again")
    assert torch.equal(torch.random.get_rng_state(), before)
    other = build(tmp_path / "other", seed=1)
    assert fingerprint(again) == fingerprint(folder)
    differing = {name for name, print_ in fingerprint(other).items() if fingerprint(folder)[name] != print_}
    assert differing == {"model.safetensors"}


def test_embeddings_can_be_tied(tmp_path: Path) -> None:
    folder = build_small_model(
        tmp_path, TEXTS[:50], vocab_size=300, layers=1, width=32, heads=1, tie_embeddings=True
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_frequent_numbers_are_one_token_wherever_they_stand() -> None:
    tokenizer = train_tokenizer(TEXTS, vocab_size=600)
    places = ["size 12", "[12]", "click[12]", "$12.99", "12"]
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in places]
    shared = set.intersection(*map(set, encoded))
    assert [tokenizer.decode([token]) for token in shared] == ["12"]


def test_structure_costs_three_tokens_a_turn() -> None:
    tokenizer = train_tokenizer(TEXTS, vocab_size=400)
    renderer = Renderer(tokenizer, tools_format="none")
    talk = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    reply = renderer.reply_ids(talk[1])
    extension = renderer.extend(talk, 1, reply[-1])
    assert len(reply) + len(extension.ids) == 3 + len("bc")
    assert renderer.append_only


def test_tools_and_their_results_can_be_said() -> None:
    tokenizer = train_tokenizer(TEXTS, vocab_size=400)
    renderer = Renderer(tokenizer)
    call = Message("assistant", "", (ToolCall("look", {"query": "red"}, "call_0"),))
    talk = [
        Message("system", "Shop."),
        Message("user", "Go."),
        call,
        Message("tool", "scarf", tool_call_id="call_0"),
    ]
    text = tokenizer.decode(list(renderer.start(talk, [tool(look)])))
    assert isinstance(text, str)
    told, _, rest = text.partition("<|user|>")
    assert json.loads(told.removeprefix("<|system|>").partition("\n")[0])["name"] == "look"
    assert told.endswith("<|system|>Shop.")
    assert rest == (
        'Go.<|assistant|><tool_call>{"name": "look", "arguments": {"query": "red"}}</tool_call><|end|>'
        "<|tool|>scarf<|assistant|>"
    )
    assert renderer.parse(renderer.reply_ids(call)) == call


@pytest.mark.parametrize(("width", "heads"), [(128, 3), (64, 4), (100, 2), (32, 64)])
def test_sizes_that_vllm_cannot_run_are_refused(width: int, heads: int, tmp_path: Path) -> None:
    with pytest.raises(TurnwiseError, match="which vLLM cannot run"):
        build_small_model(tmp_path / "no", TEXTS, width=width, heads=heads)
    assert not (tmp_path / "no").exists()


def test_a_vocabulary_without_room_is_refused() -> None:
    with pytest.raises(TurnwiseError, match="vocab_size=200 is too small"):
        train_tokenizer(TEXTS, vocab_size=200)


@pytest.mark.slow
def test_head_sizes_are_those_of_vllm() -> None:
    attention = pytest.importorskip("vllm.v1.attention.backends.cpu_attn", exc_type=ImportError)
    assert set(HEAD_DIMS) <= set(attention.CPUAttentionBackend.get_supported_head_sizes())
