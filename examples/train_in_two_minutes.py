"""Train an agent: a small model from nothing imitates a careless shopper, then reinforcement teaches it to compare.

Run it: ``python examples/train_in_two_minutes.py`` (needs torch; about two minutes on two cores). It leaves the run in
``runs/two-minutes``: open its report.html.
"""

import sys
from pathlib import Path
from typing import Any

import turnwise

RECIPE = {
    "about": "A quick look at the whole of a run.",
    "suite": "shop/quick",
    "model": {"scratch": {"layers": 3, "width": 128, "heads": 4, "vocab_size": 512, "context": 512}},
    "sampling": {"max_tokens": 16, "tools": "none"},
    "engine": {"kind": "torch", "max_sequences": 64},  # vllm where it is installed
    "warm_start": {"demonstrator": "demonstrator", "episodes": 2400, "learning_rate": 1e-3},
    "rollout": {"groups": 8, "group_size": 8},
    "reward": "success",
    "algorithm": "dr_grpo",  # `turnwise list algorithms`
    "optimizer": {"learning_rate": 5e-4, "minibatches": 2},
    "updates": 10,
    "evaluate": {"every": 5, "dev": 50, "test": 100},
}


def main(out: str | Path = "runs/two-minutes", **changes: Any) -> turnwise.TrainingResult:
    print(turnwise.explain(RECIPE, **changes))
    result = turnwise.train(RECIPE, out=out, **changes)
    for name, mode, found in result.evaluations:
        print(f"{name}, {mode}: {found.success:.2f} {found.success_interval}")
    print("everything in", result.path)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
