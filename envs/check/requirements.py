"""The tests of an environment's first requirements (E1–E5): reward components, ends, determinism, fork, state key."""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import pickle
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from turnwise.envs.baselines import TRIVIAL_BASELINES
from turnwise.envs.check.core import Broken, Subject, require
from turnwise.envs.check.stray_state import freeze
from turnwise.envs.check.walks import sample_tasks, step_json, transcripts, walk
from turnwise.envs.core import AgentEnv, EndReason, ForkCost, Snapshot
from turnwise.envs.registry import env_entries, suites
from turnwise.envs.returned import check_options
from turnwise.tasks.core import Split
from turnwise.tools.processes import module_path

FORK_LIMIT_US = 100.0
"""Most microseconds that a fork of an environment that does not block may take."""


# --- E1, E2 ------------------------------------------------------------------------------------------


def reward_components(subject: Subject) -> str:
    """E1: the parts are declared and finite, their sum is the reward, potentials telescope."""
    parts: set[str] = set()
    for walked in subject.walks("best_known", "astray", "random", "tool_spam"):
        for turn, step in enumerate(walked.steps):
            rewards = step.info.get("rewards", {})
            parts.update(rewards)
            unknown = set(rewards) - set(subject.cls.reward_components)
            require(
                not unknown, f"turn {turn} paid {sorted(unknown)}, which reward_components do not declare"
            )
            require(
                all(math.isfinite(part) for part in rewards.values()), f"turn {turn} paid {dict(rewards)}"
            )
            total = sum(rewards.values())
            require(
                step.reward == total, f"turn {turn}: the reward is {step.reward}, its parts sum to {total}"
            )
    seen = f"parts seen: {', '.join(sorted(parts)) or 'none'}; they sum to the reward"
    return f"{seen}; {_telescopes(subject)}"


def _telescopes(subject: Subject) -> str:
    check_options(subject.cls, shaping=1.0)
    env, tried = subject.cls(shaping=1.0), 0
    for seed, task in enumerate(sample_tasks(subject.played, Split.TRAIN, subject.few)):
        env.reset(seed=seed, options={"task": task})
        if len(env.agents) > 1 or env.potential(env.state) is None:
            continue  # shaping is for one agent
        tried += 1
        for script in ("best_known", "astray", "random", "null"):
            walked = walk(env, task, script, seed=seed)
            start = env.potential(walked.moments[0].state) or 0.0
            total = sum(step.info.get("rewards", {}).get("progress", 0.0) for step in walked.steps)
            cause = f"shaping sums to {total:.6g} over an episode, not to −Φ(s₀) = {-start:.6g}"
            require(math.isclose(total, -start, rel_tol=1e-9, abs_tol=1e-9), cause, unsteady=True)
    env.close()
    own = subject.cls.potential is not AgentEnv.potential
    require(
        bool(tried) or not own or _returns_something(subject.cls.potential),
        "potential(state) returns nothing: no line of it says `return` and a number",
        remedy="Return a number, or leave potential out.",
    )
    return "shaping telescopes to −Φ(s₀), whatever is done" if tried else "no potential"


def _returns_something(method: Callable[..., Any]) -> bool:
    """Say whether a method has a line that returns a value; it may be None for some tasks all the same."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return True
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree))


def ends(subject: Subject) -> str:
    """E2: every end has a name; it is terminated or truncated, never both; the turn limit truncates."""
    seen: set[str] = set()
    for walked in subject.walks("best_known", "astray", *TRIVIAL_BASELINES):
        for turn, step in enumerate(walked.steps):
            end = step.info.get("end")
            require(
                end is None or isinstance(end, EndReason),
                f"turn {turn} ended with {end!r}, which is no EndReason",
            )
            ended = (step.terminated, step.truncated)
            truncates = end is not None and end.truncated
            right = (end is not None and not truncates, truncates)
            require(ended == right, f"end {end!r} with terminated={ended[0]}, truncated={ended[1]}")
        seen.add(str(walked.steps[-1].info.get("end")))
        limit = walked.task.options.get("turn_limit", subject.cls.turn_limit)
        cause = f"an episode took {len(walked.steps)} turns where {limit} are allowed"
        require(len(walked.steps) <= limit, cause)
    return f"ends seen: {', '.join(sorted(seen))}"


# --- E3 ----------------------------------------------------------------------------------------------


def determinism(subject: Subject) -> str:
    """E3: the same in a second run, in another process with another hash seed, whatever the global RNG."""
    _options_are_json(subject)
    _no_generator_inside(subject)
    kept = random.getstate(), np.random.get_state()
    try:
        first = _with_global_seed(subject, 1)
        second = _with_global_seed(subject, 2)
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
    _same(
        first,
        second,
        "a second run in this process, with the global RNG seeded otherwise,",
        'Take chance from self.rng("name"), nothing from the clock, and keep nothing outside of the state.',
    )
    _same(
        first,
        _elsewhere(subject),
        "another process with another PYTHONHASHSEED",
        "Sort what comes from a set, and use no hash() or id().",
    )
    if subject.cls.gold_varies:
        subject.missed(f"E3: whether gold is the same in another process: {subject.cls.gold_varies}")
    return f"{len(first)} episodes identical in a second run and in another process; global RNG untouched"


def _options_are_json(subject: Subject) -> None:
    """Tasks are saved as JSON, in which every key is text: another key would come back as another."""
    for task in sample_tasks(subject.played, Split.TRAIN, subject.few):
        waiting: list[Any] = [task.options]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Mapping):
                odd = next((key for key in value if not isinstance(key, str)), None)
                cause = f"the options of a task have the key {odd!r}, which is no text: saved as JSON it is {str(odd)!r}"
                require(odd is None, cause, remedy=f"Write {str(odd)!r}, or a list of pairs.")
                waiting += value.values()
            elif isinstance(value, (list, tuple)):
                waiting += value


def _no_generator_inside(subject: Subject) -> None:
    """A random generator changes as it is used, so no state may hold one."""
    for walked in subject.walks("null"):
        state: Any = walked.moments[0].state
        fields = state._asdict() if hasattr(state, "_asdict") else getattr(state, "__dict__", {"": state})
        for name, value in fields.items():
            cause = f"the state holds a random generator{name and f' in {name}'}, which changes as it is used"
            require(
                not isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)),
                cause,
                remedy='Draw from self.rng("name") where chance is needed; keep the numbers in the state.',
            )


def _with_global_seed(subject: Subject, seed: int) -> list[str]:
    random.seed(seed)
    np.random.seed(seed)
    before = _global_state()
    lines = transcripts(subject.played, subject.few)
    cause = "the environment draws from the global RNG (random or numpy.random)"
    require(_global_state() == before, f'{cause}. → Draw from self.rng("name"), in generate from its rng.')
    return lines


def _global_state() -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state()))


def _same(first: list[str], other: list[str], where: str, remedy: str) -> None:
    for mine, theirs in zip(first, other, strict=True):
        cause = f"{where} gives another episode: {' '.join(mine.split()[:2])}"
        require(mine == theirs, cause, unsteady=True, remedy=remedy)


def _elsewhere(subject: Subject) -> list[str]:
    """The transcripts of a fresh process whose strings hash differently."""
    entry = next(entry for entry in env_entries() if entry.name == subject.name)
    own = [suite for suite in suites() if suite.env == subject.name]
    program = "\n".join(
        (
            "import contextlib, json, sys",
            "from turnwise.envs.registry import register, register_suite",
            "from turnwise.envs.check.walks import transcripts",
            "from turnwise.tasks.core import Suite",
            f"register({entry.name!r}, {entry.entry_point!r}, {entry.about!r})",
            f"for suite in json.loads({json.dumps([asdict(suite) for suite in own])!r}):",
            "    register_suite(Suite(**suite))",
            "with contextlib.redirect_stdout(sys.stderr):",  # what an environment prints is no transcript
            f"    lines = transcripts({subject.played!r}, {subject.few})",
            "print('\\n'.join(lines))",
        )
    )
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": module_path()}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"another process fails: {done.stderr.strip().splitlines()[-1][:300]}")
    return done.stdout.splitlines()


# --- E4, E5 ------------------------------------------------------------------------------------------


def fork(subject: Subject) -> str:
    """E4: restore(s); step(a) and fork().step(a) equal step(a); states do not change."""
    if subject.cls.fork_cost is ForkCost.NONE:
        subject.missed("E4: the environment declares that nobody can go back in it (fork_cost = NONE)")
        return "declared: it cannot be forked"
    env = subject.cls()
    start, played, tried, dearest = None, 0, 0, 0.0
    for walked in subject.walks("best_known", "astray", "random", env=env):
        start = walked.moments[0]
        frozen = [freeze(moment.state) for moment in walked.moments]
        chosen = _fork_turns(subject, len(walked.steps))
        played, tried = played + len(walked.steps), tried + len(chosen)
        for turn in chosen:
            action, step, began = walked.actions[turn], walked.steps[turn], time.perf_counter()
            env.restore(walked.moments[turn])
            twin = env.fork()
            again = env.step(action)
            dearest = max(dearest, time.perf_counter() - began)
            same = step_json(again) == step_json(step)
            require(same, f"restore, then step gives another turn {turn}", unsteady=True)
            same = step_json(twin.step(action)) == step_json(step)
            require(same, f"a fork plays another turn {turn}", unsteady=True)
            twin.close()
        env.restore(walked.moments[0])
        for turn, (action, step) in enumerate(zip(walked.actions, walked.steps, strict=True)):
            cause = f"after restore to the start, turn {turn} of the same actions differs"
            require(step_json(env.step(action)) == step_json(step), cause, unsteady=True)
        for turn, moment in enumerate(walked.moments):
            cause = f"the state of turn {turn} was changed by a later step"
            require(freeze(moment.state) == frozen[turn], cause, unsteady=True)
    assert start is not None
    cost = _fork_us(env, start)
    cheap = env.blocking or cost < FORK_LIMIT_US
    require(cheap, f"a fork takes {cost:.0f} µs, where {FORK_LIMIT_US:.0f} are allowed")
    if tried < played:
        subject.missed(
            f"E4: forks were tried at {tried} of {played} turns, since each costs a {env.fork_cost}"
        )
        return f"restore and fork repeat {tried} of {played} turns; going back takes up to {1e3 * dearest:.1f} ms"
    return f"restore and fork repeat every turn; a fork takes {cost:.1f} µs"


def _fork_turns(subject: Subject, turns: int) -> Sequence[int]:
    """All turns, or where a fork is dear the first, the middle one and the last."""
    return sorted({0, turns // 2, turns - 1}) if subject.cls.fork_cost is ForkCost.REPLAY else range(turns)


def _fork_us(env: AgentEnv[Any], moment: Snapshot[Any], n: int = 200) -> float:
    env.restore(moment)
    times: list[float] = []
    for _ in range(5 if env.blocking else n):
        started = time.perf_counter()
        env.fork()
        times.append(time.perf_counter() - started)
    return 1e6 * sorted(times)[len(times) // 2]


def state_key(subject: Subject) -> str:
    """E5: equal states have equal keys (across processes: E3), and what differs is told apart."""
    env = subject.cls()
    pairs: list[tuple[object, str]] = []
    for walked in subject.walks("best_known", "random", "null", env=env):
        for moment, key in zip(walked.moments, walked.keys, strict=True):
            require(isinstance(key, str) and key != "", f"the state key is {key!r}")
            same = env.state_key(moment.state) == key
            require(same, "the key of one state changes from call to call", unsteady=True)
            pairs.append((moment.state, key))
        twin = walk(subject.cls(), walked.task, "null", seed=walked.seed + 1)
        cause = "the same start has another key under another seed"
        same = twin.moments[0].state != walked.moments[0].state or twin.keys[0] == walked.keys[0]
        require(same, cause, unsteady=True)
    for index, (state, key) in enumerate(pairs):
        for other, other_key in pairs[:index]:
            require(state != other or key == other_key, f"equal states have the keys {key} and {other_key}")
    states, keys = len({freeze(state) for state, _ in pairs}), len({key for _, key in pairs})
    require(keys > 1 or states == 1, f"{states} different states all have one key")
    return f"{keys} keys for {states} states"
