"""Checks what an environment author's methods return, at once, with errors in the author's own terms.

Everything here is called on every step, so each check looks at types only, and explains itself only where it fails.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from turnwise.blame import AuthorError, written_at
from turnwise.envs.messages import Message, Messages
from turnwise.envs.steps import EndReason, RewardKind, Transition
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json, Task, canonical
from turnwise.tools.core import Tool

LARGEST = 3.4028234663852886e38
"""The largest number that a float32 holds; rewards are learned from in float32."""

_immutable: set[type] = {type(None), bool, int, float, str, bytes, tuple, frozenset}
_PLAIN = frozenset((str, int, bool, type(None)))


class Declares(Protocol):
    """An environment, as far as its rewards go."""

    @property
    def reward_components(self) -> Mapping[str, RewardKind]: ...


def _wrong(env: object, method: str, what: str, remedy: str) -> NoReturn:
    cls = env if isinstance(env, type) else type(env)
    raise AuthorError(f"{cls.__name__}.{method} {what}", remedy, written_at(getattr(cls, method, cls)))


# --- on every step -----------------------------------------------------------------------------------


def check_change(env: object, change: Any, method: str) -> None:
    """Refuse what ``method`` returned unless it is a sound :class:`Transition`."""
    if not isinstance(change, Transition):
        _no_transition(env, change, method)
    state, _, rewards, end, details, _, _ = change
    if end is not None and not isinstance(end, EndReason):  # pyright: ignore[reportUnnecessaryIsInstance]
        _no_end(env, end, method)
    if type(state) not in _immutable:
        _check_state(env, state, method)
    if type(rewards) is not dict and not isinstance(rewards, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        _wrong(
            env,
            method,
            f"returned the rewards {rewards!r:.60}, which have no names.",
            f"Name the parts: rewards={{'outcome': {_number(rewards)}}}.",
        )
    if details:
        _check_details(env, details, method)


def check_rewards(env: Declares, rewards: Mapping[str, float]) -> None:
    """Refuse rewards that reward_components do not declare, or that are no numbers to learn from."""
    for name, value in rewards.items():
        if name not in env.reward_components:
            _undeclared(env, name)
        if type(value) is not float and (isinstance(value, bool) or not isinstance(value, (int, float))):  # pyright: ignore[reportUnnecessaryIsInstance]
            _no_number(env, name, value)
        if not -LARGEST <= value <= LARGEST:
            _wrong(
                env,
                "transition",
                f"paid {name}={value!r}.",
                f"Each reward must be a finite number, at most {LARGEST:.2g} in size (what a float32 holds).",
            )


def clean(env: object, observation: Any, method: str, action: Message | None = None) -> str | Messages:
    """The observation, refused unless it is text or messages; lone surrogates become U+FFFD, with a warning.

    ``action`` is what it answers: what an agent wrote and receives again is not the author's mistake.
    """
    if isinstance(observation, str):
        return observation if observation.isascii() else _valid(env, observation, method, action)
    if not isinstance(observation, Messages):
        _no_observation(env, observation, method)
    for message in observation:
        if not isinstance(message, Message) or not isinstance(message.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            _no_observation(env, message, method)
    if all(message.content.isascii() for message in observation):
        return observation
    return Messages(
        dataclasses.replace(message, content=_valid(env, message.content, method, action))
        for message in observation
    )


def _valid(env: object, text: str, method: str, action: Message | None) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        if action is None or _encodes(str(action)):
            where = written_at(getattr(type(env), method))
            warnings.warn(
                f"{type(env).__name__}.{method} returned text that is not valid Unicode: "
                f"{text[error.start : error.end]!r} at character {error.start} ({where}). "
                "It is shown as U+FFFD. → Decode bytes with errors='replace'.",
                UnicodeWarning,
                stacklevel=2,
            )
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- at the beginning --------------------------------------------------------------------------------


def check_start(env: object, pair: Any) -> tuple[Any, Any]:
    """Return the pair from ``initial`` if it is a state and an observation."""
    if type(pair) is not tuple or len(pair) != 2:
        said = _said(pair)
        _wrong(
            env, "initial", f"returned {said}, not a state and an observation.", "return state, observation."
        )
    state, observation = pair
    if isinstance(state, (str, Messages)) and not isinstance(observation, (str, Messages)):
        _wrong(
            env,
            "initial",
            f"returned {_said(observation)} as the observation.",
            "The state comes first, the observation (text) second: return state, observation.",
        )
    if type(state) not in _immutable:
        _check_state(env, state, "initial")
    return state, observation


def check_task(cls: type, task: Any) -> Task:
    """Return the value of ``generate``, or the one given to ``reset``, if it is a task."""
    if not isinstance(task, Task):
        _wrong(
            cls, "generate", f"returned {_said(task)}, not a Task.", "return Task(env_id, prompt, options)."
        )
    return task


def check_generate(cls: Any, knobs: Mapping[str, Json]) -> None:
    """Refuse a ``generate`` that cannot be called as it will be."""
    if not inspect.ismethod(cls.generate):
        _wrong(cls, "generate", "is no class method.", "Write @classmethod above it.")
    try:
        inspect.signature(cls.generate).bind(None, None, **knobs)
    except TypeError as error:
        given = f" with the suite's knobs {dict(knobs)!r}" if knobs else ""
        remedy = "Write generate(cls, rng, split, *, knob=default, …), each knob with a default."
        unknown = [name for name in knobs if name not in inspect.signature(cls.generate).parameters]
        near = (
            difflib.get_close_matches(unknown[0], list(inspect.signature(cls.generate).parameters), n=1)
            if unknown
            else []
        )
        if near:
            remedy = f"Did you mean the knob {near[0]!r}?"
        _wrong(cls, "generate", f"cannot be called{given}: {error}.", remedy)


def check_options(cls: Any, **options: Any) -> None:
    """Refuse a constructor that does not take the options of the base class."""
    try:
        inspect.signature(cls).bind(**options)
    except TypeError:
        remedy = (
            "Write def __init__(self, *, shaping=0.0, render_mode=None), and call "
            "super().__init__(shaping=shaping, render_mode=render_mode) in it."
        )
        _wrong(cls, "__init__", f"does not take {', '.join(f'{name}=…' for name in options)}", remedy)


def check_named(make: Callable[..., Any], options: Mapping[str, Any], what: str) -> None:
    """Refuse options that ``make``, a class or function that makes a ``what``, does not take, with the nearest name."""
    parameters = inspect.signature(make).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for name in options:
        if name not in known:
            raise NotFoundError(f"option of the {what} called", name, known)


def check_action(env: object, action: Any, method: str) -> Message | str:
    """Return the value of ``gold``, ``demonstrate`` or ``rival`` if it is an action."""
    if not isinstance(action, (str, Message)):
        remedy = "Return what the agent says: text, or a Message with tool calls."
        _wrong(env, method, f"returned {_said(action)}, which is no action.", remedy)
    return action


def check_potential(env: object, value: Any) -> float:
    """Return the value of ``potential`` if it is a finite number."""
    if value is None:
        _wrong(env, "potential", "gives nothing to shape with.", "Define it, or leave `shaping` at 0.")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        _wrong(env, "potential", f"returned {value!r:.60}.", "Φ(s) must be a finite number.")
    return value


def check_key(env: object, key: Any) -> str:
    """Return the value of ``state_key`` if it is text."""
    if not isinstance(key, str):
        _wrong(
            env, "state_key", f"returned {_said(key)}.", "Return text: a hash of what matters in the state."
        )
    return key


def check_report(cls: type, text: Any) -> str:
    """Return the text of ``failure_report`` of an environment's class; lone surrogates become U+FFFD."""
    if not isinstance(text, str):
        what = f"returned {_said(text)}."
        _wrong(cls, "failure_report", what, "Return text; the empty text where there is nothing to tell.")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_class(cls: Any, base: Any) -> None:
    """Refuse a class whose declarations cannot be right, before anything is played."""
    for method in ("initial", "transition"):
        if getattr(cls, method) is getattr(base, method):
            instead = next((name for name in ("step", "reset") if name in vars(cls)), "")
            told = f" It writes {instead}(), which the base class keeps." if instead else ""
            what = f"does not define {method}(…).{told}"
            remedy = (
                "Write initial(task) -> (state, observation) and transition(state, action) -> Transition(…)."
            )
            raise AuthorError(f"{cls.__name__} {what}", remedy, written_at(cls))
    if inspect.iscoroutinefunction(cls.transition) or inspect.iscoroutinefunction(cls.initial):
        name = "transition" if inspect.iscoroutinefunction(cls.transition) else "initial"
        _wrong(cls, name, "is `async`.", "Write plain `def`: slow steps run in threads of their own.")
    for holds, what, remedy in _declarations(cls):
        if not holds:
            raise AuthorError(f"{cls.__name__} {what}", remedy, written_at(cls))


def _declarations(cls: Any) -> Iterable[tuple[bool, str, str]]:
    """Each class attribute: whether it can be right, what is wrong, and the remedy."""
    tools: Any = cls.tools
    sound = isinstance(tools, (tuple, property)) and not (
        isinstance(tools, tuple) and any(not isinstance(each, Tool) for each in tools)
    )
    wrapped = isinstance(tools, list) and all(isinstance(each, Tool) for each in tools)
    yield (
        sound,
        f"has tools={tools!r:.80}, which is no tuple of tools.",
        "Write round brackets: tools = (tool(one), tool(two))."
        if wrapped
        else "Wrap each function, and mind the comma: tools = (tool(function),).",
    )
    names = [each.spec.name for each in tools if isinstance(each, Tool)] if isinstance(tools, tuple) else []
    twice = next((name for name in names if names.count(name) > 1), "")
    yield (
        not twice,
        f"has two tools called {twice!r}.",
        "Give one of the functions another name: servers refuse such a list.",
    )
    system: Any = cls.system
    yield (
        isinstance(system, (str, property)),
        f"has system={system!r:.80}, which is no text.",
        "Write one text: system = 'You are …'.",
    )
    reward_components: Any = cls.reward_components
    yield (
        not isinstance(reward_components, Mapping) or "outcome" in reward_components,
        f"has reward_components without 'outcome': {sorted(reward_components) if isinstance(reward_components, Mapping) else ''}.",
        "The score is the part called 'outcome': reward_components = {'outcome': RewardKind.OUTCOME, …}.",
    )
    kinds = reward_components.values() if isinstance(reward_components, Mapping) else ()
    yield (
        isinstance(reward_components, property)
        or (isinstance(reward_components, Mapping) and all(isinstance(k, RewardKind) for k in kinds)),
        f"has reward_components={reward_components!r:.80}.",
        "reward_components map each part of the reward to its RewardKind: {'outcome': RewardKind.OUTCOME}.",
    )
    agents: Any = cls.agents
    yield (
        not isinstance(agents, str),
        f"has agents={agents!r}, which is text.",
        f"Write a tuple: agents = ({agents!r},).",
    )
    limit: Any = cls.turn_limit
    yield (
        isinstance(limit, property) or (isinstance(limit, int) and limit > 0),
        f"has turn_limit={limit!r}.",
        "It is how many turns an episode may take: a whole number above 0.",
    )


# --- explaining --------------------------------------------------------------------------------------


def _check_state(env: object, state: Any, method: str) -> None:
    kind = type(state)
    thawed = dataclasses.is_dataclass(kind) and not kind.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    if thawed or isinstance(state, (list, dict, set, bytearray)):
        freeze = (
            "Freeze it, @dataclass(frozen=True), and return dataclasses.replace(state, …)"
            if thawed
            else "Use a NamedTuple or a frozen dataclass, and return a new one"
        )
        what = f"returned {_said(state)} as state, which can be changed in place."
        _wrong(env, method, what, f"{freeze}: snapshots and forks share states.")
    _immutable.add(kind)


def _no_transition(env: object, change: Any, method: str) -> NoReturn:
    remedy = (
        "return Transition(state, observation, {'outcome': 1.0}, EndReason.SOLVED), or without the last two."
    )
    if type(change) is tuple and len(change) in (4, 5):
        remedy = f"That is what gymnasium's step() returns. {remedy[0].upper()}{remedy[1:]}"
    elif change is None:
        remedy = f"Some path through it has no `return`: {remedy}"
    _wrong(env, method, f"returned {_said(change)}, not a Transition.", remedy)


def _no_end(env: object, end: Any, method: str) -> NoReturn:
    names = [name.name for name in EndReason]
    near = difflib.get_close_matches(end.upper(), names, n=1) if isinstance(end, str) else []
    if end is False:
        remedy = "Leave it out (None) while the episode goes on."
    elif near:
        remedy = f"Write EndReason.{near[0]}."
    else:
        remedy = "Say why it ended: EndReason.SOLVED, EndReason.FAILED or EndReason.GAVE_UP."
    _wrong(env, method, f"ended the episode with end={end!r:.60}, which is no EndReason.", remedy)


def _no_observation(env: object, observation: Any, method: str) -> NoReturn:
    remedy = "An observation is text (or Messages): say in words what the agent sees."
    if isinstance(observation, bytes):
        remedy = "Decode it: observation.decode(errors='replace')."
    elif isinstance(observation, dict):
        remedy = "Write it as text, such as json.dumps(observation)."
    elif isinstance(observation, Message):
        remedy = "Put it in Messages: Messages((message,))."
    elif isinstance(observation, Sequence) and observation and isinstance(observation[0], Message):
        remedy = "Put them in Messages: Messages(messages)."
    _wrong(env, method, f"returned {_said(observation)} as the observation.", remedy)


def _undeclared(env: Declares, name: Any) -> NoReturn:
    near = difflib.get_close_matches(str(name), list(env.reward_components), n=1)
    remedy = (
        f"Did you mean {near[0]!r}?" if near else f"Add {name!r} to `reward_components` with its RewardKind."
    )
    _wrong(env, "transition", f"paid {name!r}, which its reward_components do not declare.", remedy)


def _no_number(env: object, name: str, value: Any) -> NoReturn:
    what = f"paid {name}={value!r:.60}, which is {_said(value)}."
    _wrong(env, "transition", what, f"Each reward must be a number: {name}={_number(value)}.")


def _number(value: Any) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        return "1.0"


def _check_details(env: object, details: Any, method: str) -> None:
    if not isinstance(details, Mapping):
        _wrong(env, method, f"returned details={details!r:.60}.", "Details are a dict with names.")
    values: Iterable[Json] = details.values()
    if all(type(value) in _PLAIN or (type(value) is float and math.isfinite(value)) for value in values):
        return
    try:
        canonical(dict(details)).encode()
    except (TypeError, ValueError) as error:
        remedy = "Details are saved as JSON: use numbers, text, lists and dicts with text as keys."
        _wrong(env, method, f"returned details that JSON cannot hold: {error}.", remedy)


def _said(value: Any) -> str:
    """Describe a value in words: `a tuple of 5`, `None`, `a dict`."""
    if value is None:
        return "None"
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    if type(value) is tuple:
        return f"a tuple of {len(value)}"
    return f"{article} {name}"
