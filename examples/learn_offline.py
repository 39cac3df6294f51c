"""Learn from stored episodes alone: nothing is played, and what a log holds is imitated where it solved its task.

Run it: ``python examples/learn_offline.py`` (needs turnwise[train]; a minute). It trains a run first, to have a log.
"""

import sys
from pathlib import Path
from typing import Any

import turnwise

RECIPE: dict[str, Any] = {
    "suite": "shop/quick",
    "model": {"scratch": {"layers": 2, "width": 128, "heads": 4, "vocab_size": 400, "context": 512}},
    "sampling": {"max_tokens": 16, "tools": "none"},
    "engine": {"kind": "torch", "max_sequences": 64},
    "warm_start": {"demonstrator": "demonstrator", "episodes": 640, "learning_rate": 1e-3},
    "rollout": {"groups": 8, "group_size": 4},
    "optimizer": {"learning_rate": 5e-4},
    "updates": 2,
    "evaluate": {"every": 2, "dev": 16, "test": 16},
}


def main(folder: str | Path = "runs/offline", **changes: Any) -> turnwise.TrainingResult:
    played = turnwise.train(RECIPE, out=Path(folder) / "played", **changes)
    log = Path(played.path) / "episodes.jsonl.zst"
    print(len(turnwise.load_episodes(log)), "episodes are stored")
    stored = {"name": "stored", "path": str(log), "groups": 4, "solved": False}
    offline = {
        **RECIPE,
        "model": {"path": str(Path(played.path) / "best" / "model")},
        "source": [stored],
        "rollout": {"groups": 0, "group_size": 4},
    }
    del offline["warm_start"]
    result = turnwise.train(offline, out=Path(folder) / "learned")
    print("learned from", log, "without playing:", result.path)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
