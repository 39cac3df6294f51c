"""Labels of turns against the truth: which methods find the turn that cost an episode its success? process-labels.json has it.

    python -m benchmarks.process_labels [FILE]      # goes on where it stopped

Episodes of a script that is by chance random in a quarter of its turns are played on three suites. The truth of a turn is the success of 64 fresh rollouts from after it
less that of 64 from before it; an episode's first error is the first turn after which none of 64 succeeds, and a success has none. Beside it stand

* ``forks_4``: four rollouts from before every turn (strategy `vine`), other ones than the truth's;
* ``halving_4`` and ``halving_16``: strategy `omega`, which probes the middle of what is left of a failure;
* ``gold``: the judge `gold`, which calls the first turn wrong that brought the goal no nearer, though it may be mended;
* ``consensus``: eight rollouts and `gold`, where both name the same turn (filter `consensus`); of the others it says nothing.

``f1`` is ProcessBench's: the harmonic mean of the accuracies on failures and on successes. ``rank`` is Spearman's correlation, over all turns, of what a method
gives a turn with the true advantage: the difference of means for forks, −1 for a turn that is called wrong and else 0 for the others.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy.stats import spearmanr

from turnwise.agents.evaluation.statistics import proportion
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request
from turnwise.durable import write_whole
from turnwise.machine import describe
from turnwise.trainers.judge.gold import gold
from turnwise.trainers.reward.success import success
from turnwise.trainers.strategy.omega import omega
from turnwise.trainers.strategy.runner import RolloutRunner, RunnerResult, plan_groups
from turnwise.trainers.strategy.vine import fork_values, value_of

RESULT = Path(__file__).with_name("process-labels.json")
SUITES = ("shop/quick", "household/easy", "search/quick")
POLICY = "mix:demonstrator=0.75,random=0.25"
EPISODES = 60  # of each suite, each of a task of its own
TRUTH, SOME, AGREEING, BOOK = 64, 4, 8, 16  # rollouts from a place
SALT = 39  # of the seeds
METHODS = ("forks_4", "halving_4", "halving_16", "gold", "consensus")


class Counting(RolloutRunner):
    """Counts the rollouts that begin within another episode."""

    forked = 0

    async def __call__(
        self, requests: Sequence[Request], *, branch_points: bool = False
    ) -> list[RunnerResult]:
        self.forked += sum(request.start is not None for request in requests)
        return await super().__call__(requests, branch_points=branch_points)


async def measured(suite: str, number: int) -> dict[str, Any]:
    """One episode: values before its turns by 64, 4 and 8 rollouts, what halving and gold call wrong, and what it took."""
    plan = plan_groups(suite, 1, 1, SALT, number)
    runner = Counting(make_policy(POLICY), success)
    ((played,),) = [await runner(requests, branch_points=True) for requests in plan]
    turns = len(played.episode.trajectory.turns)
    found: dict[str, Any] = {"task": number, "success": played.episode.success, "turns": turns}
    for name, forks in (("truth", TRUTH), (f"forks_{SOME}", SOME), (f"forks_{AGREEING}", AGREEING)):
        values = await fork_values(runner, [[played]], forks, name)
        before = [value_of(values, played, played, k) for k in range(turns)]
        found[name] = [round(value.mean, 6) for value in before if value]
    for forks in (SOME, BOOK):
        halving = Counting(make_policy(POLICY), success)
        ((one,),) = await omega(halving, plan, forks=forks)
        found[f"halving_{forks}"] = [turn.signals["wrong"] for turn in one.trajectory.turns]
        found[f"probes_{forks}"] = halving.forked // forks
    ((judged,),) = await gold([[played.episode]])
    found["gold"] = [turn.signals["wrong"] for turn in judged.trajectory.turns]
    return found


def after(one: Mapping[str, Any], name: str) -> list[float]:
    """Values after the turns; the end's is known."""
    return [*one[name][1:], float(one["success"])]


def first_error(one: Mapping[str, Any], method: str) -> int | None:
    """The turn that a method calls the first error, from 0."""
    wrong = (
        one[method] if method in ("gold", "halving_4", "halving_16") else [x <= 0 for x in after(one, method)]
    )
    return next((k for k, x in enumerate(wrong) if x), None)


def agreed(one: Mapping[str, Any]) -> bool:
    """Say whether eight rollouts and gold name the same turn."""
    return first_error(one, f"forks_{AGREEING}") == first_error(one, "gold")


def given(one: Mapping[str, Any], method: str) -> list[float]:
    """What a method gives the turns."""
    if method.startswith("forks") or method == "truth":
        return [x - y for x, y in zip(after(one, method), one[method], strict=True)]
    if method == "consensus":
        return [-float(k == first_error(one, "gold")) for k in range(one["turns"])]
    return [-x for x in one[method]]


def rollouts(one: Mapping[str, Any], method: str) -> int:
    """How many rollouts its labels take; gold's take replays."""
    if method.startswith("halving"):
        forks = int(method.partition("_")[2])
        return forks * one[f"probes_{forks}"]
    each = {"forks_4": SOME, "consensus": AGREEING}.get(method, 0)
    return each * one["turns"]


def told(right: Sequence[bool]) -> dict[str, Any]:
    """A share with its interval."""
    if not right:
        return {"hits": 0, "of": 0, "share": None}
    found = proportion(right, range(len(right)))
    return {
        "hits": sum(right),
        "of": len(right),
        "share": round(found.mean, 4),
        "low": round(found.interval.low, 4),
        "high": round(found.interval.high, 4),
    }


def graded(episodes: Sequence[Mapping[str, Any]], method: str) -> dict[str, Any]:
    """A method's figures on a suite."""
    kept = [one for one in episodes if method != "consensus" or agreed(one)]
    by = "gold" if method == "consensus" else method
    shares: dict[str, dict[str, Any]] = {}
    for name, solved in (("failures", False), ("successes", True)):
        some = [one for one in kept if one["success"] is solved]
        shares[name] = told([first_error(one, by) == first_error(one, "truth") for one in some])
    a, b = (shares[name]["share"] for name in ("failures", "successes"))
    x = [value for one in kept for value in given(one, method)]
    y = [value for one in kept for value in given(one, "truth")]
    alike = len({*x}) < 2 or len({*y}) < 2
    return {
        "kept": len(kept),
        **shares,
        "f1": None if a is None or b is None else round(2 * a * b / (a + b), 4) if a + b else 0.0,
        "rank": None if alike else round(float(spearmanr(x, y)[0]), 4),  # pyright: ignore
        "rollouts": round(fmean(rollouts(one, method) for one in episodes), 2),
    }


def summary(episodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A suite's figures."""
    failed = [one for one in episodes if not one["success"]]
    return {
        "episodes": len(episodes),
        "failures": len(failed),
        "turns": round(fmean(one["turns"] for one in episodes), 2),
        "turns_of_failures": round(fmean(one["turns"] for one in failed), 2) if failed else None,
        "probes_of_failures": round(fmean(one[f"probes_{BOOK}"] for one in failed), 2) if failed else None,
        "methods": {method: graded(episodes, method) for method in METHODS},
    }


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULT
    whole: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {"episodes": {}}
    known: dict[str, list[dict[str, Any]]] = whole["episodes"]
    for suite in SUITES:
        there = known.setdefault(suite, [])
        while len(there) < EPISODES:
            there += [
                asyncio.run(measured(suite, n)) for n in range(len(there), min(EPISODES, len(there) + 10))
            ]
            whole = {
                "machine": describe(),
                "policy": POLICY,
                "truth": TRUTH,
                "summary": {name: summary(some) for name, some in known.items() if some},
                "episodes": known,
            }
            write_whole(path, (json.dumps(whole, separators=(",", ":")) + "\n").encode())
            print(suite, len(there), flush=True)
    print(json.dumps(whole["summary"], indent=1))


if __name__ == "__main__":
    main()
