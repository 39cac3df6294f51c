"""Reads a chat-completions server's answer, and decides whose fault it is when it cannot be read.

A server is a stranger. What it says *around* the model's message is its own: if that is no completion, the
server has failed, the request is sent again, and at last the episode is an infrastructure error. What stands
*inside* the message is the model's: if it cannot be read, the model has made a mistake, of which the
environment tells it. A table of both is in docs/threat-model.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

import httpx2
import openai

from turnwise.agents.core import Finish, Served, Usage
from turnwise.agents.policies.served.naming import ToolNames
from turnwise.agents.policies.served.written import NO_TOOLS
from turnwise.envs.messages import Message
from turnwise.fault import Blame, FaultCause, of_answer
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, ToolError, ToolSpec, Verbatim
from turnwise.tools.dialects.core import Dialect
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.reading import check_sayable, load_json, value_end

_LEAST_BYTES, _BYTES_PER_TOKEN = 1 << 16, 64
_BESIDE_WORDS = 1 << 23  # for what is no word of the message: thoughts, sealed items, log-probabilities
_MOST_CALLS = 64
_LONGEST_ID = 256
_LONGEST_WORD = 64
_SHOWN = 2000  # characters of calls that could not be read
_MOST_TOKENS = 10**12

_FINISHES = {
    Finish.STOP: ("stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete", "end", "stop_token"),
    Finish.CALLS: ("tool_calls", "function_call", "tool_use", "tool_call"),
    Finish.LENGTH: (
        "length", "max_tokens", "max_output_tokens", "model_length", "token_limit", "model_context_window_exceeded", "incomplete",
    ),
    Finish.REFUSAL: ("refusal", "refused"),
    Finish.CONTENT_FILTER: (
        "content_filter", "safety", "sensitive", "recitation", "prohibited_content", "blocklist", "spii", "guardrail_intervened",
        "content_filtered",
    ),
    Finish.ERROR: (
        "error", "network_error", "insufficient_system_resource", "abort", "aborted", "malformed_function_call", "server_error",
    ),
}  # fmt: skip
_FINISH_OF = {word: finish for finish, words in _FINISHES.items() for word in words}
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thoughts")
_OWN_KEYS = frozenset({"role", "content", "tool_calls", "function_call", "refusal"})


class ServerRefusal(Exception):
    """A server's answer that is no completion: what it says, and whom that blames.

    ``wait_s`` is how long the server asks to wait; None: it does not say.
    """

    def __init__(self, blame: Blame, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(str(blame))
        self.blame, self.status, self.wait_s = blame, status, wait_s


class CompressedAnswerError(openai.OpenAIError):
    """The server compresses its answers, though it is asked not to: their true length cannot be known."""


class ReplyTooLong(openai.OpenAIError):
    """The reply has more bytes than the tokens that were asked for can have."""


class Answer(NamedTuple):
    """A completion: the message, and what the server says about it."""

    message: Message
    served: Served = Served()


class AnswerForm(NamedTuple):
    """Facts about a request by which its answer is read.

    Attributes:
        origin: the server and the model, to which is given back what it wrote beside the message.
        names: of the tools.
        specs: of the tools, which some dialects need.
        dialect: in which calls stand in the text; None: they stand beside it.
        most: bytes of words and calls; None: as many as are read.
        asked: the model that was asked.
    """

    origin: str = ""
    names: ToolNames = NO_TOOLS
    specs: Sequence[ToolSpec] = ()
    dialect: Dialect | None = None
    most: int | None = None
    asked: str = ""


def most_bytes(max_tokens: int) -> int:
    """Return the longest that the words of an answer to a request for so many tokens may be: 64 KiB, and 64 bytes for each
    token.

    >>> most_bytes(256)
    81920
    """
    return _LEAST_BYTES + _BYTES_PER_TOKEN * max_tokens


class CappedStream(httpx2.AsyncByteStream):
    """The body of a response, up to so many bytes. An error's body is cut there; a reply's is refused."""

    def __init__(self, stream: Any, most: int, *, cut: bool) -> None:
        self._stream, self._most, self._cut = stream, most, cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for part in self._stream:
            left -= len(part)
            if left >= 0:
                yield part
                continue
            if not self._cut:
                raise ReplyTooLong(f"The reply is longer than {self._most} bytes.")
            yield part[:left]
            return

    async def aclose(self) -> None:
        await self._stream.aclose()


async def cap(response: httpx2.Response) -> None:
    """Let no more of a response be read than words, thoughts and all that stands beside them can have.

    Raises:
        CompressedAnswerError: it is compressed.
        ReplyTooLong: it says itself that it is longer, so that nothing of it need be read.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise CompressedAnswerError("it compresses its answers, though it is asked not to")
    refused = response.status_code >= 400
    told = response.headers.get("content-length", "")
    if not refused and re.fullmatch(r"[0-9]+", told) and (len(told) > 18 or int(told) > _BESIDE_WORDS):
        raise ReplyTooLong(f"The reply is longer than {_BESIDE_WORDS} bytes.")
    response.stream = CappedStream(response.stream, _LEAST_BYTES if refused else _BESIDE_WORDS, cut=refused)


def read_answer(body: bytes, reading: AnswerForm, headers: Mapping[str, str] | None = None) -> Answer:
    """The completion in a body. A call that cannot be read is in the message's ``malformed``.

    Raises:
        ServerRefusal: it is no completion.
    """
    try:
        answer = json.loads(body.decode("utf-8", "replace"))  # a cut token's bytes are no UTF-8
    except RecursionError:  # a server that puts arguments into its answer as they are, not as text
        return Answer(_mistake("", "The reply is nested too deeply."))
    except ValueError as error:
        said = f"it answered with what is no JSON: {str(error)[:100]}"
        raise ServerRefusal(Blame(FaultCause.NO_COMPLETION, said)) from None
    choice = _first_choice(answer)
    said = choice.get("message")
    if not isinstance(said, dict):
        raise ServerRefusal(_no_message(answer))
    finish, word = _finish(choice.get("finish_reason"))
    if finish is Finish.ERROR or isinstance(choice.get("error"), dict):
        blame = of_answer(200, choice.get("error"))
        said = blame.said or f"it broke off with finish_reason {word!r}"
        cause = FaultCause.SERVER_FAILED if blame.cause is FaultCause.NO_COMPLETION else blame.cause
        raise ServerRefusal(blame._replace(cause=cause, said=said))
    message, thoughts, refusal = read_message(said, reading)
    if refusal and finish in (Finish.STOP, Finish.UNKNOWN):
        finish = Finish.REFUSAL
    named = answer.get("model")
    served = Served(
        finish,
        word if word != finish.value else "",
        _usage(answer.get("usage"), headers or {}),
        thoughts,
        refusal,
        named if isinstance(named, str) and named != reading.asked else "",
    )
    return Answer(message, served)


def _first_choice(answer: Json) -> dict[str, Json]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise ServerRefusal(_no_message(answer))
    return choice


def _no_message(answer: Json) -> Blame:
    blame = of_answer(200, answer if isinstance(answer, dict | list) else None)
    if blame.cause is FaultCause.NO_COMPLETION:
        return blame._replace(said=f"it answered without a message: {json.dumps(answer)[:200]}")
    return blame


def _finish(given: Json) -> tuple[Finish, str]:
    """Read a finish_reason; some servers put a reason of their own behind a colon."""
    if not isinstance(given, str):
        return Finish.UNKNOWN, ""
    word = given[:_LONGEST_WORD]
    return _FINISH_OF.get(word.partition(":")[0].strip().lower(), Finish.UNKNOWN), word


def _usage(given: Json, headers: Mapping[str, str]) -> Usage:
    """Read the tokens and the cost of an answer. Thoughts that a server counts beside the completion are added to it."""
    said: Mapping[str, Json] = given if isinstance(given, dict) else {}
    details = {
        name: said[name] for name in said if name.endswith("_details") and isinstance(said[name], dict)
    }
    told = {**said, **{key: value for one in details.values() for key, value in one.items()}}
    prompt = _count(told, "prompt_tokens", "input_tokens")
    completion = _count(told, "completion_tokens", "output_tokens")
    total = _count(told, "total_tokens")
    if prompt is not None and completion is not None and total is not None:
        completion = max(completion, total - prompt)
    costs = (told[key] for key in ("cost", "total_cost") if _is_number(told.get(key)))
    cost = next((one for one in costs if one <= _MOST_TOKENS), None)
    if cost is None:
        cost = _number(headers.get("x-litellm-response-cost"))
    return Usage(
        prompt,
        completion,
        _count(told, "reasoning_tokens"),
        _count(told, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),
        None if cost is None else float(cost),
    )


def _count(told: Mapping[str, Json], *names: str) -> int | None:
    for name in names:
        value = told.get(name)
        if value is not None and _is_number(value) and value <= _MOST_TOKENS:
            return int(value)
    return None


def _is_number(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or math.isfinite(value))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


PLAIN = AnswerForm()


def read_message(said: Mapping[str, Json], reading: AnswerForm = PLAIN) -> tuple[Message, str, str]:
    """A message as the protocol writes it: ours, the thoughts beside it, the words of a refusal.

    Whatever is wrong with the message is the model's mistake.
    """
    beside = {key: value for key, value in said.items() if key not in _OWN_KEYS and value is not None}
    thoughts = next((said[key] for key in _THOUGHTS if isinstance(said.get(key), str) and said[key]), "")
    refusal = str(said["refusal"]) if isinstance(said.get("refusal"), str) else ""
    calls, content = _calls_of(said), ""
    try:
        parts = _content(said.get("content"), lenient=bool(calls))
        content, thoughts, refusal = parts.text, thoughts or parts.thoughts, refusal or parts.refusal
        if parts.verbatim:
            beside["content"] = said["content"]
        message = _read(content or (refusal if not calls else ""), calls, beside, reading)
        _check_length(message, reading)
    except (ToolError, RecursionError) as error:
        tags = f"<tool_call>{json.dumps(calls)[:_SHOWN]}</tool_call>" if calls else ""
        why = "The tool call is nested too deeply." if isinstance(error, RecursionError) else str(error)
        message = _mistake(f"{content}\n{tags}".strip(), why)
    return message, _plain(thoughts), _plain(refusal)


def _calls_of(said: Mapping[str, Json]) -> Json:
    calls = said.get("tool_calls")
    if not calls and isinstance(said.get("function_call"), dict):
        return [{"type": "function", "function": said["function_call"]}]
    return calls


def _read(content: str, calls: Json, beside: dict[str, Json], reading: AnswerForm) -> Message:
    if calls:
        read = _calls(calls, reading)
        return Message("assistant", content, read, extra=Verbatim.of(reading.origin, beside))
    # Servers without a parser of calls leave them in the text.
    parsed = (reading.dialect or HERMES).parse(content, reading.specs)
    if reading.dialect is not None and parsed.calls:
        beside["content"] = content
    return Message(
        "assistant",
        parsed.content,
        parsed.calls,
        malformed=parsed.error or "",
        extra=Verbatim.of(reading.origin, beside),
    )


def _check_length(message: Message, reading: AnswerForm) -> None:
    """Refuse more words than the tokens that were asked for can have; thoughts do not count."""
    if reading.most is None:
        return
    words = len(message.content.encode()) + sum(len(call.written.encode()) for call in message.tool_calls)
    if words > reading.most:
        raise ToolError(f"The reply is longer than {reading.most} bytes.")


def unread_call(body: bytes, why: str) -> Answer:
    """The replacement for a reply whose call the server could not read: the model's mistake, with its words where they are told."""
    try:
        told = json.loads(body[:_BESIDE_WORDS].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        told = None
    error = told.get("error") if isinstance(told, dict) else None
    written = error.get("failed_generation") if isinstance(error, dict) else None
    content = _plain(written)[:_SHOWN] if isinstance(written, str) else ""
    return Answer(_mistake(content, why or "The tool call cannot be read."), Served(Finish.STOP))


def cut_reply(error: ReplyTooLong) -> Answer:
    """The replacement for a reply that was too long to be read."""
    return Answer(_mistake("", str(error)))


def _mistake(content: str, why: str) -> Message:
    return Message("assistant", content, malformed=why)


class _Parts(NamedTuple):
    """Parts of a message's content; ``verbatim``: something that only its server can read stands in it."""

    text: str
    thoughts: str = ""
    refusal: str = ""
    verbatim: bool = False


def _content(content: Json, *, lenient: bool) -> _Parts:
    """Text, nothing, or a list of parts: texts count, thoughts are thoughts, a refusal is one.

    Raises:
        ToolError: it is none of these; ``lenient``: parts of other kinds stand beside calls, and do not matter.
    """
    if content is None or isinstance(content, str):
        return _Parts(_plain(content or ""))
    if not isinstance(content, list):
        raise ToolError("The reply's content is no text.")
    texts: list[str] = []
    thoughts: list[str] = []
    refusals: list[str] = []
    others = 0
    for part in content:
        kind, text = _part(part)
        if kind == "thoughts":
            thoughts.append(text)
        elif kind == "refusal":
            refusals.append(text)
        elif kind == "text":
            texts.append(text)
        else:
            others += 1
    if others and not (lenient or texts or refusals):
        raise ToolError("The reply has parts that are no text.")
    beside = bool(thoughts or refusals or others)
    return _Parts(_plain("".join(texts)), "".join(thoughts), "".join(refusals), beside)


def _part(part: Json) -> tuple[str, str]:
    if isinstance(part, str):
        return "text", part
    if not isinstance(part, dict):
        return "other", ""
    kind = part.get("type")
    if kind in ("thinking", "reasoning", "redacted_thinking", "thought"):
        inside = part.get("thinking", part.get("text", part.get("summary", "")))
        texts = inside if isinstance(inside, list) else [inside]
        words = (one.get("text") if isinstance(one, dict) else one for one in texts)
        return "thoughts", "".join(word for word in words if isinstance(word, str))
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return "refusal", part["refusal"]
    return ("text", part["text"]) if isinstance(part.get("text"), str) else ("other", "")


def _plain(text: str) -> str:
    """Half of a surrogate pair stands for nothing, as bytes that are no text do where a model is sampled here."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _calls(calls: Json, reading: AnswerForm) -> tuple[ToolCall, ...]:
    if not isinstance(calls, list) or len(calls) > _MOST_CALLS:
        raise ToolError(f"tool_calls must be a list of at most {_MOST_CALLS} calls.")
    read: list[ToolCall] = []
    for number, call in enumerate(calls):
        if not isinstance(call, dict) or (call.get("type") or "function") != "function":
            raise ToolError('A tool call is {"type": "function", "function": {"name", "arguments"}}.')
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ToolError("A tool call needs the name of a tool.")
        check_sayable(function["name"])
        taken = {one.id for one in read}
        arguments, written = _arguments(function.get("arguments"))
        beside = {key: value for key, value in call.items() if key not in ("id", "type", "function")}
        read.append(
            ToolCall(
                reading.names.ours(function["name"]),
                arguments,
                _id(call.get("id"), number, taken),
                written,
                Verbatim.of(
                    reading.origin, {key: value for key, value in beside.items() if value is not None}
                ),
            )
        )
    return tuple(read)


def _arguments(given: Json) -> tuple[dict[str, Json], str]:
    """A call's arguments, and how they are written where that is JSON; what can be read without doubt is read."""
    text = (
        given.strip() if isinstance(given, str) else json.dumps(given)
    )  # some servers send the object itself
    if given is None or text in ("", "null", '""', '{}""'):
        return {}, ""
    value_end(text, 0)
    arguments, written = load_json(text), text if isinstance(given, str) else ""
    if isinstance(arguments, str) and arguments.lstrip()[:1] == "{":  # encoded twice
        value_end(arguments, 0)
        arguments, written = load_json(arguments), ""
    if not isinstance(arguments, dict):
        raise ToolError("A tool call's arguments must be a JSON object.")
    return arguments, written


def _id(given: Json, number: int, taken: set[str]) -> str:
    """A call's own id where it is one, else a new one: ids are made by servers, not by models."""
    fits = isinstance(given, str) and 0 < len(given) <= _LONGEST_ID and given.isprintable()
    if fits and given not in taken:
        return given
    fresh = number
    while f"call_{fresh}" in taken:
        fresh += 1
    return f"call_{fresh}"
