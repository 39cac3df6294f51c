"""Who sits where: the agents of an episode, each with a history of its own, and the policies that play them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from turnwise.agents.core import History, Policy, Reply, Trajectory
from turnwise.envs.core import AgentEnv, Step
from turnwise.envs.messages import Messages
from turnwise.envs.registry import env_class, make, suite_tasks
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, Suite, Task, derive_rng

Cast: TypeAlias = Policy | Mapping[str, Policy]
"""One policy for every agent, or a mapping from agents to policies; ``"*"`` is every agent not named."""

EVERYONE_ELSE = "*"
_LOOKED_AT = 8


def cast(policy: Policy, others: Mapping[str, Policy]) -> Cast:
    """``others`` by name, and ``policy`` for everyone else."""
    return {**others, EVERYONE_ELSE: policy} if others else policy


def player(cast: Cast, agent: str) -> Policy:
    """The policy that plays ``agent``.

    Raises:
        NotFoundError: the mapping has nobody for the agent.
    """
    if not isinstance(cast, Mapping):
        return cast
    if agent not in cast and EVERYONE_ELSE not in cast:
        raise NotFoundError("policy for agent", agent, cast)
    return cast[agent] if agent in cast else cast[EVERYONE_ELSE]


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
    """Refuse opponents who are no agents of the suite, and those who leave nobody for the policy.

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


class Table:
    """An episode in the making: one history for each of its agents."""

    def __init__(self, env: AgentEnv[Any], task: Task, seed: int) -> None:
        self.env, self.task, self.seed = env, task, seed
        self.histories: dict[str, History] = {}

    def seat(self, observation: Messages) -> History:
        """Give every agent a history; ``observation`` is for the one who moves first."""
        first = self.env.agents[0]
        for name in self.env.agents:
            seed = self.seed if name == first else derive_rng("agent", self.seed, name).getrandbits(53)
            self.histories[name] = History(self.env, self.task, seed, Messages(), agent=name)
        mover = self.mover()
        mover.observation = observation
        return mover

    def mover(self) -> History:
        """The history of the agent who moves now."""
        return self.histories[self.env.agent]

    def add(self, mover: History, reply: Reply, step: Step, state_key: str) -> None:
        """Record a turn, and hand what came of it to those whom it concerns."""
        mover.add(reply, step, state_key)
        self._tell(step.info.get("agent", mover.agent), step.observation)
        for name, messages in step.info.get("told", {}).items():
            self._tell(name, messages)
        for name, rewards in step.info.get("others", {}).items():
            self.histories[name].owe(rewards)

    def trajectories(self) -> dict[str, Trajectory]:
        """What each agent did."""
        if not self.histories:  # it never began
            return {"agent": Trajectory(())}
        return {
            name: Trajectory(tuple(history.turns), name, history.observation)
            for name, history in self.histories.items()
        }

    def _tell(self, name: str, messages: Messages) -> None:
        history = self.histories[name]
        history.observation = Messages((*history.observation, *messages)) if history.observation else messages
