"""``turnwise bench env`` for environments with a live world: what counts is time on the clock.

Each repetition runs in a fresh process; several environments are stepped at once in threads, as rollouts do.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import env_class
from turnwise.tasks.core import Json, Task

AT_ONCE = (1, 4, 16)
_EPISODES = 6  # per environment, at least
_FORKS = 5

UNITS = {
    "reset": "ms",
    "step": "ms",
    "fork": "ms",
    **{f"gold_steps_{n}_at_once": "steps/s" for n in AT_ONCE},
    "memory_each": "MiB",
}
"""``reset`` and ``step`` are medians of one environment alone; ``memory_each`` is what a further one adds to all
processes together (proportional set size)."""


def measure_live(name: str, data: Sequence[dict[str, Json]]) -> dict[str, float]:
    """All figures once; runs in a process of its own."""
    tasks = [Task.from_json(item) for item in data]
    env = env_class(name)()
    _play(env, tasks[0], [], [])  # builds what all episodes share
    resets: list[float] = []
    steps: list[float] = []
    for task in tasks[:12]:
        _play(env, task, resets, steps)
    figures = {
        "reset": 1e3 * statistics.median(resets),
        "step": 1e3 * statistics.median(steps),
        "fork": _fork_ms(env, tasks[0]),
    }
    env.close()
    for n in AT_ONCE:
        figures[f"gold_steps_{n}_at_once"] = _steps_per_second(name, tasks, n)
    return {**figures, "memory_each": _memory_mebibytes(name, tasks, max(AT_ONCE))}


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


def _steps_per_second(name: str, tasks: Sequence[Task], n: int) -> float:
    """Whole episodes, resets included, of ``n`` environments that are there already."""
    envs = [env_class(name)() for _ in range(n)]
    for env in envs:
        env.reset(seed=0, options={"task": tasks[0]})
    each = max(_EPISODES, 24 // n)

    def play(place: int) -> int:
        chosen = [tasks[(place * each + i) % len(tasks)] for i in range(each)]
        return sum(_play(envs[place], task, [], []) for task in chosen)

    with ThreadPoolExecutor(n) as pool:
        started = time.perf_counter()
        turns = sum(pool.map(play, range(n)))
        seconds = time.perf_counter() - started
    for env in envs:
        env.close()
    return turns / seconds


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


def _memory_mebibytes(name: str, tasks: Sequence[Task], n: int) -> float:
    envs: list[AgentEnv[Any]] = []
    sizes: list[float] = []
    for place in range(n):
        env = env_class(name)()
        env.reset(seed=0, options={"task": tasks[place % len(tasks)]})
        env.step(env.gold(env.state))
        envs.append(env)
        sizes.append(_all_memory())
    for env in envs:
        env.close()
    return (sizes[-1] - sizes[0]) / (n - 1) / 2**20


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
