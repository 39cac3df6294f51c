"""One question to a chat-completions server: within a time, up to so many bytes, again where the fault may pass."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import httpx2

from turnwise.envs.messages import Message
from turnwise.errors import InfraError
from turnwise.secrets import redact, resolve
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.reading import load_json

MOST_BYTES = 1 << 18
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT_S = 8.0


class ChatServer:
    """A server by its address.

    Args:
        url: ``http://host:port/v1``; may hold ``${NAME}``. The key is ``OPENAI_API_KEY``.
        seconds: for one answer, all attempts together.
        attempts: how often a request is sent whose failure may pass.
    """

    def __init__(self, url: str, *, seconds: float = 50.0, attempts: int = 3) -> None:
        self.url, self.seconds, self.attempts = url, seconds, attempts

    def complete(self, body: dict[str, Json]) -> Message:
        """The message in the server's answer. A call that cannot be read is in its ``malformed``.

        Raises:
            InfraError: no answer in time, a refusal, or none that is a completion.
        """
        until = time.monotonic() + self.seconds
        why = ""
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(min(0.25 * 2**attempt, _LONGEST_WAIT_S, max(0.0, until - time.monotonic())))
            if time.monotonic() >= until:
                why = why or "no time was left"
                break
            try:
                status, answer = self._post(body, until)
            except httpx2.TimeoutException:
                why = f"it did not answer within {self.seconds:g} s"
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why = f"it cannot be reached: {type(error).__name__} {error}"[:200]
                continue
            if status == 200:
                return read_completion(answer)
            why = f"it answered {status}: {answer[:200].decode('utf-8', 'replace')}"
            if status not in _PASSING:
                break
        raise InfraError(
            f"The server {redact(self.url)} gave no answer: {why}.",
            "Is the server up, and the model's name right?",
        )

    def _post(self, body: dict[str, Json], until: float) -> tuple[int, bytes]:
        left = max(0.05, until - time.monotonic())
        headers = {
            "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY') or 'none'}", "Accept-Encoding": "identity",
        }  # fmt: skip
        found = bytearray()
        url = f"{resolve(self.url).rstrip('/')}/chat/completions"
        with httpx2.stream("POST", url, json=body, headers=headers, timeout=left) as response:
            for part in response.iter_raw():
                found += part
                if len(found) > MOST_BYTES:
                    raise InfraError(
                        f"The server's answer has more than {MOST_BYTES} bytes.", "Lower max_tokens."
                    )
                if time.monotonic() > until:
                    raise httpx2.ReadTimeout("the answer trickles")
            return response.status_code, bytes(found)


def read_completion(body: bytes) -> Message:
    """The message in the body of a completion.

    Raises:
        InfraError: it is no completion.
    """
    try:
        said = json.loads(body.decode("utf-8", "replace"))["choices"][0]["message"]
        content = said.get("content") or ""
        calls = said.get("tool_calls") or ()
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        shown = body[:200].decode("utf-8", "replace")
        raise InfraError(
            f"The server answered with no completion: {shown}", "Is it OpenAI-compatible?"
        ) from None
    if not isinstance(content, str):
        return Message("assistant", "", malformed="The content is no text.")
    content = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        if calls:
            return Message("assistant", content, tuple(_call(call, n) for n, call in enumerate(calls)))
        parsed = HERMES.parse(content)
    except (ToolError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Message("assistant", content, malformed=f"The call cannot be read: {error}"[:200])
    return Message("assistant", parsed.content, parsed.calls, malformed=parsed.error or "")


def message_json(message: Message) -> dict[str, Json]:
    """A message as the protocol writes it."""
    said: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), sort_keys=True),
                },
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        said["tool_call_id"] = message.tool_call_id
    return said


def _call(call: Any, number: int) -> ToolCall:
    function = call["function"]
    given = function.get("arguments") or "{}"
    arguments = load_json(given if isinstance(given, str) else json.dumps(given))
    if not isinstance(arguments, dict) or not isinstance(function["name"], str):
        raise ToolError("a name and a JSON object are needed")
    return ToolCall(function["name"], arguments, f"call_{number}")
