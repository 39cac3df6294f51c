"""Policies without a model: the environment's gold solution and the floor agents (E6)."""

from __future__ import annotations

from dataclasses import dataclass

from turnwise.agents.core import History, Reply
from turnwise.envs.floors import SCRIPTS, Script, moment
from turnwise.envs.messages import Message
from turnwise.errors import NotFoundError


@dataclass
class ScriptedPolicy:
    """Plays a script of :mod:`turnwise.envs.floors`. It sees the environment: it is no learner."""

    name: str
    script: Script
    version: int = 0

    async def act(self, history: History) -> Reply:
        said = self.script(moment(history.env, history.observation, self.name))
        return Reply(Message("assistant", said) if isinstance(said, str) else said)

    def close(self) -> None:
        """Nothing is held."""


def scripted(name: str) -> ScriptedPolicy:
    """The script of this name as a policy.

    >>> scripted("gold").name
    'scripted:gold'

    Raises:
        NotFoundError: there is no such script; the nearest is named.
    """
    if name not in SCRIPTS:
        raise NotFoundError("script", name, SCRIPTS)
    return ScriptedPolicy(f"scripted:{name}", SCRIPTS[name])
