"""Policies without a model: the environment's gold solution and the trivial baselines (E6)."""

from __future__ import annotations

from dataclasses import dataclass

from turnwise.agents.core import History, Reply
from turnwise.agents.execution.calls import script_in_env
from turnwise.agents.policies.options import PolicyOptions
from turnwise.envs.baselines import SCRIPTS, Script
from turnwise.envs.messages import Message
from turnwise.errors import NotFoundError
from turnwise.registry import component


@dataclass
class ScriptedPolicy:
    """Plays a script of :mod:`turnwise.envs.baselines`. It sees the environment: it is no learner."""

    name: str
    script: Script
    version: int = 0

    async def act(self, history: History) -> Reply:
        said = await script_in_env(history.env, self.script, history.observation, self.name)
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


@component("policy", "scripted", form="scripted:NAME", costless=True)
def scripted_policy(target: str, options: PolicyOptions) -> ScriptedPolicy:
    """gold, or a trivial baseline: null, constant, echo, random, ..."""
    return scripted(target)
