"""Distillation on the policy's own tokens: a teacher reads what the policy said, and says what it would have said.

Here the teacher is the policy itself when it is told how the task is solved (``told``); with ``{"name": "model",
"path": …}`` it is a larger model of the same tokeniser. Run it: ``python examples/distill.py`` (needs turnwise[train]).
"""

import sys
from pathlib import Path
from typing import Any

import turnwise

RECIPE: dict[str, Any] = {
    "suite": "shop/quick",
    "model": {"scratch": {"layers": 2, "width": 128, "heads": 4, "vocab_size": 400, "context": 640}},
    "sampling": {"max_tokens": 16, "tools": "none"},
    "engine": {"kind": "torch", "max_sequences": 64},
    "warm_start": {"demonstrator": "demonstrator", "episodes": 640, "learning_rate": 1e-3},
    "rollout": {"groups": 8, "group_size": 4},
    "teacher": {"name": "told", "top": 4},
    "loss": ["clip", {"name": "distill", "weight": 0.5}],
    "optimizer": {"learning_rate": 5e-4},
    "updates": 2,
    "evaluate": {"every": 2, "dev": 16, "test": 16},
}


def main(out: str | Path = "runs/distill", **changes: Any) -> turnwise.TrainingResult:
    print(turnwise.explain(RECIPE, **changes))
    result = turnwise.train(RECIPE, out=out, **changes)
    for name, mode, found in result.evaluations:
        print(f"{name}, {mode}: {found.success:.2f} {found.success_interval}")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
