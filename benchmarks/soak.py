"""Many short episodes in sandboxes, and what is left of them: ``python benchmarks/soak.py ENV BACKEND [--episodes N]``.

An episode of Code-v0 is the reference solution; one of SWE-v0 looks around, changes a file and submits that (no tests run
where nothing of the package was changed, which is so in all but every 20th). Prints JSON like ``turnwise bench``.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import turnwise.envs  # noqa: F401 (registers them)
from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import env_class
from turnwise.machine import describe
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.sandbox.bench import occupied
from turnwise.tools.sandbox.registry import get_backend, get_pool

_SWE = (
    "shell[ls -R | head -n 20]",
    "search[def ]",
    "shell[echo x = 1 > notes.py; python3 notes.py]",
    "submit[]",
)
_JUDGED = "shell[echo '# soak' >> $(ls */__init__.py | head -n 1)]"  # a change of the package: it is judged


def episode(env: AgentEnv[Any], name: str, number: int) -> str:
    """Play one; how it ended."""
    task = env_class(name).generate(derive_rng("soak", name, number), Split.TRAIN)
    env.reset(seed=number, options={"task": task})
    swe = (*_SWE[:2], _JUDGED, *_SWE[3:]) if number % 20 == 0 else _SWE
    for text in swe if "SWE" in name else itertools.repeat(None, 5):
        end = env.step(text if text is not None else env.gold(env.state)).info.get("end")
        if end is not None:
            return str(end)
    return "unfinished"


def soak(name: str, backend: str, episodes: int, at_once: int) -> dict[str, object]:
    """Play them in threads with an environment each; rates, ends, and what is there afterwards and was not before."""
    base = get_backend(backend)
    before = occupied(base)
    kind: Any = env_class(name)
    envs: list[AgentEnv[Any]] = [kind(backend=backend) for _ in range(at_once)]

    def play(place: int) -> Counter[str]:
        return Counter(episode(envs[place], name, number) for number in range(place, episodes, at_once))

    since = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        ends = sum(pool.map(play, range(at_once)), Counter[str]())
    seconds = time.perf_counter() - since
    for env in envs:
        env.close()
    if "Code" in name:
        from turnwise.envs.code.runner import get_runner

        get_runner(backend).close()
    get_pool(backend).close()
    gc.collect()
    left = sorted(occupied(base) - before)
    return {
        "episodes": episodes,
        "at_once": at_once,
        "seconds": round(seconds, 1),
        "episodes_per_second": round(episodes / seconds, 2),
        "ends": dict(ends),
        "left_behind": left,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", choices=("turnwise/Code-v0", "turnwise/SWE-v0"))
    parser.add_argument("backend", choices=("bubblewrap", "docker"))
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    found = soak(asked.env, asked.backend, asked.episodes, asked.at_once)
    name = f"soak {asked.env} {asked.backend}"
    print(json.dumps({"name": name, "machine": describe(), "figures": found}, indent=2))
    return 1 if found["left_behind"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
