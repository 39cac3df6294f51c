"""Engines killed while agents wait for replies: the clients hear it as their own API says it, and nothing else is touched."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request as Asked
from urllib.request import urlopen

import pytest
from lazily import Lazily
from test_programs import PRELUDE

torch = pytest.importorskip("torch")

import turnwise
from turnwise.agents.core import PREVIOUS, Episode, Outcome, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.gateway.agent_program import AgentProgram
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.agents.models.small import build_small_model
from turnwise.agents.policies.command import ProgramPolicy
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite

pytestmark = pytest.mark.slow
anthropic, openai, transformers = map(Lazily, ("anthropic", "openai", "transformers"))
ROOT = Path(__file__).parents[2]
CONTEXT, TOKENS = 256, 16
PATIENCE_S = 2.0
PLAIN = AgentProgram(
    (sys.executable, "-S", "-E", str(ROOT / "examples" / "plain_agent.py")),
    prompt="messages",
    preload=("http.client", "json"),
)


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite test/letters is known."""
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from letters import register_letters

    register_letters()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    texts = ["Say letters. Early letters, please (12345). abc 0.3 user tool"] * 10
    return build_small_model(folder, texts, vocab_size=300, layers=1, width=64, heads=2, context=CONTEXT)


@pytest.fixture
def policy_of(checkpoint: Path) -> Iterator[Callable[..., ModelPolicy]]:
    """``policy_of(engine)``: closed at the end of the test."""
    with ExitStack() as stack:
        renderer = Renderer(transformers.AutoTokenizer.from_pretrained(checkpoint))

        def make(engine: TorchEngine | RemoteFleet) -> ModelPolicy:
            stack.callback(engine.close)
            return ModelPolicy(engine, renderer, Sampling(1.0, 1.0, TOKENS), name="small")

        yield make


def fleet_of(servers: list[Any], patience_s: float) -> RemoteFleet:
    options = RemoteOptions(patience_s=patience_s)
    return RemoteFleet([server.url for server in servers], context_length=CONTEXT, options=options)


def waiting(kills: Any, fleet: RemoteFleet, server: Any, number: int) -> None:
    """Wait until an engine has so many requests in hand."""
    kills.wait_for(lambda: any(r.name == server.name and r.in_flight >= number for r in fleet.health()))


def test_a_program_whose_only_engine_is_killed_has_an_infrastructure_error_and_no_score(
    kills, started, checkpoint, policy_of
):
    (server,) = started(1, checkpoint, "torch", context=CONTEXT)
    model = policy_of(fleet_of([server], PATIENCE_S))
    # What the program says after the failure is no attempt of the policy: it is not told to the environment.
    text = f"""{PRELUDE}
from urllib.error import HTTPError
try: chat({{"role": "user", "content": sys.stdin.read()}})
except HTTPError as error: print(error.code, json.load(error)["error"]["type"], end="")
"""
    program = AgentProgram((sys.executable, "-S", "-c", text), answer="stdout")
    server.send(signal.SIGSTOP)  # so that it is asked and has not answered
    killing = threading.Thread(target=lambda: (waiting(kills, model.engine, server, 1), server.end()))
    killing.start()
    (failed,) = turnwise.rollout("test/letters", ProgramPolicy(model, program), episodes=1, retries=0)
    killing.join()
    assert (failed.outcome, failed.end, failed.score) == (Outcome.INFRA_ERROR, None, 0.0)
    assert "No engine serves" in failed.error
    assert failed.trajectory.turns == ()

    server.start()
    kills.wait_for(lambda: kills.serving(model.engine) == 1)
    (after,) = turnwise.rollout("test/letters", ProgramPolicy(model, PLAIN), episodes=1, retries=0)
    assert (after.outcome, len(after.trajectory.turns)) == (Outcome.OK, 3)


def test_clients_hear_of_a_killed_engine_in_their_own_form_and_other_sessions_go_on(
    kills, started, checkpoint, policy_of
):
    (server,) = started(1, checkpoint, "torch", context=CONTEXT)
    model, done = policy_of(fleet_of([server], PATIENCE_S)), list[Episode]()

    async def act(hosted: Any, url: str, text: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {hosted.seat.key}"}
        asked = Asked(f"{url}/act", json.dumps({"text": text}).encode(), headers)
        return await asyncio.to_thread(lambda: json.load(urlopen(asked, timeout=60)))

    async def play() -> None:
        host = Host(model, HostOptions(get_suite("test/letters"), plain_words=True), done.append)
        await host.start()
        try:
            sessions = [await host.open() for _ in range(4)]
            urls = [f"{host.server.address}/sessions/{one.seat.name}" for one in sessions]
            clients = [
                openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=one.seat.key, max_retries=0)
                for one, url in zip(sessions, urls, strict=True)
            ]
            claude = anthropic.AsyncAnthropic(base_url=urls[2], api_key=sessions[2].seat.key, max_retries=0)
            talk: list[Any] = [{"role": "user", "content": sessions[3].play.instructions}]
            first = await clients[3].chat.completions.create(model="m", messages=talk)
            assert (await act(sessions[3], urls[3], str(first.choices[0].message.content)))["end"] is None

            server.send(signal.SIGSTOP)
            asking = [
                clients[0].chat.completions.create(model="m", messages=talk),
                clients[1].responses.create(model="m", input="Say letters."),
                claude.messages.create(model="m", max_tokens=20, messages=talk),
            ]
            failing = asyncio.gather(*asking, return_exceptions=True)
            await asyncio.to_thread(waiting, kills, model.engine, server, 3)
            await asyncio.to_thread(server.end)
            chat, responses, messages = await failing
            for error in (chat, responses):
                assert isinstance(error, openai.InternalServerError)
                assert (error.status_code, error.code, error.type) == (503, "engine_failed", "server_error")
            assert isinstance(messages, anthropic.InternalServerError)
            assert (messages.status_code, messages.body["error"]["type"]) == (503, "api_error")

            # The session that was not asking knows all that it knew, and goes on when there is an engine.
            again = await clients[3].chat.completions.create(model="m", messages=talk)
            assert again.choices == first.choices
            assert sessions[3].play.session.counts._replace(resent=0) == (
                1,
                len(first_ids(sessions[3])),
                0,
                1,
                0,
            )
            server.start()
            await asyncio.to_thread(kills.wait_for, lambda: kills.serving(model.engine) == 1)
            talk += [first.choices[0].message, {"role": "user", "content": "0.3"}]
            second = await clients[3].chat.completions.create(model="m", messages=talk)
            end = None
            while end is None:
                end = (await act(sessions[3], urls[3], str(second.choices[0].message.content)))["end"]
            for client in (*clients, claude):
                await client.close()
        finally:
            await host.close()

    def first_ids(hosted: Any) -> tuple[int, ...]:
        return hosted.play.history.turns[0].reply.action_ids

    asyncio.run(play())
    found = sorted((str(one.outcome), len(one.trajectory.turns)) for one in done)
    assert found == [*[("infra_error", 0)] * 3, ("ok", 2)]
    (kept,) = (one for one in done if one.outcome is Outcome.OK)
    assert [turn.reply.parent for turn in kept.trajectory.turns] == [PREVIOUS, PREVIOUS]
    assert kept.end in (EndReason.SOLVED, EndReason.FAILED)


def test_one_of_two_engines_is_killed_and_programs_get_the_tokens_that_they_would_have_got(
    kills, started, checkpoint, policy_of
):
    def tokens(episodes: list[Episode]) -> list[list[tuple[int, ...]]]:
        assert {one.outcome for one in episodes} == {Outcome.OK}
        return [[turn.reply.action_ids for turn in one.trajectory.turns] for one in episodes]

    def play(model: ModelPolicy) -> list[list[tuple[int, ...]]]:
        programs = ProgramPolicy(model, PLAIN)
        done = turnwise.rollout("test/letters", programs, episodes=8, retries=0, concurrency=8)
        programs._launcher.close()
        return tokens(done)

    alone = play(policy_of(TorchEngine(str(checkpoint), context_length=CONTEXT, max_sequences=16)))
    servers = started(2, checkpoint, "torch", context=CONTEXT)
    model = policy_of(fleet_of(servers, 300.0))
    servers[0].send(signal.SIGSTOP)
    killing = threading.Thread(target=lambda: (waiting(kills, model.engine, servers[0], 2), servers[0].end()))
    killing.start()
    assert play(model) == alone
    killing.join()
    assert model.sampled == sum(
        len(ids) for turns in alone for ids in turns
    )  # what was lost counts for nothing
    lost = {row.name: row.failures.get("dead", 0) for row in model.engine.health()}
    assert (lost[servers[0].name] >= 1, lost[servers[1].name]) == (True, 0)
