"""A session: one agent's conversations with the policy, as a tree of which every sampled token is kept once.

A request tells a whole conversation. The longest stored one that it begins with (message by message, with the same tools)
is continued by tokens; where there is none, a new row of tokens begins: a sub-agent, a compaction, a history that was
edited. Two requests that go on from the same place are two branches. A request that is sent again, which is what SDKs do
when a connection fails, gets the same answer again, also while the first one is still being sampled; whoever wants a
second sample of the same conversation says so with another ``seed`` or ``user``.

Who called for a sub-agent is read from words alone: the task that its conversation begins with is an argument of a call that
nobody has answered yet (:attr:`turnwise.agents.core.Reply.caller`). Where anything speaks against it, nobody knows.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from turnwise.agents.core import PREVIOUS, ROOT, History, Policy, Reply, TurnPlace, after
from turnwise.agents.engines.loop import COMES_THROUGH_A_SOCKET
from turnwise.agents.gateway.core import Answered, ChatRequest, RefusedError
from turnwise.agents.gateway.sampling import (
    Call,
    Drawn,
    SampledNode,
    check_readable,
    context_full,
    draw,
    letters_of,
)
from turnwise.agents.gateway.update_lock import UpdateLock
from turnwise.blame import describe
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Image, Message, Messages
from turnwise.errors import PictureError
from turnwise.secrets import redact
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import Tool

_TELLING = 16
"""Characters from which on words that stand within others are no chance."""
_CHANCE = frozenset({"seed", "user", "metadata", "safety_identifier"})
"""Keys of a request that change nothing about its reply but the chance."""


class SessionLimits(NamedTuple):
    """What one session may use.

    Attributes:
        calls: replies of the policy.
        tokens: that it samples.
        seconds: from its beginning to its end.
        per_minute: requests, beyond which clients are told to wait.
        at_once: requests that are being answered.
        reply_s: the deadline of one reply.
        letters: of the messages that it tells, each counted once however often it is told again.
    """

    calls: float = 1000
    tokens: float = float("inf")
    seconds: float = float("inf")
    per_minute: float = float("inf")
    at_once: int = 64
    reply_s: float = 300.0
    letters: float = 1 << 28


class Counts(NamedTuple):
    """What a session came to."""

    replies: int = 0
    tokens: int = 0
    resent: int = 0
    branches: int = 0
    refused: int = 0


class AgentSession:
    """The conversations of one agent.

    Args:
        policy: whose replies they get.
        task, env: what the policy's chance is derived from, and what scripted policies look at.
        seed: of the session's chance.
        limits: what it may use.
        update_lock: what holds requests back while the policy's weights change.
        heard: told of each reply, with its tokens and its parent among those before it.
        plain_turn: the episode before its next turn, where a conversation is what the environment told and was answered, no
            more and no less. Its reply is drawn by the chance of that turn, as if no program stood between.

    Attributes:
        counts: replies, tokens, requests that were answered again, rows of tokens, refusals.
        cut: why the last request could not be answered, where that ends an episode: the context or a budget is full.
        busy: requests that are being answered.
        shown: the environment's own pictures: who passes them on is not to blame for them.
        began, touched: when it began, and when somebody last asked something.
        fault: what failed here, where a request failed without the client's fault and none succeeded since.
    """

    def __init__(
        self,
        policy: Policy,
        task: Task,
        env: AgentEnv[Any],
        *,
        seed: int = 0,
        limits: SessionLimits | None = None,
        update_lock: UpdateLock | None = None,
        heard: Callable[[Reply], None] | None = None,
        plain_turn: Callable[[Sequence[Message]], History | None] | None = None,
    ) -> None:
        self.policy, self.task, self.env, self.seed = policy, task, env, seed
        self.limits, self.update_lock, self.heard = (
            limits or SessionLimits(),
            update_lock or UpdateLock(),
            heard,
        )
        self._plain_turn, self._plain_turns = plain_turn, set[int]()
        self.counts = Counts()
        self.shown = set[Image]()
        self.cut: EndReason | None = None
        self.fault = ""
        self._nodes: dict[bytes, tuple[int, SampledNode]] = {}
        self._answers: dict[str, asyncio.Task[Answered]] = {}  # that are sampled, or were
        self._messages: dict[bytes, Message] = {}  # by what they end: each is kept once
        self._letters = 0
        self._told: dict[str, tuple[Message, ...]] = {}  # what stands before a response that is followed
        self._recent: deque[float] = deque()
        self._unanswered: dict[int, list[str]] = {}  # replies with calls: the words that they call with
        self._said: list[str] = []  # by replies, in words that are no chance
        self.busy = 0
        self.began = self.touched = time.monotonic()
        self._closed = ""

    def touch(self) -> None:
        """Somebody is there."""
        self.touched = time.monotonic()

    def close(self, why: str) -> None:
        """Answer nothing any more; what is being sampled is given up."""
        self._closed = self._closed or why
        for task in [*self._answers.values()]:
            task.cancel()

    async def ask(self, asked: ChatRequest, body: Mapping[str, Any]) -> Answered:
        """The policy's reply to a request; the same one where it was sent before.

        Raises:
            RefusedError: the session is over or has used up what it may use, or the request cannot be answered.
        """
        self.touch()
        key = request_key(body)
        known = self._answers.get(key)
        if known is not None and not self._closed:
            self._count(resent=1)
        else:
            self._admit()
            self.busy += 1  # before the task begins: requests that come at the same moment are counted
            by_turn = not _CHANCE & body.keys()
            known = self._answers[key] = asyncio.create_task(self._answer(asked, key, by_turn))
            known.add_done_callback(functools.partial(self._answered, key))
        try:
            return await asyncio.shield(known)
        except asyncio.CancelledError:
            if known.cancelled():
                raise RefusedError(410, "session_closed", self._closed or "The session is closed.") from None
            raise
        finally:
            del (
                known
            )  # which holds its error, whose traceback would hold it here, and the conversation with it

    def _answered(self, key: str, answer: asyncio.Task[Answered]) -> None:
        """Keep nothing of a request that was not answered: it holds a whole conversation, and may be sent again."""
        self.busy -= 1
        if (answer.cancelled() or answer.exception() is not None) and self._answers.get(key) is answer:
            del self._answers[key]

    def conversation(self, asked: ChatRequest) -> ChatRequest:
        """A request with what stands before it in the response that it follows.

        Raises:
            RefusedError: there is no such response in this session.
        """
        if not asked.follows:
            return asked
        before = self._told.get(asked.follows)
        if before is None:
            raise RefusedError(
                404,
                "previous_response_not_found",
                f"This session has no response {asked.follows:.80}.",
                param="previous_response_id",
            )
        system = [m for m in asked.messages[:1] if m.role == "system" and asked.keys.get("instructions")]
        return asked._replace(messages=(*system, *before, *asked.messages[len(system) :]), follows="")

    def _admit(self) -> None:
        """Refuse a request that the session may not make (any more)."""
        limits, now = self.limits, time.monotonic()
        if self._closed:
            raise self._refusal(410, "session_closed", self._closed)
        for reason, used, most, what in (
            (EndReason.TURN_LIMIT, self.counts.replies + self.busy, limits.calls, "replies"),
            (EndReason.TOKEN_LIMIT, self.counts.tokens, limits.tokens, "tokens"),
            (EndReason.TIME_LIMIT, now - self.began, limits.seconds, "seconds"),
            (EndReason.TOKEN_LIMIT, self._letters, limits.letters, "letters of messages"),
        ):
            if used >= most:
                self.cut = reason
                raise self._refusal(403, "budget_spent", f"The session has used its {most:g} {what}.")
        while self._recent and now - self._recent[0] > 60:
            self._recent.popleft()
        if self.busy >= limits.at_once:
            why = f"{self.busy} requests of this session are being answered, which is the most."
            raise self._refusal(429, "too_many_at_once", why, retry_s=1.0)
        if len(self._recent) >= limits.per_minute:
            wait = 60 - (now - self._recent[0])
            why = f"The session may send {limits.per_minute:g} requests a minute."
            raise self._refusal(429, "rate_limit_exceeded", why, retry_s=max(1.0, wait))
        self._recent.append(now)

    def _refusal(self, status: int, code: str, why: str, *, retry_s: float | None = None) -> RefusedError:
        self._count(refused=1)
        return RefusedError(status, code, why, retry_s=retry_s)

    async def _answer(self, asked: ChatRequest, key: str, by_turn: bool) -> Answered:
        COMES_THROUGH_A_SOCKET.set(True)  # in this task alone
        try:
            async with self.update_lock.shared():
                return await self._draw(asked, key, by_turn)
        except RefusedError as refused:
            if refused.code == "context_length_exceeded":
                self.cut = EndReason.TOKEN_LIMIT
            self._count(refused=1)
            raise
        except TimeoutError:
            self.fault = f"a reply took more than {self.limits.reply_s:g} s"
            raise RefusedError(504, "deadline_exceeded", f"{self.fault}.", retry_s=1.0) from None
        except Exception as error:
            if isinstance(error, PictureError) and self._shows_own(asked):
                self._count(refused=1)
                raise RefusedError(400, "invalid_image", error.cause, param="messages") from None
            self.fault = describe(error)
            raise RefusedError(503, "engine_failed", redact(self.fault), retry_s=1.0) from error

    def _shows_own(self, asked: ChatRequest) -> bool:
        """Whether a conversation has pictures that are not the environment's."""
        messages = self.conversation(asked).messages
        return any(image not in self.shown for message in messages for image in message.images)

    async def _draw(self, asked: ChatRequest, key: str, by_turn: bool) -> Answered:
        asked = self.conversation(asked)
        if asked.messages[-1].role == "assistant":
            said = "The last message is the assistant's: replies cannot be begun by the client."
            raise RefusedError(400, "invalid_messages", said, param="messages")
        check_readable(self.policy, asked)
        chain = [*fingerprints(asked.messages, asked.tools)]
        number, base = next((self._nodes[one] for one in reversed(chain) if one in self._nodes), (None, None))
        caller = self._caller_of(asked.messages) if base is None else None
        if number is not None:
            self._unanswered.pop(number, None)
        call = self._call(asked, key, by_turn)
        async with asyncio.timeout(self.limits.reply_s):
            drawn = await draw(self.policy, call, asked, base)
        if drawn.reply.end is not None:  # of a policy without tokens
            raise context_full(drawn.prompt_tokens, 0)
        drawn = drawn._replace(reply=drawn.reply._replace(caller=caller))
        asked = asked._replace(messages=self._kept_once(asked.messages, chain[1:]))
        return self._keep(asked, key, drawn, chain[-1], number, base)

    def _kept_once(self, messages: Sequence[Message], chain: Sequence[bytes]) -> tuple[Message, ...]:
        """The messages as they were told first: conversations are told whole, again and again."""
        new = [message for end, message in zip(chain, messages, strict=True) if end not in self._messages]
        self._letters += sum(map(letters_of, new))
        return tuple(
            self._messages.setdefault(end, message) for end, message in zip(chain, messages, strict=True)
        )

    def _caller_of(self, messages: Sequence[Message]) -> int | None:
        """The newest reply that called for this conversation, in words of which its task is made; None: nobody knows.

        A conversation that goes on from another by retelling it, or is told what another reply said, may come of more.
        """
        told = [message.content.strip() for message in messages if message.role == "user"]
        everything = "\n".join(message.content for message in messages)
        if any(m.role == "assistant" for m in messages) or any(said in everything for said in self._said):
            return None
        for number in sorted(self._unanswered, reverse=True):
            for place, words in enumerate(self._unanswered[number]):
                if words in told or (len(words) >= _TELLING and any(words in one for one in told)):
                    del self._unanswered[number][
                        place
                    ]  # who begins it once more has a reason that nobody knows
                    return number
        return None

    def _call(self, asked: ChatRequest, key: str, by_turn: bool) -> Call:
        """A request as the policy sees it: its chance is that of the environment's turn, once, and else its own."""
        plain = self._plain_turn(asked.messages) if by_turn and self._plain_turn is not None else None
        if plain is not None and len(plain.turns) not in self._plain_turns:
            self._plain_turns.add(len(plain.turns))
            return Call(
                self.env, self.task, self.seed, plain.observation, turns=[*plain.turns], offered=asked.tools
            )
        seed = int(hashlib.sha256(f"{self.seed} {key}".encode()).hexdigest()[:15], 16)
        return Call(self.env, self.task, seed, Messages(asked.messages), offered=asked.tools)

    def _keep(
        self,
        asked: ChatRequest,
        key: str,
        drawn: Drawn,
        before: bytes,
        number: int | None,
        base: SampledNode | None,
    ) -> Answered:
        """Give the reply its place in the tree, and write the answer."""
        identity = hashlib.sha256(f"{self.seed} {key}".encode()).hexdigest()[:24]
        message = _named(drawn.reply.message, identity)
        own, place = self.counts.replies, len(asked.messages)
        reply = drawn.reply._replace(message=message, parent=_place(number if drawn.extends else None, own))
        node = SampledNode(place, reply, base if drawn.extends else None)
        end = _link(before, message)
        self._nodes[end], self._messages[end] = (own, node), message
        self._note_words(own, message)
        tokens = len(reply.action_ids)
        self._count(replies=1, tokens=tokens, branches=int(not drawn.extends))
        self.cut, self.fault = None, ""
        conversation = (*asked.messages, message)
        has_system = bool(asked.keys.get("instructions"))
        self._told[f"resp_{identity}"] = conversation[has_system:]
        if self.heard is not None:
            self.heard(reply)
        cut = bool(reply.action_ids) and not self._stopped(reply)
        return Answered(message, drawn.prompt_tokens, tokens, cut, identity, int(time.time()))

    def _note_words(self, number: int, message: Message) -> None:
        """Remember by what later conversations are known to come of this reply."""
        if message.tool_calls:
            values = [value for call in message.tool_calls for value in call.arguments.values()]
            self._unanswered[number] = [
                value.strip() for value in values if isinstance(value, str) and value.strip()
            ]
        if len(message.content.strip()) >= _TELLING:
            self._said.append(message.content.strip())

    def _stopped(self, reply: Reply) -> bool:
        renderer = getattr(self.policy, "renderer", None)
        return renderer is None or reply.action_ids[-1] in renderer.stop_ids

    def _count(self, **more: int) -> None:
        now = self.counts._asdict()
        self.counts = Counts(**{name: now[name] + more.get(name, 0) for name in now})


def request_key(body: Mapping[str, Any]) -> str:
    """What tells requests apart: their bodies, whether they are streamed or not."""
    kept = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprints(messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[bytes]:
    """A hash of each beginning of a conversation, from that of the tools alone to the whole."""
    specs = json.dumps([tool.spec.to_json() for tool in tools], sort_keys=True)
    link = hashlib.blake2b(specs.encode(), digest_size=16).digest()
    yield link
    for message in messages:
        link = _link(link, message)
        yield link


def _link(before: bytes, message: Message) -> bytes:
    calls = [[call.id, call.name, _whole_numbers(dict(call.arguments))] for call in message.tool_calls]
    content = message.content.strip() if message.role == "assistant" else message.content
    written = json.dumps(calls, sort_keys=True) if calls else ""
    link = hashlib.blake2b(before, digest_size=16)
    parts = [
        part.encode("utf-8", "surrogatepass")
        for part in (message.role, content, written, message.tool_call_id)
    ]
    for image in message.images:
        parts += (image.media_type.encode(), image.data)
    for data in parts:
        link.update(b"%d:" % len(data))
        link.update(data)
    return link.digest()


def _whole_numbers(value: Json) -> Json:
    """Arguments in which 1.0 is 1: clients that read JSON and write it again may make the one the other."""
    if isinstance(value, dict):
        return {key: _whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [*map(_whole_numbers, value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _place(before: int | None, number: int) -> TurnPlace:
    """The place of reply ``number``, after the one before it or none."""
    if number == 0 or before == number - 1:
        return PREVIOUS
    return ROOT if before is None else after(before)


def _named(message: Message, identity: str) -> Message:
    """A reply whose calls have ids that occur once, unless the model gave them ids of its own."""
    calls = tuple(
        replace(call, id=f"call_{identity}{n}") if call.id in ("", f"call_{n}") else call
        for n, call in enumerate(message.tool_calls)
    )
    return replace(message, tool_calls=calls) if calls else message
