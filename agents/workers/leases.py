"""Leases of environments: each episode in flight holds one, in this process or in a worker process."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any, Protocol

from turnwise.agents.execution.calls import Fault, fault_of, in_env
from turnwise.agents.execution.threads import in_thread
from turnwise.agents.workers.remote import RemoteEnv
from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import env_class, make
from turnwise.errors import InfraError, RunError

CLOSE_S = 30.0
"""Seconds that an environment may take to close."""
_logger = logging.getLogger(__name__)


class Maker(Protocol):
    """Makes environments: in this process, or in another one."""

    def __call__(
        self, name: str, options: Mapping[str, Any], key: Hashable, *, alone: bool, seconds: float
    ) -> AgentEnv[Any]: ...


def here(
    name: str, options: Mapping[str, Any], key: Hashable, *, alone: bool, seconds: float
) -> AgentEnv[Any]:
    """A :class:`Maker` for this process, where nothing keeps one environment from another."""
    return make(name, **options)


class Leases:
    """Lends environments to episodes and takes them back; healthy ones are used again.

    Args:
        maker: makes them.
        options: what they are made with.
        seconds: that making one may take.
    """

    def __init__(self, maker: Maker, options: Mapping[str, Any], seconds: float) -> None:
        self._maker, self._options, self._seconds = maker, dict(options), seconds
        self._idle: dict[str, list[AgentEnv[Any]]] = defaultdict(list)
        self._closing: set[asyncio.Task[None]] = set()

    async def take(self, name: str, key: Hashable, *, alone: bool = False) -> AgentEnv[Any]:
        """An environment for the episode that ``key`` names; ``alone``: in a process of its own, if in any.

        Raises:
            Fault: what it stands on failed.
            TurnwiseError: there is no such environment, or it cannot be made with these options.
        """
        while self._idle[name] and not alone:
            env = self._idle[name].pop()
            if not isinstance(env, RemoteEnv):
                return env
            if env.usable:
                env.serve(key)
                return env
            self.discard(env)
        cls = env_class(name)
        build = functools.partial(self._maker, name, self._options, key, alone=alone, seconds=self._seconds)
        if self._maker is here and not cls.blocking:
            return build()
        # Another process keeps the time itself, from when it has started.
        seconds = self._seconds if self._maker is here else float("inf")
        wanted = True

        def make_or_drop() -> AgentEnv[Any]:
            env = build()
            if not wanted:
                env.close()
            return env

        try:
            return await in_thread(f"making {name}", seconds, make_or_drop)
        except InfraError as error:
            raise fault_of(error, cls) from error
        finally:
            wanted = False

    def give_back(self, env: AgentEnv[Any], name: str) -> None:
        """Take back an environment whose episode ended normally."""
        self._idle[name].append(env)

    def discard(self, env: AgentEnv[Any]) -> None:
        """Close a faulty environment in the background, since closing may hang as well."""
        closing = asyncio.get_running_loop().create_task(_close(env))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every environment that was not lent."""
        for pool in self._idle.values():
            for env in pool:
                self.discard(env)
        self._idle.clear()
        if self._closing:
            await asyncio.gather(*self._closing)


async def _close(env: AgentEnv[Any]) -> None:
    try:
        await in_env(env, CLOSE_S, env.close)
    except (Fault, RunError) as fault:
        _logger.warning("%s could not be closed: %s", type(env).__name__, fault)
