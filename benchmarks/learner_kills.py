"""A trainer killed again and again while it trains with engines elsewhere, which live on; and the engines killed under it.

``python benchmarks/learner_kills.py [--kills N] [--minutes M] [--engines-too]`` trains a small recipe with two servers of the torch
engine without harm, then again while the trainer (and with it the router, which is a part of it) is killed by SIGKILL at random
moments and resumed; with ``--engines-too`` one of the servers is killed with it every other time. Prints JSON like ``turnwise
bench``; the code is 1 where an episode or the weights of the end are not those of the run without harm.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from engine_kills import Server, end_with_benchmark, wait_for
from faulting.worlds import register_worlds

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.models.small import build_small_model
from turnwise.machine import describe

CONTEXT, UPDATES = 128, 6
RECIPE = """\
suite: faults/pure
seed: 3
device: cpu
model: {model}
engine: {{kind: remote, context_length: 128, options: {{urls: {urls}, patience_s: 300}}}}
sampling: {{max_tokens: 12, tools: none}}
rollout: {{groups: 2, group_size: 4, concurrency: 12}}
loss: [clip, {{name: entropy, weight: 0.001}}]
optimizer: {{learning_rate: 3.0e-3}}
updates: {updates}
evaluate: {{every: {updates}, dev: 2, test: 2}}
checkpoint: {{every: 1, keep: 99}}
"""
_forks = multiprocessing.get_context("forkserver")


class Trained(NamedTuple):
    """What a run has left: the tokens of its episodes with their versions, by update, group and seed, and its weights."""

    episodes: dict[tuple[int, int, int], Any]
    repeated: int
    weights: dict[str, Any]


def _train(recipe: str, out: str) -> None:
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    end_with_benchmark()
    register_worlds()
    from turnwise.cli.app import run

    raise SystemExit(run(["train", recipe, "--out", out, "--resume", "--no-preflight", "--json"]))


def read(out: Path) -> Trained:
    """What a run has left."""
    from safetensors.torch import load_file

    episodes: dict[tuple[int, int, int], Any] = {}
    count = 0
    for record in LogReader(out / "episodes.jsonl.zst"):
        turns = [(turn.reply.action_ids, turn.reply.versions) for turn in record.episode.trajectory.turns]
        episodes[record.update or 0, record.group or 0, record.episode.seed] = turns
        count += 1
    last = out / f"checkpoints/step-{UPDATES:06d}/model/model.safetensors"
    return Trained(episodes, count - len(episodes), load_file(last))


def through(recipe: Path, out: Path) -> float:
    """Train to the end; the seconds that it took."""
    began = time.monotonic()
    process = _forks.Process(target=_train, args=(str(recipe), str(out)))
    process.start()
    process.join()
    if process.exitcode:
        raise AssertionError(f"training ended with code {process.exitcode}")
    return time.monotonic() - began


def with_kills(recipe: Path, out: Path, kills: int, until: float, victims: Sequence[Server]) -> list[str]:
    """Train to the end, killed at random moments of every update; where the run was each time."""
    rng, places = Random(0), list[str]()
    while len(places) < kills and time.monotonic() < until:
        process = _forks.Process(target=_train, args=(str(recipe), str(out)))
        process.start()
        begins = len(places) * UPDATES // kills
        while saved(out) < begins and process.exitcode is None:
            process.join(0.02)
        told = noted(out) + rng.randrange(1, 6)
        while noted(out) < told and process.exitcode is None:
            process.join(0.02)
        process.join(rng.uniform(0, 0.5))
        if process.exitcode is not None:
            break
        process.kill()
        process.join()
        places.append(where(out))
        if victims and len(places) % 2:
            victim = victims[len(places) // 2 % len(victims)]
            victim.end()
            victim.start()
    through(recipe, out)
    return places


def saved(out: Path) -> int:
    """After how many updates the newest checkpoint was written."""
    return max((int(path.name[-6:]) for path in (out / "checkpoints").glob("step-??????")), default=0)


def noted(out: Path) -> int:
    """How many events a run has noted."""
    events = out / "events.jsonl"
    return events.read_bytes().count(b"\n") if events.exists() else 0


def where(out: Path) -> str:
    """How far a run has come: its newest checkpoint, and what it noted last."""
    events = out / "events.jsonl"
    whole = events.read_text().rpartition("\n")[0].splitlines() if events.exists() else []
    kinds = [kind for kind in (json.loads(line).get("kind") for line in whole) if kind != "state"]
    return f"update {saved(out) + 1}{f', {kinds[-1]}' if kinds else ''}"


def campaign(folder: Path, kills: int, minutes: float, engines_too: bool) -> dict[str, Any]:
    """The run without harm, the run that is killed, and what is different."""
    model = build_small_model(
        folder / "model", ["one and two are three " * 30], width=64, heads=2, layers=1, context=CONTEXT
    )
    servers = [Server(model, "torch", context=CONTEXT) for _ in range(2)]
    try:
        wait_for(lambda: all(server.answers for server in servers))
        recipe = folder / "recipe.yaml"
        recipe.write_text(RECIPE.format(model=model, urls=[s.url for s in servers], updates=UPDATES))
        longest = through(recipe, folder / "whole")
        until = time.monotonic() + 60 * minutes
        places = with_kills(recipe, folder / "killed", kills, until, servers if engines_too else ())
        whole, killed = read(folder / "whole"), read(folder / "killed")
    finally:
        for server in servers:
            server.end()
    same = sum(
        whole.episodes[key] == turns for key, turns in killed.episodes.items() if key in whole.episodes
    )
    gap = max((whole.weights[name] - killed.weights[name]).abs().max().item() for name in whole.weights)
    return {
        "kills": len(places),
        "places": places,
        "seconds_of_the_whole_run": round(longest, 1),
        "episodes": len(whole.episodes),
        "episodes_after_kills": len(killed.episodes),
        "identical": same,
        "there_twice": killed.repeated,
        "largest_gap_of_weights": gap,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--engines-too", action="store_true")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnwise-kills-") as folder:
        found = campaign(Path(folder), asked.kills, asked.minutes, asked.engines_too)
    print(json.dumps({"name": "learner kills", "machine": describe(), "figures": found}, indent=2))
    lost = found["identical"] != found["episodes"] or found["episodes_after_kills"] != found["episodes"]
    return int(lost or found["there_twice"] or found["largest_gap_of_weights"] > 1e-4)


if __name__ == "__main__":
    raise SystemExit(main())
