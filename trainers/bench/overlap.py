"""``turnwise bench async``: asynchronous training beside the plain run, and beside the bound of perfect overlap.

Real runs, by ``turnwise.train``, of a small model in an environment whose steps take time: log-normal, so that a few take many times
as long as most, as those of browsers, test suites and servers do. Plain and asynchronous runs take turns on the same
machine with the same recipe, whose ``scale.staleness`` alone differs. There are two workloads: of short steps, where engine and learner, which share
the processor, are most of an update; and of long ones (:data:`LONG_STEPS`), where waiting for the slowest episode is.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from turnwise.agents.log.episode_log import LogReader
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.trainers.run.loop import train

ENV, SUITE = "turnwise-bench/Slow-v0", "bench/slow"
TURNS = 4


class SlowSteps(AgentEnv[int]):
    """Pays for letters of the first half of the alphabet; each step takes its time, a function of the seed."""

    system = "Say letters."
    turn_limit = TURNS

    def __init__(self, *, median_s: float, sigma: float, **options: Any) -> None:
        super().__init__(**options)
        self._log_median, self._sigma = math.log(median_s), sigma

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task(ENV, f"Early letters, please ({3 * rng.randrange(10**6) + list(Split).index(split)}).")

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        time.sleep(self.rng("seconds").lognormvariate(self._log_median, self._sigma))
        said = action.content
        share = sum(letter in "abcdefghijklm" for letter in said) / max(1, len(said))
        end = EndReason.FAILED if state + 1 == TURNS else None
        return Transition(state + 1, f"{share:.1f}", {"outcome": share / TURNS}, end)

    def gold(self, state: int) -> str:
        return "abcabc"


class OverlapWorkload(NamedTuple):
    """The size of the runs; ``staleness`` names the asynchronous ones, ``skipped`` updates at their beginning are not counted.

    ``median_s`` and ``sigma`` are of the log-normal step times: half of the steps take longer than the median, one in six more than e^σ times as long.
    """

    groups: int = 8
    group_size: int = 4
    updates: int = 10
    skipped: int = 2
    staleness: tuple[int, ...] = (1, 2)
    epochs: int = 1
    median_s: float = 0.12
    sigma: float = 1.0


LONG_STEPS = OverlapWorkload(staleness=(2, 4), median_s=0.3)
"""Steps of 0.5 s in the mean. The slowest of 32 episodes takes more than twice the mean, so that perfect overlap would be worth more than 2.2 ×."""
WORKLOADS: Mapping[str, OverlapWorkload] = {"": OverlapWorkload(), "long_": LONG_STEPS}
"""By what their figures' names begin with."""


class _Measured(NamedTuple):
    """Of one run, the mean of its updates: seconds of each, of the learner, and of what its episodes took together."""

    update_s: float
    learn_s: float
    episodes_s: float
    lag: float
    lag_most: float
    stall_s: float


def bench_overlap(
    *, repeats: int = 3, workloads: Mapping[str, OverlapWorkload] = WORKLOADS
) -> dict[str, BenchmarkFigure]:
    """Seconds per update and ratios; medians over rounds, spread = largest − smallest.

    * ``plain``, ``ahead_S``: seconds per update, in turns and with ``scale.staleness: S``.
    * ``learner``: seconds per update that the learner takes in the plain run, publishing included.
    * ``play_when_full``: seconds that an update's episodes take together, divided by the places to play them in: what playing
      takes if no place is ever empty.
    * ``bound``: the speed-up of perfect overlap, ``plain`` ÷ the larger of the two.
    * ``speed_up_S``, ``share_of_bound_S``: ``plain`` ÷ ``ahead_S``, and that ÷ ``bound``, of the same round.
    * ``lag_S``, ``lag_most_S``: of the tokens that were trained on, in updates.
    * ``stall``: milliseconds for which a weight update in flight holds the engine, canary included.

    Names of each workload begin with what it is called in ``workloads``.

    The bound is of the plain run's times: learner and engine share the processor in the asynchronous ones.
    """
    register(ENV, f"{__name__}:SlowSteps", "Steps that take their time.")
    register_suite(Suite(SUITE, ENV, "Any tasks."))
    figures: dict[str, BenchmarkFigure] = {}
    for begins, load in workloads.items():
        rounds: list[dict[str, float]] = []
        with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
            for number in range(repeats):
                found = {
                    staleness: _run(Path(folder, f"{number}-{staleness}"), load, staleness)
                    for staleness in (0, *load.staleness)
                }
                rounds.append(_figures(found, load))
        figures |= {begins + name: _figure([one[name] for one in rounds], _unit(name)) for name in rounds[0]}
    return figures


def _figures(found: dict[int, _Measured], load: OverlapWorkload) -> dict[str, float]:
    plain = found[0]
    full = plain.episodes_s / (load.groups * load.group_size)
    bound = plain.update_s / max(plain.learn_s, full)
    figures = {"plain": plain.update_s, "learner": plain.learn_s, "play_when_full": full, "bound": bound}
    for staleness in load.staleness:
        ahead = found[staleness]
        speed_up = plain.update_s / ahead.update_s
        figures |= {
            f"ahead_{staleness}": ahead.update_s,
            f"speed_up_{staleness}": speed_up,
            f"share_of_bound_{staleness}": speed_up / bound,
            f"lag_{staleness}": ahead.lag,
            f"lag_most_{staleness}": ahead.lag_most,
        }
    return figures | {"stall": 1000 * found[load.staleness[0]].stall_s}


def _run(out: Path, load: OverlapWorkload, staleness: int) -> _Measured:
    """Train once, and read the run's records."""
    train(_recipe(load, staleness), out=out, preflight=False, log=lambda line: None)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    rows: list[dict[str, Any]] = [row for row in map(json.loads, lines) if row["phase"] == "rl"]
    rows = rows[load.skipped : -1]  # the last one is evaluated
    counted = {row["update"] for row in rows}
    seconds = sum(
        record.episode.metrics["seconds"]
        for record in LogReader(out / "episodes.jsonl.zst")
        if record.update in counted
    )

    def mean(name: str) -> float:
        return statistics.fmean(row.get(name, 0.0) for row in rows)

    return _Measured(
        mean("seconds"),
        mean("learn_seconds") + mean("sync_seconds"),
        seconds / len(rows),
        mean("lag"),
        max(row.get("lag_most", 0.0) for row in rows),
        mean("sync_seconds"),
    )


def _recipe(load: OverlapWorkload, staleness: int) -> dict[str, Any]:
    scratch = {"layers": 4, "width": 128, "heads": 4, "init": "random", "context": 128, "text_episodes": 10}
    return {
        "suite": SUITE,
        "device": "cpu",
        "model": {"scratch": scratch},
        "engine": {"kind": "torch", "max_sequences": load.groups * load.group_size},
        "sampling": {"max_tokens": 4, "tools": "none"},
        "rollout": {
            "groups": load.groups,
            "group_size": load.group_size,
            "concurrency": load.groups * load.group_size,
            "max_vacuous": 0,
            "env_options": {"median_s": load.median_s, "sigma": load.sigma},
        },
        "optimizer": {"learning_rate": 1e-4, "epochs": load.epochs},
        "scale": {"staleness": staleness},
        "updates": load.updates,
        "evaluate": {"every": load.updates, "dev": 1, "test": 1},
        "checkpoint": {"every": load.updates},
        "sinks": [],
    }


def _unit(name: str) -> str:
    if name.startswith(("bound", "speed_up", "share")):
        return "×"
    return "ms" if name == "stall" else "updates" if name.startswith("lag") else "s"


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
