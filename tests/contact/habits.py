"""The habits of a provider as data: which requests it takes, what it refuses in which words, and how its replies look.

Each provider is a file in `providers/`; `answers.yaml` holds what servers say when a context is full, a rate is exceeded, a filter steps
in, or a reply was cut. Every habit names the page or thread that it was read in; "from memory" says that none was found.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pydantic
import yaml

HERE = Path(__file__).parent


class _Data(pydantic.BaseModel, extra="forbid", frozen=True):
    """Read from YAML; a misspelt key is an error."""


class Habit(_Data, frozen=True):
    """One thing a provider does, and where that is published."""

    says: str
    source: str = pydantic.Field(pattern=r"^(https://|from memory)")
    read: datetime.date


class Answer(_Data, frozen=True):
    """An HTTP answer; `{param}` and the like in its texts are filled in."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = {}


class Kept(_Data, frozen=True):
    """What must come back with an assistant's message as it was given."""

    at: Literal["message", "call", "content"]  # "call": of the first of a message
    key: str = ""
    how: Literal["verbatim", "present"] = "verbatim"
    enforced: bool = True  # False: the provider asks for it and does not refuse; it is counted as lost


class Messages(_Data, frozen=True):
    """What a provider takes for messages."""

    null_content: Literal["anywhere", "beside calls", "nowhere"] = "beside calls"
    empty_content: Literal["anywhere", "beside calls", "nowhere"] = "anywhere"
    missing_content: bool = True  # the key may be left out beside calls
    parts: Literal["any", "text", "none"] = "any"  # content as a list
    pictures: Literal["user", "any", "none"] = "user"
    assistant: tuple[str, ...] | None = None  # the keys that it takes beside the usual ones; None: any
    others: tuple[str, ...] | None = None  # of the other roles
    order: Literal["free", "alternate", "no user after tool"] = "free"


class Says(_Data, frozen=True):
    """How replies look."""

    thoughts: Literal[
        "none", "hidden", "reasoning_content", "reasoning", "reasoning_details", "think text", "open think text",
        "thinking parts",
    ] = "none"  # fmt: skip
    weighed: bool = False  # a call stands inside the thoughts that is not meant
    words: int = 12  # of thoughts, about one token each
    calls: Literal["native", "text"] = "native"
    parallel: bool = True
    ids: Literal["call", "nine", "toolu", "zero", "digits", "empty", "numbered"] = "call"
    beside: Literal["null", "empty", "text", "left out"] = "null"  # content beside calls
    finish: Literal["tool_calls", "stop"] = "tool_calls"
    arguments: Literal["text", "object"] = "text"
    extra: Mapping[str, Any] = {}  # keys of every message
    around: Mapping[str, Any] = {}  # keys beside choices


class Bad(_Data, frozen=True):
    """A change to a good second request (system, user, a call, its answer) that the provider refuses."""

    what: str  # the refusal's name
    set: Mapping[str, Any] = {}  # parameters
    message: Mapping[str, Any] = {}  # keys of the assistant's message; None takes null
    without: tuple[str, ...] = ()  # keys that are taken from the assistant's message
    call_without: tuple[str, ...] = ()  # keys that are taken from its call
    unanswered: bool = False  # the call's answer is left out
    user: Any = None  # another content of the user's message
    after: tuple[Mapping[str, Any], ...] = ()  # messages that follow
    tool: str = ""  # another name of the first tool
    id: str = ""  # another id of the call


class Provider(_Data, frozen=True):
    """A provider, or a server that people run."""

    name: str
    model: str
    home: str
    habits: tuple[Habit, ...] = pydantic.Field(min_length=1)
    accepts: tuple[str, ...] | None = None  # parameters; None: it ignores those that it does not know
    refuses: Mapping[str, str] = {}  # parameter → the refusal's name
    fixed: Mapping[str, Any] = {}  # parameter → the one value that it takes
    ranges: Mapping[str, tuple[float, float]] = {}
    exclusive: tuple[tuple[str, str], ...] = ()
    required: tuple[str, ...] = ()
    needs: Mapping[str, Any] = {}  # parameters that must have this value (they go into extra_body)
    default_limit: int | None = None  # tokens of a reply where none is asked for
    most_unstreamed: int | None = None
    tools: bool = True
    messages: Messages = Messages()
    call_id: str = ""
    tool_name: str = ""
    answered: bool = True  # every call must be answered before anything else is said
    several_calls: bool = True  # in one message of the history
    returns: tuple[Kept, ...] = ()
    says: Says = Says()
    refusals: Mapping[str, Answer]
    context_full: str = ""  # whose answer, in answers.yaml
    rate_limited: str = ""
    filtered: str = ""
    bad: tuple[Bad, ...] = pydantic.Field(min_length=1)
    options: Mapping[str, Any] = {}  # what a user says when it plays: options of the policy


class Said(_Data, frozen=True):
    """What a server says in one situation, as published."""

    server: str
    status: int
    body: Any
    headers: Mapping[str, str] = {}
    source: str = pydantic.Field(pattern=r"^(https://|from memory)")
    read: datetime.date


class Answers(_Data, frozen=True):
    """The table of what servers say."""

    context_full: tuple[Said, ...]
    rate_limited: tuple[Said, ...]
    filtered: tuple[Said, ...]
    cut: tuple[Said, ...]


@cache
def providers() -> Mapping[str, Provider]:
    """All providers, by the names of their files."""
    files = sorted((HERE / "providers").glob("*.yaml"))
    return {file.stem: Provider.model_validate(yaml.safe_load(file.read_text("utf-8"))) for file in files}


@cache
def answers() -> Answers:
    """The table of answers."""
    return Answers.model_validate(yaml.safe_load((HERE / "answers.yaml").read_text("utf-8")))


def answer_of(kind: str, server: str) -> Said:
    """What a server says in a situation, such as ``context_full``."""
    (found,) = (one for one in getattr(answers(), kind) if one.server == server)
    return found


def filled(body: Any, **values: object) -> Any:
    """A body with the values in place of `{names}`.

    >>> filled({"message": "bad {param}"}, param="seed")
    {'message': 'bad seed'}
    """
    if isinstance(body, str):
        for name, value in values.items():
            body = body.replace("{" + name + "}", str(value))
        return body
    if isinstance(body, Mapping):
        return {key: filled(one, **values) for key, one in body.items()}
    if isinstance(body, list | tuple):
        return [filled(one, **values) for one in body]
    return body
