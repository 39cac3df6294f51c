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
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from turnwise.agents.core import PREVIOUS, ROOT, Finish, History, Policy, Reply, Served, TurnPlace, after
from turnwise.agents.engines.loop import COMES_THROUGH_A_SOCKET
from turnwise.agents.execution.calls import reply_within
from turnwise.agents.gateway.callers import Callers
from turnwise.agents.gateway.compactions import Compaction, Compactions
from turnwise.agents.gateway.core import Answered, ChatRequest, RefusedError
from turnwise.agents.gateway.fingerprints import fingerprints, linked, request_key
from turnwise.agents.gateway.offloading import SHORT, Offloader
from turnwise.agents.gateway.refusals import Pictures, not_answered, of_the_client
from turnwise.agents.gateway.said_replies import SaidReplies
from turnwise.agents.gateway.sampling import (
    Call,
    Drawn,
    SampledNode,
    check_readable,
    count,
    draw,
    letters_of,
    samples_tokens,
    written_prompt,
)
from turnwise.agents.gateway.update_lock import UpdateLock
from turnwise.blame import describe
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Image, Message, Messages
from turnwise.secrets import redact
from turnwise.tasks.core import Task

_CHANCE = frozenset({"seed", "user", "metadata", "safety_identifier"})
"""Keys of a request that change nothing about its reply but the chance."""


class SessionLimits(NamedTuple):
    """Limits of one session.

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
    """Counts of a session's replies, tokens, resent requests, branches and refusals."""

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
        cut_said: what the policy's server said of it.
        busy: requests that are being answered.
        shown: the environment's own pictures: who passes them on is not to blame for them.
        began, touched: when it began, and when somebody last asked something.
        refused_last: why the newest refused request was refused.
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
        self.cut_said = Served()
        self.fault = self.refused_last = ""
        self._nodes: dict[bytes, tuple[int, SampledNode]] = {}
        self._answers: dict[str, asyncio.Task[Answered]] = {}  # that are sampled, or were
        self._messages: dict[bytes, Message] = {}  # by what they end: each is kept once
        self._letters = 0
        self._told: dict[str, tuple[Message, ...]] = {}  # what stands before a response that is followed
        self._recent: deque[float] = deque()
        self._callers, self._compactions = Callers(), Compactions()
        self._replies = SaidReplies()
        self._offloader = Offloader()
        self._summaries = set[int]()
        self.busy = 0
        self.began = self.touched = time.monotonic()
        self._closed = ""

    def is_summary(self, reply: int) -> bool:
        """Say whether a later conversation goes on under a beginning that tells this reply."""
        return reply in self._summaries

    def touch(self) -> None:
        """Somebody is there."""
        self.touched = time.monotonic()

    def close(self, why: str) -> None:
        """Answer nothing any more; what is being sampled is given up."""
        self._closed = self._closed or why
        for task in [*self._answers.values()]:
            task.cancel()

    async def ask(self, asked: ChatRequest, body: Mapping[str, Any], size: int = 0) -> Answered:
        """The policy's reply to a request; the same one where it was sent before.

        Args:
            asked: the request.
            body: as the client sent it.
            size: its bytes; the work of a large one is done in a thread.

        Raises:
            RefusedError: the session is over or has used up what it may use, or the request cannot be answered.
        """
        self.touch()
        key = await self._offloader.run(size, request_key, body, patient=size > SHORT)
        known = self._answers.get(key)
        if known is not None and not self._closed:
            self._count(resent=1)
        else:
            self._admit()
            self.busy += 1  # before the task begins: requests that come at the same moment are counted
            by_turn = not _CHANCE & body.keys()
            known = self._answers[key] = asyncio.create_task(self._answer(asked, key, by_turn, size))
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

    async def count_tokens(self, asked: ChatRequest, size: int = 0) -> int:
        """The tokens of a request's prompt; it is bounded as a request for a reply is, and costs none of these.

        Raises:
            RefusedError: the session is over or is asked too much, or the request cannot be read.
        """
        self.touch()
        self._check_open()
        self._check_pace()
        self.busy += 1
        try:
            return await self._offloader.run(size, count, self.policy, asked)
        except RefusedError as refused:
            self.refused(refused.message)
            raise
        finally:
            self.busy -= 1

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
        """Refuse a request for a reply that the session may not make (any more)."""
        self._check_open()
        limits = self.limits
        for reason, used, most, what in (
            (EndReason.TURN_LIMIT, self.counts.replies + self.busy, limits.calls, "replies"),
            (EndReason.TOKEN_LIMIT, self.counts.tokens, limits.tokens, "tokens"),
            (EndReason.TOKEN_LIMIT, self._letters, limits.letters, "letters of messages"),
        ):
            if used >= most:
                raise self._spent(reason, most, what)
        self._check_pace()

    def _check_open(self) -> None:
        if self._closed:
            raise self._refusal(410, "session_closed", self._closed)
        if time.monotonic() - self.began >= self.limits.seconds:
            raise self._spent(EndReason.TIME_LIMIT, self.limits.seconds, "seconds")

    def _check_pace(self) -> None:
        limits, now = self.limits, time.monotonic()
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

    def _spent(self, reason: EndReason, most: float, what: str) -> RefusedError:
        self.cut, self.cut_said = reason, Served()
        return self._refusal(403, "budget_spent", f"The session has used its {most:g} {what}.")

    def _refusal(self, status: int, code: str, why: str, *, retry_s: float | None = None) -> RefusedError:
        self.refused(why)
        return RefusedError(status, code, why, retry_s=retry_s)

    def refused(self, why: str) -> None:
        """A request of this session was refused."""
        self._count(refused=1)
        self.refused_last = why

    async def _answer(self, asked: ChatRequest, key: str, by_turn: bool, size: int) -> Answered:
        COMES_THROUGH_A_SOCKET.set(True)  # in this task alone
        try:
            async with self.update_lock.shared():
                return await self._draw(asked, key, by_turn, size)
        except RefusedError as refused:
            if refused.code == "context_length_exceeded":
                self.cut, self.cut_said = EndReason.TOKEN_LIMIT, Served(Finish.CONTEXT)
            self.refused(refused.message)
            raise
        except TimeoutError:
            self.fault = f"a reply took more than {self.limits.reply_s:g} s"
            raise RefusedError(504, "deadline_exceeded", f"{self.fault}.", retry_s=1.0) from None
        except Exception as error:
            refused = of_the_client(error, lambda: self._pictures(asked))
            if refused is not None:
                self.refused(refused.message)
                raise refused from None
            self.fault = describe(error)
            raise RefusedError(503, "engine_failed", redact(self.fault), retry_s=1.0) from error

    def _pictures(self, asked: ChatRequest) -> Pictures:
        images = [image for message in self.conversation(asked).messages for image in message.images]
        return Pictures(len(images), sum(image not in self.shown for image in images))

    async def _draw(self, asked: ChatRequest, key: str, by_turn: bool, size: int) -> Answered:
        size += self._letters if asked.follows else 0
        asked = self.conversation(asked)
        if asked.messages[-1].role == "assistant":
            said = "The last message is the assistant's: replies cannot be begun by the client."
            raise RefusedError(400, "invalid_messages", said, param="messages")
        chain = await self._offloader.run(size, self._read, asked, patient=size > SHORT)
        number, base = next((self._nodes[one] for one in reversed(chain) if one in self._nodes), (None, None))
        caller, compacted = (
            (None, None)
            if base is not None
            else await self._offloader.run(size, self._begun_by, asked.messages)
        )
        if number is not None:
            self._callers.answered(number)
        is_told_words = not samples_tokens(self.policy)
        if is_told_words:
            told = await self._offloader.run(size, self._replies.restored, asked.messages)
            asked = asked._replace(messages=told)
        prompt = await self._offloader.run(size, written_prompt, self.policy, asked, base)
        call = self._call(asked, key, by_turn)
        async with reply_within(self.limits.reply_s):
            drawn = await draw(self.policy, call, asked, prompt)
        if drawn.reply.end is not None:  # of a policy without tokens
            self.cut, self.cut_said = drawn.reply.end, drawn.reply.served
            raise not_answered(drawn.reply)
        continues = None if compacted is None else compacted.reply
        drawn = drawn._replace(reply=drawn.reply._replace(caller=caller, continues=continues))
        if compacted is not None and compacted.summary:
            self._summaries.add(compacted.reply)
        told, letters = await self._offloader.run(size, self._kept_once, asked.messages, chain[1:])
        self._letters += letters
        return self._keep(asked._replace(messages=told), key, drawn, chain[-1], number, base)

    def _begun_by(self, messages: Sequence[Message]) -> tuple[int | None, Compaction | None]:
        """The reply that called for a new conversation, or the one that it goes on from."""
        caller = self._callers.caller_of(messages)
        return caller, self._compactions.of(messages) if caller is None else None

    def _read(self, asked: ChatRequest, *, patient: bool) -> list[bytes]:
        """The fingerprints of a conversation that the policy can read."""
        check_readable(self.policy, asked)
        return [*fingerprints(asked.messages, asked.tools, patient=patient)]

    def _kept_once(
        self, messages: Sequence[Message], chain: Sequence[bytes]
    ) -> tuple[tuple[Message, ...], int]:
        """The messages as they were told first, as conversations are told whole again and again; letters of those that are new."""
        new = [message for end, message in zip(chain, messages, strict=True) if end not in self._messages]
        told = (self._messages.setdefault(end, one) for end, one in zip(chain, messages, strict=True))
        return tuple(told), sum(map(letters_of, new))

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
        end = linked(before, message)
        self._nodes[end], self._messages[end] = (own, node), message
        self._callers.note(own, message)
        self._compactions.note(own, asked.messages, message)
        self._replies.note(message)
        self._count(replies=1, tokens=reply.tokens, branches=int(not drawn.extends))
        self.cut, self.cut_said, self.fault = None, Served(), ""
        conversation = (*asked.messages, message)
        has_system = bool(asked.keys.get("instructions"))
        self._told[f"resp_{identity}"] = conversation[has_system:]
        if self.heard is not None:
            self.heard(reply)
        return Answered(message, drawn.served, identity, int(time.time()))

    def _count(self, **more: int) -> None:
        now = self.counts._asdict()
        self.counts = Counts(**{name: now[name] + more.get(name, 0) for name in now})


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
