"""Opens sessions, plays their episodes as their agents go on, and keeps what comes of them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.gateway.actions import ActResult
from turnwise.agents.gateway.core import RefusedError, bad
from turnwise.agents.gateway.external_env import OWN, external_task, verdict
from turnwise.agents.gateway.program_episode import ProgramEpisode
from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.gateway.update_lock import UpdateLock
from turnwise.agents.rollout import Limits, Request, rollout
from turnwise.blame import describe
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import suite_task
from turnwise.errors import TurnwiseError
from turnwise.secrets import redact
from turnwise.tasks.core import Json, Split, Suite, Task, derive_rng
from turnwise.tools.core import ToolError

_logger = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two looks for abandoned sessions."""


@dataclass
class HostOptions:
    """Options with which sessions are opened.

    Attributes:
        suite: whose tasks they get; None: their worlds are their agents' own.
        split: of the suite.
        seed: from which their chance is derived, as an evaluation's is.
        limits: of each session.
        idle_s: seconds without a request after which a session is given up.
        most: open at a time.
        episodes: that are opened in all; 0: any number.
        acts_are_turns: agents bring models of their own, so that what they do is their turns.
        plain_words: agents are offered plain words beside the environment's tools.
        env_options: what environments are made with.
    """

    suite: Suite | None = None
    split: Split = Split.TEST
    seed: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)
    idle_s: float = 600.0
    most: int = 1000
    episodes: int = 0
    acts_are_turns: bool = False
    plain_words: bool = False
    env_options: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass
class Hosted:
    """An open session: its seat in the server, and its episode in the making."""

    seat: Seat
    play: ProgramEpisode
    task: Task
    episode: asyncio.Task[Episode]


class Host:
    """A gateway whose sessions are opened and ended by whoever has its token.

    Args:
        policy: replies to all of them. It stays open.
        options: what sessions are opened with.
        on_episode: told of each finished episode, before whoever ended it: what cannot be kept is no answer.

    Attributes:
        server: where sessions are reached; started and closed by :meth:`start` and :meth:`close`.
        update_lock: holds all requests back while somebody changes the policy's weights.
    """

    def __init__(
        self,
        policy: Policy,
        options: HostOptions | None = None,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> None:
        self.policy, self.options, self._on_episode = policy, options or HostOptions(), on_episode
        self.server = GatewayServer(policy.name)
        self.update_lock = UpdateLock()
        self.open_sessions: dict[str, Hosted] = {}
        self._numbers = itertools.count()
        self._begun = self._opening = 0
        self._watch: asyncio.Task[None] | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen, and look for abandoned sessions from now on."""
        await self.server.start(host, port)
        self._watch = asyncio.create_task(self._give_up_abandoned())

    async def close(self) -> None:
        """End all sessions: their agents gave up."""
        if self._watch is not None:
            self._watch.cancel()
        ending = (self.end(name, EndReason.GAVE_UP) for name in [*self.open_sessions])
        for failed in await asyncio.gather(*ending, return_exceptions=True):
            if isinstance(failed, BaseException):
                _logger.warning("a session that was open could not be ended: %s", describe(failed))
        await self.server.close()

    async def open(self, *, index: int | None = None, prompt: str = "", task: Task | None = None) -> Hosted:
        """Open a session: on a task, of the suite (the next one unless ``index`` says which), or in a world of the user's.

        Raises:
            RefusedError: too many are open or all were begun, or the episode could not be begun.
        """
        options = self.options
        if len(self.open_sessions) + self._opening >= options.most:
            why = f"{options.most} sessions are open, which is the most."
            raise RefusedError(429, "too_many_sessions", why, retry_s=5.0)
        if options.episodes and self._begun >= options.episodes:
            raise RefusedError(403, "all_begun", f"All {options.episodes} episodes were begun.")
        self._begun += 1
        self._opening += 1
        try:
            return await self._opened(self._request(index, prompt, task))
        except BaseException:
            self._begun -= 1
            raise
        finally:
            self._opening -= 1

    async def _opened(self, request: Request) -> Hosted:
        opened: asyncio.Future[ProgramEpisode] = asyncio.get_running_loop().create_future()
        seated = _Seated(self, opened)
        playing = rollout(
            [request], seated, retries=0, env_options=self.options.env_options, limits=Limits(), concurrency=1
        )
        episode = asyncio.create_task(self._played(playing, opened))
        await asyncio.wait([opened, episode], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            failed = episode.exception()
            why = describe(failed) if failed is not None else episode.result().error
            raise RefusedError(503, "not_opened", f"The episode could not be begun: {redact(why)}")
        play = opened.result()
        is_own = request.task.env == OWN
        seat = self.server.add(
            Seat(play.session, None if is_own else play, lambda: tuple(play.history.tools))
        )
        hosted = self.open_sessions[seat.name] = Hosted(seat, play, request.task, episode)
        episode.add_done_callback(lambda done: self._finished(seat.name, done))
        return hosted

    async def reward(self, name: str, rewards: Mapping[str, float], turn: int = -1) -> ActResult:
        """Pay a turn of a session in a world of the user's own; -1 is the newest turn.

        Raises:
            RefusedError: there is no such session or turn, or its environment pays by itself.
        """
        return await self._tell(name, verdict(rewards, None), turn)

    async def end(self, name: str, end: EndReason, rewards: Mapping[str, float] | None = None) -> Episode:
        """End a session; in a world of the user's own ``end`` is the verdict, elsewhere its agent gave up.

        Raises:
            RefusedError: there is no such session.
        """
        hosted = self._hosted(name)
        if hosted.task.env == OWN and (rewards or end is not EndReason.GAVE_UP):
            await self._tell(name, verdict(rewards or {}, end), -1)
        hosted.play.stop(EndReason.GAVE_UP)
        try:
            return await asyncio.shield(hosted.episode)
        except TurnwiseError as error:
            why = f"The episode is over and could not be kept: {error.cause}"
            raise RefusedError(507, "not_kept", redact(why)) from None

    def turn_of(self, name: str, turn: int) -> int | None:
        """The turn that a number means, -1 the newest; None: there is none yet.

        Raises:
            RefusedError: there is no such session or turn.
        """
        replies = self._hosted(name).play.session.counts.replies
        if turn != -1 and not -replies <= turn < replies:
            raise bad(f"turn is {turn}, and the session has {replies} of them.", "turn")
        return turn % replies if replies else None

    def _hosted(self, name: str) -> Hosted:
        if name not in self.open_sessions:
            raise RefusedError(404, "not_found", "There is no open session of this name.")
        return self.open_sessions[name]

    async def _tell(self, name: str, said: str, turn: int) -> ActResult:
        hosted = self._hosted(name)
        if hosted.task.env != OWN:
            why = f"{hosted.task.env} pays by itself; only worlds of the user's own are paid for."
            raise RefusedError(409, "paid_by_environment", why)
        try:
            result = await hosted.play.act(Message("assistant", said), self.turn_of(name, turn))
        except ToolError as over:
            raise RefusedError(409, "episode_over", str(over)) from None
        if result.bad_action:
            raise bad(result.text)
        return result

    def _request(self, index: int | None, prompt: str, task: Task | None) -> Request:
        options, number = self.options, next(self._numbers)
        if options.suite is None or task is not None:
            task = external_task(prompt) if task is None else task
            return Request(task, derive_rng("gateway", options.seed, number).getrandbits(53))
        name, split = options.suite.name, options.split
        index = number if index is None else index
        seed = derive_rng("evaluate", name, split.value, options.seed, index, 0).getrandbits(53)
        return Request(suite_task(options.suite, split, index), seed)

    def _finished(self, name: str, done: asyncio.Task[Episode]) -> None:
        self.open_sessions.pop(name, None)
        self.server.remove(name)
        if not done.cancelled() and (failed := done.exception()) is not None:
            _logger.warning("an episode is lost: %s", redact(describe(failed)))

    async def _played(
        self, playing: Awaitable[list[Episode]], opened: asyncio.Future[ProgramEpisode]
    ) -> Episode:
        (episode,) = await playing
        if self._on_episode is not None and opened.done():
            self._on_episode(episode)
        return episode

    async def _give_up_abandoned(self) -> None:
        while True:
            await asyncio.sleep(min(LOOK_S, self.options.idle_s))
            now, limits = time.monotonic(), self.options.limits
            for hosted in [*self.open_sessions.values()]:
                session = hosted.play.session
                if now - session.began > limits.seconds:
                    hosted.play.stop(EndReason.TIME_LIMIT)
                elif not session.busy and now - session.touched > self.options.idle_s:
                    hosted.play.stop(EndReason.GAVE_UP)


class _Seated:
    """The policy of one hosted episode: whoever opened its session."""

    def __init__(self, host: Host, opened: asyncio.Future[ProgramEpisode]) -> None:
        self.name, self.version = host.policy.name, host.policy.version
        self._host, self._opened = host, opened

    async def act(self, history: History) -> Reply:
        if history.memory is None:
            host = self._host
            options = host.options
            play = ProgramEpisode(
                host.policy,
                history,
                options.limits,
                host.update_lock,
                plain_words=options.plain_words,
                acts_are_turns=options.acts_are_turns,
            )
            history.memory = play
            self._opened.set_result(play)
        assert isinstance(history.memory, ProgramEpisode)
        return await history.memory.next()

    async def leave(self, history: History, end: EndReason | None) -> Sequence[Reply]:
        return history.memory.over(end) if isinstance(history.memory, ProgramEpisode) else ()

    def close(self) -> None:
        """The policy stays open."""
