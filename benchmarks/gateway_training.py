"""The same training in process and by a program through the gateway, in the smallest environment that teaches.

    python benchmarks/gateway_training.py benchmarks/gateway-training.json

Three seeds of tests/letters.py, whose environment pays even a random model, so that there is no warm start to wait for. The
program is examples/plain_agent.py. For each seed both run one after the other in one process: success on test tasks
before and after, the tokens that were sampled, and how fast episodes were played. The larger question, on search, is
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


def main(file: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    letters = importlib.import_module("letters")
    letters.register_letters()
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder, "letters.yaml")
        recipe.write_text(yaml.safe_dump(yaml.safe_load(letters.RECIPE) | LARGER))
        runs = [
            {
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
        "throughput_ratio": [ratio(runs, seed) for seed in SEEDS],
        "same_tokens": [same(runs, seed) for seed in SEEDS],
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
        "sampled": [t.reply.action_ids for record in log for t in record.episode.trajectory.turns],
    }


def of(runs: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """The two runs of a seed, in process first."""
    return [run for method in METHODS for run in runs if (run["seed"], run["method"]) == (seed, method)]


def ratio(runs: list[dict[str, Any]], seed: int) -> float:
    """Sampled tokens per second of episodes by the program, divided by those in process."""
    alone, program = (run["tokens_sampled"] / run["rollout_seconds"] for run in of(runs, seed))
    return round(program / alone, 3)


def same(runs: list[dict[str, Any]], seed: int) -> float:
    """The share of turns whose tokens are the same in both runs."""
    alone, program = (run["sampled"] for run in of(runs, seed))
    equal = sum(a == b for a, b in zip(alone, program, strict=False))
    return round(equal / max(len(alone), len(program)), 4)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
