"""Several agents in one episode: a history for each of them, and the policies that act for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from turnwise.agents.core import History, Policy, Reply, Trajectory
from turnwise.envs.core import AgentEnv, Step
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, make, suite_tasks
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, Suite, Task, derive_rng

PolicyMap: TypeAlias = Policy | Mapping[str, Policy]
"""One policy for every agent, or a mapping from agents to policies; ``"*"`` is every agent not named."""

EVERYONE_ELSE = "*"
_LOOKED_AT = 8


def policy_map(policy: Policy, others: Mapping[str, Policy]) -> PolicyMap:
    """``others`` by name, and ``policy`` for everyone else."""
    return {**others, EVERYONE_ELSE: policy} if others else policy


def policy_for(policies: PolicyMap, agent: str) -> Policy:
    """The policy that acts for ``agent``.

    Raises:
        NotFoundError: the mapping has nobody for the agent.
    """
    if not isinstance(policies, Mapping):
        return policies
    if agent not in policies and EVERYONE_ELSE not in policies:
        raise NotFoundError("policy for agent", agent, policies)
    return policies[agent] if agent in policies else policies[EVERYONE_ELSE]


def agents_of(suite: Suite) -> tuple[str, ...]:
    """The agents of a suite's environment; where they depend on the task, those of its first eight tasks."""
    declared: Any = env_class(suite.env).agents
    if isinstance(declared, tuple):
        return declared
    env, found = make(suite.env), dict[str, None]()
    try:
        for task in suite_tasks(suite, Split.TRAIN, _LOOKED_AT):
            env.reset(seed=0, options={"task": task})
            found |= dict.fromkeys(env.agents)
    finally:
        env.close()
    return tuple(found)


def check_opponents(suite: Suite, names: Iterable[str]) -> None:
    """Refuse opponents that are not agents of the suite, or that leave no agent for the policy.

    Raises:
        TurnwiseError: with the nearest name, or the remedy.
    """
    if not (wanted := {*names}):
        return
    agents = agents_of(suite)
    for name in wanted:
        if name not in agents:
            raise NotFoundError(f"agent of {suite.name} called", name, agents)
    if wanted >= {*agents}:
        raise TurnwiseError(
            f"Opponents play every agent of {suite.name}, so that the policy plays nobody.",
            f"Leave one of {', '.join(agents)} to it.",
        )


class MultiAgentEpisode:
    """An episode in progress: one history for each of its agents."""

    def __init__(self, env: AgentEnv[Any], task: Task, seed: int, draw: tuple[int, ...] = ()) -> None:
        self.env, self.task, self.seed, self._draw = env, task, seed, draw
        self.histories: dict[str, History] = {}
        self.done: list[
            tuple[Message, str]
        ] = []  # each action and the key of the state it led to, whoever acted

    def reset(self, observation: Messages) -> History:
        """Give every agent a history; ``observation`` is for the one who acts first."""
        first = self.env.agents[0]
        for name in self.env.agents:
            seed = self.seed if name == first else derive_rng("agent", self.seed, name).getrandbits(53)
            if name == first and self._draw:
                seed = derive_rng("draw", self.seed, *self._draw).getrandbits(53)
            self.histories[name] = History(self.env, self.task, seed, Messages(), agent=name)
        history = self.current_history()
        history.observation = observation
        return history

    def current_history(self) -> History:
        """The history of the agent who acts now."""
        return self.histories[self.env.agent]

    def move_to(self, env: AgentEnv[Any]) -> None:
        """Continue in another environment that is in the same state."""
        self.env = env
        for history in self.histories.values():
            history.env = env

    def add(self, history: History, reply: Reply, step: Step, state_key: str) -> None:
        """Record a turn, and give its messages and rewards to the agents that they are for."""
        history.add(reply, step, state_key)
        self.done.append((reply.message, step.info.get("state_key", "")))
        self._send(step.info.get("agent", history.agent), step.observation)
        for name, messages in step.info.get("messages_to", {}).items():
            self._send(name, messages)
        for name, rewards in step.info.get("rewards_to", {}).items():
            self.histories[name].add_pending_reward(rewards)

    def trajectories(self) -> dict[str, Trajectory]:
        """Return the trajectory of each agent."""
        if not self.histories:  # it never began
            return {"agent": Trajectory(())}
        return {
            name: Trajectory(tuple(history.turns), name, history.observation)
            for name, history in self.histories.items()
        }

    def _send(self, name: str, messages: Messages) -> None:
        history = self.histories[name]
        history.observation = Messages((*history.observation, *messages)) if history.observation else messages
