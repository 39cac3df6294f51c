"""An engine that says what a function of the prompt's text says, and what must hold of what is recorded of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazily import Lazily

from turnwise.agents.core import Completion, Reply, Sampling, VersionSpan
from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.tokens.renderer import Renderer
from turnwise.tasks.core import derive_rng

openai = Lazily("openai")

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2.50}}</tool_call>'


class AnsweringEngine:
    """Says what ``answer`` makes of the prompt's text, with log-probabilities that are a function of the seed."""

    def __init__(
        self, renderer: Renderer, answer: Callable[[str], str], context_length: int = 1 << 20
    ) -> None:
        self.renderer, self.answer, self.context_length = renderer, answer, context_length
        self.version = 3
        self.asked: list[tuple[int, ...]] = []
        self.sampled: list[Completion] = []
        self.started, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        self.asked.append(tuple(prompt_ids))
        self.started.set()
        await self.go.wait()
        tokenizer = self.renderer.tokenizer
        said = tokenizer(self.answer(tokenizer.decode([*prompt_ids])), add_special_tokens=False)["input_ids"]
        ids = (*said, self.renderer.stop_ids[0])[: sampling.max_tokens]
        rng = derive_rng("test", seed)
        logprobs = tuple(-rng.random() for _ in ids)
        done = Completion(ids, logprobs, ids[-1] in stop_ids, (VersionSpan(0, self.version),))
        self.sampled.append(done)
        return done

    def close(self) -> None:
        """Nothing is held."""


class Served(NamedTuple):
    """A session that is served, and what it heard."""

    server: GatewayServer
    seat: Seat
    engine: AnsweringEngine
    replies: list[Reply]

    @property
    def url(self) -> str:
        return f"{self.server.address}/sessions/{self.seat.name}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.seat.key}"}

    def openai(self) -> openai.AsyncOpenAI:
        """OpenAI's own client, which asks once."""
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=self.seat.key, max_retries=0)


def rows(replies: Sequence[Reply]) -> list[list[int]]:
    """The tokens of each row that the replies are, as the trainer would join them."""
    ends: list[list[int]] = []
    for k, reply in enumerate(replies):
        parent = reply.parent.turn(k)
        before = [] if parent is None else ends[parent]
        ends.append([*before, *reply.prompt_ids, *reply.action_ids])
    return ends


def check_exact(replies: Sequence[Reply], engine: AnsweringEngine) -> None:
    """What is recorded is what the engine was given and sampled, once each."""
    found = sorted(
        (tuple(row[: -len(r.action_ids)]), r.action_ids, r.logprobs)
        for r, row in zip(replies, rows(replies), strict=True)
    )
    sampled = [
        (asked, done.token_ids, done.logprobs)
        for asked, done in zip(engine.asked, engine.sampled, strict=True)
    ]
    assert found == sorted(sampled)
    assert all(math.isfinite(x) for reply in replies for x in reply.logprobs)
