"""The same training in process and by a program through the gateway, in the smallest environment that teaches.

    python benchmarks/gateway_training.py benchmarks/gateway-training.json

Three seeds of tests/letters.py, whose environment pays even a random model, so that there is no warm start to wait for. The
program is examples/plain_agent.py. For each seed both run one after the other in one process: success on test tasks
before and after, the tokens that were sampled, how fast episodes were played and how fast updates followed each other. Two models:
the smallest, beside which everything else takes long, and one of the size that one trains. The larger question, on search, is
benchmarks/learning/plans/gateway.yaml.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from turnwise.agents.log.episode_log import LogReader
from turnwise.durable import write_whole
from turnwise.machine import describe
from turnwise.trainers.run.loop import train

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 2)
LARGER = {
    "rollout": {"groups": 8, "group_size": 8, "concurrency": 64},
    "engine": {"kind": "torch", "max_sequences": 64},
    "updates": 16,
    "evaluate": {"every": 16, "dev": 20, "test": 100},
    "checkpoint": {"every": 16},
}
PROGRAM = {
    "command": [sys.executable, "-S", "-E", str(ROOT / "examples" / "plain_agent.py")],
    "prompt": "messages",
    "preload": ["http.client", "json"],
}
METHODS: dict[str, dict[str, Any]] = {"in process": {}, "program": {"agent": PROGRAM}}
SCRATCH = {"init": "random", "vocab_size": 300, "context": 128, "text_episodes": 10}
MODELS: dict[str, dict[str, Any]] = {
    "smallest": {},
    "25 million": {
        "model": {"scratch": {"layers": 8, "width": 512, "heads": 8} | SCRATCH},
        "optimizer": {"learning_rate": 3e-4, "minibatches": 2},
        "updates": 6,
        "evaluate": {"every": 6, "dev": 20, "test": 100},
        "checkpoint": {"every": 6},
    },
}


def main(file: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    letters = importlib.import_module("letters")
    letters.register_letters()
    load_before = os.getloadavg()
    runs: list[dict[str, Any]] = []
    for model, changes in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            recipe = Path(folder, "letters.yaml")
            recipe.write_text(yaml.safe_dump(yaml.safe_load(letters.RECIPE) | LARGER | changes))
            runs += [
                {
                    "model": model,
                    "seed": seed,
                    "method": method,
                    **trained(recipe, Path(folder, f"{method}-{seed}"), seed, method),
                }
                for seed in SEEDS
                for method in METHODS
            ]
    data = {
        "name": "gateway-training",
        "date": time.strftime("%Y-%m-%d"),
        "load_before": [round(x, 1) for x in load_before],
        "load_after": [round(x, 1) for x in os.getloadavg()],
        "machine": describe(),
        "runs": runs,
        "pairs": [compared(runs, model, seed) for model in MODELS for seed in SEEDS],
    }
    for run in runs:
        del run["sampled"]
    write_whole(file, json.dumps(data, indent=1) + "\n")


def trained(recipe: Path, out: Path, seed: int, method: str) -> dict[str, Any]:
    """One run: evaluations, tokens, speed."""
    result = train(recipe, out=out, preflight=False, seed=seed, **METHODS[method])
    if result.interrupted:
        raise SystemExit(f"seed {seed}, {method} was stopped, so nothing is written.")
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    updates = [row for row in rows if row.get("phase") == "rl"]
    tokens, seconds = (sum(row[key] for row in updates) for key in ("tokens_sampled", "rollout_seconds"))
    log = LogReader(out / "episodes.jsonl.zst")
    print(f"seed {seed}, {method}: {tokens / seconds:.0f} tokens/s", file=sys.stderr, flush=True)
    return {
        "evaluations": [
            {
                "name": one.name,
                "mode": one.mode,
                "success": one.evaluation.success,
                "interval": list(one.evaluation.success_interval),
                "mean_score": one.evaluation.mean_score,
            }
            for one in result.evaluations
        ],
        "reward": [round(row["reward"], 4) for row in updates],
        "tokens_sampled": tokens,
        "rollout_seconds": round(seconds, 2),
        "update_seconds": round(sum(row["seconds"] for row in updates), 2),
        "sampled": [t.reply.action_ids for record in log for t in record.episode.trajectory.turns],
    }


def compared(runs: list[dict[str, Any]], model: str, seed: int) -> dict[str, Any]:
    """The two runs of a model and a seed: how much of the speed in process the program has, and what is the same.

    ``playing_ratio`` is of tokens per second of the episodes alone, ``training_ratio`` of those per second of whole updates;
    ``same_tokens`` is the share of turns whose tokens are the same in both runs.
    """
    both = {run["method"]: run for run in runs if (run["model"], run["seed"]) == (model, seed)}
    alone, program = (both[method] for method in METHODS)
    equal = sum(a == b for a, b in zip(alone["sampled"], program["sampled"], strict=False))

    def ratio(seconds: str) -> float:
        fast, slow = (run["tokens_sampled"] / run[seconds] for run in (alone, program))
        return round(slow / fast, 3)

    return {
        "model": model,
        "seed": seed,
        "playing_ratio": ratio("rollout_seconds"),
        "training_ratio": ratio("update_seconds"),
        "same_tokens": round(equal / max(len(alone["sampled"]), len(program["sampled"])), 4),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
