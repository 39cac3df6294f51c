"""The commands that serve agents of any kind: gateway (a policy) and serve (a suite's environments)."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.errors import RunError, TurnwiseError

if TYPE_CHECKING:
    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.evaluation.folder import EvaluationFolder
    from turnwise.agents.gateway.sessions import SessionLimits
    from turnwise.agents.hosting.session_host import HostOptions

_ROOM = "Make room, or choose another --out; the episodes that are in the log stay."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServedAt:
    """Address at which episodes are served, of which tasks, and how many.

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

    split: Literal["train", "dev", "test"] = "test"
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
        """Return the options with which sessions are opened."""
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
    """Limits of each session.

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
    temperature: float | None = None,
    max_tokens: int = 0,
    bounds: Bounds = _BOUNDS,
    place: ServedAt = _ANYWHERE,
) -> VerbResult:
    """Serve a policy to agents of any kind, by the APIs of OpenAI and Anthropic, until Ctrl-C; then the statistics.

    For example: `turnwise gateway --policy openai:MODEL@http://localhost:8000/v1 --suite shop/easy`.

    Args:
        policy: Who replies; `turnwise list policy` shows the forms.
        suite: Whose tasks sessions are opened on; without it their worlds are the agents' own.
        temperature: Of sampling; 0 is greedy; 1, or as a server chooses, if not given.
        max_tokens: Longest message of the policy; as it was trained, or 256, or as long as a server allows, if not given.
    """
    from turnwise.agents.policies.registry import make_policy

    options = place.options(suite, bounds.limits())
    player = make_policy(policy, temperature=temperature, max_tokens=max_tokens, seed=place.seed)
    try:
        return _result(_serve(player, options, place), player.name, options)
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
    return _result(_serve(NoModel(agent), options, place), agent, options)


class _Served(NamedTuple):
    """The folder in which the episodes are kept, those that are, and what went wrong where no more could be."""

    folder: EvaluationFolder | None
    episodes: list[Episode]
    broken: list[TurnwiseError]


def _result(served: _Served, player: str, options: HostOptions) -> VerbResult:
    """The statistics of what was played, a file of them, and what could not be written."""
    from turnwise.agents.evaluation.evaluate import summarize

    done, broken = served.episodes, served.broken[:1]
    if not any(episode.outcome.counts for episode in done):
        if broken:
            raise broken[0]
        return VerbResult({"episodes": len(done)}, lambda console: console.print(f"{len(done)} episodes"))
    suite = options.suite.name if options.suite else "worlds of the agents' own"
    result = summarize(done, suite=suite, policy=player, split=options.split, seed=options.seed)
    if served.folder is not None:
        try:
            served.folder.write(result, interrupted=bool(broken))
        except TurnwiseError as error:
            broken = broken or [error]
    value = result.to_json() | ({"error": broken[0].cause, "remedy": _ROOM} if broken else {})

    def show(console: Any) -> None:
        from turnwise.agents.evaluation.summary import evaluation_table

        console.print(evaluation_table(result))
        for error in broken:
            console.print(f"{error.cause}\n→ {_ROOM}", style="red")

    return VerbResult(value, show, code=int(bool(broken)))


def _serve(player: Policy, options: HostOptions, place: ServedAt) -> _Served:
    """Serve until enough episodes are finished, somebody stops it, or an episode cannot be kept.

    Raises:
        TurnwiseError: another process writes in the folder, or episodes are in it already.
    """
    import asyncio

    from turnwise.agents.evaluation.folder import EvaluationFolder

    served = _Served(EvaluationFolder(place.out) if place.out else None, [], [])
    with _held(served.folder), contextlib.suppress(KeyboardInterrupt):  # how it is stopped
        asyncio.run(_serving(player, options, place, served))
    return served


@contextlib.contextmanager
def _held(folder: EvaluationFolder | None) -> Iterator[None]:
    """Be the only process that writes in a folder, in which there is nothing yet."""
    if folder is None:
        yield
        return
    from turnwise.durable import hold_folder

    def unwritable(path: Path, error: OSError) -> RunError:
        return RunError(f"{path} cannot be written: {error.strerror or error}.", _ROOM)

    with hold_folder(folder.path, "serves or evaluates", unwritable):
        if folder.begun:
            raise RunError(f"{folder.path} holds episodes already.", "Choose another --out.")
        yield


async def _serving(player: Policy, options: HostOptions, place: ServedAt, served: _Served) -> None:
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
    log = None if served.folder is None else EpisodeLog(served.folder.log, policy=player.name)

    def heard(episode: Episode) -> None:
        try:
            if log is not None:
                log.append(episode)
                log.flush()
        except TurnwiseError as error:  # whoever asked is told, and so is whoever serves
            served.broken.append(error)
            enough.set()
            raise
        served.episodes.append(episode)
        if options.episodes and len(served.episodes) >= options.episodes:
            enough.set()

    try:
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
    finally:
        if log is not None:
            with contextlib.suppress(TurnwiseError):  # which is among what is broken
                log.close()


VERBS: dict[str, Callable[..., VerbResult]] = {"gateway": gateway, "serve": serve}
