"""Calls of environments and policies, with deadlines; whatever goes wrong in them becomes a fault with an outcome."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from turnwise.agents.core import History, Outcome, Policy, Reply, attends
from turnwise.agents.execution.threads import in_thread
from turnwise.blame import describe
from turnwise.envs.baselines import Script, moment
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RunError
from turnwise.fault import Blame, FaultCause, Party, of_raised
from turnwise.secrets import redact
from turnwise.watchdog import Interrupt, limited_or_fatal

SCRIPT_S = 60.0
"""Seconds that a script may take for one turn."""
SIGNALS = (StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError)
"""Exceptions that coroutines and futures take for a signal of their own, so that they must not leave an environment as
they are."""

REPLY_UNTIL = ContextVar[float]("REPLY_UNTIL")
"""When a policy must have answered, in seconds of the monotonic clock; whoever waits for a server may ask."""

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Fault(Exception):
    """Failure outside the policy's responsibility.

    Attributes:
        outcome: what the episode comes to, unless it is repaired.
        late: a deadline was exceeded.
        suspect: a worker process died while this call, among others, ran in it.
        innocent: a worker process died for another call that ran in it.
    """

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        late: bool = False,
        suspect: bool = False,
        innocent: bool = False,
    ) -> None:
        super().__init__(redact(message))
        self.outcome, self.late, self.suspect, self.innocent = outcome, late, suspect, innocent

    def __reduce__(self) -> tuple[Any, ...]:  # faults cross processes
        return _fault, (self.outcome, str(self), self.late, self.suspect, self.innocent)


def _fault(outcome: Outcome, message: str, late: bool, suspect: bool, innocent: bool) -> Fault:
    return Fault(outcome, message, late=late, suspect=suspect, innocent=innocent)


def outcome_of(blame: Blame) -> Outcome:
    """Return the outcome of an episode that ends by this.

    Raises:
        ValueError: it counts: the agent is to blame, or nobody.
    """
    match blame.party:
        case Party.INFRASTRUCTURE:
            return Outcome.INFRA_ERROR
        case Party.ENVIRONMENT:
            judged = blame.cause is not FaultCause.JUDGEMENT_FAILED
            return Outcome.ENV_ERROR if judged else Outcome.VERIFIER_ERROR
        case _:
            raise ValueError(f"{blame} counts.")


def fault_of(error: BaseException, cls: type[AgentEnv[Any]]) -> Fault:
    """The fault that an error of an environment stands for."""
    if isinstance(error, Fault):
        return error
    blame = of_raised(error, policy=False)
    return Fault(outcome_of(blame), describe(error, cls), late=blame.cause is FaultCause.TIMED_OUT)


class Elsewhere(AgentEnv[Any]):
    """An environment in another process, whose methods are called by messages."""

    async def ask(self, method: str, seconds: float, *args: Any, **kwargs: Any) -> Any:
        """Call a method there.

        Raises:
            Fault: it failed, or took more than ``seconds``.
        """
        raise NotImplementedError


async def in_env(
    env: AgentEnv[Any], seconds: float, call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Call an environment's method: where it lives, on the event loop if it is short and pure, else in a thread.

    Raises:
        Fault: it failed, or took more than ``seconds``.
        RunError: so many calls hang that the run must stop.
    """
    name = getattr(call, "__name__", "call")
    if isinstance(env, Elsewhere):
        return await env.ask(name, seconds, *args, **kwargs)
    what = f"{name}() of {type(env).__name__}"
    try:
        if env.blocking:
            return await in_thread(what, seconds, _sealed, env, call, *args, **kwargs)
        return limited_or_fatal(what, seconds, _sealed, env, call, *args, **kwargs)
    except RunError:
        raise
    except Exception as error:
        raise fault_of(error, type(env)) from error


def _sealed(
    env: AgentEnv[Any], call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    try:
        return call(*args, **kwargs)
    except SIGNALS as error:
        raise fault_of(error, type(env)) from error
    except (Exception, KeyboardInterrupt, Interrupt):
        raise
    except BaseException as error:  # of the environment's own, or sys.exit
        raise fault_of(error, type(env)) from error


async def script_in_env(
    env: AgentEnv[Any], script: Script, observation: Messages, name: str
) -> Message | str:
    """Ask a script for its action, in the process of the environment, which the script may inspect.

    Raises:
        Fault: the script or the environment failed, or took more than ``SCRIPT_S``.
    """
    if isinstance(env, Elsewhere):
        return await env.ask("script", SCRIPT_S, script, observation, name)

    def play() -> Message | str:
        return script(moment(env, observation, name))

    return await in_env(env, SCRIPT_S, play)


class reply_within:
    """Let a policy's reply take so long, and let the policy know.

    Raises:
        TimeoutError: it took longer.
    """

    __slots__ = ("_seconds", "_timeout", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> None:
        self._token = REPLY_UNTIL.set(time.monotonic() + self._seconds)
        self._timeout = asyncio.timeout(self._seconds)
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        REPLY_UNTIL.reset(self._token)
        await self._timeout.__aexit__(kind, error, trace)


class ReplyTimer:
    """:class:`reply_within` for all replies of an episode, in its task: one timer, which rings seldom and then looks what is due.

    Whoever makes one closes it.
    """

    __slots__ = ("_cancelling", "_due", "_late", "_loop", "_ringing", "_task", "_token", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._due, self._late = math.inf, False
        self._ringing: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        assert self._task is not None
        self._token = REPLY_UNTIL.set(time.monotonic() + self.seconds)
        self._cancelling = self._task.cancelling()
        self._due = self._loop.time() + self.seconds
        if self._ringing is None:
            self._ringing = self._loop.call_at(self._due, self._ring)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        REPLY_UNTIL.reset(self._token)
        self._due = math.inf
        if self._late and self._task is not None:
            self._late = False
            if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _ring(self) -> None:
        self._ringing = None
        if self._loop.time() >= self._due and self._task is not None:
            self._late = True
            self._task.cancel()
        elif self._due < math.inf:
            self._ringing = self._loop.call_at(self._due, self._ring)

    def close(self) -> None:
        """Let the timer go."""
        if self._ringing is not None:
            self._ringing.cancel()


async def in_policy(policy: Policy, history: History, timer: ReplyTimer) -> Reply:
    """Ask a policy for its message.

    Raises:
        Fault: it failed, or took longer than the timer lets it.
        RunError: it can play no episode at all.
    """
    try:
        if bool(attends(policy)):  # asked without narrowing: it acts as others do
            return await policy.act(history)
        with timer:
            return await policy.act(history)
    except (Fault, RunError):
        raise
    except Exception as error:
        blame = of_raised(error, policy=True)
        if isinstance(error, TimeoutError):
            late = f"the policy took more than {timer.seconds:g} s"
            raise Fault(outcome_of(blame), late, late=True) from None
        raise Fault(outcome_of(blame), describe(error)) from error
