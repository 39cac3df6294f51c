"""Tests whether the first observation gives the answer away (E8).

A copying agent knows nothing of the task: it takes one string from the first text, always by the same rule (the
last number, what follows "shelf", …), and says it or gives it to one tool. Its rule is chosen on half of the tasks
and judged on the others, against the same rule on *another* task's text, so that what is merely common does not count.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.baselines import interval, item_schemas
from turnwise.envs.core import AgentEnv, EndReason, Snapshot
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.envs.registry import suite_task
from turnwise.tasks.core import Json, Split, Suite
from turnwise.tools.core import Tool, ToolCall

TASKS = 40
_LEAST = 10  # tasks for a verdict
_STRINGS = 160  # of a text that are tried
TRIES = 400  # actions for one text; where there are many tools, fewer strings are tried
_ENDS = 6  # places from either end that a rule may name
_VALUES = 8  # combinations of a tool's choices
_LEAVES = 8  # parts of a gold that are looked for
_KINDS: Mapping[str, re.Pattern[str]] = {
    "number": re.compile(r"-?\d+(?:\.\d+)?"),
    "identifier": re.compile(r"[\w.:/#@-]*\d[\w:/#@-]*"),
    "quoted text": re.compile(r"[\"'`“]([^\"'`“”\n]{1,80})[\"'`”]"),
    "bracketed text": re.compile(r"[\[({<]([^\[\](){}<>\n]{1,80})[\])}>]"),
    "value": re.compile(r"[:=] *([^\s,.;:=][^\n,.;]{0,60})"),
    "line": re.compile(r"^[\s*•-]*(\S[^\n]{0,80}?)[.\s]*$", re.MULTILINE),
    "name": re.compile(r"[A-Z]\w+(?: [A-Z]\w+)*"),
    "word": re.compile(r"[^\W_][\w'-]*"),
    "two words": re.compile(r"(?=\b([^\W_][\w'-]* [\w'-]+))"),
    "three words": re.compile(r"(?=\b([^\W_][\w'-]* [\w'-]+ [\w'-]+))"),
}
_BEFORE = re.compile(r"([\w'-]+)[^\w'-]*$")
_VERB = re.compile(r"\s*([A-Za-z_]\w*)\[.*\]\s*", re.DOTALL)

Key: TypeAlias = tuple[str, int | str]
"""A string in a text: its kind, and its place from the beginning or from the end, or the word before it."""
Rule: TypeAlias = tuple[str, Key]
"""A way of using a string, and which string."""


class Start(NamedTuple):
    """A task's beginning: the moment, what is read there, and the answers that its author knows."""

    moment: Snapshot[Any]
    text: str
    gold: tuple[str, ...]


class Leak(NamedTuple):
    """Result of a copying agent on a suite: of ``n`` tasks, with their own text and with another task's."""

    suite: str
    own: int
    other: int
    n: int
    how: str  # in words, with an example

    def above(self, bound: float) -> bool:
        """Say whether it surely gets more than ``bound`` and more than it gets with another task's text."""
        low, _ = interval(self.own, self.n)
        return low > max(bound, self.other / self.n)


class Ways(NamedTuple):
    """Ways of trying a string: as text in these forms, and as the argument of these tools."""

    forms: tuple[str, ...]
    tools: tuple[Tool, ...]
    written: bool  # calls are written as text, verb[argument]


def not_checked(cls: type[AgentEnv[Any]]) -> str:
    """Return the reason why a copying agent cannot be tried here; empty where it can."""
    if issubclass(cls, LiveEnv):
        return "a live world, which each try would need a copy of"
    if isinstance(cls.agents, tuple) and len(cls.agents) > 1:
        return "several agents"
    return ""


def leaks(env: AgentEnv[Any], suite: Suite, seconds: float) -> list[Leak] | str:
    """Return what is shown and what can be copied on a suite's training tasks, or why that is unknown."""
    starts = [_start(env, suite, index) for index in range(TASKS)]
    if len(env.agents) > 1:
        return "several agents"
    ways = _ways(env, starts)
    # Where nothing is waited for, a busy machine must not make the test smaller.
    clock = time.monotonic if env.blocking else time.thread_time
    due, done = clock() + seconds, list[tuple[dict[Rule, str], dict[Rule, str]]]()
    for index, start in enumerate(starts):
        if clock() > due:
            break
        other = starts[(index + 1) % len(starts)]
        tried: dict[str, bool] = {}
        own = _solving(env, start, _keys(start.text), ways, tried)
        done.append((own, _solving(env, start, _keys(other.text), ways, tried)))
    if len(done) < _LEAST:
        return f"a task takes {seconds / max(len(done), 1):.1f} s"
    return [_shown(suite, starts), _copied(suite, done)]


def _start(env: AgentEnv[Any], suite: Suite, index: int) -> Start:
    task = suite_task(suite, Split.TRAIN, index)
    observation, _ = env.reset(seed=index, options={"task": task})
    told = [str(message.content) for message in observation]
    told += [f"{tool.spec.name}: {tool.spec.description}" for tool in env.tools_for(env.agents[0])]
    return Start(env.snapshot(), "\n".join(told), tuple(_leaves(task.gold)))


def _shown(suite: Suite, starts: Sequence[Start]) -> Leak:
    """Count the tasks whose first text shows their gold."""
    own = [_shows(start.text, start.gold) for start in starts]
    other = [_shows(starts[(n + 1) % len(starts)].text, start.gold) for n, start in enumerate(starts)]
    example = next(filter(None, own), "")
    how = f"the first observation shows the gold, such as {example!r}"
    return Leak(suite.name, sum(map(bool, own)), sum(map(bool, other)), len(starts), how)


def _shows(text: str, gold: Sequence[str]) -> str:
    return next((leaf for leaf in gold if re.search(rf"(?<!\w){re.escape(leaf)}(?!\w)", text)), "")


def _leaves(gold: Json) -> Iterator[str]:
    """The texts and numbers in a task's gold, if they are few: many parts would be shown by chance."""
    found, waiting = list[str](), [gold]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
            found.append(str(value))
    yield from found if len(found) <= _LEAVES else ()


def _copied(suite: Suite, done: Sequence[tuple[dict[Rule, str], dict[Rule, str]]]) -> Leak:
    """The rule that solves most of the even tasks, on the odd ones."""
    counts = Counter(rule for own, _ in done[::2] for rule in own)
    if not counts:
        return Leak(suite.name, 0, 0, len(done[1::2]), "a copying agent solves nothing")
    # Of rules that do as well the first: the simplest kinds are asked first.
    rule, _ = counts.most_common(1)[0]
    judged = done[1::2]
    example = next((own[rule] for own, _ in done if rule in own), "")
    how = f"a copying agent takes {_in_words(rule[1])} of the first text ({example[:80]!r})"
    own, other = (sum(rule in each[side] for each in judged) for side in (0, 1))
    return Leak(suite.name, own, other, len(judged), how)


def _in_words(key: Key) -> str:
    kind, place = key
    if isinstance(place, str):
        return f"the {kind} after {place!r}"
    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    return f"the {names[place]} {kind}" if place >= 0 else f"the {names[-place - 1]} {kind} from the end"


# --- which strings -----------------------------------------------------------------------------------


def _keys(text: str) -> dict[str, list[Key]]:
    """The strings that are tried, each with all the rules that would choose it."""
    found: dict[str, list[Key]] = {}
    for kind, pattern in _KINDS.items():
        matches = list(pattern.finditer(text))
        for index, match in enumerate(matches):
            string = (match.group(1) if pattern.groups else match.group()).strip()
            if string not in found and len(found) >= _STRINGS:
                continue
            keys = found.setdefault(string, [])
            if index < _ENDS:
                keys.append((kind, index))
            if len(matches) - index <= _ENDS:
                keys.append((kind, index - len(matches)))
            before = _BEFORE.search(text[max(0, match.start() - 40) : match.start()])
            if before:
                keys.append((kind, before.group(1).lower()))
    return found


# --- what is done with them --------------------------------------------------------------------------


def _ways(env: AgentEnv[Any], starts: Sequence[Start]) -> Ways:
    """Find the forms and tools that address this environment, as its author's own solution shows them."""
    said = [_gold_action(env, start) for start in starts[:5]]
    texts = [action for action in said if isinstance(action, str)]
    tools = env.tools_for(env.agents[0])
    verbs = {match.group(1) for match in map(_VERB.fullmatch, texts) if match}
    forms = ["{}", *(f"{verb}[{{}}]" for verb in sorted(verbs - {tool.spec.name for tool in tools}))]
    forms += sorted(
        {f"{text.split()[0]} {{}}" for text in texts if len(text.split()) > 1 and "[" not in text}
    )
    return Ways(tuple(forms), tuple(tools), bool(verbs))


def _gold_action(env: AgentEnv[Any], start: Start) -> Message | str | None:
    env.restore(start.moment)
    try:
        return env.gold(start.moment.state)
    except Exception:  # noqa: BLE001 (no gold, or a broken one: E6 says so)
        return None


def _solving(
    env: AgentEnv[Any], start: Start, keys: Mapping[str, list[Key]], ways: Ways, tried: dict[str, bool]
) -> dict[Rule, str]:
    """The rules that solve the task, each with the action that did."""
    solved: dict[Rule, str] = {}
    strings, left = list(keys), TRIES
    for index, string in enumerate(strings):
        actions = list(_actions(ways, string, strings[index + 1 :]))
        left -= len(actions)
        if left < 0:
            break
        for name, action in actions:
            if _solves(env, start, (action,), tried):
                solved |= {(name, key): _brief(action) for key in keys[string]}
        calls = tuple(action for name, action in actions if name)
        if len(calls) > 1 and _solves(env, start, calls, tried):
            solved |= {("every tool in turn", key): string for key in keys[string]}
    return solved


def _solves(
    env: AgentEnv[Any], start: Start, actions: Sequence[Message | str], tried: dict[str, bool]
) -> bool:
    spoken = "\n".join(map(str, actions))
    if spoken not in tried:
        env.restore(start.moment)
        end: EndReason | None = None
        for action in actions:
            if end is None:
                end = env.step(action).info.get("end")
        tried[spoken] = end is EndReason.SOLVED
    return tried[spoken]


def _brief(action: Message | str) -> str:
    return str(action).strip("\n→ ")


def _actions(ways: Ways, string: str, following: Sequence[str]) -> Iterator[tuple[str, Message | str]]:
    """Yield each action that can be made of a string, with the name of the way."""
    for form in ways.forms:
        yield "" if form == "{}" else form, form.replace("{}", string)
    for tool in ways.tools:
        for arguments in _arguments(tool.spec.parameters, string, following):
            choices = sorted(f"{value}" for value in arguments.values() if value != string)
            name = " ".join((tool.spec.name, *(choices if len(arguments) > 1 else ())))
            if ways.written and len(arguments) == 1:
                yield name, f"{tool.spec.name}[{string}]"
            else:
                yield name, Message("assistant", "", (ToolCall(tool.spec.name, arguments, "call_0"),))


def _arguments(
    schema: Mapping[str, Json], string: str, following: Sequence[str]
) -> Iterator[dict[str, Json]]:
    """A tool's required arguments: the string for the first that is free, those after it for the others."""
    properties = schema.get("properties", {})
    required = schema.get("required") or list(properties)[:1]
    choices = {name: _choices(properties.get(name, {})) for name in required}
    free = [name for name in required if not choices[name]]
    values = dict(zip(free, (string, *following), strict=False))
    if not free or len(values) < len(free):
        return
    fitted = {name: _fit(properties.get(name, {}), value) for name, value in values.items()}
    if None in fitted.values():
        return
    fixed = [name for name in required if choices[name]]
    for chosen in itertools.islice(itertools.product(*(choices[name] for name in fixed)), _VALUES):
        yield fitted | dict(zip(fixed, chosen, strict=True))


def _choices(schema: Mapping[str, Json]) -> list[Json]:
    return list(schema.get("enum", ())) or ([True, False] if schema.get("type") == "boolean" else [])


def _fit(schema: Mapping[str, Json], string: str) -> Json:
    """The string as a schema wants it; None where it cannot be that."""
    match schema.get("type"):
        case "integer":
            return int(string) if re.fullmatch(r"-?\d{1,18}", string) else None
        case "number":
            return float(string) if re.fullmatch(r"-?\d{1,18}(\.\d+)?", string) else None
        case "array":
            inside = [_fit(each, string) for each in item_schemas(schema, 1)]
            return None if None in inside else inside
        case "object" | "null":
            return None
        case _:
            return string
