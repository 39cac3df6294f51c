"""Reading a chat-completions server's answer, and deciding whose fault it is when it cannot be read.

A server is a stranger. What it says *around* the model's message is its own: if that is no completion, the
server has failed, the request is sent again, and at last the episode is an infrastructure error. What stands
*inside* the message is the model's: if it cannot be read, the model has made a mistake, of which the
environment tells it. A table of both is in docs/threat-model.md.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai

from turnwise.envs.messages import Message
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.reading import check_sayable, load_json, value_end

_LEAST_BYTES, _BYTES_PER_TOKEN = 1 << 16, 64
_MOST_CALLS = 64
_LONGEST_ID = 64
_SHOWN = 2000  # characters of calls that could not be read


class ServerFault(openai.OpenAIError):
    """The server's answer is not a completion."""


class ReplyTooLong(openai.OpenAIError):
    """The reply has more bytes than the tokens that were asked for can have."""


def most_bytes(max_tokens: int) -> int:
    """How long the answer to a request for so many tokens may be: 64 KiB, and 64 bytes for each token.

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


async def cap(response: httpx2.Response, most: int) -> None:
    """Let no more than ``most`` bytes of a response be read.

    Raises:
        ServerFault: it is compressed, though it was asked not to be: its true length cannot be known.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ServerFault("it compresses its answers, though it is asked not to")
    response.stream = CappedStream(response.stream, most, cut=response.status_code >= 400)


def read_answer(body: bytes) -> Message:
    """The message in the body of a completion. A call that cannot be read is in its ``malformed``.

    Raises:
        ServerFault: it is no completion.
    """
    try:
        answer = json.loads(body.decode("utf-8", "replace"))  # a cut token's bytes are no UTF-8
    except RecursionError:  # a server that puts arguments into its answer as they are, not as text
        return _mistake("", "The reply is nested too deeply.")
    except ValueError as error:
        raise ServerFault(f"it answered with what is no JSON: {str(error)[:100]}") from None
    try:
        said = answer["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        said = None
    if not isinstance(said, dict):
        raise ServerFault(f"it answered without a choice: {json.dumps(answer)[:200]}")
    return read_message(said)


def read_message(said: dict[str, Json]) -> Message:
    """A message as the protocol writes it, as ours. Whatever is wrong with it is the model's mistake."""
    content = ""
    calls = said.get("tool_calls")
    try:
        content = _content(said.get("content"))
        if not calls:
            parsed = HERMES.parse(content)  # servers without a tool parser leave the tags in the text
            return Message("assistant", parsed.content, parsed.calls, malformed=parsed.error or "")
        return Message("assistant", content, _calls(calls))
    except ToolError as error:
        tags = f"<tool_call>{json.dumps(calls)[:_SHOWN]}</tool_call>" if calls else ""
        return _mistake(f"{content}\n{tags}".strip(), str(error))
    except RecursionError:
        return _mistake(content, "The tool call is nested too deeply.")


def cut_reply(error: ReplyTooLong) -> Message:
    """The replacement for a reply that was too long to be read."""
    return _mistake("", str(error))


def _mistake(content: str, why: str) -> Message:
    return Message("assistant", content, malformed=why)


def _content(content: Json) -> str:
    """The text of a message: text, nothing, or a list of parts, of which the texts count."""
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part, dict) and "text" in part]
        if len(texts) != len(content) or not all(isinstance(text, str) for text in texts):
            raise ToolError("The reply has parts that are no text.")
        content = "".join(texts)
    if not isinstance(content, str):
        raise ToolError("The reply's content is no text.")
    # Half of a surrogate pair stands for nothing, as bytes that are no text do where a model is sampled here.
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _calls(calls: Json) -> tuple[ToolCall, ...]:
    if not isinstance(calls, list) or len(calls) > _MOST_CALLS:
        raise ToolError(f"tool_calls must be a list of at most {_MOST_CALLS} calls.")
    read: list[ToolCall] = []
    for number, call in enumerate(calls):
        if not isinstance(call, dict) or call.get("type", "function") != "function":
            raise ToolError('A tool call is {"type": "function", "function": {"name", "arguments"}}.')
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ToolError("A tool call needs the name of a tool.")
        check_sayable(function["name"])
        taken = {one.id for one in read}
        given = function.get("arguments")
        written = given.strip() if isinstance(given, str) else ""
        read.append(
            ToolCall(function["name"], _arguments(given), _id(call.get("id"), number, taken), written)
        )
    return tuple(read)


def _arguments(given: Json) -> dict[str, Json]:
    if given is None or given == "":
        return {}
    text = given if isinstance(given, str) else json.dumps(given)  # some servers send the object itself
    value_end(text, 0)
    arguments = load_json(text)
    if not isinstance(arguments, dict):
        raise ToolError("A tool call's arguments must be a JSON object.")
    return arguments


def _id(given: Json, number: int, taken: set[str]) -> str:
    """A call's own id where it is one, else a new one: ids are made by servers, not by models."""
    fits = isinstance(given, str) and 0 < len(given) <= _LONGEST_ID and given.isprintable()
    if fits and given not in taken:
        return given
    fresh = number
    while f"call_{fresh}" in taken:
        fresh += 1
    return f"call_{fresh}"
