"""A trainer killed again and again while it trains with engines elsewhere, which live on; and the engines killed under it.

``python benchmarks/learner_kills.py [--kills N] [--minutes M] [--engines-too] [--staleness S] [--updates U]`` trains a small recipe with two servers of the torch
engine without harm, then again while the trainer (and with it the router, which is a part of it) is killed by SIGKILL at random
moments and resumed; with ``--engines-too`` one of the servers is killed with it every other time. Prints JSON like ``turnwise
bench``; the code is 1 where an episode or the weights of the end are not those of the run without harm.

With ``--staleness`` above 0 the learner's weights change under the play, at moments that no two runs share, so there is nothing to compare with:
the killed run must have every episode once, tokens of older weights but none older than it may be (kill it less often than it updates), log-probabilities of the weights that each token names, and
weights that `turnwise relearn` finds again from its log, bit for bit.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from engine_kills import Server, end_with_benchmark, wait_for
from faulting.worlds import register_worlds

from turnwise.agents.core import PREVIOUS
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.agents.models.small import build_small_model
from turnwise.machine import describe

CONTEXT = 128
RECIPE = """\
suite: faults/pure
seed: 3
device: cpu
model: {model}
engine: {{kind: remote, context_length: 128, options: {{urls: {urls}, patience_s: 300}}}}
sampling: {{max_tokens: 12, tools: none}}
rollout: {{groups: {groups}, group_size: {group}, concurrency: 12}}
loss: [clip, {{name: entropy, weight: 0.001}}]
optimizer: {{learning_rate: 3.0e-3}}
updates: {updates}
evaluate: {{every: {updates}, dev: 2, test: 2}}
checkpoint: {{every: 1, keep: 99}}
scale: {{staleness: {staleness}}}
"""
GROUP, GROUPS = 4, 2
_forks = multiprocessing.get_context("forkserver")


class Trained(NamedTuple):
    """What a run has left: the tokens of its episodes with their versions, by update, group and seed, and its weights."""

    episodes: dict[tuple[int, int, int], Any]
    repeated: int
    weights: dict[str, Any]


class Asked(NamedTuple):
    """What of a run is killed, and how far it plays ahead."""

    kills: int
    minutes: float
    engines_too: bool
    staleness: int
    updates: int


def _train(recipe: str, out: str) -> None:
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    end_with_benchmark()
    register_worlds()
    from turnwise.cli.app import run

    raise SystemExit(run(["train", recipe, "--out", out, "--resume", "--no-preflight", "--json"]))


def read(out: Path, updates: int) -> Trained:
    """What a run of so many updates has left."""
    from safetensors.torch import load_file

    episodes: dict[tuple[int, int, int], Any] = {}
    count = 0
    for record in LogReader(out / "episodes.jsonl.zst"):
        turns = [(turn.reply.action_ids, turn.reply.versions) for turn in record.episode.trajectory.turns]
        episodes[record.update or 0, record.group or 0, record.episode.seed] = turns
        count += 1
    last = out / f"checkpoints/step-{updates:06d}/model/model.safetensors"
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


def with_kills(recipe: Path, out: Path, asked: Asked, victims: Sequence[Server]) -> list[str]:
    """Train to the end, killed at random moments of every update; where the run was each time."""
    rng, places, until = Random(0), list[str](), time.monotonic() + 60 * asked.minutes
    while len(places) < asked.kills and time.monotonic() < until:
        process = _forks.Process(target=_train, args=(str(recipe), str(out)))
        process.start()
        begins = len(places) * asked.updates // asked.kills
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


def ahead(out: Path) -> dict[str, Any]:
    """What a run that plays ahead of its learner must have whatever was killed, by its log and its checkpoints."""
    from turnwise.trainers.run.relearn import relearn

    register_worlds()
    records = list(LogReader(out / "episodes.jsonl.zst"))
    keys = Counter((record.update, record.group, record.episode.seed) for record in records)
    by_update = Counter(update for update, _, _ in keys)
    lags = [
        (record.update or 1) - 1 - span.version
        for record in records
        for turn in record.episode.trajectory.turns
        for span in turn.reply.versions
    ]
    found = relearn(out)
    return {
        "updates": len(by_update),
        "episodes": len(records),
        "updates_without_all_their_episodes": sum(count != GROUPS * GROUP for count in by_update.values()),
        "there_twice": len(records) - len(keys),
        "lag_most": max(lags),
        "spans_of_older_weights": sum(lag > 0 for lag in lags),
        "largest_gap_of_logprobs": max(gap_of(out, record) for record in records),
        "learned_again_with_the_same_bits": list(found.equal),
        "advantages_compared": found.advantages,
    }


@functools.lru_cache(maxsize=64)
def _model(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


def gap_of(out: Path, record: Record) -> float:
    """How far the log-probabilities of an episode are from those of the weights that its tokens name, in nats."""
    import torch

    ids, largest = list[int](), 0.0
    for turn in record.episode.trajectory.turns:
        reply = turn.reply
        ids = [*(ids if reply.parent == PREVIOUS else []), *reply.prompt_ids]
        start, ids = len(ids), [*ids, *reply.action_ids]
        ends = [*(span.start for span in reply.versions[1:]), len(reply.action_ids)]
        for span, end in zip(reply.versions, ends, strict=True):
            model = _model(out / f"checkpoints/step-{span.version:06d}/model")
            with torch.no_grad():
                logp_TV = model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
            for place in range(span.start, end):
                said = float(logp_TV[start + place - 1, ids[start + place]])
                largest = max(largest, abs(said - reply.logprobs[place]))
    return largest


def campaign(folder: Path, asked: Asked) -> dict[str, Any]:
    """The run that is killed, and what is different from the run without harm, or from what must hold."""
    model = build_small_model(
        folder / "model", ["one and two are three " * 30], width=64, heads=2, layers=1, context=CONTEXT
    )
    servers = [Server(model, "torch", context=CONTEXT) for _ in range(2)]
    try:
        wait_for(lambda: all(server.answers for server in servers))
        recipe = folder / "recipe.yaml"
        sizes = {"updates": asked.updates, "groups": GROUPS, "group": GROUP, "staleness": asked.staleness}
        recipe.write_text(RECIPE.format(model=model, urls=[s.url for s in servers], **sizes))
        longest = 0.0 if asked.staleness else through(recipe, folder / "whole")
        victims = servers if asked.engines_too else ()
        places = with_kills(recipe, folder / "killed", asked, victims)
        if asked.staleness:
            return {"kills": len(places), "places": places, **ahead(folder / "killed")}
        whole, killed = read(folder / "whole", asked.updates), read(folder / "killed", asked.updates)
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
    parser.add_argument("--staleness", type=int, default=0)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    given = parser.parse_args()
    asked = Asked(given.kills, given.minutes, given.engines_too, given.staleness, given.updates)
    with tempfile.TemporaryDirectory(prefix="turnwise-kills-") as folder:
        found = campaign(Path(folder), asked)
    name = f"learner kills{f', staleness {asked.staleness}' if asked.staleness else ''}"
    print(json.dumps({"name": name, "machine": describe(), "figures": found}, indent=2))
    if asked.staleness:
        whole = found["updates"] == asked.updates and not found["updates_without_all_their_episodes"]
        bounded = 0 < found["lag_most"] <= asked.staleness and found["largest_gap_of_logprobs"] < 1e-3
        again = found["learned_again_with_the_same_bits"] == [*range(asked.updates + 1)]
        return int(not (whole and bounded and again and not found["there_twice"]))
    lost = found["identical"] != found["episodes"] or found["episodes_after_kills"] != found["episodes"]
    return int(lost or found["there_twice"] or found["largest_gap_of_weights"] > 1e-4)


if __name__ == "__main__":
    raise SystemExit(main())
