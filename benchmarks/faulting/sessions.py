"""A trial of the gateway: clients that share sessions, repeat themselves, hang up, ask too much and pay twice, engines that fail, a full disk."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, NamedTuple

import aiohttp

from turnwise.agents.core import Completion, Episode, Sampling, VersionSpan
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.hosting.routes import add_routes
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.doors import Door
from turnwise.errors import RunError
from turnwise.tasks.core import derive_rng

TOKEN = "the-token-of-this-trial"
HEAVY = [{"role": "user", "content": ""}] * 6000
ODD: tuple[dict[str, Any], ...] = (
    {"messages": [{"role": "assistant", "tool_calls": 2}]},
    {"messages": HEAVY},
    {"messages": [{"role": "user", "content": "x"}], "temperature": 0.5},
    {"messages": []},
)


class Row(NamedTuple):
    """What came of a trial: what was done how often, and what should not be."""

    number: int
    done: dict[str, int]
    violations: list[str]


@cache
def _renderer() -> Renderer:
    return Renderer(
        train_tokenizer(["You add numbers. user assistant hello there"] * 4, vocab_size=300, context=1 << 15)
    )


class FaultyEngine:
    """Says a few random letters after a while, or fails; every completion has log-probabilities of its own."""

    context_length, version = 4000, 1

    def __init__(self, rng: Random) -> None:
        self.rng, self.failures = rng, 0
        self.sampled: list[Completion] = []

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        await asyncio.sleep(self.rng.choice([0.0, 0.0, 0.005, 0.03]))
        if self.rng.random() < 0.1:
            self.failures += 1
            raise RuntimeError("no more memory")
        own = derive_rng("trial", seed, len(self.sampled))
        ids = (*(own.randrange(40, 90) for _ in range(own.randint(1, 8))), stop_ids[0])[: sampling.max_tokens]
        done = Completion(ids, tuple(-own.random() for _ in ids), ids[-1] in stop_ids, (VersionSpan(0, 1),))
        self.sampled.append(done)
        return done

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class _Trial:
    rng: Random
    host: Host
    engine: FaultyEngine
    client: aiohttp.ClientSession
    done: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    paid: dict[str, dict[tuple[int, float, str], None]] = field(default_factory=dict[str, Any])

    async def post(
        self, url: str, body: Any, key: str, allowed: tuple[int, ...] = (503, 504)
    ) -> tuple[int, Any]:
        """What a request is answered; an unexpected failure of ours is a violation."""
        headers = {"Authorization": f"Bearer {key}"}
        async with self.client.post(url, json=body, headers=headers) as response:
            said = await response.json()
        self.done[str(response.status)] += 1
        if response.status >= 500 and response.status not in allowed:
            self.violations.append(f"{response.status} for {url}: {json.dumps(said)[:200]}")
        return response.status, said

    async def act(self, one: dict[str, Any], talk: list[dict[str, Any]]) -> None:
        """Something that a client does."""
        what = self.rng.choice(["ask", "ask", "ask", "twice", "hang up", "odd", "count", "pay", "pay twice"])
        self.done[what] += 1
        chat = f"{one['base_url']}/chat/completions"
        body = {
            "model": "m",
            "messages": [*talk, {"role": "user", "content": f"say {self.rng.randrange(6)}"}],
        }
        match what:
            case "hang up":
                await self._hang_up(chat, body | {"stream": True}, one["key"])
            case "odd":
                status, _ = await self.post(chat, self.rng.choice(ODD), one["key"])
                if not 400 <= status < 500:
                    self.violations.append(f"an odd request was answered {status}")
            case "count":
                await self.post(f"{one['base_url']}/messages/count_tokens", body, one["key"])
            case "pay" | "pay twice":
                await self._pay(one, 2 if what == "pay twice" else 1)
            case _:
                times = 2 if what == "twice" else 1
                found = await asyncio.gather(*(self.post(chat, body, one["key"]) for _ in range(times)))
                answers = {said["id"] for status, said in found if status == 200}
                if len(answers) > 1:
                    self.violations.append("the same request has two answers")
                if answers:
                    talk[:] = [*body["messages"], found[0][1].get("choices", [{}])[0].get("message", {})]
                    if not talk[-1]:
                        talk.clear()

    async def _hang_up(self, url: str, body: dict[str, Any], key: str) -> None:
        try:
            async with asyncio.timeout(0.01):
                async with self.client.post(
                    url, json=body, headers={"Authorization": f"Bearer {key}"}
                ) as response:
                    await response.content.readany()
        except TimeoutError:
            pass

    async def _pay(self, one: dict[str, Any], times: int) -> None:
        reward, name = self.rng.choice([0.25, 0.5]), self.rng.choice(["", "a"])
        asked = {"reward": reward, "turn": 0, "id": name}
        found = await asyncio.gather(*(self.post(one["url"] + "/reward", asked, TOKEN) for _ in range(times)))
        if any(status == 200 for status, _ in found):
            self.paid.setdefault(one["id"], {})[0, reward, name] = None

    async def end(self, one: dict[str, Any], full: bool) -> dict[str, Any] | None:
        """End a session, twice at once and once again: one answer."""
        asked = {"end": "solved"}
        url = one["url"] + "/end"
        found = [*await asyncio.gather(*(self.post(url, asked, TOKEN, (507,)) for _ in range(2)))]
        found.append(await self.post(url, asked, TOKEN, (507,)))
        answers = {json.dumps(said) for status, said in found if status == 200}
        if full:
            if answers or {status for status, _ in found[:2]} != {507}:
                self.violations.append(
                    f"an episode that was not kept was answered {[status for status, _ in found]}"
                )
            return None
        if len(answers) != 1 or len([one for one in found if one[0] == 200]) != 3:
            self.violations.append(f"three times the same end was answered {[status for status, _ in found]}")
            return None
        return json.loads(answers.pop())


async def trial(number: int, seed: int) -> Row:
    """Play a trial, which is a function of number and seed but for the clock; and judge it."""
    rng = Random(f"sessions {seed} {number}")
    engine = FaultyEngine(rng)
    full, kept = rng.random() < 0.2, list[Episode]()

    def keep(episode: Episode) -> None:
        if full:
            raise RunError("Cannot write the log: No space left on device.", "Make room.")
        kept.append(episode)

    limits = SessionLimits(
        calls=rng.choice([5, 1000]), at_once=rng.choice([1, 64]), tokens=rng.choice([20, float("inf")])
    )
    host = Host(ModelPolicy(engine, _renderer(), Sampling(1.0, 1.0, 12)), HostOptions(limits=limits), keep)
    add_routes(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
    await host.start()
    try:
        async with aiohttp.ClientSession() as client:
            found = _Trial(rng, host, engine, client)
            sessions = [
                (await found.post(f"{host.server.address}/sessions", {"prompt": "x"}, TOKEN))[1]
                for _ in range(rng.randint(1, 3))
            ]

            async def agent() -> None:
                talk: list[dict[str, Any]] = []
                for _ in range(rng.randint(3, 12)):
                    await found.act(rng.choice(sessions), talk)

            await asyncio.gather(*(agent() for _ in range(rng.randint(2, 6))))
            hosted = dict(host.open_sessions)
            for one in hosted.values():
                while one.play.session.busy:
                    await asyncio.sleep(0.005)
            faults = {one["id"]: hosted[one["id"]].play.session.fault for one in sessions}
            ends = [(one, await found.end(one, full)) for one in sessions]
            _judge(found, ends, faults, hosted, kept, full)
    finally:
        await host.close()
    return Row(number, dict(found.done), found.violations)


def _judge(
    found: _Trial,
    ends: list[tuple[Any, Any]],
    faults: dict[str, str],
    hosted: dict[str, Any],
    kept: list[Episode],
    full: bool,
) -> None:
    """Tokens once each, payments once each, nothing held, failures of the engine alone left out."""
    bad = found.violations
    for one in hosted.values():
        if one.play.session.busy or one.seat.bodies.held:
            bad.append(f"held in the end: {one.play.session.busy} requests, {one.seat.bodies.held} bytes")
    if len(kept) != (0 if full else len(ends)):
        bad.append(f"{len(kept)} of {len(ends)} episodes were kept")
    sampled = Counter((done.token_ids, done.logprobs) for done in found.engine.sampled)
    recorded = Counter(
        (turn.reply.action_ids, turn.reply.logprobs)
        for episode in kept for turn in episode.trajectory.turns if turn.reply.action_ids
    )  # fmt: skip
    if recorded - sampled:
        bad.append(f"{len(recorded - sampled)} replies stand in episodes and were sampled for none")
    if not full and sampled - recorded:
        bad.append(f"{len(sampled - recorded)} replies were sampled and stand in no episode")
    for one, said in ends:
        if said is None:
            continue
        score = sum(reward for _, reward, _ in found.paid.get(one["id"], {}))
        if said["outcome"] in ("ok", "limit") and abs(said["score"] - score) > 1e-9:
            bad.append(f"paid {score}, and the score is {said['score']}")
        if said["outcome"] == "infra_error" and not faults[one["id"]]:
            bad.append(f"left out of the score though nothing failed: {said['error']}")
