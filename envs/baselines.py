"""Scripted agents: the gold script, and the trivial baselines that no environment may reward (E6).

Each is a function of the moment in which it acts, so that the checker, the policies and the tests of
suites all play the very same agents.
"""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.envs.returned import check_action
from turnwise.tasks.core import Json, Task, derive_rng
from turnwise.tools.core import ToolCall

_FINAL = re.compile(r"buy|submit|answer|finish|done|checkout|commit", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\w)[0-9]{1,9}(?!\w)")
_MANY = 50
_Z = NormalDist().inv_cdf(0.975)


class ScriptMoment(NamedTuple):
    """The environment and random generator that a script may use; the environment is privileged."""

    env: AgentEnv[Any]
    observation: Messages
    turn: int
    rng: Random


Script: TypeAlias = Callable[[ScriptMoment], Message | str]


def moment(env: AgentEnv[Any], observation: Messages, name: str) -> ScriptMoment:
    """The current state of ``env`` for the script called ``name``; its randomness is reproducible (E3)."""
    now = env.now
    return ScriptMoment(
        env, observation, now.turn, derive_rng("script", name, now.task.id, now.seed, now.turn)
    )


def gold(now: ScriptMoment) -> Message | str:
    """The gold policy: the solution that the environment's author wrote."""
    return check_action(now.env, now.env.gold(now.env.state), "gold")


def best_known(now: ScriptMoment) -> Message | str:
    """Plays gold; where it is not known what was recorded, then random admissible actions."""
    if now.env.knows_gold(now.env.task):
        return gold(now)
    recorded = now.env.recorded(now.env.task)
    return recorded[now.turn] if now.turn < len(recorded) else random(now)


def demonstrator(now: ScriptMoment) -> Message | str:
    """The imperfect scripted policy that warm starts imitate: it can act, but not act well."""
    return check_action(now.env, now.env.demonstrate(now.env.state, now.rng), "demonstrate")


def foreseen(now: ScriptMoment) -> str:
    """Lines of observations that the rest of the solution rests on (:meth:`~turnwise.envs.core.AgentEnv.needs`), in the order in which it needs them.

    It is no agent: a scripted policy that is asked for a memory writes these down. The solution is walked once for all turns that follow it.
    """
    env = now.env
    if type(env).needs is AgentEnv.needs or not env.knows_gold(env.task):
        return ""
    walk = _walks.get(env)
    if walk is None or not walk.passes(env):
        walk = _walks[env] = _walk_on(env)
    rest = walk.needs[env.now.turn - walk.turn :]
    return "\n".join(dict.fromkeys(line for lines in rest for line in lines))


class _GoldWalk(NamedTuple):
    """The solution from a turn of an episode on: the state before each of its turns, and what that turn needs."""

    task: Task
    seed: int
    turn: int
    states: Sequence[Any]
    needs: Sequence[Sequence[str]]

    def passes(self, env: AgentEnv[Any]) -> bool:
        """True where the environment is now in the state that the walk was in at this turn."""
        now, place = env.now, env.now.turn - self.turn
        is_known = self.task is now.task and self.seed == now.seed and 0 <= place < len(self.states)
        return is_known and self.states[place] == env.state


_walks: weakref.WeakKeyDictionary[AgentEnv[Any], _GoldWalk] = (
    weakref.WeakKeyDictionary()
)  # of each one's episode


def _walk_on(env: AgentEnv[Any]) -> _GoldWalk:
    now, walker = env.now, env.fork()
    states, needs, ended = list[Any](), list[Sequence[str]](), False
    while not ended:
        states.append(walker.state)
        needs.append(tuple(walker.needs(walker.state)))
        step = walker.step(check_action(walker, walker.gold(walker.state), "gold"))
        ended = step.terminated or step.truncated
    return _GoldWalk(now.task, now.seed, now.turn, states, needs)


def rival(now: ScriptMoment) -> Message | str:
    """A strong scripted opponent that plays its side for its own benefit.

    Where two agents compete, gold is a game that both play for the first one's sake, and no opponent.
    """
    play: Callable[[Any, Random], str] | None = getattr(now.env, "rival", None)
    return check_action(now.env, play(now.env.state, now.rng), "rival") if play else gold(now)


def null(now: ScriptMoment) -> str:
    """Says nothing."""
    return ""


def constant(now: ScriptMoment) -> str:
    """Takes the first admissible action, again and again."""
    offered = now.env.admissible(now.env.state)
    return offered[0] if offered else "I don't know."


def echo(now: ScriptMoment) -> str:
    """Repeats the last message that it received."""
    return now.observation[-1].content


def random(now: ScriptMoment) -> Message | str:
    """Takes a random admissible action."""
    offered = now.env.admissible(now.env.state)
    return now.rng.choice(list(offered)) if offered else tool_spam(now)


def tool_spam(now: ScriptMoment) -> Message | str:
    """Calls a random tool with random arguments that fit its schema."""
    if not now.env.tools:
        return " ".join(_words(now)[:_MANY])
    spec = now.rng.choice(now.env.tools).spec
    words = _words(now) or ["x"]
    arguments = {
        name: _sample(schema, now.rng, words) for name, schema in _properties(spec.parameters).items()
    }
    return Message("assistant", "", (ToolCall(spec.name, arguments, f"call_{now.turn}"),))


def answer_spam(now: ScriptMoment) -> str:
    """Names every candidate at once, then hurries to whatever ends the task."""
    offered = list(now.env.admissible(now.env.state))
    final = [action for action in offered if _FINAL.search(action)]
    if final:
        return final[0]
    if now.turn == 0 or not offered:
        return "\n".join([*offered[:_MANY], " ".join(_words(now)[:_MANY])])
    return offered[min(now.turn, len(offered)) - 1]


def first(now: ScriptMoment) -> Message | str:
    """Takes the first thing that it finds, where the environment's author wrote such a script; else acts at random."""
    return _planned("first", now)


def scan(now: ScriptMoment) -> Message | str:
    """Compares words without understanding any, where the author wrote such a script; else acts at random."""
    return _planned("scan", now)


def _planned(script: str, now: ScriptMoment) -> Message | str:
    """The next action of a plan that is made from the start page; its last one when it is over."""
    plan: Callable[[str, Task], Sequence[str]] | None = getattr(now.env, "plan", None)
    if plan is None:
        return random(now)
    steps = plan(script, now.env.task)
    return steps[min(now.turn, len(steps) - 1)]


def astray(now: ScriptMoment) -> Message | str:
    """Makes well-formed but wrong actions: gold's first action with other numbers, again and again.

    Trivial baselines seldom find an action that an environment heeds; this one comes to its later turns.
    """
    if now.env.blocking or not now.env.knows_gold(
        now.env.task
    ):  # where a fork has its price, or shows nothing
        return random(now)
    begun = _begun.get(now.env)
    if now.turn == 0 or begun is None or not begun.is_of(now.env):
        begun = _begun[now.env] = _begin(now.env)
    first = begun.action
    if isinstance(first, str):
        return _other_numbers(first, now.rng)
    calls = tuple(
        ToolCall(call.name, _other_numbers(call.arguments, now.rng), call.id) for call in first.tool_calls
    )
    return Message("assistant", _other_numbers(first.content, now.rng), calls)


class _Begun(NamedTuple):
    """Gold's first action in an environment's episode, kept for the other turns: a start may cost as much as twenty."""

    task: Task
    seed: int
    action: Message | str

    def is_of(self, env: AgentEnv[Any]) -> bool:
        return self.task is env.now.task and self.seed == env.now.seed


_begun: weakref.WeakKeyDictionary[AgentEnv[Any], _Begun] = (
    weakref.WeakKeyDictionary()
)  # of each one's episode


def _begin(env: AgentEnv[Any]) -> _Begun:
    start, now = env.fork(), env.now
    try:
        start.reset(seed=now.seed, options={"task": now.task})
        first = check_action(start, start.gold(start.state), "gold")
    finally:
        start.close()
    return _Begun(now.task, now.seed, first)


TRIVIAL_BASELINES: Mapping[str, Script] = {
    "null": null,
    "constant": constant,
    "echo": echo,
    "random": random,
    "tool_spam": tool_spam,
    "answer_spam": answer_spam,
}
SCRIPTS: Mapping[str, Script] = {
    "gold": gold, "demonstrator": demonstrator, "rival": rival, "first": first, "scan": scan,
    "astray": astray, "best_known": best_known, **TRIVIAL_BASELINES
}  # fmt: skip


def interval(solved: int, n: int) -> tuple[float, float]:
    """The 95 % interval (Wilson's) of an agent's success, for judging it against a bound.

    >>> [round(end, 2) for end in interval(1, 5)]
    [0.04, 0.62]
    >>> interval(0, 10)[0], interval(10, 10)[1]  # not a rounding away from it
    (0.0, 1.0)
    """
    share, weight = solved / n, _Z**2 / n
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return (middle - half if solved else 0.0), (middle + half if solved < n else 1.0)


def _other_numbers(value: Any, rng: Random) -> Any:
    """The same text or JSON, in which each whole number is another one of its size."""
    match value:
        case bool():
            return value
        case int():
            return rng.randint(0, 2 * abs(value) + 1)
        case str():
            return _NUMBER.sub(lambda found: str(_other_numbers(int(found[0]), rng)), value)
        case list():
            return [_other_numbers(each, rng) for each in value]
        case dict():
            return {name: _other_numbers(each, rng) for name, each in value.items()}
        case _:
            return value


def _words(now: ScriptMoment) -> list[str]:
    return re.findall(r"\w+", f"{now.env.task.prompt} {now.observation[-1].content}")[: 4 * _MANY]


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Mapping[str, Json]]:
    return schema.get("properties", {})


def item_schemas(schema: Mapping[str, Json], many: int) -> list[Mapping[str, Json]]:
    """Schemas of the places of an array: of each its own where it has that (``prefixItems``, before 2020-12 a list of ``items``), else so many alike.

    >>> item_schemas({"items": [{"type": "integer"}, True]}, 3), item_schemas({"items": {"type": "integer"}}, 2)
    ([{'type': 'integer'}, {}], [{'type': 'integer'}, {'type': 'integer'}])
    """
    alike: Json = schema.get("items", {})
    places: Json = schema.get("prefixItems", alike if isinstance(alike, list) else [alike] * many)
    return [one if isinstance(one, dict) else {} for one in places]


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
            return [_sample(each, rng, words) for each in item_schemas(schema, rng.randint(1, 3))]
        case "object":
            return {name: _sample(value, rng, words) for name, value in _properties(schema).items()}
        case "null":
            return None
        case _:
            return " ".join(rng.choice(words) for _ in range(rng.randint(1, 4)))
