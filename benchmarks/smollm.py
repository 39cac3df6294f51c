"""The pretrained model smollm2 before training, on small suites, and how fast it is on a processor; smollm.json has both.

    python benchmarks/smollm.py --cells 2          # plays two cells that are missing, and goes on where one was cut
    python benchmarks/smollm.py --speed            # tokens of the torch engine and of a training pass per processor second
    python benchmarks/smollm.py --page             # writes the table of docs/how-to/pretrained-model.md anew
    python benchmarks/smollm.py --learned RUN …    # keeps what finished runs taught, one of each suite and seed, and draws docs/smollm.png

The runs are those of `turnwise train smollm-quick`, and of `turnwise train smollm-quick --set suite=code/quick sampling.max_tokens=32
warm_start.episodes=200 updates=16 evaluate.every=8 evaluate.dev=32`.

A cell is a suite played greedily or sampled, 50 test tasks; one that was not played is "not run" in the table. Speeds are in
processor seconds of one thread, since the clock of a machine that others use says little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.plain_yaml import read_yaml

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "smollm.json"
PAGE = ROOT / "docs" / "how-to" / "pretrained-model.md"
_TABLE = re.compile(r"^\| suite \| untrained(?:.*\n)(?:\|.*\n)*", re.MULTILINE)
FOLDER = ROOT / "runs" / "smollm"
MODEL, TASKS = "smollm2", 50
WAYS = {"greedy": "0", "sampled": "1"}
ROWS, ROW, SAMPLED = 4, 96, 8
"""Sequences at once, their tokens, and how many are sampled after them, of the speeds."""


class Suite(NamedTuple):
    """A suite of the table: how tools are shown, and the longest message."""

    name: str
    tools: str
    max_tokens: int


SUITES = (
    Suite("search/quick", "none", 12),
    Suite("code/quick", "none", 32),
    Suite("calc/easy", "none", 16),
    Suite("dialogue/persuade-quick", "none", 16),
    Suite("games/wordle-told", "none", 12),
    Suite("toolworld/quick", "none", 24),
    Suite("shop/quick", "none", 16),
    Suite("household/easy", "none", 16),
    Suite("craft/easy", "none", 12),
    Suite("functioncall/quick", "text", 48),
)
"""One suite of a family, those with short prompts first; messages are as long as those of a script that solves the tasks, or twice."""


def kept() -> dict[str, Any]:
    """What was measured so far."""
    return (
        json.loads(RESULT.read_text("utf-8"))
        if RESULT.is_file()
        else {"cells": {}, "speed": {}, "learned": {}}
    )


def keep(found: Mapping[str, Any]) -> None:
    from turnwise.machine import describe

    RESULT.write_text(json.dumps({"machine": describe(), **found}, indent=1) + "\n", "utf-8")


def missing(cells: Mapping[str, Any]) -> list[tuple[Suite, str]]:
    return [(suite, way) for suite in SUITES for way in WAYS if f"{suite.name} {way}" not in cells]


def play(suite: Suite, way: str, engine: str) -> dict[str, Any]:
    """One cell: success with its interval, how episodes ended, and processor seconds; an evaluation that was cut goes on."""
    out = FOLDER / f"{suite.name.replace('/', '-')}-{way}"
    words = [
        "eval", suite.name, "--policy", f"{engine}:{MODEL}", "--tools", suite.tools, "--max-tokens", str(suite.max_tokens),
        "--episodes", str(TASKS), "--temperature", WAYS[way], "--concurrency", str(TASKS), "--out", str(out), "--json",
        *(["--resume"] if out.exists() else []),
    ]  # fmt: skip
    before, load = resource.getrusage(resource.RUSAGE_CHILDREN), os.getloadavg()[0]
    command = [sys.executable, "-c", "from turnwise.cli import main; main()", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = json.loads(done.stdout)
    return {
        **{key: said[key] for key in ("success", "success_interval", "ends", "turns") if key in said},
        "tasks": TASKS,
        "engine": engine,
        "processor_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
        "load_before": round(load, 1),
    }


def speeds() -> dict[str, Any]:
    """Tokens per processor second: read and sampled by the torch engine, and learned from with all weights and with adapters."""
    import torch

    from turnwise.agents.models.finding import find_model

    torch.set_num_threads(1)
    folder = find_model(MODEL)
    load = round(os.getloadavg()[0], 1)
    found: dict[str, Any] = {"rows": ROWS, "row_tokens": ROW, "threads": 1, "load_before": load}
    return found | _engine_speed(folder) | _learner_speed(folder)


def _engine_speed(folder: str) -> dict[str, float]:
    from turnwise.agents.core import Sampling
    from turnwise.agents.engines.registry import open_engine

    engine = open_engine("torch", folder, device="cpu", context_length=ROW + SAMPLED + 1, max_sequences=ROWS)

    async def sample(first: int, tokens: int) -> float:
        since = time.process_time()
        prompts = [[100 + first + row, *range(1000, 1000 + ROW - 1)] for row in range(ROWS)]
        asked = [
            engine.generate(prompt, Sampling(max_tokens=tokens), stop_ids=(), seed=row)
            for row, prompt in enumerate(prompts)
        ]
        await asyncio.gather(*asked)
        return time.process_time() - since

    async def both() -> tuple[float, float]:
        await sample(0, 1)
        return await sample(20, 1), await sample(40, SAMPLED + 1)

    try:
        read, whole = asyncio.run(both())
    finally:
        engine.close()
    return {
        "engine_read": round(ROWS * ROW / read),
        "engine_sampled": round(ROWS * SAMPLED / max(whole - read, 1e-9), 1),
    }


def _learner_speed(folder: str) -> dict[str, int]:
    """A forward and backward pass over rows, with the log-probabilities of their second halves, as a learner makes it."""
    import torch

    from turnwise.trainers.learn.model import hidden_states, load_model, token_stats
    from turnwise.trainers.learn.options import LoraOptions

    found: dict[str, int] = {}
    lora = LoraOptions(rank=16, alpha=32, targets="all-linear")
    for name, adapters in (("learner_full", None), ("learner_adapters", lora)):
        model = load_model(folder, torch.device("cpu"), adapters)
        token_RT = torch.randint(1000, 40000, (ROWS, ROW), generator=torch.Generator().manual_seed(0))
        seconds = 0.0
        for _ in range(2):  # the first warms up
            since = time.process_time()
            hidden_RTD = hidden_states(model, token_RT)[:, ROW // 2 : -1]
            stats = token_stats(model, hidden_RTD.flatten(0, 1), token_RT[:, ROW // 2 + 1 :].flatten(), 1.0)
            (-stats.logp_N.mean()).backward()
            seconds = time.process_time() - since
        found[name] = round(ROWS * ROW / seconds)
    return found


def table(cells: Mapping[str, Any], taught: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of the page; what was not played or trained is said to be so."""
    lines = [
        "| suite | untrained, greedy | untrained, sampled | imitated, greedy | imitated, sampled | reinforced, greedy | reinforced, sampled |",
        "|---|---|---|---|---|---|---|",
    ]
    for suite in SUITES:
        row = [_cell(cells.get(f"{suite.name} {way}")) for way in WAYS]
        runs = [run for _, run in sorted(taught.get(suite.name, {}).items())]
        row += [_seeds([run[way][when] for run in runs]) for when in ("before", "after") for way in WAYS]
        lines.append(f"| {suite.name} | {' | '.join(row)} |")
    return "\n".join(lines)


def _seeds(shares: Sequence[float]) -> str:
    """Success of runs of several seeds.

    >>> _seeds([0.09, 0.145]), _seeds([])
    ('9 %, 14 %', 'not trained')
    """
    return ", ".join(f"{100 * share:.0f} %" for share in shares) or "not trained"


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not run"
    low, high = found["success_interval"]
    return f"{100 * found['success']:.0f} % ({100 * low:.0f} … {100 * high:.0f})"


def learned(run: Path) -> dict[str, Any]:
    """What a finished run taught: test success before and after reinforcement, the paired difference, and the curve of play."""
    from turnwise.agents.evaluation.comparison import paired_difference

    lines = (run / "evaluations.jsonl").read_text("utf-8").splitlines()
    found = {(one["name"], one["mode"]): one for one in map(json.loads, lines)}
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    played = [one for one in metrics if one.get("phase") == "rl"]
    told: dict[str, Any] = {
        "curve": [round(one["success"], 4) for one in played],
        "update_s": round(sum(one["seconds"] for one in played)),
    }
    for mode in ("sampled", "greedy"):
        before, after = found["warm start", mode], found["after RL", mode]
        gain = paired_difference(before["results"], after["results"])
        told[mode] = {
            "before": gain.before, "after": gain.after, "gain": round(gain.difference, 4), "tasks": gain.n,
            "interval": [round(end, 4) for end in gain.interval],
        }  # fmt: skip
    return told


def draw(runs: Mapping[str, Any]) -> None:
    """Draw success in play by update, a line for each seed, as docs/smollm.png."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    for seed, run in sorted(runs.items()):
        curve = run["curve"]
        smooth = [
            sum(curve[max(0, at - 2) : at + 3]) / len(curve[max(0, at - 2) : at + 3])
            for at in range(len(curve))
        ]
        gain = run["sampled"]
        axes.plot(
            range(1, len(curve) + 1),
            smooth,
            label=f"seed {seed}: {100 * gain['before']:.0f} → {100 * gain['after']:.0f} % of unseen tasks",
        )
    axes.set(
        xlabel="update",
        ylabel="success in play",
        ylim=(0, 1),
        title="smollm-quick: a pretrained language model learns to look things up",
    )
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "smollm.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=0)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--learned", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    found = kept()
    for run in given.learned:
        recipe = read_yaml((run / "recipe.yaml").read_text("utf-8"))
        found["learned"].setdefault(recipe["suite"], {})[str(recipe.get("seed", 0))] = learned(run)
        keep(found)
        if recipe["suite"] == "search/quick":
            draw(found["learned"]["search/quick"])
    if given.speed:
        found["speed"] = speeds()
        keep(found)
    for suite, way in missing(found["cells"])[: given.cells]:
        found["cells"][f"{suite.name} {way}"] = play(suite, way, given.engine)
        keep(found)
    if given.page:
        text = PAGE.read_text("utf-8")
        new = table(found["cells"], found["learned"])
        PAGE.write_text(_TABLE.sub(lambda _: f"{new}\n", text), "utf-8")


if __name__ == "__main__":
    main()
