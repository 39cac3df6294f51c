"""A gateway inside a Python program: ``with turnwise.session(task) as s: my_agent(s.base_url)``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from turnwise.agents.core import Episode
from turnwise.agents.gateway.core import RefusedError
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.hosting.host import Host, Hosted, HostOptions
from turnwise.agents.policies.own import PolicyLike
from turnwise.agents.rollout_tasks import opened_policy
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split, Suite

Result = TypeVar("Result")


class Gateway:
    """A gateway in a thread of its own, while a ``with`` block lasts; made by :func:`gateway`."""

    def __init__(self, host: Any) -> None:
        self._host: Host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turnwise-gateway", daemon=True)
        self.episodes: list[Episode] = []

    def start(self) -> None:
        """Listen at a free port of this machine."""
        self._thread.start()
        self._wait(self._host.start())

    def close(self) -> None:
        """End all sessions, and stop listening."""
        self._wait(self._host.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def session(self, prompt: str = "", *, index: int | None = None) -> Iterator[OpenSession]:
        """Open a session, for as long as the ``with`` block lasts.

        Args:
            prompt: what is to be done, where the world is the agent's own.
            index: of the task, where the gateway has a suite; the next one unless given.

        Returns:
            A context manager of the session, where the agent finds the policy; in the end it has the ``episode``.
        """
        opened = OpenSession(self, self._wait(self._host.open(index=index, prompt=prompt)))
        try:
            yield opened
        finally:
            if opened.episode is None:
                opened.end()

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except RefusedError as refused:
            raise TurnwiseError(refused.message, "See docs/gateway.md.") from None


class OpenSession:
    """A session of a policy, and what an agent must know of it; :meth:`Gateway.session` opens one.

    Attributes:
        episode: how it ended, once it did.
    """

    def __init__(self, gateway: Gateway, hosted: Any) -> None:
        self._gateway = gateway
        self._hosted: Hosted = hosted
        self.episode: Episode | None = None

    @property
    def url(self) -> str:
        """The session's address, which is Anthropic's base URL; ``/mcp`` behind it has the environment's tools."""
        return f"{self._gateway._host.server.address}/sessions/{self._hosted.seat.name}"

    @property
    def base_url(self) -> str:
        """OpenAI's base URL."""
        return f"{self.url}/v1"

    @property
    def key(self) -> str:
        """The key for both."""
        return self._hosted.seat.key

    @property
    def prompt(self) -> str:
        """What is to be done."""
        return self._hosted.play.instructions

    def reward(self, value: float, *, turn: int = -1, component: str = "outcome") -> None:
        """Pay a turn, in a world of the agent's own.

        Args:
            value: the reward.
            turn: the policy's reply that earned it, counted from 0; -1 is the newest.
            component: ``outcome``, whose sum is the score, or ``step``.

        Raises:
            TurnwiseError: there is no such turn or component, or the environment pays by itself.
        """
        host, name = self._gateway._host, self._hosted.seat.name
        self._gateway._wait(host.reward(name, {component: value}, turn))

    def end(self, *, solved: bool | None = None) -> Episode:
        """End the session; in a world of the agent's own, ``solved`` says how it ended.

        Returns:
            The episode, as it would be logged.
        """
        if self.episode is None:
            end = EndReason.GAVE_UP if solved is None else EndReason.SOLVED if solved else EndReason.FAILED
            if self._hosted.episode.done():
                self.episode = self._hosted.episode.result()
            else:
                self.episode = self._gateway._wait(self._gateway._host.end(self._hosted.seat.name, end))
            self._gateway.episodes.append(self.episode)
        return self.episode


@contextmanager
def gateway(
    policy: PolicyLike,
    suite: Suite | str | None = None,
    *,
    split: Split | str = Split.TRAIN,
    seed: int = 0,
    calls: int = 1000,
    plain_words: bool = False,
) -> Iterator[Gateway]:
    """Serve a policy to agents of any kind in this program, while the ``with`` block lasts.

    >>> import turnwise
    >>> with turnwise.gateway("scripted:gold", "shop/easy") as served, served.session() as session:
    ...     session.prompt != "" and session.base_url.startswith("http://127.0.0.1:")
    True
    >>> served.episodes[0].end.value
    'gave_up'

    Args:
        policy: replies to the agents: a policy, or a spec such as ``vllm:PATH``. What is given made stays open.
        suite: whose tasks the sessions get; None: their worlds are the agents' own.
        split: of the suite.
        seed: from which the sessions' chance is derived.
        calls: replies that a session may get.
        plain_words: agents are offered plain words beside the environment's tools.

    Returns:
        A context manager of the gateway: ``session()`` opens one, ``episodes`` are those that ended.

    Raises:
        TurnwiseError: there is no such policy or suite.
    """
    found = get_suite(suite) if isinstance(suite, str) else suite
    options = HostOptions(
        found, Split(split), seed, SessionLimits(calls=calls), idle_s=float("inf"), plain_words=plain_words
    )
    with opened_policy(policy) as player:
        served = Gateway(Host(player, options))
        served.start()
        try:
            yield served
        finally:
            served.close()


@contextmanager
def session(policy: PolicyLike, prompt: str = "", *, seed: int = 0) -> Iterator[OpenSession]:
    """One session of a policy, for an agent with a world of its own.

    >>> import turnwise
    >>> with turnwise.session("scripted:echo", "Say something.") as one:
    ...     episode = one.end(solved=True)
    >>> episode.success, episode.score
    (True, 0.0)

    Args:
        policy: a policy, or a spec such as ``vllm:PATH``.
        prompt: what is to be done, for the log.
        seed: of its chance.

    Returns:
        A context manager of the session: ``base_url`` and ``key`` for the agent, ``reward`` and ``end`` for its judge.
    """
    with gateway(policy, seed=seed) as served, served.session(prompt) as opened:
        yield opened
