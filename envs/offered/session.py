"""Episodes of a suite for a program that is not ours."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split
from turnwise.tools.core import Tool, ToolCall


class OfferedEpisode:
    """One episode of a suite, for one agent: its messages go in, what it hears comes out.

    Attributes:
        reward: paid so far, of all components.
        paid: the components of the last turn.
        end: why the episode ended; empty while it goes on.
        opening: the messages before the first action, with the system message.
    """

    def __init__(self, suite: str, index: int, split: Split = Split.TRAIN, seed: int | None = None) -> None:
        """Begin a task of a suite; ``seed`` is its number unless it is given.

        Raises:
            NotFoundError: there is no such suite.
            EnvError: several agents play in it.
        """
        task = suite_task(get_suite(suite), split, index)
        self.env: AgentEnv[Any] = make(task.env)
        self.reward, self.end, self._calls = 0.0, "", 0
        self.paid: Mapping[str, float] = {}
        self.opening, _ = self.env.reset(seed=index if seed is None else seed, options={"task": task})
        if len(self.env.agents) > 1:
            raise EnvError(
                f"{suite} is played by {' and '.join(self.env.agents)}, and one agent is offered.",
                "Name a suite with one agent, or play it by PettingZoo (turnwise.envs.offered.pettingzoo_env).",
            )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are offered now."""
        return self.env.tools_for(self.env.agent)

    def play(self, message: Message) -> Messages:
        """Play a turn, and return what is heard.

        Raises:
            EnvError: the episode has ended.
        """
        if self.end:
            raise EnvError(f"The episode has ended: {self.end}.", "Say nothing more.")
        observation, reward, _, _, info = self.env.step(message)
        self.reward, self.paid = self.reward + reward, dict(info.get("rewards", {}))
        self.end = str(info.get("end") or "")
        return observation

    def fork(self, seed: int | None = None) -> OfferedEpisode:
        """A second episode at this moment; a new ``seed`` gives it other chance from here on."""
        twin = copy.copy(self)
        twin.env = self.env.fork(seed=seed)
        return twin

    def close(self) -> None:
        """Give up what its world holds."""
        self.env.close()

    def call(self, name: str, arguments: dict[str, Json]) -> Messages:
        """Call a tool in a turn of its own."""
        self._calls += 1
        return self.play(Message("assistant", "", (ToolCall(name, arguments, f"call_{self._calls}"),)))

    def say(self, text: str) -> Messages:
        """Say words in a turn of their own."""
        return self.play(Message("assistant", text))


def text_of(messages: Messages) -> str:
    """What was heard, as one text."""
    return "\n\n".join(message.content for message in messages if message.content)
