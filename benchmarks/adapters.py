"""What weights cost on their way to an engine elsewhere: whole, and as adapters.

``python benchmarks/adapters.py torch|vllm [--width 768] [--layers 12] [--rank 16] [--way file|tcp]`` starts a server on a random model,
gives it new weights both ways, and prints JSON like ``turnwise bench``: bytes and seconds of an update (until the engine's checksum has
been compared, without the canary), and the largest difference of log-probabilities, in nats, from those of the merged model in this process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import engine_kills
import torch

from turnwise.agents.remote import transfer
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.machine import describe
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import LoraOptions
from turnwise.trainers.learn.sync import canary_sequences, trainer_logprobs
from turnwise.trainers.learn.whole import adapted_weights, checkpoint_tensors

CONTEXT = 256
VOCABULARY = 32_000


def model_in(folder: Path, width: int, layers: int) -> Path:
    """A random Llama."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=width * 4, num_hidden_layers=layers,
        num_attention_heads=width // 64, num_key_value_heads=width // 64, max_position_embeddings=CONTEXT, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def moved(model: Any, seed: int) -> None:
    """Other adapters, as an optimizer's step would make them."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02, generator=rng)


def measure(fleet: RemoteFleet, model: Any, repeats: int) -> dict[str, float]:
    """Seconds and bytes of each way; the first whole update is not counted, and the first with adapters, which brings the base, is told apart."""
    seconds: dict[str, list[float]] = {"whole": [], "adapters": [], "base": []}
    sizes: dict[str, int] = {}
    gap = 0.0
    ways = ["whole"] * (repeats + 1) + ["base"] + ["adapters"] * repeats
    for version, way in enumerate(ways, 1):
        moved(model, version)
        before, began = fleet.bytes_published, time.perf_counter()
        if way == "whole":
            fleet.load_weights(checkpoint_tensors(model), version)
        else:
            adapted = adapted_weights(model)
            assert adapted is not None
            fleet.load_adapters(adapted, version)
        seconds[way].append(time.perf_counter() - began)
        sizes[way] = fleet.bytes_published - before
        sequences = canary_sequences(VOCABULARY, version)
        theirs = torch.tensor(fleet.score(sequences))
        gap = max(gap, (theirs - trainer_logprobs(model, sequences)).abs().max().item())
    return {
        "parameters": float(sum(p.numel() for n, p in model.named_parameters() if "lora_" not in n)),
        "whole_bytes": sizes["whole"],
        "adapters_bytes": sizes["adapters"],
        "whole_s": round(statistics.median(seconds["whole"][1:]), 3),
        "adapters_s": round(statistics.median(seconds["adapters"]), 3),
        "adapters_with_base_s": round(seconds["base"][0], 3),
        "spread_whole_s": round(max(seconds["whole"][1:]) - min(seconds["whole"][1:]), 3),
        "spread_adapters_s": round(max(seconds["adapters"]) - min(seconds["adapters"]), 3),
        "max_logp_gap": gap,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("torch", "vllm"))
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--way", choices=("file", "tcp"), default="file")
    asked = parser.parse_args()
    if asked.way == "tcp":
        transfer.locality = lambda: "elsewhere"
    with tempfile.TemporaryDirectory(prefix="turnwise-adapters-") as folder:
        path = model_in(Path(folder), asked.width, asked.layers)
        options = ["--option", "kv_cache_gib=0.25"] if asked.kind == "vllm" else []
        server = engine_kills.Server(path, asked.kind, *options, context=CONTEXT)
        try:
            engine_kills.wait_for(lambda: server.answers)
            lora = LoraOptions(asked.rank, 2 * asked.rank, "all-linear")
            model = load_model(path, torch.device("cpu"), lora)
            fleet = RemoteFleet([server.url], context_length=CONTEXT)
            try:
                figures = measure(fleet, model, asked.repeats)
            finally:
                fleet.close()
        finally:
            server.end()
    name = f"adapters {asked.kind} by {asked.way}, rank {asked.rank}"
    print(json.dumps({"name": name, "machine": describe(), "figures": figures}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
