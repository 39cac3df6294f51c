"""``turnwise bench env ENV``: steps per second on one core, cost of a fork, memory of many environments.

Every repetition runs in a fresh process on one core, so that nothing an earlier one looked up helps the
next. Tasks are made beforehand in this process. Seconds are processor time, so that a busy machine does
not pass for a slow environment; environments with a live world are measured by the clock (live.py).
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from turnwise.envs.bench import live as bench_live
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class
from turnwise.tasks.core import Json, Split, Task, derive_rng
from turnwise.terminal import guard

_REPEATS = 5
_TASKS = 300
_ENVIRONMENTS = 1000
_FORKS = 2000


class BenchmarkFigure(NamedTuple):
    """The median of several measurements, and the distance between the smallest and the largest."""

    value: float
    unit: str
    spread: float


def bench_env(name: str, *, repeats: int = 0, tasks: int = 0) -> dict[str, BenchmarkFigure]:
    """Measure an environment on each of the workloads that its class names in ``benchmarks``.

    Figures, each with the workload's name appended where there is one:

    * ``gold_steps``: scripted solutions, every task for the first time (caches cold).
    * ``gold_steps_again``: the same tasks once more, as the later rollouts of a group play them.
    * ``replayed_steps``: these from a list, without the time the script takes to find them.
    * ``random_steps``: random admissible actions, tasks seen before.
    * ``fork``: one ``fork()`` in mid-episode.
    * ``memory_1000``: what a thousand environments, each in an episode, add to one.

    Environments with a live world have the figures of :data:`turnwise.envs.bench.live.UNITS`. Without ``repeats``
    and ``tasks`` there are as many as keep the whole to a few minutes.
    """
    live = issubclass(env_class(name), LiveEnv)
    measure, units = (bench_live.measure_live, bench_live.UNITS) if live else (_measure, _UNITS)
    repeats = repeats or (bench_live.REPEATS if live else _REPEATS)
    tasks = tasks or (bench_live.TASKS if live else _TASKS)
    figures: dict[str, BenchmarkFigure] = {}
    for workload, knobs in env_class(name).benchmarks.items():
        generate = env_class(name).generate
        data = [
            generate(derive_rng("bench", name, workload, i), Split.TRAIN, **knobs).to_json()
            for i in range(tasks)
        ]
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), max_tasks_per_child=1, initializer=guard
        ) as pool:
            runs = [pool.submit(measure, name, data).result() for _ in range(repeats)]
        for figure in runs[0]:
            values = [run[figure] for run in runs]
            key = f"{figure}_{workload}" if workload else figure
            figures[key] = BenchmarkFigure(
                statistics.median(values), units[figure], max(values) - min(values)
            )
    return figures


_UNITS = {
    "gold_steps": "steps/s",
    "gold_steps_again": "steps/s",
    "replayed_steps": "steps/s",
    "random_steps": "steps/s",
    "fork": "µs",
    "memory_1000": "MiB",
}


def _measure(name: str, data: Sequence[dict[str, Json]]) -> dict[str, float]:
    """All figures once; runs in a process of its own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    tasks = [Task.from_json(item) for item in data]
    env = env_class(name)()
    env.reset(seed=0, options={"task": tasks[0]})  # builds what all episodes share
    rng = derive_rng("bench", name)
    first = _steps_per_second(env, tasks, lambda: env.gold(env.state))
    again = _steps_per_second(env, tasks, lambda: env.gold(env.state))
    noted = iter(_gold_actions(env, tasks))
    replayed = _steps_per_second(env, tasks, lambda: next(noted))
    random = _steps_per_second(env, tasks, lambda: rng.choice(env.admissible(env.state) or [""]))
    return {
        "gold_steps": first,
        "gold_steps_again": again,
        "replayed_steps": replayed,
        "random_steps": random,
        "fork": _fork_microseconds(env, tasks[0]),
        "memory_1000": _memory_mebibytes(name, tasks),
    }


def _steps_per_second(env: AgentEnv[Any], tasks: Sequence[Task], act: Callable[[], Any]) -> float:
    """Whole episodes, resets included."""
    steps, start = 0, time.process_time()
    for seed, task in enumerate(tasks):
        env.reset(seed=seed, options={"task": task})
        end: EndReason | None = None
        while end is None:
            end = env.step(act()).info.get("end")
            steps += 1
    return steps / (time.process_time() - start)


def _gold_actions(env: AgentEnv[Any], tasks: Sequence[Task]) -> list[Any]:
    """Return the actions of the scripted solution in all tasks, one after the other."""
    actions: list[Any] = []

    def act() -> Any:
        actions.append(env.gold(env.state))
        return actions[-1]

    _steps_per_second(env, tasks, act)
    return actions


def _fork_microseconds(env: AgentEnv[Any], task: Task) -> float:
    env.reset(seed=0, options={"task": task})
    env.step(env.gold(env.state))
    start = time.process_time()
    for _ in range(_FORKS):
        env.fork()
    return (time.process_time() - start) / _FORKS * 1e6


def _memory_mebibytes(name: str, tasks: Sequence[Task]) -> float:
    import psutil

    process = psutil.Process()
    before = process.memory_full_info().uss
    envs: list[AgentEnv[Any]] = []
    for i in range(_ENVIRONMENTS):
        env = env_class(name)()
        # A task of its own, as if it had come from a file.
        task = Task.from_json(json.loads(json.dumps(tasks[i % len(tasks)].to_json())))
        env.reset(seed=i, options={"task": task})
        env.step(env.gold(env.state))
        envs.append(env)
    return (process.memory_full_info().uss - before) / 2**20
