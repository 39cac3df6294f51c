"""``turnwise bench gateway``: what the gateway costs beside the engine that it serves.

Two hundred sessions at once, whose clients are in another process, talk to a small random model by chat completions. Then the engine
alone samples the same tokens after the same prompts, each session's in the same order, all sessions at once. Both begin with an
empty prefix cache. A reply's added latency is what its client waited beyond what the engine took for it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.bench import clients
from turnwise.agents.core import Completion, Engine, Sampling
from turnwise.agents.engines.vllm import VllmEngine
from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.gateway.sessions import AgentSession
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.core import AgentEnv
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Task


class GatewayWorkload(NamedTuple):
    """The size of the benchmark."""

    sessions: int = 200  # at once
    replies: int = 6  # of each, one after the other
    new_tokens: int = 24  # of a reply
    max_sequences: int = 64
    context_length: int = 1024


class NotedRequest(NamedTuple):
    """A request as the engine had it, and what it took."""

    prompt: tuple[int, ...]
    sampling: Sampling
    stop_ids: tuple[int, ...]
    seed: int
    tokens: tuple[int, ...]
    seconds: float


class GatewayRound(NamedTuple):
    """One repetition: tokens, seconds and processor seconds of this process on both sides, and added latencies in seconds."""

    tokens: int
    gateway_s: float
    alone_s: float
    gateway_cpu_s: float
    alone_cpu_s: float
    added_s: Sequence[float]


class _Noting:
    """An engine that notes one session's requests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.version, self.context_length = engine.version, engine.context_length
        self.asked: list[NotedRequest] = []

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        began = time.perf_counter()
        done = await self._engine.generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)
        took = time.perf_counter() - began
        exact = sampling._replace(max_tokens=len(done.token_ids))
        self.asked.append(NotedRequest((*prompt_ids,), exact, (*stop_ids,), seed, done.token_ids, took))
        return done

    def close(self) -> None:
        """The engine stays open."""


def bench_gateway(*, repeats: int = 3, workload: GatewayWorkload | None = None) -> dict[str, BenchmarkFigure]:
    """Tokens per second by the gateway and by the engine alone, their ratio, latency and processor time that are added.

    Medians of repetitions, spread = largest − smallest. The first repetition warms up and is not counted.

    Raises:
        TurnwiseError: a client got an error, or the two sides did not sample the same.
    """
    load = workload or GatewayWorkload()
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
        engine, renderer = _opened(Path(folder), load)
        try:
            rounds = [asyncio.run(_round(engine, renderer, load)) for _ in range(repeats + 1)][1:]
            one = load._replace(sessions=1)
            single = [asyncio.run(_round(engine, renderer, one)) for _ in range(repeats * 4)]
        finally:
            engine.close()
    return figures(load, rounds, single)


def figures(
    load: GatewayWorkload, rounds: Sequence[GatewayRound], single: Sequence[GatewayRound]
) -> dict[str, BenchmarkFigure]:
    """Summarise the repetitions with all sessions, and with a single one."""
    replies = load.sessions * load.replies
    cpu = [(one.gateway_cpu_s - one.alone_cpu_s) / replies * 1000 for one in rounds]
    return {
        "gateway": _figure([one.tokens / one.gateway_s for one in rounds], "tokens/s"),
        "engine_alone": _figure([one.tokens / one.alone_s for one in rounds], "tokens/s"),
        "share_of_engine": _figure([one.alone_s / one.gateway_s for one in rounds], ""),
        "added_latency_one_session": _figure([_median_ms(one) for one in single], "ms"),
        f"added_latency_{load.sessions}_sessions": _figure([_median_ms(one) for one in rounds], "ms"),
        f"added_latency_{load.sessions}_sessions_p95": _figure(
            [statistics.quantiles(one.added_s, n=20)[-1] * 1000 for one in rounds], "ms"
        ),
        "added_cpu_per_reply": _figure(cpu, "ms"),
    }


async def _round(engine: VllmEngine, renderer: Renderer, load: GatewayWorkload) -> GatewayRound:
    engine.reset_prefix_cache()
    noting = [_Noting(engine) for _ in range(load.sessions)]
    began, cpu = time.perf_counter(), time.process_time()
    waited = await _served(noting, renderer, load)
    gateway_s, gateway_cpu = time.perf_counter() - began, time.process_time() - cpu
    added = [
        client - asked.seconds
        for one, clients_ in zip(noting, waited.seconds, strict=True)
        for asked, client in zip(one.asked, clients_, strict=True)
    ]
    engine.reset_prefix_cache()
    began, cpu = time.perf_counter(), time.process_time()
    tokens = sum(await asyncio.gather(*(_alone(engine, one.asked) for one in noting)))
    alone_s, alone_cpu = time.perf_counter() - began, time.process_time() - cpu
    if tokens != sum(len(asked.tokens) for one in noting for asked in one.asked):
        raise TurnwiseError(
            "The engine alone sampled other tokens than by the gateway.", "Report it, with the machine."
        )
    return GatewayRound(tokens, gateway_s - waited.starting, alone_s, gateway_cpu, alone_cpu, added)


async def _served(noting: Sequence[_Noting], renderer: Renderer, load: GatewayWorkload) -> clients.Waited:
    """Let the clients talk to the gateway; what they waited."""
    server = GatewayServer("bench")
    seats: list[Seat] = []
    for n, engine in enumerate(noting):
        policy = ModelPolicy(engine, renderer, Sampling(max_tokens=load.new_tokens), name="bench")
        session = AgentSession(policy, Task("", f"bench {n}"), AgentEnv[int](), seed=n)
        seats.append(server.add(Seat(session)))
    await server.start()
    began = time.time()
    try:
        urls = [(f"{server.address}/sessions/{seat.name}/v1/chat/completions", seat.key) for seat in seats]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-E", clients.__file__,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        told = json.dumps({"urls": urls, "replies": load.replies})
        answer, _ = await process.communicate(told.encode())
    finally:
        await server.close()
    if process.returncode:
        raise TurnwiseError("A client of the benchmark failed.", "Its error is above.")
    told_back = json.loads(answer)
    return clients.Waited(told_back["seconds"], told_back["began"] - began)


async def _alone(engine: Engine, asked: Sequence[NotedRequest]) -> int:
    """A session's requests again, one after the other, without the gateway; how many tokens it sampled."""
    tokens = 0
    for one in asked:
        done = await engine.generate(one.prompt, one.sampling, stop_ids=one.stop_ids, seed=one.seed)
        tokens += len(done.token_ids)
    return tokens


def _opened(folder: Path, load: GatewayWorkload) -> tuple[VllmEngine, Renderer]:
    from transformers import AutoTokenizer

    from turnwise.agents.models.small import build_small_model

    texts = [clients.FIRST.format(n) + clients.NEXT.format(n) for n in range(200)]
    model = build_small_model(folder, texts, context=load.context_length)
    engine = VllmEngine(model, context_length=load.context_length, max_sequences=load.max_sequences)
    return engine, Renderer(AutoTokenizer.from_pretrained(model))


def _median_ms(one: GatewayRound) -> float:
    return statistics.median(one.added_s) * 1000


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
