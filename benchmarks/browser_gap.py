"""A policy trained on the shop's text, played unchanged in the browser's text view, greedily, on the same test tasks.

python benchmarks/browser_gap.py runs/quickstart > benchmarks/browser-gap.json
"""

from __future__ import annotations

import json
import sys
import time

from turnwise.agents.core import Episode
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.shop.browser import in_browser
from turnwise.machine import describe
from turnwise.tasks.core import Split

TASKS = 200


def said(episode: Episode) -> list[str]:
    return [str(turn.action) for turn in episode.trajectory.turns]


def main() -> None:
    policy = make_policy(f"torch:{sys.argv[1]}")
    assert isinstance(policy, ModelPolicy)
    policy.sampling = policy.sampling._replace(temperature=0.0)
    tasks = list(suite_tasks(get_suite("shop/quick"), Split.TEST, TASKS))
    text = run_episodes([Request(task, 0) for task in tasks], policy, concurrency=64)
    began = time.monotonic()
    web = run_episodes([Request(in_browser(task, "text"), 0) for task in tasks], policy, concurrency=16)
    seconds = time.monotonic() - began
    figures = {
        "tasks": TASKS,
        "success_text": sum(episode.success for episode in text) / TASKS,
        "success_browser": sum(episode.success for episode in web) / TASKS,
        "same_actions": sum(said(a) == said(b) for a, b in zip(text, web, strict=True)) / TASKS,
        "not_counted": sum(not episode.outcome.counts for episode in web),
        "browser_steps_per_second": sum(len(episode.trajectory.turns) for episode in web) / seconds,
    }
    print(json.dumps({"name": "browser_gap", "machine": describe(), "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
