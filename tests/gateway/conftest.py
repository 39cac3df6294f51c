"""A gateway that serves one session of a policy whose engine says what a function says."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from gateway_kit import AnsweringEngine, Served

from turnwise.agents.core import Reply, Sampling
from turnwise.agents.gateway.bodies import Bodies, BodyLimits
from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.gateway.sessions import AgentSession
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import AgentEnv
from turnwise.tasks.core import Task


@pytest.fixture(scope="session")
def renderer() -> Renderer:
    texts = ["You add numbers. What is one and two? The sum is 3. hello there user tool result"] * 4
    return Renderer(train_tokenizer(texts, vocab_size=512, context=1 << 16))


@pytest.fixture
def serve(renderer: Renderer) -> Callable[..., Any]:
    """``async with serve(answer) as served``: a gateway with one session."""

    @asynccontextmanager
    async def served(answer: Callable[[str], str], **options: Any) -> AsyncIterator[Served]:
        engine = AnsweringEngine(renderer, answer, options.pop("context_length", 1 << 20))
        policy = ModelPolicy(engine, renderer, options.pop("sampling", Sampling(1.0, 1.0, 200)), name="small")
        replies: list[Reply] = []
        bodies = options.pop("bodies", BodyLimits(body=1 << 20))
        session = AgentSession(policy, Task("", "add"), AgentEnv[int](), heard=replies.append, **options)
        server = GatewayServer("small")
        seat = server.add(Seat(session, bodies=Bodies(bodies)))
        await server.start()
        try:
            yield Served(server, seat, engine, replies)
        finally:
            await server.close()

    return served
