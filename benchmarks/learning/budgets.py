"""Chosen budgets beside an oracle's: ``python benchmarks/learning/budgets.py vllm:RUN/model shop/quick household/easy --out benchmarks/learning/budgets``.

The policy plays tasks of the train split, each 64 times and as often again as a sampler may have seen it before. Then many updates
are planned by the packing of the sampler `knapsack`, which knows each task's success from 8 earlier episodes, from 16, from none, or, as
told, from the 64; each plan is worth Σ v(n, p) with the p of the 64. The oracle has the plan of the same size that is worth most, with at
least 2 episodes for each task. No update is learned from.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import NamedTuple

from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.durable import write_whole
from turnwise.machine import describe
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.knapsack import gain, packed

FORKS, EARLIER = 64, (8, 16)
ORACLE = "all (the oracle's plan)"
LEAST, MOST, CONFIDENCE = 2, 128, 0.9


class Played(NamedTuple):
    """A task: its success in the oracle's episodes, and whether each earlier one was solved."""

    p: float
    earlier: Sequence[float]


class Row(NamedTuple):
    """Plans by one knowledge: their worth as a share of the oracle's and the groups whose episodes differ, each with 95 % of the updates."""

    knows: str
    worth: float
    worth_low: float
    worth_high: float
    differing: float


def worth(counts: Sequence[int], tasks: Sequence[Played]) -> float:
    """Σ v(n, p): the chance that a task's episodes differ, times what they then gain."""
    return sum(gain(m, task.p) for n, task in zip(counts, tasks, strict=True) for m in range(1, n))


def differing(counts: Sequence[int], tasks: Sequence[Played]) -> float:
    """The share of the groups that are expected to hold successes and failures."""
    return fmean(1 - task.p**n - (1 - task.p) ** n for n, task in zip(counts, tasks, strict=True))


def plans(tasks: Sequence[Played], group_size: int) -> Mapping[str, Sequence[int]]:
    """Episodes for each task, by what is known: all, nothing, the first so many earlier episodes, the success in the many."""
    known: dict[str, Sequence[float | None]] = {"nothing (equal groups)": [None] * len(tasks)}
    known |= {f"{n} earlier episodes": [fmean(task.earlier[:n]) for task in tasks] for n in EARLIER}
    known |= {f"its success in {FORKS}": [task.p for task in tasks]}
    budget = len(tasks) * group_size
    by_packing = {
        name: packed(rates, budget, group_size, least=LEAST, most=MOST, confidence=CONFIDENCE)
        for name, rates in known.items()
    }
    return {**by_packing, ORACLE: best(tasks, budget)}


def best(tasks: Sequence[Played], budget: int) -> list[int]:
    """The plan that is worth most: v is concave in n, so that the largest gains of all tasks are taken."""
    counts = [LEAST] * len(tasks)
    gains = sorted((-gain(n, task.p), i) for i, task in enumerate(tasks) for n in range(LEAST, MOST))
    for _, i in gains[: budget - sum(counts)]:
        counts[i] += 1
    return counts


def rows(tasks: Sequence[Played], groups: int, group_size: int, updates: int) -> list[Row]:
    """Plan so many updates of tasks drawn from these; updates in which the oracle too gains nothing are left out."""
    shares, differ = dict[str, list[float]](), dict[str, list[float]]()
    for update in range(updates):
        drawn = derive_rng("budgets", update).sample(list(tasks), groups)
        found = plans(drawn, group_size)
        most = worth(found[ORACLE], drawn)
        if most <= 0:
            continue
        for name, counts in found.items():
            shares.setdefault(name, []).append(worth(counts, drawn) / most)
            differ.setdefault(name, []).append(differing(counts, drawn))
    return [
        Row(
            name,
            fmean(every),
            quantiles(every, n=40, method="inclusive")[0],
            quantiles(every, n=40, method="inclusive")[-1],
            fmean(differ[name]),
        )
        for name, every in shares.items()
    ]


def play(policy: str, suite: str, tasks: int, seed: int) -> list[Played]:
    """Play the first tasks of the train split; tasks of which an episode does not count are left out."""
    k = FORKS + EARLIER[-1]
    found = evaluate(suite, policy, split="train", episodes=tasks * k, k=k, seed=seed, concurrency=128)
    whole = [results for results in found.results.values() if len(results) == k]
    return [Played(fmean(results[:FORKS]), results[FORKS:]) for results in whole]


def written(suite: str, tasks: Sequence[Played], found: Sequence[Row]) -> str:
    """The section of a suite."""
    never, always = sum(t.p == 0 for t in tasks), sum(t.p == 1 for t in tasks)
    solved = (
        f"{len(tasks)} tasks, solved in {fmean(t.p for t in tasks):.1%} of {FORKS} episodes each; "
        f"{never} never, {always} always."
    )
    lines = [
        f"## {suite}",
        "",
        solved,
        "",
        "| what the packing knows of a task | worth, of the oracle's (95 % of updates) | groups that differ |",
        "|---|---|---|",
        *(
            f"| {r.knows} | {r.worth:.1%} [{r.worth_low:.1%} … {r.worth_high:.1%}] | {r.differing:.1%} |"
            for r in found
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("policy")
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--tasks", type=int, default=32, help="of each suite")
    parser.add_argument("--groups", type=int, default=8, help="of an update")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--updates", type=int, default=500, help="that are planned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the files without their ending")
    options = parser.parse_args(arguments)
    began, data = time.process_time(), dict[str, object]()
    text = [f"# {options.out.name}", "", " ".join(str(__doc__).split("\n\n", 1)[1].split()), ""]
    for suite in options.suites:
        tasks = play(options.policy, suite, options.tasks, options.seed)
        found = rows(tasks, options.groups, options.group_size, options.updates)
        text.append(written(suite, tasks, found))
        data[suite] = {"tasks": [task._asdict() for task in tasks], "rows": [row._asdict() for row in found]}
    seconds = round(time.process_time() - began)
    text.append(f"{seconds} CPU-seconds; `{' '.join(arguments or sys.argv[1:])}`.\n")
    made = {
        "made": time.strftime("%Y-%m-%d"),
        "machine": describe(),
        "cpu_seconds": seconds,
        "group_size": options.group_size,
    }
    write_whole(
        options.out.with_name(f"{options.out.name}.json"),
        json.dumps({**made, "suites": data}, indent=1) + "\n",
    )
    write_whole(options.out.with_name(f"{options.out.name}.md"), "\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
