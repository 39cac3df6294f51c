"""``turnwise bench env`` for live environments, measured in wall-clock time.

Each repetition runs in a fresh process and plays every task once, so that nothing is remembered of an earlier
episode; several environments are stepped at once in threads, as rollouts do.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from turnwise.envs.core import AgentEnv
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class
from turnwise.tasks.core import Json, Task

REPEATS = 3
TASKS = 80

_ALONE = 12  # episodes
_CROWDS = {4: 5, 16: 2}  # environments at once → episodes of each
_FORKS = 5

UNITS = {
    "reset": "ms",
    "step": "ms",
    "step_processor": "ms",
    "fork": "ms",
    **{f"gold_steps_{n}_at_once": "steps/s" for n in (1, *_CROWDS)},
    "memory_each": "MiB",
    "twin_gold_steps": "steps/s",
    "twin_times": "×",
}
"""``reset`` and ``step`` are medians of one environment alone. ``step_processor`` is the processor time of all
processes together, divided by the steps, resets included: on a busy machine it tells more than the clock does, and
cores divided by it is the most steps per second that can be had. ``memory_each`` is what a further one adds to all
processes together (proportional set size). ``twin_gold_steps`` is the speed of the class's ``twin`` on the same
tasks, and ``twin_times`` how often that contains the highest speed here."""


def measure_live(name: str, data: Sequence[dict[str, Json]]) -> dict[str, float]:
    """All figures once; runs in a process of its own."""
    tasks = [Task.from_json(item) for item in data]
    figures = _alone(name, tasks)
    crowd, figures["memory_each"] = _crowd(name, tasks[_ALONE:], max(_CROWDS))
    fresh = [*tasks[_ALONE + max(_CROWDS) :], *tasks]
    for n, each in sorted(_CROWDS.items(), reverse=True):
        for env in crowd[n:]:
            env.close()
        figures[f"gold_steps_{n}_at_once"] = _steps_per_second(crowd[:n], fresh, each)
        fresh = fresh[n * each :]
    for env in crowd:
        env.close()
    best = max(figures[f"gold_steps_{n}_at_once"] for n in (1, *_CROWDS))
    return figures | _twin(name, tasks, best)


def _alone(name: str, tasks: Sequence[Task]) -> dict[str, float]:
    """One environment after another episode, and its forks."""
    env = env_class(name)()
    _play(env, tasks[0], [], [])  # builds what all episodes share
    resets: list[float] = []
    steps: list[float] = []
    started, worked = time.perf_counter(), _all_processor_time()
    for i in range(_ALONE):
        _play(env, tasks[i % len(tasks)], resets, steps)
    seconds, worked = time.perf_counter() - started, _all_processor_time() - worked
    figures = {
        "reset": 1e3 * statistics.median(resets),
        "step": 1e3 * statistics.median(steps),
        "step_processor": 1e3 * worked / len(steps),
        "fork": _fork_ms(env, tasks[0]),
        "gold_steps_1_at_once": len(steps) / seconds,
    }
    env.close()
    return figures


def _play(env: AgentEnv[Any], task: Task, resets: list[float], steps: list[float]) -> int:
    """One gold episode; the seconds of its reset and of each step are appended."""
    started = time.perf_counter()
    env.reset(seed=0, options={"task": task})
    resets.append(time.perf_counter() - started)
    turns, end = 0, None
    while end is None:
        action = env.gold(env.state)
        started = time.perf_counter()
        end = env.step(action).info.get("end")
        steps.append(time.perf_counter() - started)
        turns += 1
    return turns


def _steps_per_second(envs: Sequence[AgentEnv[Any]], tasks: Sequence[Task], each: int) -> float:
    """Whole episodes, resets included, of environments that are there already."""

    def play(place: int) -> int:
        chosen = [tasks[(place * each + i) % len(tasks)] for i in range(each)]
        return sum(_play(envs[place], task, [], []) for task in chosen)

    with ThreadPoolExecutor(len(envs)) as pool:
        started = time.perf_counter()
        turns = sum(pool.map(play, range(len(envs))))
        return turns / (time.perf_counter() - started)


def _fork_ms(env: AgentEnv[Any], task: Task) -> float:
    env.reset(seed=0, options={"task": task})
    env.step(env.gold(env.state))
    times: list[float] = []
    for _ in range(_FORKS):
        started = time.perf_counter()
        twin = env.fork()
        times.append(time.perf_counter() - started)
        twin.close()
    return 1e3 * statistics.median(times)


def _crowd(name: str, tasks: Sequence[Task], n: int) -> tuple[list[AgentEnv[Any]], float]:
    """``n`` environments in mid-episode, and the MiB that each after the first has added."""
    envs: list[AgentEnv[Any]] = []
    sizes: list[float] = []
    for place in range(n):
        env = env_class(name)()
        env.reset(seed=0, options={"task": tasks[place % len(tasks)]})
        env.step(env.gold(env.state))
        envs.append(env)
        sizes.append(_all_memory())
    return envs, (sizes[-1] - sizes[0]) / (n - 1) / 2**20


def _twin(name: str, tasks: Sequence[Task], best: float) -> dict[str, float]:
    """The same tasks without a live world, each for the first time, where the class names such a twin."""
    kind = env_class(name)
    if not issubclass(kind, LiveEnv) or not kind.twin:
        return {}
    env = env_class(kind.twin)()
    started = time.perf_counter()
    turns = sum(_play(env, dataclasses.replace(task, env=kind.twin), [], []) for task in tasks)
    speed = turns / (time.perf_counter() - started)
    return {"twin_gold_steps": speed, "twin_times": speed / best}


def _all_processor_time() -> float:
    """Seconds that this process and all that it started have worked, also those that have ended since."""
    import psutil

    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])  # with those of children that have ended
        except psutil.Error:
            continue
    return total


def _all_memory() -> float:
    """Proportional set size of this process and all that it started."""
    import psutil

    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total
