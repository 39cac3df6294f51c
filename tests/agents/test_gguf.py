"""Models in GGUF are converted once, to the bits that transformers unpacks; a registered name finds one that a package carries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lazily import Lazily, needs

from turnwise.agents.models.finding import find_model
from turnwise.agents.models.loading import load_causal, load_tokenizer
from turnwise.errors import TurnwiseError

needs("gguf", "gguf is not installed: pip install 'turnwise[smol]'")
gguf = Lazily("gguf")
WIDTH, HEADS, INNER, LAYERS = 64, 2, 96, 1
LETTERS = [chr(code) for code in range(ord("!"), ord("~") + 1)]
TOKENS = [*LETTERS, "Ġ", "Ċ", "th", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>' }}{% endif %}"
)


def pack(path: Path, seed: int = 0) -> Path:
    """A llama of one layer, its matrices in Q8_0, as llama.cpp writes one."""
    import numpy as np

    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * (len(TOKENS) - 2) + [3, 3])
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(len(TOKENS) - 2)
    writer.add_eos_token_id(len(TOKENS) - 1)
    writer.add_chat_template(TEMPLATE)
    shapes = {
        "token_embd": (len(TOKENS), WIDTH), "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (WIDTH // 2, WIDTH),
        "blk.0.attn_v": (WIDTH // 2, WIDTH), "blk.0.attn_output": (WIDTH, WIDTH), "blk.0.ffn_gate": (INNER, WIDTH),
        "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER),
    }  # fmt: skip
    for name, shape in shapes.items():
        blocks = gguf.quantize(rng.normal(size=shape).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "turnwise" / "models"


def same_as_transformers(folder: str, file: Path) -> None:
    """Every weight, and the tokens of a text, are those of a model that transformers loads from the file itself."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16)
    ours = load_causal(folder, torch.bfloat16).state_dict()
    assert ours.keys() == theirs.state_dict().keys()
    for name, weight in theirs.state_dict().items():
        assert ours[name].dtype == weight.dtype == torch.bfloat16
        assert torch.equal(ours[name], weight), name
    text = "Hello,  world! <|im_start|>the\nthird<|im_end|> 12345"
    tokenizer, read = load_tokenizer(folder), AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    assert tokenizer.encode(text) == read.encode(text)
    assert (tokenizer.chat_template, tokenizer.eos_token_id) == (read.chat_template, read.eos_token_id)


@pytest.mark.slow
def test_a_gguf_file_is_a_model_of_the_bits_that_transformers_unpacks(tmp_path: Path, cache: Path) -> None:
    file = pack(tmp_path / "m.gguf")
    folder = find_model(str(file))
    assert Path(folder).parent == cache
    same_as_transformers(folder, file)
    written = (Path(folder) / "model.safetensors").stat().st_mtime_ns
    assert find_model(str(tmp_path)) == folder  # the folder that holds one file
    assert (Path(folder) / "model.safetensors").stat().st_mtime_ns == written
    pack(file, seed=1)
    assert find_model(str(file)) != folder  # other weights under the same name
    pack(tmp_path / "n.gguf")
    with pytest.raises(TurnwiseError, match=r"2 GGUF files(.|\n)*m\.gguf, n\.gguf"):
        find_model(str(tmp_path))


@pytest.mark.slow
def test_two_that_ask_at_once_get_one_whole_folder(tmp_path: Path, cache: Path) -> None:
    file = pack(tmp_path / "m.gguf")
    (cache / ".writing-m").mkdir(parents=True)  # of a process that was killed
    with ThreadPoolExecutor(
        2
    ) as pool:  # the lock is of the file, and holds between threads as between processes
        first, second = pool.map(find_model, [str(file)] * 2)
    assert first == second
    assert [one.name for one in cache.iterdir() if one.is_dir()] == [Path(first).name]
    load_causal(first, "bfloat16")


def test_a_damaged_gguf_file_leaves_nothing_in_the_cache(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF and no more")
    with pytest.raises(TurnwiseError, match=r"m\.gguf cannot be loaded(.|\n)*safetensors"):
        find_model(str(tmp_path / "m.gguf"))
    assert [one for one in cache.iterdir() if one.is_dir()] == []


def test_a_registered_name_comes_before_a_folder_that_is_called_the_same(
    smollm2: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "smollm2").mkdir()
    (tmp_path / "smollm2" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert find_model("smollm2") == smollm2
    assert Path(find_model("./smollm2")).resolve() == tmp_path / "smollm2"


@pytest.mark.full
def test_smollm2_has_the_bits_that_transformers_unpacks(smollm2: str) -> None:
    from turnwise.agents.models.named.smollm2 import smollm2 as carried

    same_as_transformers(smollm2, carried())


@pytest.mark.slow
def test_weights_of_smollm2_are_what_its_blocks_stand_for(smollm2: str) -> None:
    """By the package gguf, without transformers: the last layer's matrix of a kind that nothing permutes."""
    import torch
    from safetensors import safe_open

    from turnwise.agents.models.named.smollm2 import smollm2 as carried

    packed = {one.name: one for one in gguf.GGUFReader(carried()).tensors}["blk.29.ffn_down.weight"]
    unpacked = torch.from_numpy(gguf.dequantize(packed.data, packed.tensor_type)).bfloat16()
    with safe_open(Path(smollm2) / "model.safetensors", framework="pt") as tensors:
        assert torch.equal(tensors.get_tensor("model.layers.29.mlp.down_proj.weight"), unpacked)


def test_the_viewer_finds_the_tokeniser_of_a_registered_name_and_converts_nothing(
    smollm2: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from turnwise.trainers.view.told import tokenizer_of

    assert tokenizer_of(tmp_path, "torch:smollm2") == Path(smollm2) / "tokenizer.json"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tokenizer_of(tmp_path, "torch:smollm2") is None
    assert not [found for found in tmp_path.rglob("*") if found.is_file()]
