"""A gateway inside a Python program: ``with turnwise.session(policy, task) as s: my_agent(s.base_url)``."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.evaluate import Evaluation, summarize
from turnwise.agents.gateway.core import RefusedError
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.hosting.session_host import Host, Hosted, HostOptions
from turnwise.agents.policies.own import PolicyLike
from turnwise.agents.rollout_tasks import opened_policy
from turnwise.blame import describe
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split, Suite, Task

Result = TypeVar("Result")
P = ParamSpec("P")

_logger = logging.getLogger(__name__)


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
    def session(self, task: Task | str = "", *, index: int | None = None) -> Iterator[OpenSession]:
        """Open a session, for as long as the ``with`` block lasts.

        Args:
            task: of any environment, or what is to be done in a world of the agent's own.
            index: of the task, where the gateway has a suite; the next one unless given.

        Returns:
            A context manager of the session, where the agent finds the policy; in the end it has the ``episode``.
        """
        own, prompt = (task, "") if isinstance(task, Task) else (None, task)
        opened = OpenSession(self, self._wait(self._host.open(index=index, prompt=prompt, task=own)))
        try:
            yield opened
        finally:
            if opened.episode is None:
                opened.end()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold all requests back while the ``with`` block lasts, as whoever changes the policy's weights must.

        Those in hand are answered first. Others wait for up to 30 s; then their clients are told to come again (429 with
        Retry-After), which SDKs do. `turnwise train` needs none of this: its engines wait by themselves.
        """
        holding = self._host.update_lock.exclusive()
        self._wait(holding.__aenter__())
        try:
            yield
        finally:
            self._wait(holding.__aexit__(None, None, None))

    def evaluate(
        self, agent: Callable[[OpenSession], object], *, episodes: int = 40, at_once: int = 8
    ) -> Evaluation:
        """Let an agent play the suite's first tasks, those of ``turnwise eval``.

        An agent that raises has given up, with the score that it has by then; the error is logged.

        Args:
            agent: a function of an open session, called in threads, or one that makes a coroutine.
            episodes: how many.
            at_once: at a time.

        Returns:
            The statistics; ``episodes`` of the gateway has what was played.

        Raises:
            TurnwiseError: the gateway has no suite, or the agent raised in every episode.
        """
        options, errors = self._host.options, list[Exception]()
        if options.suite is None:
            raise TurnwiseError(
                "This gateway has no suite to evaluate on.", "Name one: turnwise.gateway(POLICY, SUITE)."
            )

        def play(index: int) -> Episode:
            with self.session(index=index) as opened:
                try:
                    _run(agent, opened)
                except Exception as error:  # noqa: BLE001 (an agent that fails is an agent that gave up)
                    errors.append(error)
                    _logger.warning("the agent raised in episode %d: %s", index, describe(error))
            return opened.end()

        with ThreadPoolExecutor(at_once, "turnwise-agent") as pool:
            done = [*pool.map(play, range(episodes))]
        if errors and len(errors) == len(done):
            raise TurnwiseError(
                f"The agent raised in every episode, first {describe(errors[0])}.", "Repair it, and try one."
            ) from errors[0]
        name, policy = options.suite.name, self._host.policy.name
        return summarize(done, suite=name, policy=policy, split=options.split, seed=options.seed)

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
    def is_own(self) -> bool:
        """True if the world is the agent's own, so that whoever opened the session says what is paid."""
        return self._hosted.seat.world is None

    @property
    def prompt(self) -> str:
        """The task: what is to be done."""
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
            self.episode = self._gateway._wait(self._ended(end))
            self._gateway.episodes.append(self.episode)
        return self.episode

    async def _ended(self, end: EndReason) -> Episode:
        """Its episode, ended unless it was over: asked on the loop, since a session is gone once its episode is over."""
        if self._hosted.episode.done():
            return self._hosted.episode.result()
        return await self._gateway._host.end(self._hosted.seat.name, end)


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


class SessionMaker:
    """Sessions of a policy, by ``with`` and as a decorator; :func:`session` makes it."""

    def __init__(self, policy: PolicyLike, task: Task | str, seed: int) -> None:
        self._policy, self._task, self._seed = policy, task, seed
        self._open = ExitStack()

    def __enter__(self) -> OpenSession:
        served = self._open.enter_context(gateway(self._policy, seed=self._seed))
        return self._open.enter_context(served.session(self._task))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def __call__(self, agent: Callable[Concatenate[OpenSession, P], object]) -> Callable[P, Episode]:
        """Make an agent a function that plays an episode: each call has a session of its own, the first argument.

        The policy is opened by the first call, for all.
        """
        opening, stack, served = threading.Lock(), ExitStack(), list[Gateway]()

        @functools.wraps(agent)
        def play(*args: P.args, **kwargs: P.kwargs) -> Episode:
            with opening:
                if not served:
                    served.append(stack.enter_context(gateway(self._policy, seed=self._seed)))
            with served[0].session(self._task) as opened:
                _judge(opened, _run(agent, opened, *args, **kwargs))
            return opened.end()

        weakref.finalize(play, stack.close)
        return play


def session(policy: PolicyLike, task: Task | str = "", *, seed: int = 0) -> SessionMaker:
    """A session of a policy, for an agent of any kind: by ``with``, or as the decorator of a function.

    >>> import turnwise
    >>> with turnwise.session("scripted:echo", "Say something.") as one:
    ...     episode = one.end(solved=True)
    >>> episode.success, episode.score
    (True, 0.0)

    A decorated agent gets a new session as its first argument whenever it is called. What it returns is the verdict, where
    the world is its own: True or False, or the score, of which 1 is success. What it gives back to its caller is the episode.

    >>> @turnwise.session("scripted:echo", "Double the number.")
    ... def agent(opened, number):
    ...     return opened.base_url.endswith("/v1") and number * 2 == 6
    >>> agent(3).success, agent(4).score
    (True, 0.0)

    Args:
        policy: a policy, or a spec such as ``vllm:PATH``.
        task: of any environment, which then pays; or what is to be done in the agent's own world, for the log.
        seed: of its chance.

    Returns:
        A context manager of the session (``base_url`` and ``key`` for the agent, ``reward`` and ``end`` for its judge) that is
        also a decorator.
    """
    return SessionMaker(policy, task, seed)


def _run(agent: Callable[..., object], *args: Any, **kwargs: Any) -> object:
    """Call an agent and return its result; a coroutine is run to its end."""
    said = agent(*args, **kwargs)
    return asyncio.run(said) if inspect.iscoroutine(said) else said


def _judge(opened: OpenSession, said: object) -> None:
    """End a session by what its agent returned, where nobody has ended it and its world is the agent's own."""
    if opened.episode is not None or not opened.is_own or not isinstance(said, int | float):
        return
    opened.reward(float(said))
    opened.end(solved=said >= 1)
