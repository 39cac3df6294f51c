"""Parts of the gateway: a client's question, its answer, and the APIs that both are written in.

An :class:`Api` reads a request's body into an :class:`ChatRequest` and writes an :class:`Answered` as that API does, whole or as
a stream of events. Nothing else knows how OpenAI's or Anthropic's objects look.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.core import Finish, Served
from turnwise.agents.gateway.offloading import read_json
from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall, ToolSpec, Verbatim

PIECE = 48
"""Characters of one event of a stream."""
DEEPEST = 100
"""Levels of lists and objects in what clients send. Whoever writes it again, compares or checks it calls itself for each."""

Pictures: TypeAlias = Mapping[str, Callable[[dict[str, Any], str], Image]]
"""The kinds of parts that are pictures, each with what reads one that stands at a place of the request."""


class RefusedError(Exception):
    """A request that gets an error instead of an answer.

    Attributes:
        status: of HTTP.
        code: a word for programs, such as ``unsupported_parameter``.
        retry_s: after which it may be sent again; None: it would be refused again.
        param: the key of the request that is meant.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_s: float | None = None, param: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_s, self.param = retry_s, param


class ChatRequest(NamedTuple):
    """A request for one reply.

    Attributes:
        messages: the conversation, from the system message on.
        tools: what the model may call.
        max_tokens: of the reply; None: as many as the policy samples.
        wishes: what else is asked of it, under the names of chat completions: handed on to the policy's server.
        stream: the answer is sent as events.
        usage: a stream ends with the counts of tokens.
        model: the name by which the client calls the model, which is its own affair.
        follows: the response that this one continues (``previous_response_id``).
        keys: of the request that answers repeat, such as ``instructions``.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None
    stream: bool = False
    usage: bool = False
    model: str = ""
    follows: str = ""
    keys: Mapping[str, Json] = {}
    wishes: Mapping[str, Json] = {}


class Answered(NamedTuple):
    """Reply of the policy to a request.

    Attributes:
        message: the reply; the ids of its calls are the session's own.
        served: what is said about it by whoever sampled it.
        id: letters and digits, a function of session and request alone.
        created: seconds since 1970.
    """

    message: Message
    served: Served
    id: str
    created: int

    @property
    def prompt_tokens(self) -> int:
        """Tokens that were read; 0 where nobody says."""
        return self.served.usage.prompt or 0

    @property
    def tokens(self) -> int:
        """Tokens that were sampled; 0 where nobody says."""
        return self.served.usage.completion or 0

    @property
    def cut(self) -> bool:
        """True if it ends because it may have no more tokens."""
        return self.served.finish is Finish.LENGTH

    @property
    def withheld(self) -> bool:
        """True if its provider withheld the rest of it."""
        return self.served.finish is Finish.CONTENT_FILTER


class StreamEvent(NamedTuple):
    """One event of a stream; ``name`` is "" where the API gives its events none."""

    data: Json
    name: str = ""

    def encode(self) -> bytes:
        """As it is sent."""
        text = self.data if isinstance(self.data, str) else json.dumps(self.data, ensure_ascii=False)
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {text}\n\n".encode()


class Api(NamedTuple):
    """One of the APIs.

    Attributes:
        path: behind the address that clients are given.
        parse: the request's body, a JSON object; raises :class:`RefusedError`.
        answer: the body of the answer.
        events: the same as a stream.
        error: the body of a refusal.
        error_event: a refusal inside a stream that has begun.
        waiting: what keeps a connection open until there is an answer.
    """

    path: str
    parse: Callable[[Mapping[str, Any], FixedSampling], ChatRequest]
    answer: Callable[[ChatRequest, Answered], Json]
    events: Callable[[ChatRequest, Answered], Iterator[StreamEvent]]
    error: Callable[[RefusedError], Json]
    error_event: Callable[[RefusedError], StreamEvent]
    waiting: bytes = b": waiting\n\n"


class FixedSampling(NamedTuple):
    """Settings with which the policy samples; None: no tokens are sampled here.

    ``hands_on``: what an agent asks for decides, because the policy tells its server.
    """

    temperature: float | None = None
    top_p: float | None = None
    hands_on: bool = False


# --- reading requests ---------------------------------------------------------------------------------


def bad(message: str, param: str = "") -> RefusedError:
    """A request that means nothing."""
    return RefusedError(400, "invalid_value", message, param=param)


def unsupported(param: str, value: Json, why: str) -> RefusedError:
    """A request for what cannot be done here."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return RefusedError(400, "unsupported_parameter", f"{param}={shown:.80} is refused: {why}", param=param)


def check_keys(
    body: Mapping[str, Any], known: Mapping[str, Sequence[Any] | None], handed_on: Collection[str] = ()
) -> None:
    """Refuse keys that nobody knows, and values that would be left unheard.

    Args:
        body: the request.
        known: each key with the values that ask for what is done anyway; None: the key is read elsewhere, or changes
            nothing about the reply.
        handed_on: keys that the policy's server is told, whatever their values.
    """
    for key, value in body.items():
        if key in handed_on:
            continue
        if key not in known:
            raise unsupported(key, value, "this gateway does not know it. Leave it out.")
        accepted = known[key]
        if accepted is not None and value is not None and value not in accepted:
            choices = " or ".join(json.dumps(one) for one in accepted)
            how = f"leave it out, or give {choices}" if accepted else "leave it out"
            raise unsupported(key, value, f"replies are sampled as in training, without it; {how}.")


def check_sampling(body: Mapping[str, Any], sampled: FixedSampling) -> None:
    """Refuse a temperature or top_p that is not the policy's: what is sampled otherwise cannot be trained on."""
    for key, own in (("temperature", sampled.temperature), ("top_p", sampled.top_p)):
        given = body.get(key)
        if given is None or own is None:
            continue
        if not isinstance(given, (int, float)) or abs(given - own) > 1e-6:
            raise unsupported(
                key,
                given,
                f"the policy is sampled with {key} {own:g}, as it is trained. Leave it out, or give {own:g}.",
            )


def asked_for(
    body: Mapping[str, Any], known: Mapping[str, Sequence[Any] | None], keys: Sequence[str]
) -> dict[str, Json]:
    """Of these keys those that are given, and ask for something else than what is done anyway."""
    return {
        key: body[key]
        for key in keys
        if body.get(key) is not None and body[key] not in (known.get(key) or ())
    }


def read_limit(body: Mapping[str, Any], *keys: str) -> int | None:
    """The most tokens that a reply may have, under whichever of these names it is given."""
    for key in keys:
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise bad(f"{key} must be a whole number from 1 on, and is {value!r:.40}.", key)
        return value
    return None


def read_flag(body: Mapping[str, Any], key: str) -> bool:
    """A value that is true or false, or not given."""
    value = body.get(key)
    if value not in (None, True, False):
        raise bad(f"{key} must be true or false, and is {value!r:.40}.", key)
    return bool(value)


def read_list(value: Any, param: str) -> list[Any]:
    """A list, as it must be."""
    if not isinstance(value, list):
        raise bad(f"{param} must be a list, and is {value!r:.60}.", param)
    return value


def read_object(value: Any, param: str) -> dict[str, Any]:
    """An object, as it must be."""
    if not isinstance(value, dict):
        raise bad(f"{param} must be an object, and is {value!r:.60}.", param)
    return value


def read_text(value: Any, param: str) -> str:
    """A text, as it must be."""
    if not isinstance(value, str):
        raise bad(f"{param} must be a text, and is {value!r:.60}.", param)
    return value


class Content(NamedTuple):
    """Text of a message, joined by line ends, and the pictures in it."""

    text: str = ""
    images: tuple[Image, ...] = ()


def read_parts(
    value: Any, param: str, kinds: Sequence[str], pictures: Pictures = MappingProxyType({})
) -> Content:
    """A message's content: a text, or a list of parts of these kinds.

    Args:
        value: as the client sent it.
        param: where it stands.
        kinds: of parts that are text.
        pictures: how parts of other kinds are read as pictures; none may stand where there is no such kind.

    Raises:
        RefusedError: there is another part among them.
    """
    if value is None or isinstance(value, str):
        return Content(value or "")
    texts, images = list[str](), list[Image]()
    for n, part in enumerate(read_list(value, param)):
        where = f"{param}[{n}]"
        one = read_object(part, where)
        kind = one.get("type")
        if isinstance(kind, str) and kind in pictures:
            images.append(pictures[kind](one, where))
        elif kind in kinds:
            texts.append(read_text(one.get("text", one.get("refusal")), f"{where}.text"))
        else:
            known = " and ".join((*kinds, *pictures))
            raise unsupported(f"{where}.type", kind, f"only {known} can be read here.")
    return Content("\n".join(texts), tuple(images))


def read_arguments(value: Any, param: str) -> dict[str, Json]:
    """The arguments of a call that the client tells back: JSON text of an object; what is none is kept as one text."""
    text = read_text(value, param)
    try:
        found = read_json(text or "{}")
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) and not nested_deeper(found) else {"arguments": text}


def nested_deeper(value: Json) -> bool:
    """Return whether lists and objects stand deeper within each other than :data:`DEEPEST`.

    >>> nested_deeper({"a": [1, [2]]}), nested_deeper(json.loads("[" * 200 + "]" * 200))
    (False, True)
    """
    level = [value]
    for _ in range(DEEPEST):
        within = [
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)
        ]
        level = [inner for one in within for inner in one]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def offered_tool(name: Any, description: Any, parameters: Any, param: str) -> Tool:
    """A tool of the client's: the model may call it, and the client carries the call out."""
    schema = read_object(
        parameters if parameters is not None else {"type": "object", "properties": {}}, param
    )
    said = read_text(description or "", f"{param}.description")
    return Tool(ToolSpec(read_text(name, f"{param}.name"), said, schema), _elsewhere, dict)


def beside(written: Verbatim | None, own: Collection[str]) -> dict[str, Json]:
    """Return what the policy's server wrote beside a message or a call, but for keys that an API has itself."""
    return {} if written is None else {key: value for key, value in written.keys.items() if key not in own}


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces in which it is streamed; an empty one has none."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as they were sampled; as JSON of their values where the dialect is not JSON."""
    return call.written or json.dumps(dict(call.arguments), ensure_ascii=False)


class JsonText(NamedTuple):
    """A part of an answer that is JSON already and stays as it is, to the character."""

    text: str


def write_json(value: Json) -> str:
    """An answer as it is sent.

    >>> write_json({"input": JsonText('{"b":1.0,  "a":2}'), "type": "tool_use"})
    '{"input": {"b":1.0,  "a":2}, "type": "tool_use"}'
    """
    kept: list[str] = []
    mark = secrets.token_hex(8)

    def marked(one: Json) -> Json:
        if isinstance(one, JsonText):
            kept.append(one.text)
            return f"{mark}{len(kept) - 1}"
        if isinstance(one, dict):
            return {key: marked(inner) for key, inner in one.items()}
        return [marked(inner) for inner in one] if isinstance(one, list) else one

    text = json.dumps(marked(value))
    return re.sub(rf'"{mark}(\d+)"', lambda found: kept[int(found[1])], text) if kept else text


def _elsewhere(**arguments: Json) -> None:
    raise RuntimeError("The client carries out its own tools.")
