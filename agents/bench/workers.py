"""``turnwise bench env-workers``: slow and hung environments, in threads and in worker processes.

Episodes of environments that sleep in each step are played, many in flight, and one task in fifty hangs
for ever in C code. The ideal is what the healthy ones need if nothing but sleeping takes time:
episodes × steps × sleep / concurrency.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from random import Random
from typing import NamedTuple

from turnwise.agents.core import History, Outcome, Reply
from turnwise.agents.rollout import Limits, Request, rollout
from turnwise.agents.workers.pool import WorkerPool
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise-bench/Sleep-v0"
HUNG = 50
"""One task in so many hangs in its third step."""


class SleepEnv(AgentEnv[int]):
    """Each step sleeps; the task is solved after ``steps``. Hangs where its task says so."""

    turn_limit = 1000

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task(ENV, "wait", {"salt": rng.getrandbits(40), **knobs})

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        options = self.task.options
        time.sleep(1e6 if options["hangs"] and state == 2 else options["sleep"])
        done = state + 1 == options["steps"]
        return Transition(state + 1, "waited", {"outcome": float(done)}, EndReason.SOLVED if done else None)

    def gold(self, state: int) -> str:
        return "wait"


class Waiter:
    """Always says the same, at no cost."""

    name, version = "waiter", 0

    async def act(self, history: History) -> Reply:
        return Reply(Message("assistant", "wait"))

    def close(self) -> None:
        """Nothing is held."""


class Load(NamedTuple):
    """The amount that is played."""

    sleep: float
    steps: int
    environments: int = 1000
    concurrency: int = 128


LOADS = (Load(0.03, 40), Load(0.3, 20), Load(1.0, 12), Load(3.0, 8))


class Row(NamedTuple):
    """The result of one workload."""

    seconds: float
    ideal: float
    healthy: int
    hung: int
    caught: int  # hung episodes that ended as infrastructure failures
    false_failures: int  # healthy episodes that did not count


def tasks(load: Load) -> list[Task]:
    """The tasks of a load; the hung ones are spread evenly."""
    return [
        Task(
            ENV,
            "wait",
            {"salt": i, "sleep": load.sleep, "steps": load.steps, "hangs": i % HUNG == HUNG // 2},
        )
        for i in range(load.environments)
    ]


def play(load: Load, env_workers: int | WorkerPool) -> Row:
    """Play a load with deadlines of five sleeps."""
    requests = [Request(task, i) for i, task in enumerate(tasks(load))]
    limits = Limits(step_s=5 * load.sleep)
    started = time.perf_counter()
    episodes = asyncio.run(
        rollout(requests, Waiter(), concurrency=load.concurrency, limits=limits, env_workers=env_workers)
    )
    seconds = time.perf_counter() - started
    hung = [episode for episode in episodes if episode.task.options["hangs"]]
    healthy = [episode for episode in episodes if not episode.task.options["hangs"]]
    return Row(
        seconds,
        ideal=len(healthy) * load.steps * load.sleep / load.concurrency,
        healthy=len(healthy),
        hung=len(hung),
        caught=sum(episode.outcome is Outcome.INFRA_ERROR for episode in hung),
        false_failures=sum(not episode.success for episode in healthy),
    )


def bench_workers(
    *, workers: int = 4, repeats: int = 1, loads: tuple[Load, ...] = LOADS
) -> dict[str, BenchmarkFigure]:
    """Share of the ideal speed, healthy episodes that failed and hung ones that were caught, for each load and mode."""
    register(ENV, f"{__name__}:SleepEnv", "sleeps")
    figures: dict[str, BenchmarkFigure] = {}
    for load in loads:
        for mode, processes in (("threads", 0), (f"{workers} processes", workers)):
            rows = [_played(load, processes) for _ in range(repeats)]
            shares = [row.ideal / row.seconds for row in rows]
            name = f"{load.sleep:g} s, {mode}"
            figures[f"{name}: share of ideal"] = BenchmarkFigure(
                round(statistics.median(shares), 3), "", round(max(shares) - min(shares), 3)
            )
            figures[f"{name}: false failures"] = BenchmarkFigure(
                sum(row.false_failures for row in rows), f"of {sum(row.healthy for row in rows)}", 0
            )
            figures[f"{name}: hung and caught"] = BenchmarkFigure(
                sum(row.caught for row in rows), f"of {sum(row.hung for row in rows)}", 0
            )
    return figures


def _played(load: Load, processes: int) -> Row:
    if not processes:
        return play(load, 0)
    with WorkerPool(processes) as pool:
        play(load._replace(environments=2 * processes, steps=1, sleep=0.01), pool)  # until they run
        return play(load, pool)
