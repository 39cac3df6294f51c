"""The command that serves a policy to agents of any kind: gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.hosting.host import HostOptions


def gateway(
    *,
    policy: str,
    suite: str = "",
    split: str = "test",
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    episodes: int = 0,
    seed: int = 0,
    temperature: float = 1.0,
    max_tokens: int = 0,
    calls: int = 1000,
    seconds: float = 3600.0,
    per_minute: float = float("inf"),
    idle_s: float = 600.0,
    plain_words: bool = False,
    out: Path | None = None,
) -> VerbResult:
    """Serve a policy to agents of any kind, by the APIs of OpenAI and Anthropic, until Ctrl-C; then the statistics.

    For example: `turnwise gateway --policy openai:MODEL@http://localhost:8000/v1 --suite shop/easy`.

    Args:
        policy: Who replies; `turnwise list policy` shows the forms.
        suite: Whose tasks sessions are opened on; without it their worlds are the agents' own.
        split: train, dev or test.
        host: The address to listen at.
        port: The port; any that is free if not given.
        token: With which sessions are opened; random if not given, `none` for none.
        episodes: Stop after so many; 0 goes on.
        seed: The sessions' chance is derived from it.
        temperature: Of sampling; 0 is greedy.
        max_tokens: Longest message of the policy; as it was trained, or 256, if not given.
        calls: Replies that a session may get.
        seconds: How long a session may last.
        per_minute: Requests that a session may send in a minute.
        idle_s: Seconds without a request after which a session is given up.
        plain_words: Whether agents are offered plain words beside the environment's tools.
        out: A folder for the episode log and the summary.
    """
    import asyncio

    from turnwise.agents.evaluation.evaluate import summarize
    from turnwise.agents.gateway.sessions import SessionLimits
    from turnwise.agents.hosting.host import HostOptions
    from turnwise.agents.policies.registry import make_policy
    from turnwise.envs.registry import get_suite
    from turnwise.tasks.core import Split

    limits = SessionLimits(calls=calls, seconds=seconds, per_minute=per_minute)
    found = get_suite(suite) if suite else None
    options = HostOptions(found, Split(split), seed, limits, idle_s, plain_words=plain_words)
    player = make_policy(policy, temperature=temperature, max_tokens=max_tokens, seed=seed)
    done: list[Episode] = []
    try:
        asyncio.run(_serve(player, options, (host, port, token), out, episodes, done))
    except KeyboardInterrupt:
        pass  # how it is stopped
    finally:
        player.close()
    if not any(episode.outcome.counts for episode in done):
        return VerbResult({"episodes": len(done)}, lambda console: console.print(f"{len(done)} episodes"))
    result = summarize(
        done, suite=suite or "worlds of the agents' own", policy=player.name, split=split, seed=seed
    )
    if out is not None:
        import json

        from turnwise.durable import write_whole

        write_whole(out / "evaluation.json", json.dumps(result.to_json(results=True), indent=1) + "\n")

    def show(console: Any) -> None:
        from turnwise.agents.evaluation.summary import evaluation_table

        console.print(evaluation_table(result))

    return VerbResult(result.to_json(), show)


async def _serve(
    player: Policy,
    options: HostOptions,
    place: tuple[str, int, str],
    out: Path | None,
    episodes: int,
    done: list[Episode],
) -> None:
    """Serve until enough episodes are finished, or somebody cancels it."""
    import asyncio
    from contextlib import nullcontext

    from turnwise.agents.hosting.host import Host
    from turnwise.agents.hosting.routes import add_routes
    from turnwise.agents.log.episode_log import EpisodeLog
    from turnwise.doors import open_door
    from turnwise.terminal import hand_over

    door = open_door(*place)
    enough = asyncio.Event()
    with nullcontext() if out is None else EpisodeLog(out / "episodes.jsonl.zst", policy=player.name) as log:

        def heard(episode: Episode) -> None:
            done.append(episode)
            if log is not None:
                log.append(episode)
                log.flush()
            if episodes and len(done) >= episodes:
                enough.set()

        host = Host(player, options, heard)
        add_routes(host, lambda: door._replace(port=host.server.port))
        await host.start(door.host, door.port)
        token = f"   Authorization: Bearer {door.token}" if door.token else ""
        hand_over(f"{host.server.address}/sessions{token}")
        try:
            await enough.wait()
        finally:
            await host.close()


VERBS: dict[str, Callable[..., VerbResult]] = {"gateway": gateway}
