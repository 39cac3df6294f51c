#!/usr/bin/env python3
"""Play many browser episodes and watch memory, processes, contexts and visits.

    scripts/soak_web.py 2000 text benchmarks/soak-web.json

Prints a line every hundred episodes, writes them to the file if one is given, and fails where something grows: the median of
the last quarter may lie a tenth above that of the quarter before (the shop's caches are full after 1,200 episodes).
Pages collect garbage before each look; between looks their memory goes up and down by a fifth.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.shop.browser import in_browser
from turnwise.envs.shop.site import ShopSite
from turnwise.tasks.core import Split
from turnwise.tools.browser.pool import chromium

AT_ONCE = 4
BLOCK = 100


class Look(NamedTuple):
    """What there is at one moment, memory in MiB: what this process has for itself, and the browser's processes'
    proportional set size."""

    episodes: int
    own_mib: float
    browser_mib: float
    processes: int
    contexts: int
    visits: int


def look(episodes: int) -> Look:
    chromium().run(chromium().collect_garbage())
    own = psutil.Process()
    others = own.children(recursive=True)
    sizes = [process.memory_full_info().pss / 2**20 for process in others]
    size = own.memory_full_info().uss / 2**20
    return Look(episodes, size, sum(sizes), len(others), chromium().contexts, ShopSite.shared().visits)


def main() -> int:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    view = sys.argv[2] if len(sys.argv) > 2 else "text"
    policy, suite, started = make_policy("scripted:gold"), get_suite("shop/quick"), time.monotonic()
    looks: list[Look] = []
    for begin in range(0, total, BLOCK):
        tasks = suite_tasks(suite, Split.TEST, min(BLOCK, total - begin), start=begin)
        requests = [Request(in_browser(task, view), begin + i) for i, task in enumerate(tasks)]  # pyright: ignore[reportArgumentType]
        episodes = run_episodes(requests, policy, concurrency=AT_ONCE)
        failed = [episode for episode in episodes if not episode.success]
        if failed:
            print(f"{len(failed)} of {len(episodes)} were not solved: {failed[0].outcome} {failed[0].error}")
            return 1
        looks.append(look(begin + len(requests)))
        print(f"{time.monotonic() - started:6.0f} s", looks[-1]._asdict(), flush=True)
    grown = what_grew(looks)
    print(f"grown: {', '.join(grown) or 'nothing'}")
    if len(sys.argv) > 3:
        write(Path(sys.argv[3]), view, time.monotonic() - started, looks, grown)
    return 1 if grown else 0


def what_grew(looks: list[Look]) -> list[str]:
    """What is more in the last quarter of the run than in the one before."""
    quarter = len(looks) // 4
    before, after = looks[-2 * quarter : -quarter], looks[-quarter:]
    return [
        name
        for name in Look._fields[1:]
        if quarter and _median(after, name) > 1.1 * _median(before, name) + 2
    ]


def _median(looks: list[Look], name: str) -> float:
    return statistics.median(getattr(look, name) for look in looks)


def write(path: Path, view: str, seconds: float, looks: list[Look], grown: list[str]) -> None:
    """The series as JSON: a list for each figure, one value for each hundred episodes."""
    series = {name: [round(getattr(look, name), 1) for look in looks] for name in Look._fields}
    told = {"name": f"soak_web {view}", "date": str(datetime.now(UTC).date()), "at_once": AT_ONCE}
    told |= {"seconds": round(seconds), "grown": grown, "series": series}
    path.write_text(json.dumps(told) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
