"""Tiny models of every architecture that transformers can make, and whether the learner is the model that it trains.

Each is made with what scales its logits, embeddings and residual stream set to other than 1, and with weights that make large logits, so
that a factor that is left out shows. Compared are log-probabilities: what is learned from, what an engine has after it was given
the weights, and what is loaded from a checkpoint, each with the model's own forward pass.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnwise.agents.models.loading import load_causal, take_over
from turnwise.agents.policies.model import ChatFormat
from turnwise.errors import TurnwiseError
from turnwise.trainers.learn.sync import canary_sequences, check_learner, learned_logprobs, trainer_logprobs
from turnwise.trainers.learn.whole import checkpoint_tensors
from turnwise.trainers.run.checkpoint import save_model

VOCABULARY = 64
NEAR = 1e-4
MOST = 100_000_000
"""Weights of a model that counts as tiny."""
SIZES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "model_dim", "word_embed_proj_dim", "embedding_size"), 32
    ),
    **dict.fromkeys(
        (
            "intermediate_size",
            "ffn_dim",
            "n_inner",
            "d_ff",
            "ffn_hidden_size",
            "moe_intermediate_size",
            "expert_ffn_hidden_size",
        ),
        64,
    ),
    **dict.fromkeys(
        ("decoder_ffn_dim", "encoder_ffn_dim", "shared_expert_intermediate_size", "shared_intermediate_size"),
        64,
    ),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), 2
    ),
    **dict.fromkeys(
        (
            "num_attention_heads",
            "n_head",
            "n_heads",
            "num_heads",
            "decoder_attention_heads",
            "encoder_attention_heads",
        ),
        2,
    ),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "attention_head_dim", "v_head_dim", "global_head_dim", "swa_head_dim"), 16),
    **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim"), 8),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "sliding_window"), 128
    ),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "moe_num_shared_experts"), 1),
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 8,
    "qk_head_dim": 16,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_d_state": 8,
    "mamba_d_ssm": 64,
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "state_size": 8,
    "lru_width": 32,
    "num_kv_shared_layers": 0,
    "dim_model_base": 8,
    "d_kv": 16,
}
SCALES: Mapping[str, Any] = {
    "logit_scale": 0.25, "logits_scaling": 0.5, "final_logit_softcapping": 5.0, "logits_soft_cap": 3.0, "lm_head_multiplier": 0.25,
    "logits_mup_width_multiplier": 3.0, "embedding_multiplier": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.3, "scale_emb": 3,
    "scale_depth": 1.4, "attn_logit_softcapping": 20.0, "mup_width_multiplier": 2.0, "mup_embedding_multiplier": 2.0, "embedding_scale": 2.0,
    "key_multiplier": 0.5, "attention_in_multiplier": 1.5, "attention_out_multiplier": 0.5, "ssm_in_multiplier": 1.5, "ssm_out_multiplier": 0.5,
}  # fmt: skip


class ArchitectureGaps(NamedTuple):
    """An architecture: gaps of log-probabilities in nats, the fields that scale it, or why it was refused or not made."""

    architecture: str
    model: str
    scales: dict[str, Any]
    learner: float | None = None
    engine: float | None = None
    checkpoint: float | None = None
    refused: str = ""
    not_made: str = ""

    @property
    def holds(self) -> bool:
        """True if all agree, or the architecture was refused by name."""
        gaps = (self.learner, self.engine, self.checkpoint)
        return bool(self.refused) or all(gap is not None and gap <= NEAR for gap in gaps)


def architectures() -> Iterator[str]:
    """The kinds of models that transformers has a causal language model for."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES

    yield from sorted(NAMES)


def tiny(architecture: str) -> tuple[Any, dict[str, Any]]:
    """A model of this kind with random weights, and which of its fields scale something."""
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = _config(CONFIG_MAPPING[architecture])
    with torch.device("meta"):
        size = sum(
            p.numel() for p in AutoModelForCausalLM.from_config(config, trust_remote_code=False).parameters()
        )
    if size > MOST:
        raise ValueError(f"{size} weights, since its sizes have names of their own")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    parts = [config, config.get_text_config()]
    scales = {
        name: value for part in parts for name, value in SCALES.items() if getattr(part, name, None) == value
    }
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.mul_(6 if "embed" in name or "head" in name else 2)
    return model.float().eval(), scales


def _config(kind: Any) -> Any:
    """The config of this class at its smallest."""
    usual = kind()
    given = {name: value for name, value in {**SIZES, **SCALES}.items() if hasattr(usual, name)}
    for name, value in vars(usual).items():
        if name in (
            "layer_types",
            "layers_block_type",
            "mlp_layer_types",
            "block_types",
            "attn_layer_period",
        ) and isinstance(value, list):
            given[name] = value[:1] + value[-1:]
        elif name.endswith("token_id") and isinstance(value, int):
            given[name] = value % VOCABULARY
    for name, part in vars(usual).items():
        if name == "text_config" and part is not None:
            given[name] = _config(type(part)).to_dict()
    accepted = inspect.signature(kind.__init__).parameters
    loose = any(one.kind is one.VAR_KEYWORD for one in accepted.values())
    return kind(**{name: value for name, value in given.items() if loose or name in accepted})


def examine(architecture: str) -> ArchitectureGaps:
    """Make a model of this kind and compare."""
    try:
        model, scales = tiny(architecture)
        own = trainer_logprobs(model, canary_sequences(VOCABULARY, 0))
        assert own.isfinite().all(), "its log-probabilities are no numbers"
    except Exception as error:  # noqa: BLE001 (sizes of ours that do not fit this kind)
        return ArchitectureGaps(
            architecture, "", {}, not_made=f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        )
    found = ArchitectureGaps(architecture, type(model).__name__, scales)
    try:
        check_learner(model)
        return found._replace(
            learner=_gap(learned_logprobs(model, canary_sequences(VOCABULARY, 0)), own),
            **_elsewhere(model, own),
        )
    except TurnwiseError as error:
        return found._replace(refused=error.cause[:160])


def _elsewhere(model: Any, own: Any) -> dict[str, float]:
    """The gaps of a model that was given the weights, and of one that was saved and loaded."""
    sequences = canary_sequences(VOCABULARY, 0)
    torch.manual_seed(1)
    engine = type(model)(model.config).float().eval()
    if wrong := take_over(engine, dict(checkpoint_tensors(model))):
        raise TurnwiseError(f"These weights do not fit: {', '.join(wrong[:3])}.", "Report this architecture.")
    with tempfile.TemporaryDirectory(prefix="turnwise-architecture-") as folder:
        save_model(Path(folder), model, _NoTokenizer(), ChatFormat())
        saved = load_causal(folder, torch.float32).eval()
    return {
        "engine": _gap(trainer_logprobs(engine, sequences), own),
        "checkpoint": _gap(trainer_logprobs(saved, sequences), own),
    }


def _gap(one: Any, other: Any) -> float:
    return (one - other).abs().max().item()


class _NoTokenizer:
    def save_pretrained(self, folder: Path) -> None:
        """Nothing: no text is read."""
