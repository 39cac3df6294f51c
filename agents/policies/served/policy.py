"""Any OpenAI-compatible server as a policy: OpenAI's own, vLLM's, llama.cpp's, a proxy."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import httpx2
import openai

from turnwise.agents.contexts.core import ContextView, Look, TokenCounter, look
from turnwise.agents.core import Finish, History, Reply, Served, Usage
from turnwise.agents.execution.calls import REPLY_UNTIL
from turnwise.agents.policies.scoring import GivenReply, YesNo
from turnwise.agents.policies.served.answers import (
    Answer,
    AnswerForm,
    CompressedAnswerError,
    ReplyTooLong,
    ServerRefusal,
    cap,
    cut_reply,
    most_bytes,
    read_answer,
    unread_call,
)
from turnwise.agents.policies.served.manners import LIMITS, OWN_LIMIT, Manners, after_refusal, droppable
from turnwise.agents.policies.served.naming import ToolNames
from turnwise.agents.policies.served.scores import FIRST, NEXT, OPENED, WHOLE, prompt_logps, yes_no_of
from turnwise.agents.policies.served.written import (
    MessageForm,
    conversation,
    has_pictures,
    with_other_pictures,
    with_tools_told,
)
from turnwise.agents.policies.structured import response_format
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import EngineError, PictureError, TurnwiseError, WishRefusedError
from turnwise.fault import Blame, FaultCause, of_answer
from turnwise.secrets import redact, resolve_options
from turnwise.tasks.core import Json, derive_rng
from turnwise.tools.core import Tool
from turnwise.tools.dialects.registry import get_dialect

Result = TypeVar("Result")
_logger = logging.getLogger(__name__)
_BY_CONTENT = frozenset({400, 413, 415, 422})
"""Statuses with which servers answer a picture that they cannot read, or find too large; and much else."""
_MOST_LEARNED = 12  # refusals of one request that something is learned from
_PATIENCE_S = 600.0  # that a rate limit is waited for where nobody set a deadline
_MARGIN_S = 1.0  # before a deadline, so that it is this error that is told
AUTO_SEED = "auto"
"""A seed that is a function of the episode and the turn."""


class Price(NamedTuple):
    """A provider's price of a million tokens, in its currency."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """The cost of a reply.

        >>> Price(0.5, 2.0).of(Usage(1_000_000, 500_000))
        1.5
        """
        return ((usage.prompt or 0) * self.prompt + (usage.completion or 0) * self.completion) / 1_000_000


def _letters(messages: Sequence[Message]) -> int:
    calls = (str(dict(call.arguments)) for message in messages for call in message.tool_calls)
    return sum(len(message.content) for message in messages) + sum(map(len, calls))


WORDS = TokenCounter(
    lambda messages: _letters(messages) // 4 + 4 * len(messages),
    lambda tools: sum(len(json.dumps(one.spec.to_json())) for one in tools) // 4,
)
"""Counts of tokens where a server has the tokeniser: four letters are one."""


class _Requested(NamedTuple):
    """A request before a server's manners: what it is made of, and what of it nobody asked for."""

    history: History
    view: ContextView
    keys: Mapping[str, Json]
    unasked: frozenset[str]
    wishes: frozenset[str]
    preferred: frozenset[str]
    tools: tuple[Tool, ...]
    until: float


class OpenAIPolicy:
    """Asks a chat-completions server for each message.

    Servers return text, not tokens: its episodes can be evaluated and imitated, not trained on by RL. What was not asked for
    is not sent. What a server refuses by its name is left out and remembered, and :attr:`notes` say so.

    Args:
        model: the model's name at the server.
        base_url: ``http://host:port/v1``; empty for OpenAI itself. The key is ``OPENAI_API_KEY``; where the server
            asks for a name and a password, ``http://name:${PASSWORD}@host/v1`` keeps it out of every log.
        request: further keys of each request, such as ``temperature``, ``max_tokens``, ``reasoning_effort``; None is not sent. A
            ``seed`` of ``"auto"`` is one of the episode and the turn.
        tools: ``text``, or a dialect: tools are described and called in the text; ``none``: not at all; else as the server
            takes them.
        instruction: a text below the first message of every episode.
        price: of a million tokens, where the server tells no cost.
        attempts: how often a request is sent before the episode counts as an infrastructure error; a rate limit does not count.
        timeout_s: seconds for one attempt, from the connection to the last byte.
        longest_wait_s: between two attempts; a server's Retry-After is kept up to this.
    """

    version = 0
    takes_wishes = True

    def __init__(
        self,
        model: str,
        base_url: str = "",
        *,
        request: Mapping[str, Json] | None = None,
        tools: str = "",
        instruction: str = "",
        price: Price | None = None,
        context: Look | None = None,
        attempts: int = 6,
        timeout_s: float = 240.0,
        longest_wait_s: float = 30.0,
    ) -> None:
        if base_url and not base_url.startswith(("http://", "https://", "${")):
            raise TurnwiseError(f"{redact(base_url)!r} is no URL of a server.", "Write http://HOST:PORT/v1.")
        self.name = redact(f"openai:{model}@{base_url}" if base_url else f"openai:{model}")
        self._model, self._instruction, self._price = model, instruction, price
        self._context = context
        self._keys = {name: value for name, value in (request or {}).items() if value is not None}
        self._without_tools = tools == "none"
        dialect = (
            get_dialect("hermes" if tools == "text" else tools)
            if tools not in ("", "auto", "template", "none")
            else None
        )
        self._manners = Manners(words_for_tools=dialect is not None, form=MessageForm(self.name, dialect))
        self._attempts, self._timeout_s, self._longest_wait_s = attempts, timeout_s, longest_wait_s
        self._notes: dict[str, None] = {}
        self._client = openai.AsyncOpenAI(
            base_url=resolve_options(base_url) or None,
            api_key=os.environ.get("OPENAI_API_KEY") or "none",
            timeout=timeout_s,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},  # what is compressed has any length
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [cap]}),
        )
        # Connections belong to one event loop, while callers come with a new one each time.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was asked for and is not sent, or the other way round, each in a sentence."""
        return tuple(self._notes)

    async def act(self, history: History, wishes: Mapping[str, Json] | None = None) -> Reply:
        """The server's message.

        Args:
            history: of the episode.
            wishes: further keys of this request alone, which an agent's program asks for.

        Raises:
            WishRefusedError: the server refuses one of the wishes by its name.
            PictureError: the server refuses a picture, and takes others.
            EngineError: the server cannot be reached, refuses, or fails again and again.
        """
        return await self._replied(history, self._asked(history, wishes or {}))

    async def act_as(self, history: History, schema: Mapping[str, Json]) -> Reply:
        """The server's message as JSON of a schema; in words, with a note, where it refuses ``response_format``.

        A server that takes the key and does not keep to it answers in words without a note.

        Raises:
            EngineError: as in :meth:`act`.
        """
        return await self._replied(history, self._asked(history, {}, response_format(schema)))

    async def _replied(self, history: History, asked: _Requested) -> Reply:
        try:
            answer = await self._there(self._answered(asked))
        except ServerRefusal as refusal:
            of_pictures = refusal.status == 413 and await self._minds_pictures(asked, refusal)
            if refusal.blame.cause is FaultCause.CONTEXT_FULL and not of_pictures:
                full = Served(Finish.CONTEXT, refusal.blame.said)
                return Reply(Message("assistant", ""), end=EndReason.TOKEN_LIMIT, served=full)
            if refusal.blame.cause is FaultCause.CONTENT_FILTERED:
                filtered = Served(Finish.CONTENT_FILTER, refusal=refusal.blame.said)
                return Reply(Message("assistant", ""), end=EndReason.REFUSED, served=filtered)
            raise await self._failed(asked, refusal) from refusal
        usage = answer.served.usage
        if usage.cost is None and self._price is not None and usage.completion is not None:
            answer = answer._replace(
                served=answer.served._replace(usage=usage._replace(cost=self._price.of(usage)))
            )
        reply = Reply(answer.message, served=answer.served)
        return asked.view.placed(reply, len(history.turns), fresh=not asked.view.extends)

    async def score(self, replies: Sequence[GivenReply]) -> list[tuple[float, ...]]:
        """The log-probability of each token of each reply, as the server's own template writes it.

        Raises:
            EngineError: the server does not tell them, cannot be reached or refuses.
        """

        async def one(given: GivenReply) -> tuple[float, ...]:
            whole = [*given.messages, Message("assistant", given.text)]
            before, after = await asyncio.gather(self._told(given.messages, OPENED), self._told(whole, WHOLE))
            return tuple(prompt_logps(after, self.name)[len(prompt_logps(before, self.name)) :])

        return list(await asyncio.gather(*map(one, replies)))

    async def yes_no(self, questions: Sequence[str | GivenReply]) -> list[YesNo]:
        """Chances that the answer to each question begins with yes, and with no, among the tokens that the server lists.

        A reply that was begun needs a server that goes on with it (``continue_final_message``: vLLM, SGLang).

        Raises:
            EngineError: the server does not tell them, cannot be reached or refuses.
        """

        async def one(question: str | GivenReply) -> YesNo:
            if isinstance(question, str):
                told = await self._told([Message("user", question)], FIRST)
            else:
                told = await self._told([*question.messages, Message("assistant", question.text)], NEXT)
            return yes_no_of(told, self.name)

        return list(await asyncio.gather(*map(one, questions)))

    async def _told(self, messages: Sequence[Message], keys: Mapping[str, Json]) -> object:
        """The server's whole answer to a request for log-probabilities."""
        client = self._client.with_options(max_retries=self._attempts - 1)
        body = {"model": self._model, "messages": conversation(messages, self._manners.form, ToolNames(()))}
        asked = {name: value for name, value in self._keys.items() if name not in (*LIMITS, *keys)}
        try:
            return await self._there(
                client.post("/chat/completions", cast_to=object, body={**body, **asked, **keys})
            )
        except openai.OpenAIError as error:
            raise EngineError(
                f"{self.name} gave no log-probabilities: {_words(error)}",
                f"{_CHECK} Many servers tell none: then use a model that is sampled here, or a judge that is asked in words.",
            ) from error

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

    # --- what is asked ---------------------------------------------------------------------------

    def _asked(
        self,
        history: History,
        wishes: Mapping[str, Json],
        preferred: Mapping[str, Json] = MappingProxyType({}),
    ) -> _Requested:
        added = {name: value for name, value in preferred.items() if name not in self._keys}
        keys = {**added, **self._keys, **{name: value for name, value in wishes.items() if value is not None}}
        if any(name in wishes for name in LIMITS):
            keys = {name: value for name, value in keys.items() if name not in LIMITS or name in wishes}
        view = look(self._context, history, WORDS)
        tools = () if self._without_tools else tuple(view.tools)
        unasked = frozenset[str](added)
        if tools and history.calls_per_turn == 1 and "parallel_tool_calls" not in keys:
            keys["parallel_tool_calls"], unasked = False, unasked | {"parallel_tool_calls"}
        if keys.get("seed") == AUTO_SEED:
            rng = derive_rng(history.task.id, history.seed, len(history.turns))
            keys["seed"] = rng.getrandbits(31)
        until = REPLY_UNTIL.get(None) or time.monotonic() + _PATIENCE_S
        return _Requested(
            history, view, keys, unasked, frozenset(wishes), frozenset(added), tools, until - _MARGIN_S
        )

    def _request(self, asked: _Requested, manners: Manners) -> dict[str, Json]:
        """The body of a request."""
        names, form = ToolNames(tool.spec.name for tool in asked.tools), manners.form
        messages = told_below(asked.view.messages, self._instruction)
        keys = manners.apply(asked.keys)
        request: dict[str, Json] = {"model": self._model}
        if manners.words_for_tools and form.dialect is not None:
            messages = with_tools_told(messages, asked.tools, form.dialect)
            keys = {
                name: value
                for name, value in keys.items()
                if name not in ("parallel_tool_calls", "tool_choice")
            }
        elif asked.tools:
            request["tools"] = [_named(tool, names) for tool in asked.tools]
        else:
            keys.pop("parallel_tool_calls", None)
        if "tool_choice" in keys:
            keys["tool_choice"] = names.sent_choice(keys["tool_choice"])
        request["messages"] = conversation(messages, form, names)
        return request | keys

    def _reading(self, asked: _Requested, manners: Manners, request: Mapping[str, Json]) -> AnswerForm:
        limit = next((request[name] for name in LIMITS if isinstance(request.get(name), int)), None)
        return AnswerForm(
            origin=self.name,
            names=ToolNames(tool.spec.name for tool in asked.tools),
            specs=[tool.spec for tool in asked.tools],
            dialect=manners.form.dialect,
            most=None if limit is None else most_bytes(limit),
            asked=self._model,
        )

    # --- how it is asked, in the loop of the connections -------------------------------------------

    async def _answered(self, asked: _Requested) -> Answer:
        """The answer; a refusal that says what to change is obeyed.

        Raises:
            ServerRefusal: there is none.
        """
        waiting, tried = [self._manners], set[Manners]()
        first: ServerRefusal | None = None
        while waiting and len(tried) < _MOST_LEARNED:
            manners = waiting.pop(0)
            if manners in tried:
                continue
            tried.add(manners)
            request = self._request(asked, manners)
            try:
                answer = await self._persisted(request, self._reading(asked, manners, request), asked.until)
            except ServerRefusal as refusal:
                first = first or refusal
                found = after_refusal(manners, refusal.blame, request, asked.unasked)
                waiting = [*(one for one in found if not one.left_out & asked.wishes), *waiting]
                if not waiting and refusal.blame.cause is FaultCause.CONTEXT_FULL:
                    raise
                continue
            self._learn(manners, asked)
            return answer
        assert first is not None
        raise first

    def _learn(self, manners: Manners, asked: _Requested) -> None:
        """Remember what the server takes, and say what that changes of what was asked for."""
        if manners == self._manners:
            return
        told = asked.keys.keys() - (asked.unasked - asked.preferred)
        for name in sorted((manners.left_out - self._manners.left_out) & told):
            self._note(f"The server refuses {name}: it was left out.")
        if manners.limit_key and any(name in asked.keys for name in LIMITS):
            self._note(f"The server takes the limit of tokens as {manners.limit_key}.")
        if manners.needs_limit:
            self._note(f"The server requires max_tokens: {manners.most or OWN_LIMIT} were asked for.")
        elif manners.most and any(name in asked.keys for name in LIMITS):
            self._note(f"The server takes no more than {manners.most} tokens for a reply.")
        if manners.words_for_tools and not self._manners.words_for_tools:
            self._note("The server takes no tools: they were described and called in the text.")
        self._manners = self._manners.learned(manners)

    def _note(self, said: str) -> None:
        if said not in self._notes:
            self._notes[said] = None
            _logger.warning("%s: %s", self.name, said)

    async def _persisted(self, request: dict[str, Json], reading: AnswerForm, until: float) -> Answer:
        """The answer to a request, sent again where that helps; a rate limit is waited for until the deadline."""
        failed = limited = 0
        while True:
            try:
                return await self._ask(request, reading)
            except ServerRefusal as refusal:
                if not refusal.blame.cause.passes:
                    raise
                is_rate = refusal.blame.cause is FaultCause.RATE_LIMITED
                failed, limited = failed + (not is_rate), limited + is_rate
                wait = self._wait(refusal, limited if is_rate else failed)
                if failed >= self._attempts or (is_rate and time.monotonic() + wait > until):
                    raise
                await asyncio.sleep(wait)

    def _wait(self, refusal: ServerRefusal, number: int) -> float:
        """Seconds before the next attempt: as the server asks, and some more, so that not all come again together."""
        most = self._longest_wait_s
        spread = random.uniform(0.0, min(most, 0.25 * 2 ** min(number, 16)))
        return spread if refusal.wait_s is None else min(refusal.wait_s, most) + spread

    async def _ask(self, request: dict[str, Json], reading: AnswerForm) -> Answer:
        try:
            async with asyncio.timeout(self._timeout_s):
                raw = await self._client.chat.completions.with_raw_response.create(
                    model=self._model, messages=[], extra_body=request
                )
        except ReplyTooLong as error:
            return cut_reply(error)
        except CompressedAnswerError as error:
            raise ServerRefusal(Blame(FaultCause.NO_COMPLETION, str(error))) from error
        except openai.APIStatusError as error:
            blame = of_answer(error.status_code, error.response.content, sent=droppable(request))
            if blame.cause is FaultCause.CALL_FAILED:
                return unread_call(error.response.content, blame.said)
            wait_s = _asked_wait(error.response.headers)
            raise ServerRefusal(blame, error.status_code, wait_s) from error
        except (openai.APITimeoutError, TimeoutError) as error:
            said = f"no answer within {self._timeout_s:g} s"
            raise ServerRefusal(Blame(FaultCause.TIMED_OUT, said)) from error
        except openai.OpenAIError as error:
            raise ServerRefusal(Blame(FaultCause.UNREACHABLE, _words(error))) from error
        return read_answer(raw.content, reading, raw.headers)

    # --- what went wrong -------------------------------------------------------------------------

    async def _minds_pictures(self, asked: _Requested, refusal: ServerRefusal) -> bool:
        """Say whether it is the pictures: the server answers the same conversation with others."""
        request = self._request(asked, self._manners)
        if refusal.status not in _BY_CONTENT or not has_pictures(request["messages"]):
            return False
        request |= {"messages": with_other_pictures(request["messages"])}
        key = self._manners.limit_key or next((name for name in LIMITS if name in request), "")
        if key:
            request[key] = 1
        try:
            await self._there(self._ask(request, self._reading(asked, self._manners, request)))
        except ServerRefusal:
            return False
        return True

    async def _failed(self, asked: _Requested, refusal: ServerRefusal) -> EngineError:
        """Return the error to raise for a refusal."""
        blame = refusal.blame
        status = f" ({refusal.status})" if refusal.status else ""
        said = f"{self.name}: {blame.cause}{status}: {blame.said or 'no more is said'}"
        if blame.parameter in asked.wishes:
            return WishRefusedError(said, f"Ask without {blame.parameter}.", blame.parameter)
        if await self._minds_pictures(asked, refusal):
            return PictureError(
                said, "The same conversation with other pictures is answered: send whole ones, or smaller."
            )
        return EngineError(said, _REMEDIES.get(blame.cause, _CHECK))


_CHECK = "Check the URL, the model's name and OPENAI_API_KEY, and that the server runs."
_REMEDIES = {
    FaultCause.RATE_LIMITED: "This is the server's rate limit: play fewer episodes at a time (--concurrency), or allow more time (--generate-s).",
    FaultCause.OVERLOADED: "The server is overloaded: play fewer episodes at a time (--concurrency), or go on later with --resume.",
    FaultCause.OUT_OF_CREDIT: "The provider wants to be paid first; go on with --resume afterwards.",
    FaultCause.TIMED_OUT: "Ask for shorter replies, play fewer episodes at a time (--concurrency), or allow more time.",
    FaultCause.PARAMETER_REFUSED: "Leave it out, or give what the server takes.",
    FaultCause.REQUEST_REFUSED: "See what the server says; options of the policy change what is sent (`turnwise eval --help`).",
}


def _named(tool: Tool, names: ToolNames) -> dict[str, Json]:
    """A tool as the protocol writes it, under a name that servers accept."""
    spec = tool.spec.to_json()
    return spec | {"function": spec["function"] | {"name": names.sent(tool.spec.name)}}


def _asked_wait(headers: httpx2.Headers) -> float | None:
    """The seconds that a server asks to wait."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        asked = headers.get(name, "")
        if asked.isascii() and asked.replace(".", "", 1).isdecimal():
            return min(float(asked) * scale, 1e9)
    return None


def _words(error: Exception) -> str:
    cause = error.__cause__
    return f"{' '.join(str(error).split())[:200]} {f'({type(cause).__name__}: {cause})'[:200] if cause else ''}".strip()
