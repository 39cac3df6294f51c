"""Longer days than were trained: ``python benchmarks/learning/longer_days.py RUNS/SETTING household/day-100 --out benchmarks/learning/longer-days``.

The start of a campaign's setting, and of each of its runs the checkpoint that did best on dev and the last one, play the same test days of another suite of orders, sampled and
greedily. Few of such days are solved whole, so that the orders carried out are counted too: each is answered by a line `done`. Answers that
stand in the file of an earlier call are kept, so that a call that was cut short goes on, and settings and suites join each other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.evaluation.statistics import student_mean, within
from turnwise.agents.policies.registry import make_policy
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError
from turnwise.machine import describe

START = "start-0/checkpoints/step-000000/model"
WAYS = {"sampled": 1.0, "greedy": 0.0}
"""Temperatures by their names."""


class PlayedDays(NamedTuple):
    """The days of a suite as one policy played them."""

    setting: str
    run: str
    suite: str
    way: str
    solved: int
    done: Sequence[int]
    """Orders carried out, day by day."""
    of: int
    """Orders of a day."""
    seconds: float


def orders_done(episode: Episode) -> int:
    """Orders that were carried out in a day."""
    (trajectory,) = episode.trajectories.values()
    told = [
        *(message for turn in trajectory.turns[1:] for message in turn.said),
        *trajectory.final,
    ]
    return sum(
        line.strip(" .").lower() == "done" for message in told for line in message.content.splitlines()
    )


def policies(folder: Path) -> Iterator[tuple[str, Path]]:
    """The start of a setting, then of each run that has been judged the best checkpoint and the last, by method, seed and update.

    Raises:
        TurnwiseError: there is none.
    """
    if (folder / START).is_dir():
        yield "start", folder / START
    runs = sorted(best.parent for best in folder.glob("*/best") if best.parent.name != "start-0")
    for run in runs:
        judged, last = (run / "best").resolve(), max((run / "checkpoints").iterdir())
        for checkpoint in dict.fromkeys((judged, last.resolve())):
            of = "best" if checkpoint == judged else "last"
            yield f"{run.name}, {of} (update {int(checkpoint.name.split('-')[1])})", checkpoint / "model"
    if not runs:
        raise TurnwiseError(
            f"{folder} holds no run that was judged.",
            "Name RUNS/SETTING of a campaign, as campaign.py was told.",
        )


def play(model: Path, suite: str, way: str, episodes: int, seed: int) -> tuple[list[Episode], float]:
    """Play the first test days of a suite."""
    played, began = list[Episode](), time.perf_counter()
    policy = make_policy(f"vllm:{model}", temperature=WAYS[way])
    try:
        evaluate(
            suite, policy, episodes=episodes, seed=seed, on_episode=lambda _, episode: played.append(episode)
        )
    finally:
        policy.close()
    return [one for one in played if one.outcome.counts], time.perf_counter() - began


def table(rows: Sequence[PlayedDays]) -> str:
    """The page's table: one line for each policy, suite and way."""
    lines = [
        "| setting | run | suite | way | days solved | orders carried out a day [95 % of days] |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        estimate = student_mean(row.done)
        low, high = within(estimate.interval, 0.0, row.of)
        done = f"{estimate.mean:.2f} [{low:.2f} … {high:.2f}] of {row.of}"
        lines.append(
            f"| {row.setting} | `{row.run}` | {row.suite} | {row.way} | {row.solved} of {len(row.done)} | {done} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("suite")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the files without their ending")
    options = parser.parse_args(arguments)
    file, page = (options.out.with_name(options.out.name + ending) for ending in (".json", ".md"))
    before: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {"rows": []}
    rows = [PlayedDays(**row) for row in before["rows"]]
    told = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    for run, model in policies(options.folder):
        for way in WAYS:
            asked = (options.folder.name, run, options.suite, way)
            if asked in {row[:4] for row in rows}:
                continue
            days, seconds = play(model, options.suite, way, options.episodes, options.seed)
            done = [orders_done(day) for day in days]
            of = len(days[0].task.options["orders"])
            rows.append(
                PlayedDays(*asked, sum(day.success == 1 for day in days), done, of, round(seconds, 1))
            )
            rows.sort(
                key=lambda row: (row.setting, row.suite, row.way != "sampled", row.run != "start", row.run)
            )
            made = {"made": time.strftime("%Y-%m-%d"), "machine": describe()}
            write_whole(file, json.dumps({**made, "rows": [r._asdict() for r in rows]}, indent=1) + "\n")
            write_whole(page, f"# {options.out.name}\n\n{told}\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
