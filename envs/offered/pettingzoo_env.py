"""Our suites as PettingZoo's AEC environments (1.27): agents act one after the other, and hear what was said since they acted last."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.envs.spaces import MessageSpace, MessagesSpace
from turnwise.errors import MissingDependencyError
from turnwise.tasks.core import Split

if TYPE_CHECKING:
    from pettingzoo import AECEnv  # pyright: ignore


def aec_env(suite: str, *, split: Split = Split.TRAIN) -> AECEnv[str, Messages, Message | str]:
    """An environment of PettingZoo; ``reset(seed=N)`` begins task N, or that of ``options["index"]``.

    Raises:
        NotFoundError: there is no such suite.
        MissingDependencyError: pettingzoo is not installed.
    """
    get_suite(suite)
    return _kind()(suite, split)


@functools.cache
def _kind() -> type[Any]:
    try:
        from pettingzoo import AECEnv  # pyright: ignore
    except ImportError as error:
        raise MissingDependencyError(
            f"pettingzoo cannot be imported: {error}.", "pip install pettingzoo"
        ) from error

    class SuiteAEC(_Turns, AECEnv):  # type: ignore[misc, type-arg]
        """A suite's episodes."""

    return SuiteAEC


class _Turns:
    """The episode's turns, under the names that PettingZoo gives them."""

    render_mode = None

    def __init__(self, suite: str, split: Split) -> None:
        self.suite, self.split = get_suite(suite), split
        self.metadata = {"name": suite, "render_modes": [], "is_parallelizable": False}
        self.env: AgentEnv[Any] = make(self.suite.env)
        self.env.reset(seed=0, options={"task": suite_task(self.suite, split, 0)})
        self.possible_agents = list(self.env.agents)  # which a task decides, alike in all of a suite
        self._spaces = MessagesSpace(), MessageSpace()

    def observation_space(self, agent: str) -> MessagesSpace:
        return self._spaces[0]

    def action_space(self, agent: str) -> MessageSpace:
        return self._spaces[1]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        index = int((options or {}).get("index", seed or 0))
        self.agents = self.possible_agents[:]
        self._heard = dict.fromkeys(self.agents, Messages())
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (
            dict.fromkeys(self.agents, False),
            dict.fromkeys(self.agents, False),
        )
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        task = suite_task(self.suite, self.split, index)
        opening, _ = self.env.reset(seed=index if seed is None else seed, options={"task": task})
        self._hear(self.env.agent, opening)
        self.agent_selection = self.env.agent

    def observe(self, agent: str) -> Messages:
        """What the agent heard since it acted last."""
        return self._heard[agent]

    def step(self, action: Message | str | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)  # type: ignore[attr-defined]  # pyright: ignore
            return
        self._cumulative_rewards[agent] = 0.0
        self.rewards, self._heard[agent] = dict.fromkeys(self.agents, 0.0), Messages()
        observation, reward, ended, truncated, info = self.env.step(action if action is not None else "")
        self._hear(info.get("agent", agent), observation)
        for name, messages in info.get("messages_to", {}).items():
            self._hear(name, messages)
        self.rewards[agent] += reward
        for name, paid in info.get("rewards_to", {}).items():
            self.rewards[name] += sum(paid.values())
        told: dict[str, Any] = dict(info)
        self.infos[agent] = {key: told[key] for key in ("end", "rewards", "bad_action") if key in told}
        self.terminations = dict.fromkeys(self.agents, ended)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.agent_selection = agent if ended or truncated else self.env.agent
        for name in self.agents:
            self._cumulative_rewards[name] += self.rewards[name]

    def _hear(self, agent: str, messages: Messages) -> None:
        self._heard[agent] = Messages((*self._heard[agent], *messages))

    def render(self) -> None:
        """Nothing is drawn."""

    def close(self) -> None:
        self.env.close()
