"""Any OpenAI-compatible server as a policy: OpenAI's own, vLLM's, llama.cpp's, a proxy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx2
import openai
import tenacity

from turnwise.agents.core import Finish, History, Reply, Sampling, Served
from turnwise.agents.policies.served.answers import (
    ReplyTooLong,
    ServerFault,
    cap,
    cut_reply,
    most_bytes,
    read_answer,
)
from turnwise.agents.policies.served.written import conversation, has_pictures, with_other_pictures
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.core import EndReason, tool_specs
from turnwise.envs.messages import Message
from turnwise.errors import EngineError, PictureError, TurnwiseError
from turnwise.secrets import redact, resolve_options
from turnwise.tasks.core import derive_rng

Result = TypeVar("Result")
_PASSING = (  # worth a retry
    openai.APIConnectionError,
    openai.RateLimitError,
    openai.InternalServerError,
    ServerFault,
    TimeoutError,
)
_BY_CONTENT = frozenset({400, 413, 415, 422})
"""How servers answer a picture that they cannot read, or find too large; and much else."""


class OpenAIPolicy:
    """Asks a chat-completions server for each message.

    Servers return text, not tokens: its episodes can be evaluated and imitated, not trained on by RL. What a
    server answers is read up to so many bytes (:func:`most_bytes`); a longer reply is the model's mistake.

    Args:
        model: the model's name at the server.
        base_url: ``http://host:port/v1``; empty for OpenAI itself. The key is ``OPENAI_API_KEY``; where the server
            asks for a name and a password, ``http://name:${PASSWORD}@host/v1`` keeps it out of every log.
        instruction: a text below the first message of every episode.
        attempts: how often a request is sent before the episode counts as an infrastructure error.
        timeout_s: seconds for one attempt, from the connection to the last byte.
        longest_wait_s: between two attempts; a server's Retry-After is kept up to this.
    """

    version = 0

    def __init__(
        self,
        model: str,
        base_url: str = "",
        *,
        sampling: Sampling | None = None,
        instruction: str = "",
        attempts: int = 6,
        timeout_s: float = 120.0,
        longest_wait_s: float = 30.0,
    ) -> None:
        if base_url and not base_url.startswith(("http://", "https://", "${")):
            raise TurnwiseError(f"{redact(base_url)!r} is no URL of a server.", "Write http://HOST:PORT/v1.")
        self.name = redact(f"openai:{model}@{base_url}" if base_url else f"openai:{model}")
        self._model = model
        self._sampling = sampling or Sampling()
        self._instruction = instruction
        self._attempts = attempts
        self._longest_wait_s = longest_wait_s
        self._client = openai.AsyncOpenAI(
            base_url=resolve_options(base_url) or None,
            api_key=os.environ.get("OPENAI_API_KEY") or "none",
            timeout=timeout_s,
            max_retries=0,  # tenacity does it
            default_headers={"Accept-Encoding": "identity"},  # what is compressed has any length
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [self._cap]}),
        )
        self._timeout_s = timeout_s
        # Connections belong to one event loop, while callers come with a new one each time.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    async def act(self, history: History) -> Reply:
        """The server's message.

        Raises:
            PictureError: the server refuses a picture, and takes others.
            EngineError: the server cannot be reached, refuses, or fails again and again.
        """
        request = self._request(history)
        try:
            return Reply(await self._there(self._retrying()(self._ask, request)))
        except ReplyTooLong as error:
            return Reply(cut_reply(error))
        except openai.BadRequestError as error:
            if "context" in str(error).lower() and "length" in str(error).lower():
                return Reply(
                    Message("assistant", ""), end=EndReason.TOKEN_LIMIT, served=Served(Finish.CONTEXT)
                )
            raise await self._failed(request, error) from error
        except (openai.OpenAIError, TimeoutError) as error:
            raise await self._failed(request, error) from error

    def close(self) -> None:
        """Close the connections."""
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(timeout=10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _there(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The outcome of what is done in the loop of the connections."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _failed(self, request: dict[str, Any], error: Exception) -> EngineError:
        """What to raise: whether it is the pictures, the server tells by whether it answers the same with others."""
        said = f"{self.name}: {type(error).__name__}: {str(error).replace(chr(10), ' ')[:200]}"
        messages = request["messages"]
        unread = isinstance(error, openai.APIStatusError) and error.status_code in _BY_CONTENT
        if unread and has_pictures(messages):
            asked = request | {"messages": with_other_pictures(messages), "max_tokens": 1}
            with contextlib.suppress(openai.OpenAIError, TimeoutError):
                await self._there(self._ask(asked))
                return PictureError(
                    said,
                    "The same conversation with other pictures is answered: send whole ones, or smaller.",
                )
        return EngineError(
            said, "Check the URL, the model's name and OPENAI_API_KEY, and that the server runs."
        )

    async def _ask(self, request: dict[str, Any]) -> Message:
        async with asyncio.timeout(self._timeout_s):
            raw = await self._client.chat.completions.with_raw_response.create(**request)
        return read_answer(raw.content)

    async def _cap(self, response: httpx2.Response) -> None:
        await cap(response, most_bytes(self._sampling.max_tokens))

    def _request(self, history: History) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": conversation(told_below(history.messages(), self._instruction)),
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "max_tokens": self._sampling.max_tokens,
            "seed": derive_rng(history.task.id, history.seed, len(history.turns)).getrandbits(31),
        }
        return request | ({"tools": tool_specs(history.tools)} if history.tools else {})

    def _retrying(self) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_PASSING),
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=self._wait,
            reraise=True,
        )

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = (
            error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
        )
        if asked.isascii() and asked.replace(".", "", 1).isdecimal():
            return min(float(asked), self._longest_wait_s)
        return tenacity.wait_random_exponential(0.5, self._longest_wait_s)(state)
