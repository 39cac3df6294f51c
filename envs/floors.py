"""Agents without a mind: the gold script, and the floors that no environment may reward (E6).

Each is a function of the moment in which it acts, so that the checker, the policies and the tests of
suites all play the very same agents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Json, derive_rng
from turnwise.tools.core import ToolCall

_FINAL = re.compile(r"buy|submit|answer|finish|done|checkout|commit", re.IGNORECASE)
_MANY = 50


class Moment(NamedTuple):
    """What a script sees: the environment itself (it is privileged), and its own chance."""

    env: AgentEnv[Any]
    observation: Messages
    turn: int
    rng: Random


Script: TypeAlias = Callable[[Moment], Message | str]


def moment(env: AgentEnv[Any], observation: Messages, name: str) -> Moment:
    """The present moment of ``env`` for the script called ``name``; chance as in E3."""
    now = env.now
    return Moment(env, observation, now.turn, derive_rng("script", name, now.task.id, now.seed, now.turn))


def gold(now: Moment) -> Message | str:
    """What the environment's author says solves the task."""
    return now.env.gold(now.env.state)


def demonstrator(now: Moment) -> Message | str:
    """Knows how to act, not how to act well: what a warm start imitates."""
    return now.env.demonstrate(now.env.state, now.rng)


def rival(now: Moment) -> Message | str:
    """Plays its seat for itself, as well as the environment knows how: an opponent to be measured against.

    Where two agents compete, gold is a game that both play for the first one's sake, and no opponent.
    """
    play: Callable[[Any, Random], str] | None = getattr(now.env, "rival", None)
    return play(now.env.state, now.rng) if play else now.env.gold(now.env.state)


def null(now: Moment) -> str:
    """Says nothing."""
    return ""


def constant(now: Moment) -> str:
    """Does the first thing that is possible, again and again."""
    offered = now.env.admissible(now.env.state)
    return offered[0] if offered else "I don't know."


def echo(now: Moment) -> str:
    """Repeats what it was told."""
    return now.observation[-1].content


def random(now: Moment) -> Message | str:
    """Does anything that is possible."""
    offered = now.env.admissible(now.env.state)
    return now.rng.choice(list(offered)) if offered else tool_spam(now)


def tool_spam(now: Moment) -> Message | str:
    """Calls a random tool with random arguments that fit its schema."""
    if not now.env.tools:
        return " ".join(_words(now)[:_MANY])
    spec = now.rng.choice(now.env.tools).spec
    words = _words(now) or ["x"]
    arguments = {
        name: _sample(schema, now.rng, words) for name, schema in _properties(spec.parameters).items()
    }
    return Message("assistant", "", (ToolCall(spec.name, arguments, f"call_{now.turn}"),))


def answer_spam(now: Moment) -> str:
    """Names every candidate at once, then hurries to whatever ends the task."""
    offered = list(now.env.admissible(now.env.state))
    final = [action for action in offered if _FINAL.search(action)]
    if final:
        return final[0]
    if now.turn == 0 or not offered:
        return "\n".join([*offered[:_MANY], " ".join(_words(now)[:_MANY])])
    return offered[min(now.turn, len(offered)) - 1]


FLOORS: Mapping[str, Script] = {
    "null": null,
    "constant": constant,
    "echo": echo,
    "random": random,
    "tool_spam": tool_spam,
    "answer_spam": answer_spam,
}
SCRIPTS: Mapping[str, Script] = {"gold": gold, "demonstrator": demonstrator, "rival": rival, **FLOORS}


def _words(now: Moment) -> list[str]:
    return re.findall(r"\w+", f"{now.env.task.prompt} {now.observation[-1].content}")[: 4 * _MANY]


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Mapping[str, Json]]:
    return schema.get("properties", {})


def _sample(schema: Mapping[str, Json], rng: Random, words: list[str]) -> Json:
    """A random value of a JSON schema, as far as tools' signatures make such schemas."""
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    if "anyOf" in schema:
        return _sample(rng.choice(list(schema["anyOf"])), rng, words)
    match schema.get("type"):
        case "integer":
            return rng.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 100)))
        case "number":
            return rng.uniform(float(schema.get("minimum", 0)), float(schema.get("maximum", 100)))
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [_sample(schema.get("items", {}), rng, words) for _ in range(rng.randint(1, 3))]
        case "object":
            return {name: _sample(value, rng, words) for name, value in _properties(schema).items()}
        case "null":
            return None
        case _:
            return " ".join(rng.choice(words) for _ in range(rng.randint(1, 4)))
