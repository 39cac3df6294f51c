"""One local server that stands in for every provider, with a model behind it that always knows the right move.

Each test gets a stand of its own (:meth:`Fakes.stand`): an address with one provider's habits. It checks every request as strictly as
that provider does (:mod:`strict`), refuses in the provider's words, and counts what it refused, served and found missing.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import reply_shapes
from aiohttp import web
from habits import Answer, Provider, Said, Says, answer_of, filled, providers
from knowing import next_move, read
from strict import check, lost


class Plan(NamedTuple):
    """What happens at a stand beside its provider's habits.

    Attributes:
        busy: so many requests are refused first, because the rate is exceeded.
        wait: their Retry-After; None: as published, "": none.
        context: words of a conversation that fit; more are refused in the provider's words.
        filtered: the number of the request that the provider's filter refuses; 0: none.
        says: changes to how replies look.
        limit: tokens of a reply, whatever is asked for.
    """

    busy: int = 0
    wait: str | None = None
    context: int | None = None
    filtered: int = 0
    says: Mapping[str, Any] = {}
    limit: int | None = None


@dataclass
class Stand:
    """A provider at an address of its own, and what happened there."""

    name: str
    provider: Provider
    plan: Plan
    url: str
    served: int = 0
    lost: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    replies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    given: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    broken: list[str] = field(default_factory=list[str])

    @property
    def says(self) -> Says:
        """How replies look here."""
        return self.provider.says.model_copy(update=dict(self.plan.says))

    def policy(self) -> str:
        """The policy that plays against it, for `--policy`."""
        return f"openai:{self.provider.model}@{self.url}"


class Fakes:
    """The server; a stand for each address that was asked for."""

    def __init__(self) -> None:
        self.address = ""
        self._stands: list[Stand] = []

    def stand(self, name: str, **plan: Any) -> Stand:
        """A stand of the provider of this name."""
        url = f"{self.address}/{len(self._stands)}/v1"
        self._stands.append(Stand(name, providers()[name], Plan(**plan), url))
        return self._stands[-1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request at a stand."""
        stand = self._stands[int(request.match_info["stand"])]
        stand.headers.append(dict(request.headers))
        try:
            return await self._answer(stand, request)
        except Exception as error:  # a fault of the stand-in, which no test may take for the provider's
            stand.broken.append(repr(error))
            raise

    async def _answer(self, stand: Stand, request: web.Request) -> web.StreamResponse:
        try:
            asked = json.loads(await request.text())
        except ValueError:
            stand.refused["malformed"] += 1
            return _sent(stand.provider.refusals["default"])
        stand.requests.append(asked)
        if unasked := _unasked(stand):
            return _sent(unasked)
        refusal = check(stand.provider, asked, stand.given)
        if refusal is not None:
            stand.refused[refusal.what] += 1
            return _sent(Answer(status=refusal.status, body=refusal.body, headers=refusal.headers))
        words = sum(len(text.split()) for one in asked["messages"] for text in read(one))
        if stand.plan.context is not None and words > stand.plan.context:
            stand.refused["context"] += 1
            full = answer_of("context_full", stand.provider.context_full)
            return _sent(full, limit=stand.plan.context, tokens=words, model=stand.provider.model)
        return await self._reply(stand, request, asked, words)

    async def _reply(
        self, stand: Stand, request: web.Request, asked: Mapping[str, Any], words: int
    ) -> web.StreamResponse:
        says = stand.says
        single = asked.get("parallel_tool_calls") is False or not says.parallel
        move = next_move(asked["messages"], single=single)
        limits = (stand.plan.limit, asked.get("max_tokens"), asked.get("max_completion_tokens"))
        limit = min((one for one in limits if one is not None), default=stand.provider.default_limit)
        stand.served += 1
        stand.lost += lost(stand.provider, asked["messages"], stand.given)
        made = reply_shapes.shaped(stand.provider, says, move, stand.served, limit)
        self._remember(stand, made.message)
        usage: dict[str, Any] = {
            "prompt_tokens": words,
            "completion_tokens": made.words,
            "total_tokens": words + made.words,
        }
        if says.thoughts != "none":
            usage["completion_tokens_details"] = {"reasoning_tokens": made.thought}
        around = {
            "id": f"chatcmpl-{stand.served}",
            "created": 1,
            "model": stand.provider.model,
            **says.around,
        }
        if asked.get("stream"):
            told = usage if (asked.get("stream_options") or {}).get("include_usage") else None
            return await _streamed(request, made, {**around, "object": "chat.completion.chunk"}, told)
        choice = {"index": 0, "message": made.message, "finish_reason": made.finish, "logprobs": None}
        body = {**around, "object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(body)

    @staticmethod
    def _remember(stand: Stand, message: dict[str, Any]) -> None:
        stand.replies.append(message)
        if message.get("tool_calls"):
            stand.given[message["tool_calls"][0]["id"]] = message
        elif isinstance(message.get("content"), str):
            stand.given[message["content"]] = message


def _unasked(stand: Stand) -> Said | Answer | None:
    """What the plan answers, whatever was asked."""
    if len(stand.requests) <= stand.plan.busy:
        stand.refused["rate"] += 1
        said = answer_of("rate_limited", stand.provider.rate_limited)
        if stand.plan.wait is None:
            return said
        kept = {name: value for name, value in said.headers.items() if name.lower() != "retry-after"}
        return said.model_copy(
            update={"headers": {**kept, **({"Retry-After": stand.plan.wait} if stand.plan.wait else {})}}
        )
    if len(stand.requests) == stand.plan.filtered:
        stand.refused["filter"] += 1
        return answer_of("filtered", stand.provider.filtered)
    return None


def _sent(answer: Answer | Said, **values: object) -> web.Response:
    body = filled(answer.body, **values) if values else answer.body
    headers = dict(answer.headers)
    if isinstance(body, str):
        return web.Response(text=body, status=answer.status, headers=headers)
    return web.json_response(body, status=answer.status, headers=headers)


async def _streamed(
    request: web.Request, made: reply_shapes.Shaped, around: Mapping[str, Any], usage: Any
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for chunk in reply_shapes.chunks(made.message, made.finish, around, usage):
        await response.write(chunk)
    return response


@contextmanager
def serve_fakes() -> Iterator[Fakes]:
    """The running server, in a thread of its own."""
    fakes, loop, ready = Fakes(), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/{stand}/v1/chat/completions", fakes.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        fakes.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(10)
    try:
        yield fakes
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
