"""Routes for whoever holds a gateway's token: open sessions, pay their turns, end them, see how they do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from turnwise.agents.core import Episode
from turnwise.agents.gateway.bodies import Bodies
from turnwise.agents.gateway.core import RefusedError, bad, read_text
from turnwise.agents.gateway.server import refusal
from turnwise.agents.hosting.resent import Resent
from turnwise.agents.hosting.session_host import Host, Hosted
from turnwise.agents.policies.served.written import conversation
from turnwise.doors import Door
from turnwise.envs.core import EndReason
from turnwise.tasks.core import Json

MOST_INDEX, MOST_REWARD = 1 << 53, 1e300
Handler = Callable[[web.Request, Mapping[str, Any]], Awaitable[Json]]


def add_routes(host: Host, door: Callable[[], Door]) -> None:
    """Add the routes to a host's server, before it is started; ``door`` decides who may use them."""
    bodies, resent = Bodies(), Resent()

    def guarded(handle: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def ask(request: web.Request) -> web.Response:
            try:
                refused = door().refuses(request.headers)
                if refused is not None:
                    raise RefusedError(refused[0], "invalid_token", refused[1])
                if not request.can_read_body:
                    return web.json_response(await handle(request, {}))
                async with bodies.object_of(request) as (body, _):
                    return web.json_response(await handle(request, body))
            except RefusedError as refused:
                return refusal(refused, {"error": refused.message})

        return ask

    async def opened(_: web.Request, body: Mapping[str, Any]) -> Json:
        unknown = sorted({*body} - {"index", "prompt"})
        index, prompt = body.get("index"), body.get("prompt", "")
        if (
            unknown
            or not isinstance(prompt, str)
            or isinstance(index, bool)
            or not isinstance(index, int | None)
        ):
            raise bad(
                'Give {"index": N} (a task of the suite), {"prompt": TEXT} (a world of your own), or nothing.'
            )
        if index is not None and not 0 <= index < MOST_INDEX:
            raise bad(f"index counts from 0, to {MOST_INDEX - 1}.", "index")
        return described(host, await host.open(index=index, prompt=prompt))

    async def rewarded(request: web.Request, body: Mapping[str, Any]) -> Json:
        turn = body.get("turn", -1)
        if isinstance(turn, bool) or not isinstance(turn, int):
            raise bad("turn counts the session's replies from 0; -1 is the newest.", "turn")
        name, rewards = request.match_info["session"], _rewards(body)
        place, number = host.turn_of(name, turn), read_text(body.get("id") or "", "id")

        async def pay() -> Json:
            await host.reward(name, rewards, turn if place is None else place)
            return {"turn": turn}

        return await resent.once((name, "reward", place, *sorted(rewards.items()), number), None, pay)

    async def ended(request: web.Request, body: Mapping[str, Any]) -> Json:
        try:
            end = EndReason(body.get("end", EndReason.GAVE_UP))
        except ValueError:
            raise bad(f"end is one of {', '.join(EndReason)}.", "end") from None
        rewards = _rewards(body) if "reward" in body or "rewards" in body else {}
        name = request.match_info["session"]

        async def finish() -> Json:
            return outcome(await host.end(name, end, rewards))

        return await resent.once((name, "end"), [end.value, rewards], finish)

    async def listed(*_: object) -> Json:
        return {"open": [described(host, one) for one in host.open_sessions.values()]}

    router = host.server.app.router
    router.add_post("/sessions", guarded(opened))
    router.add_get("/sessions", guarded(listed))
    router.add_post("/sessions/{session}/reward", guarded(rewarded))
    router.add_post("/sessions/{session}/end", guarded(ended))


def described(host: Host, hosted: Hosted) -> Json:
    """An open session, with all that its agent must know."""
    url = f"{host.server.address}/sessions/{hosted.seat.name}"
    return {
        "id": hosted.seat.name,
        "key": hosted.seat.key,
        "url": url,
        "base_url": f"{url}/v1",
        "mcp_url": None if hosted.seat.world is None else f"{url}/mcp",
        "prompt": hosted.play.instructions,
        "messages": conversation(hosted.play.messages),
        **hosted.play.session.counts._asdict(),
    }


def outcome(episode: Episode) -> Json:
    """Write the end of an episode as JSON."""
    return {
        "outcome": episode.outcome.value,
        "end": episode.end and episode.end.value,
        "score": episode.score,
        "success": episode.success,
        "turns": len(episode.trajectory.turns),
        "error": episode.error,
    }


def _rewards(body: Mapping[str, Any]) -> dict[str, float]:
    given = body.get("rewards", {"outcome": body.get("reward")})
    if not isinstance(given, dict) or not all(
        isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < MOST_REWARD
        for x in given.values()
    ):
        raise bad('Give {"reward": NUMBER}, or {"rewards": {"outcome": NUMBER, "step": NUMBER}}.', "reward")
    return {str(name): float(value) for name, value in given.items()}
