"""How fast a program plays the same episodes as the policy alone, for models of rising size.

    python benchmarks/gateway_models.py benchmarks/gateway-models.json

Episodes of tests/letters.py, whose three replies are cut at the same length, are played in process and by
examples/plain_agent.py, in turns; both sample the same tokens. The weights are random: what is measured is where the time goes. A
program's start, HTTP and JSON cost the same whatever the model, so its share of the time falls with the model's.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.gateway.agent_program import AgentProgram
from turnwise.agents.models.small import build_small_model
from turnwise.agents.policies.command import ProgramPolicy
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.durable import write_whole
from turnwise.machine import describe
from turnwise.tasks.core import Split, derive_rng

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = 160
REPEATS = 3
PROGRAM = AgentProgram(
    (sys.executable, "-S", "-E", str(ROOT / "examples" / "plain_agent.py")),
    prompt="messages",
    preload=("http.client", "json"),
)


class Size(NamedTuple):
    """A model, and how much it plays."""

    layers: int
    width: int
    heads: int
    episodes: int
    tokens: int  # of a reply


SIZES = (
    Size(1, 64, 2, 64, 6),
    Size(4, 256, 4, 32, 12),
    Size(8, 512, 8, 16, 12),
    Size(12, 896, 14, 8, 12),
)


class Played(NamedTuple):
    """One side of one repetition."""

    seconds: float
    cpu: float  # seconds of this process
    sampled: list[tuple[int, ...]]


def main(file: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("letters").register_letters()
    load_before = os.getloadavg()
    rows = [measured(size) for size in SIZES]
    data = {
        "name": "gateway-models",
        "date": time.strftime("%Y-%m-%d"),
        "load_before": [round(x, 1) for x in load_before],
        "load_after": [round(x, 1) for x in os.getloadavg()],
        "machine": describe(),
        "models": rows,
    }
    write_whole(file, json.dumps(data, indent=1) + "\n")


def measured(size: Size) -> dict[str, Any]:
    """A model's figures: medians of repetitions, the first of which is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        texts = ["Say letters. Early letters, please (12345). abc"] * 10
        build_small_model(
            folder, texts, layers=size.layers, width=size.width, heads=size.heads, context=CONTEXT, vocab_size=300
        )  # fmt: skip
        engine = TorchEngine(folder, device="cpu", context_length=CONTEXT, max_sequences=size.episodes)
        from transformers import AutoTokenizer

        renderer = Renderer(AutoTokenizer.from_pretrained(folder))
    model = ModelPolicy(engine, renderer, Sampling(1.0, 1.0, size.tokens))
    program = ProgramPolicy(model, PROGRAM)
    parameters = sum(weight.numel() for weight in engine.model.parameters())
    try:
        pairs = [(played(model, size), played(program, size)) for _ in range(REPEATS + 1)][1:]
    finally:
        program.close()
    for alone, by_program in pairs:
        if alone.sampled != by_program.sampled:
            print("the two sides sampled different tokens", file=sys.stderr)
    turns = len(pairs[0][0].sampled)
    ratios = [alone.seconds / by_program.seconds for alone, by_program in pairs]
    row = {
        "parameters_m": round(parameters / 1e6, 2),
        "turns": turns,
        "tokens": sum(map(len, pairs[0][0].sampled)),
        "in_process_s": round(statistics.median(alone.seconds for alone, _ in pairs), 3),
        "program_s": round(statistics.median(by_program.seconds for _, by_program in pairs), 3),
        "ratio": round(statistics.median(ratios), 3),
        "spread": round(max(ratios) - min(ratios), 3),
        "added_cpu_ms_per_turn": round(
            statistics.median((b.cpu - a.cpu) / turns * 1000 for a, b in pairs), 2
        ),
        "same_tokens": all(a.sampled == b.sampled for a, b in pairs),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def played(policy: ModelPolicy | ProgramPolicy, size: Size) -> Played:
    """All episodes, at once."""
    letters = importlib.import_module("letters").Letters
    requests = [
        Request(letters.generate(derive_rng("gateway models", n), Split.TRAIN), n)
        for n in range(size.episodes)
    ]
    began, cpu = time.perf_counter(), time.process_time()
    episodes = asyncio.run(rollout(requests, policy, concurrency=size.episodes))
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    if any(not episode.outcome.counts for episode in episodes):
        raise SystemExit(f"an episode failed: {next(filter(None, (one.error for one in episodes)))}")
    return Played(
        seconds, spent, [turn.reply.action_ids for one in episodes for turn in one.trajectory.turns]
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
