"""Finds what an environment keeps in the wrong place: in a state that it changes, on itself or its class."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from turnwise.blame import written_at
from turnwise.envs.baselines import SCRIPTS, moment
from turnwise.envs.check.core import Subject
from turnwise.envs.check.walks import sample_tasks
from turnwise.envs.core import AgentEnv
from turnwise.envs.live import LiveEnv
from turnwise.tasks.core import Split

_REMEDY = (
    "Keep everything in the state, and freeze it (a NamedTuple or @dataclass(frozen=True)): return a new one."
)
_TURNS = 12


def freeze(state: object) -> str | bytes:
    """A value that shows whether a state was changed since."""
    shown = repr(state)
    if " at 0x" not in shown:
        return shown
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 (what cannot be pickled is told apart by what it is)
        return shown


def diagnose(subject: Subject) -> str:
    """Find where an environment keeps what steps change, beside the states that it returns; empty if nowhere."""
    tasks = list(sample_tasks(subject.played, Split.TRAIN, 2))
    for script in ("best_known", "astray", "random"):
        env = subject.cls()
        try:
            found = next(filter(None, (_play(env, task, script) for task in tasks)), "")
        except Exception:  # noqa: BLE001 (the requirement that plays this says what was raised)
            found = ""
        finally:
            env.close()
        if found:
            return f"{found} ({written_at(subject.cls.transition)}). → {_REMEDY}"
    return ""


def _play(env: AgentEnv[Any], task: Any, script: str) -> str:
    observation, _ = env.reset(seed=0, options={"task": task})
    for _ in range(_TURNS):
        action = SCRIPTS[script](moment(env, observation, script))
        state, before, kept, globals_ = env.state, freeze(env.state), _kept(env), _globals(env)
        step = env.step(action)
        if freeze(state) != before:
            return f"transition changes the {type(state).__name__} that it is given"
        changed = sorted(name for name, value in _kept(env).items() if kept.get(name) != value)
        if changed and not isinstance(env, LiveEnv):
            return f"a step changes {', '.join(f'self.{name}' for name in changed)}"
        others = sorted(name for name, value in _globals(env).items() if globals_.get(name) != value)
        if others:
            return f"a step changes the global {', '.join(others)}"
        if step.terminated or step.truncated:
            break
        observation = step.observation
    return ""


def _globals(env: AgentEnv[Any]) -> Mapping[str, str]:
    """The plain values at the top of the file that the author wrote: counters, lists, caches."""
    module = sys.modules.get(type(env).__module__)
    plain = (int, float, str, list, dict, set)
    return {
        name: repr(value)
        for name, value in vars(module).items()
        if not name.startswith("__") and isinstance(value, plain)
    } if module else {}  # fmt: skip


def _kept(env: AgentEnv[Any]) -> Mapping[str, str | bytes]:
    """Return the frozen attributes that the author keeps on the environment and on its class."""
    kept: dict[str, Any] = {}
    for base in reversed(type(env).__mro__):
        if not base.__module__.startswith(("turnwise.envs.core", "gymnasium", "typing", "builtins")):
            kept |= vars(base)
    kept |= vars(env)
    return {
        name: freeze(value)
        for name, value in kept.items()
        if not name.startswith("__")
        and name not in ("_snapshot", "_generator", "_np_random_seed")
        and not isinstance(value, (classmethod, staticmethod, property))
        and not inspect.isroutine(value)
    }
