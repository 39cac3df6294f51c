"""vLLM in a process of its own, to which adapters are added: ``python vllm_adapter_cases.py FOLDER`` prints what was found as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

from turnwise.agents.core import Sampling
from turnwise.agents.engines.vllm import VllmEngine
from turnwise.errors import EngineError
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.whole import checkpoint_tensors


def base(seed: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=256, initializer_range=0.2, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def adapted(seed: int, rank: int = 4) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=rank,
        lora_alpha=3 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        init_lora_weights=False,
    )
    return get_peft_model(base(seed), config).eval()


def moved(model: Any) -> Any:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.add_(torch.randn_like(weight), alpha=0.1)
    return model


def ask(engine: Any, tokens: int = 8, seed: int = 0) -> Any:
    prompt = list(range(3, 80))
    return asyncio.run(engine.generate(prompt, Sampling(max_tokens=tokens), stop_ids=(), seed=seed))


def gap(model: Any, answer: Any) -> float:
    """How far what was sampled is from the trainer's log-probabilities."""
    prompt = list(range(3, 80))
    with torch.no_grad():
        logp = model(torch.tensor([[*prompt, *answer.token_ids]])).logits[0].float().log_softmax(-1)
    ours = [float(logp[len(prompt) + i - 1, token]) for i, token in enumerate(answer.token_ids)]
    return max(abs(a - b) for a, b in zip(ours, answer.logprobs, strict=True))


def under_way(engine: Any, model: Any, version: int) -> list[tuple[int, int]]:
    """Change adapters while an answer is sampled; return its versions."""
    found: list[Any] = []
    asking = threading.Thread(target=lambda: found.append(ask(engine, 150)))
    asking.start()
    while not engine._loop.in_flight:
        time.sleep(0.001)
    time.sleep(0.05)
    push_weights(moved(model), engine, version, kv="keep")
    asking.join()
    return [tuple(span) for span in found[0].versions]


def main(folder: Path) -> dict[str, Any]:
    base(0).save_pretrained(folder)
    engine = VllmEngine(folder, device="cpu", context_length=256, kv_cache_gib=0.1, adapter_rank=4)
    reloads, reload = list[int](), engine._reload

    def counted(weights: Any) -> None:
        reloads.append(engine.version)
        reload(weights)

    engine._reload = counted  # type: ignore[method-assign]
    model, found = adapted(0), dict[str, Any]()
    try:
        found["canary"] = [
            push_weights(model, engine, 1).max_logp_gap,
            push_weights(moved(model), engine, 2).max_logp_gap,
        ]
        found["sampled"] = gap(model, ask(engine))
        found["again"] = gap(model, ask(engine, seed=1))
        found["base loaded"] = len(reloads)
        found["versions"] = under_way(engine, model, 3)
        other = adapted(7)
        found["other base"] = push_weights(other, engine, 4).max_logp_gap
        found["base loaded then"] = len(reloads)
        plain = base(9)
        engine.load_weights(checkpoint_tensors(plain), 5)
        found["whole weights"] = gap(plain, ask(engine))
        found["adapters after them"] = push_weights(other, engine, 6).max_logp_gap
        try:
            push_weights(adapted(0, rank=6), engine, 7)
        except EngineError as error:
            found["too large"] = f"{error}"
    finally:
        engine.close()
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(Path(sys.argv[1]))))
