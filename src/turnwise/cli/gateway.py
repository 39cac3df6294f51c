"""The commands that serve agents of any kind: gateway (a policy) and serve (a suite's environments)."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.gateway.sessions import SessionLimits
    from turnwise.agents.hosting.session_host import HostOptions


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServedAt:
    """Where episodes are served, of which tasks, and how many.

    Attributes:
        split: train, dev or test.
        host: The address to listen at.
        port: The port; any that is free if not given.
        token: With which sessions and connections are opened; random if not given, `none` for none.
        episodes: Stop after so many; 0 goes on.
        seed: The episodes' chance is derived from it.
        seconds: How long an episode may last.
        idle_s: Seconds without a request after which an episode is given up.
        plain_words: Whether agents are offered plain words beside the environment's tools.
        out: A folder for the episode log and the summary.
    """

    split: str = "test"
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    episodes: int = 0
    seed: int = 0
    seconds: float = 3600.0
    idle_s: float = 600.0
    plain_words: bool = False
    out: Path | None = None

    def options(self, suite: str, limits: SessionLimits, *, acts_are_turns: bool = False) -> HostOptions:
        """What sessions are opened with."""
        from turnwise.agents.hosting.session_host import HostOptions
        from turnwise.envs.registry import get_suite
        from turnwise.tasks.core import Split

        return HostOptions(
            get_suite(suite) if suite else None,
            Split(self.split),
            self.seed,
            limits._replace(seconds=self.seconds),
            self.idle_s,
            plain_words=self.plain_words,
            episodes=self.episodes,
            acts_are_turns=acts_are_turns,
        )


_ANYWHERE = ServedAt()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What each session may use.

    Attributes:
        calls: Replies that a session may get.
        tokens: Tokens that may be sampled for a session; 0 is any number.
        per_minute: Requests that a session may send in a minute.
        at_once: Requests of a session that may wait for a reply at a time.
        reply_s: Seconds after which a reply is given up.
    """

    calls: int = 1000
    tokens: int = 0
    per_minute: float = float("inf")
    at_once: int = 64
    reply_s: float = 300.0

    def limits(self) -> SessionLimits:
        """The same, as sessions read it."""
        from turnwise.agents.gateway.sessions import SessionLimits

        return SessionLimits(
            calls=self.calls,
            tokens=self.tokens or float("inf"),
            per_minute=self.per_minute,
            at_once=self.at_once,
            reply_s=self.reply_s,
        )


_BOUNDS = Bounds()


def gateway(
    *,
    policy: str,
    suite: str = "",
    temperature: float = 1.0,
    max_tokens: int = 0,
    bounds: Bounds = _BOUNDS,
    place: ServedAt = _ANYWHERE,
) -> VerbResult:
    """Serve a policy to agents of any kind, by the APIs of OpenAI and Anthropic, until Ctrl-C; then the statistics.

    For example: `turnwise gateway --policy openai:MODEL@http://localhost:8000/v1 --suite shop/easy`.

    Args:
        policy: Who replies; `turnwise list policy` shows the forms.
        suite: Whose tasks sessions are opened on; without it their worlds are the agents' own.
        temperature: Of sampling; 0 is greedy.
        max_tokens: Longest message of the policy; as it was trained, or 256, if not given.
    """
    from turnwise.agents.policies.registry import make_policy

    options = place.options(suite, bounds.limits())
    player = make_policy(policy, temperature=temperature, max_tokens=max_tokens, seed=place.seed)
    try:
        return _result(_serve(player, options, place), player.name, options, place.out)
    finally:
        player.close()


def serve(suite: str, /, *, agent: str = "agent", place: ServedAt = _ANYWHERE) -> VerbResult:
    """Serve a suite's environments by MCP to agents with models of their own, until Ctrl-C; then the statistics.

    Each connection is an episode, on the next task. One whose agent leaves early counts, with the score that it has.

    For example: `turnwise serve shop/easy --episodes 40 --out runs/mine`.

    Args:
        suite: Whose tasks are offered, with the seeds of `turnwise eval`.
        agent: The agent's name in the log and the statistics.
    """
    from turnwise.agents.gateway.sessions import SessionLimits
    from turnwise.agents.hosting.environments import NoModel

    options = place.options(suite, SessionLimits(), acts_are_turns=True)
    return _result(_serve(NoModel(agent), options, place), agent, options, place.out)


def _result(done: list[Episode], player: str, options: HostOptions, out: Path | None) -> VerbResult:
    """The statistics of what was played, and a file of them."""
    from turnwise.agents.evaluation.evaluate import summarize

    if not any(episode.outcome.counts for episode in done):
        return VerbResult({"episodes": len(done)}, lambda console: console.print(f"{len(done)} episodes"))
    suite = options.suite.name if options.suite else "worlds of the agents' own"
    result = summarize(done, suite=suite, policy=player, split=options.split, seed=options.seed)
    if out is not None:
        import json

        from turnwise.durable import write_whole

        write_whole(out / "evaluation.json", json.dumps(result.to_json(results=True), indent=1) + "\n")

    def show(console: Any) -> None:
        from turnwise.agents.evaluation.summary import evaluation_table

        console.print(evaluation_table(result))

    return VerbResult(result.to_json(), show)


def _serve(player: Policy, options: HostOptions, place: ServedAt) -> list[Episode]:
    """Serve until enough episodes are finished, or somebody stops it; the episodes."""
    import asyncio

    done: list[Episode] = []
    with contextlib.suppress(KeyboardInterrupt):  # how it is stopped
        asyncio.run(_serving(player, options, place, done))
    return done


async def _serving(player: Policy, options: HostOptions, place: ServedAt, done: list[Episode]) -> None:
    import asyncio

    from turnwise.agents.hosting.environments import add_mcp
    from turnwise.agents.hosting.routes import add_routes
    from turnwise.agents.hosting.session_host import Host
    from turnwise.agents.log.episode_log import EpisodeLog
    from turnwise.doors import open_door
    from turnwise.terminal import hand_over

    door = open_door(place.host, place.port, place.token)
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, enough.set)
    with (
        contextlib.nullcontext()
        if place.out is None
        else EpisodeLog(place.out / "episodes.jsonl.zst", policy=player.name) as log
    ):

        def heard(episode: Episode) -> None:
            done.append(episode)
            if log is not None:
                log.append(episode)
                log.flush()
            if options.episodes and len(done) >= options.episodes:
                enough.set()

        host = Host(player, options, heard)
        add_routes(host, lambda: door._replace(port=host.server.port))
        if options.acts_are_turns:
            add_mcp(host, lambda: door._replace(port=host.server.port))
        await host.start(door.host, door.port)
        token = f"   Authorization: Bearer {door.token}" if door.token else ""
        path = "/mcp" if options.acts_are_turns else "/sessions"
        hand_over(f"{host.server.address}{path}{token}")
        try:
            await enough.wait()
        finally:
            await host.close()


VERBS: dict[str, Callable[..., VerbResult]] = {"gateway": gateway, "serve": serve}
