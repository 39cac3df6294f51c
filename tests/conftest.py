"""A small random model, and one vLLM engine for the whole session, since it takes seconds to start."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from turnwise.agents.policies.vllm import VllmEngine

VOCAB, CONTEXT = 320, 256


@pytest.fixture(scope="session")
def random_model() -> Callable[..., Any]:
    """``random_model(kind="llama", tied=True, seed=0)``: a causal model with 320 tokens, context 256."""

    def build(kind: str = "llama", *, tied: bool = True, seed: int = 0) -> Any:
        import torch
        import transformers

        family = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind]
        config = getattr(transformers, f"{family}Config")(
            vocab_size=VOCAB,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            initializer_range=0.2,  # far from uniform, so that wrong weights show
            tie_word_embeddings=tied,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return getattr(transformers, f"{family}ForCausalLM")(config).eval()

    return build


@pytest.fixture(scope="session")
def tied_checkpoint(random_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tied")
    random_model(tied=True).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def vllm_engine(tied_checkpoint: Path) -> Iterator[VllmEngine]:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    with contextlib.suppress(ImportError):  # an environment that uses numba; vLLM must start beside it
        importlib.import_module("llvmlite.binding")
    from turnwise.agents.policies.vllm import VllmEngine

    engine = VllmEngine(tied_checkpoint, context_length=CONTEXT, kv_cache_gib=0.25)
    yield engine
    engine.close()
