"""Agents that understand nothing, and the ladder of ever better scripts: what ``turnwise fairness`` plays.

A family names its own in one value, ``RIVALS`` in its file ``rivals.py``, and gives its place to ``register(…,
rivals="module:RIVALS")``. Where it names none, the general agents of this module play. They see what a policy sees: the
conversation, the tools, and the actions that the environment offers to people.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall

RivalMaker: TypeAlias = Callable[[], Script]
"""Makes a script for one episode, which may remember what it did."""

ONE_WORD = ("hm", "yes", "ok", "no")
"""Words of the agents of one word, each of which says its own at every turn."""

_WORD = re.compile(r"[a-z]+|\d+")
_FILLER_TEXT = "the a an of to in on is are and or for with you your i me my it that this which who what"
_FILLERS = frozenset(_FILLER_TEXT.split())
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'|“([^”]+)”")
_NAME = re.compile(r"\b[A-Z][\w-]*(?: [A-Z][\w-]*)*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Rivals(NamedTuple):
    """Agents that stand beside gold in a family's fairness table.

    ``keyword`` says words of the task; ``scan`` compares or tries everything without a model; ``ladder`` holds named
    scripts from weak to strong, gold being its end without being named. An empty ladder is random, demonstrator, gold.
    ``others`` makes, of an agent, the script for the other agents of a task that has several: without it each plays against
    itself, and who understands nothing gains by what the other gives away.
    """

    keyword: RivalMaker
    scan: RivalMaker
    ladder: Mapping[str, RivalMaker]
    others: Callable[[Script], Script] | None = None


def of_script(script: Script) -> RivalMaker:
    """A rival that remembers nothing."""
    return lambda: script


def one_word(word: str) -> RivalMaker:
    """Says the same word at every turn."""
    return of_script(lambda now: word)


def keyword() -> Script:
    """Takes the action that has most words of the task, each once where there are others; else calls such a tool."""
    said: Counter[str] = Counter()

    def play(now: ScriptMoment) -> Message | str:
        offered = now.env.admissible(now.env.state)
        if now.env.tools and not is_spoken(now):
            return tool_by_words(now, said)
        if not offered:
            return now.env.task.prompt[:500]
        wanted = words_of(now.env.task.prompt)
        best = max(
            offered, key=lambda action: (-said[action], len(words_of(action) & wanted), now.rng.random())
        )
        said[best] += 1
        return best

    return play


def scan() -> Script:
    """Tries everything that is offered, first what it did not try in this place, most words of the task first."""
    said: Counter[tuple[str, str]] = Counter()
    ever: Counter[str] = Counter()

    def play(now: ScriptMoment) -> Message | str:
        offered = now.env.admissible(now.env.state)
        if now.env.tools and not is_spoken(now):
            return tool_by_words(now, ever)
        if not offered:
            return now.observation[-1].content[:500]
        here, wanted = now.observation[-1].content, words_of(now.env.task.prompt)
        best = min(offered, key=lambda a: (said[here, a], ever[a], -len(words_of(a) & wanted)))
        said[here, best] += 1
        ever[best] += 1
        return best

    return play


def words_of(text: str) -> set[str]:
    """The words of a text that say something, in lower case.

    >>> sorted(words_of("Put the mug in sink 2"))
    ['2', 'mug', 'put', 'sink']
    """
    return {word for word in _WORD.findall(text.lower()) if word not in _FILLERS}


def default_rivals(cls: type[AgentEnv[Any]]) -> Rivals:
    """The general agents; the demonstrator is a rung where the class has one of its own."""
    rungs: dict[str, RivalMaker] = {"random": of_script(baselines.random)}
    if cls.demonstrate is not AgentEnv.demonstrate:
        rungs["demonstrator"] = of_script(baselines.demonstrator)
    return Rivals(keyword, scan, rungs)


def is_spoken(now: ScriptMoment) -> bool:
    """Say whether actions are words: they are on offer, and no one tool takes structured arguments for them."""
    return len(now.env.tools) == 1 or any("[" in one for one in now.env.admissible(now.env.state)[:3])


def tool_by_words(now: ScriptMoment, said: Counter[str]) -> Message | str:
    """A call of the tool that shares most words with what was said last; its outcome is told when it has been made."""
    heard = now.observation[-1]
    if heard.role == "tool":
        return heard.content[:500] or "Done."
    text = f"{now.env.task.prompt} {heard.content}"
    wanted = words_of(text)
    best = max(
        now.env.tools,
        key=lambda one: (-said[one.spec.name], len(tool_words(one) & wanted), now.rng.random()),
    )
    said[best.spec.name] += 1
    return Message("assistant", "", (ToolCall(best.spec.name, guessed(best, text), f"call_{now.turn}"),))


@functools.lru_cache(4096)
def _words_cached(name: str, description: str) -> frozenset[str]:
    return frozenset(words_of(f"{name.replace('_', ' ')} {description}"))


def tool_words(one: Tool) -> frozenset[str]:
    """The words of a tool's name and description."""
    return _words_cached(one.spec.name, one.spec.description)


def guessed(one: Tool, text: str) -> dict[str, Json]:
    """Arguments taken from a text by their type alone, each piece of it once."""
    numbers = iter(_NUMBER.findall(text))
    quoted = [next(filter(None, found)) for found in _QUOTED.findall(text)]
    pieces = iter([*quoted, *(name for name in _NAME.findall(text)[1:] if name not in quoted)])
    given: dict[str, Json] = {}
    required: Sequence[str] = one.spec.parameters.get("required", ())
    for name, schema in one.spec.parameters.get("properties", {}).items():
        value = _value(schema, text, numbers.__next__, pieces.__next__)
        if value is not None:
            given[name] = value
        elif name in required:
            given[name] = text[:80]
    return given


def _value(
    schema: Mapping[str, Json], text: str, number: Callable[[], str], piece: Callable[[], str]
) -> Json:
    try:
        if "enum" in schema:
            return next(
                (one for one in schema["enum"] if str(one).lower() in text.lower()), schema["enum"][0]
            )
        match schema.get("type"):
            case "integer":
                return int(float(number()))
            case "number":
                return float(number())
            case "boolean":
                return True
            case "array":
                return [piece()]
            case "string":
                return piece()
            case _:
                return None
    except StopIteration:
        return None
