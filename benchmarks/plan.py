"""Memory that `turnwise plan` reckons, beside what learners took: whole updates on a CPU, every tensor counted.

``python benchmarks/plan.py [--out FILE]``; settings that FILE has already stay in it. Each setting makes an update of several micro-batches through the learner as it is, after one that
made its moments. Measured is the most that all tensors took at a time (``turnwise.trainers.bench.held.LiveBytes``): weights and moments, and
beside them gradients, activations and what passes. Kernels' own memory, allocators and libraries are not in either number. The formulas were written
beside models of three layers, 128 wide, with rows of 512 tokens in micro-batches of 2,048; and SmolLM2's two and four layers with all weights trained showed that the
gradients of a tied matrix were missing. No other setting was looked at.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.agents.models.small import inner_width
from turnwise.machine import describe
from turnwise.trainers.bench.held import LiveBytes
from turnwise.trainers.bench.prefix import advantages_of, objective_of
from turnwise.trainers.bench.prefix_batches import Workload, made_up
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.memory import LearnerSetting, MicroBatch, learner_bytes
from turnwise.trainers.learn.options import OptimizerOptions, Share
from turnwise.trainers.run.planning import micro_batch
from turnwise.trainers.run.shapes import shape_of
from turnwise.trainers.signal.core import SignalSetup
from turnwise.trainers.signal.value import ValueSignal


def _scratch(layers: int, heads: int, vocabulary: int) -> dict[str, Any]:
    """Return the config of a recipe's model from nothing, with heads of 32."""
    return {
        "model_type": "llama", "attention_bias": True, "num_hidden_layers": layers, "hidden_size": 32 * heads, "intermediate_size": inner_width(32 * heads),
        "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": vocabulary, "tie_word_embeddings": False,
    }  # fmt: skip


def _smollm2(layers: int) -> dict[str, Any]:
    """Return SmolLM2-135M's config with fewer layers."""
    return {
        "model_type": "llama", "num_hidden_layers": layers, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
        "num_key_value_heads": 3, "vocab_size": 49_152, "tie_word_embeddings": True,
    }  # fmt: skip


QWEN3 = {
    "model_type": "qwen3", "num_hidden_layers": 3, "hidden_size": 160, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64, "vocab_size": 4096, "tie_word_embeddings": True,
}  # fmt: skip


class PlanSetting(NamedTuple):
    """A model, a group of rows that begin alike, and how it is learned; ``targets`` have adapters, all where there are none."""

    config: dict[str, Any]
    shared: int
    own: int
    members: int
    micro_tokens: int
    share: Share = "rows"
    checkpointing: bool = False
    rank: int = 0
    targets: tuple[str, ...] = ()
    half: bool = False
    half_base: bool = False
    head: bool = False

    def setting(self) -> LearnerSetting:
        targets = frozenset(self.targets) or None
        return LearnerSetting(self.half, self.rank, targets, self.half_base, self.checkpointing)

    def options(self) -> OptimizerOptions:
        precision = "bfloat16" if self.half else "float32"
        return OptimizerOptions(micro_tokens=self.micro_tokens, share=self.share, precision=precision)


SETTINGS = {
    "scratch, 2 layers of 256": PlanSetting(_scratch(2, 8, 1024), 200, 184, 24, 4096),
    "scratch, 4 layers of 192, few tokens at a time": PlanSetting(_scratch(4, 6, 2048), 230, 26, 8, 512),
    "scratch, 6 layers of 96, checkpointing": PlanSetting(
        _scratch(6, 3, 1024), 300, 100, 20, 4000, checkpointing=True
    ),
    "scratch, 4 layers of 192, bfloat16": PlanSetting(_scratch(4, 6, 2048), 230, 26, 24, 3072, half=True),
    "scratch, 2 layers of 256, value head": PlanSetting(_scratch(2, 8, 1024), 500, 12, 8, 1024, head=True),
    "scratch, 4 layers of 128, a tree": PlanSetting(_scratch(4, 4, 1024), 900, 60, 16, 1400, share="tree"),
    "SmolLM2, 2 of its layers": PlanSetting(_smollm2(2), 480, 20, 4, 1000),
    "SmolLM2, 4 of its layers, checkpointing": PlanSetting(_smollm2(4), 480, 20, 4, 1000, checkpointing=True),
    "SmolLM2, 4 of its layers, adapters of rank 16": PlanSetting(_smollm2(4), 480, 20, 4, 1000, rank=16),
    "SmolLM2, 3 of its layers, adapters on queries and values": PlanSetting(
        _smollm2(3), 480, 20, 4, 1000, rank=8, targets=("q_proj", "v_proj"), checkpointing=True
    ),
    "SmolLM2, 2 of its layers, adapters in bfloat16": PlanSetting(
        _smollm2(2), 480, 20, 4, 1000, rank=16, half=True, half_base=True
    ),
    "SmolLM2, 2 of its layers, a tree": PlanSetting(_smollm2(2), 600, 40, 8, 800, share="tree"),
    "Qwen3's kind, 3 layers of 160": PlanSetting(QWEN3, 300, 100, 12, 1600),
    "Qwen3's kind, a tree, checkpointing": PlanSetting(
        QWEN3, 300, 100, 16, 1200, share="tree", checkpointing=True
    ),
}


class PlanLap(NamedTuple):
    """Bytes of a setting: all that was predicted and measured; beside weights, moments and gradients; and those three, in this order."""

    predicted: float
    measured: float
    predicted_beside: float
    measured_beside: float
    exact_predicted: tuple[float, float, float]
    exact_measured: tuple[float, float, float]


def predicted(setting: PlanSetting) -> tuple[LearnerSetting, MicroBatch, Any]:
    """Return what the plan knows of a setting: the learner's, its largest micro-batch, the model's shape."""
    batch = micro_batch(
        setting.options(), setting.shared + setting.own, setting.shared, setting.members, setting.members
    )
    return setting.setting(), batch, shape_of(setting.config, "a setting")


def measure(setting: PlanSetting) -> PlanLap:
    """Let a learner make an update, and count."""
    model = _model(setting)
    batch = collate([made_up(Workload(((setting.shared, setting.own),), members=setting.members))])
    heads = [_head(setting)] if setting.head else []
    zero_BK = torch.zeros(batch.turns.mask_BK.shape, dtype=torch.float64)
    batch = batch._replace(turns=dataclasses.replace(batch.turns, signals={"value": zero_BK}))
    learner = Learner(model, setting.options(), heads=heads)
    advantage_BK, objective = advantages_of(batch), objective_of()
    learner.update(batch, advantage_BK, objective)
    of_weights = [*model.parameters(), *(p for head in heads for p in head.module.parameters())]
    of_moments = [
        x for state in learner.optimizer.state.values() for x in state.values() if isinstance(x, Tensor)
    ]
    known = [*of_weights, *of_moments, *_tensors(batch), advantage_BK]
    with LiveBytes(known) as live:
        learner.update(batch, advantage_BK, objective)
    weights, moments = sum(x.nbytes for x in of_weights), sum(x.nbytes for x in of_moments)
    gradients = sum(x.nbytes for x in of_weights if x.requires_grad)
    told, micro, shape = predicted(setting)
    found, count = (
        learner_bytes(shape, told, micro),
        sum(p.numel() for h in heads for p in h.module.parameters()),
    )
    exact = (
        found.weights + 4 * count,
        found.moments + 8 * count + 4 * 6 * bool(count),
        found.gradients + 4 * count,
    )
    beside = found.copies + found.activations + found.passing
    return PlanLap(
        sum(exact) + beside,
        weights + moments + live.most,
        beside,
        live.most - gradients,
        exact,
        (weights, moments, gradients),
    )


def _model(setting: PlanSetting) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM

    given = {key: value for key, value in setting.config.items() if key != "model_type"}
    config = AutoConfig.for_model(setting.config["model_type"], max_position_embeddings=65_536, **given)
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config)
    if setting.half_base:
        model = model.to(torch.bfloat16)
    if setting.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if setting.rank:
        from peft import LoraConfig, get_peft_model

        targets = list(setting.targets) or "all-linear"
        model = get_peft_model(
            model, LoraConfig(r=setting.rank, target_modules=targets, task_type="CAUSAL_LM")
        )
    return model.train(setting.checkpointing)


def _head(setting: PlanSetting) -> Any:
    nothing: Any = None
    width, cpu = setting.config["hidden_size"], torch.device("cpu")
    return ValueSignal(
        SignalSetup(frozenset({"value"}), width, cpu, 0, nothing, 0, nothing, nothing, nothing)
    )


def _tensors(batch: TrainingBatch) -> Iterator[Tensor]:
    yield from (x for x in batch.rows if isinstance(x, Tensor))


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    out: Path | None = asked.out
    figures: dict[str, Any] = json.loads(out.read_text("utf-8"))["figures"] if out and out.is_file() else {}
    for name, setting in SETTINGS.items():
        if f"{name}: measured" in figures:
            continue
        lap = measure(setting)
        rows = {
            "predicted": (lap.predicted / 1e6, "MB"),
            "measured": (lap.measured / 1e6, "MB"),
            "of measured": (lap.predicted / lap.measured, "of 1"),
            "of measured beside weights, moments, gradients": (
                lap.predicted_beside / lap.measured_beside,
                "of 1",
            ),
        }
        figures |= {
            f"{name}: {key}": {"value": round(value, 3), "unit": unit, "spread": 0.0}
            for key, (value, unit) in rows.items()
        }
        same = all(abs(a - b) < 1 for a, b in zip(lap.exact_predicted, lap.exact_measured, strict=True))
        print(f"{name}: " + ", ".join(f"{key} {value:.3f}" for key, (value, _) in rows.items()), flush=True)
        if not same:
            print(
                f"  weights, moments, gradients: {lap.exact_predicted} beside {lap.exact_measured}",
                flush=True,
            )
        if asked.out is not None:
            told = {"name": "plan", "machine": describe(), "figures": figures}
            asked.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
