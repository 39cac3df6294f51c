"""The budget of a search: what was sampled, counted as it is sampled."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnwise.agents.core import History, Policy, Reply, Usage
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message


class SearchRights(NamedTuple):
    """Declarations of a search and its scorer: both are labelled by it, and held to it."""

    forks: bool
    oracle: bool


class SearchCost:
    """Tokens and episodes that a search took.

    Attributes:
        budget: tokens that policy and scorer may sample.
        tokens, scorer_tokens: that they sampled.
        words: tokens are words, because the policy tells none.
        usage: what servers tell of all of it.
        nodes, episodes, forks: states that were reached; tries that ended; how often one was begun in the middle.
        steps, replayed: of the environment; and those that it had to play once more to get back to a state (``ForkCost.REPLAY``).
    """

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.tokens = self.scorer_tokens = self.nodes = self.episodes = self.forks = self.steps = (
            self.replayed
        ) = 0
        self.words = False
        self.usage = Usage()

    @property
    def left(self) -> float:
        """Tokens that may still be sampled."""
        return self.budget - self.tokens - self.scorer_tokens

    def charge(self, reply: Reply, *, scorer: bool = False) -> None:
        """Count a reply."""
        taken = tokens_of(reply)
        self.words |= not reply.tokens
        self.usage |= reply.served.usage._replace(completion=taken)
        if scorer:
            self.scorer_tokens += taken
        else:
            self.tokens += taken

    def metrics(self, rights: SearchRights) -> dict[str, float]:
        """Figures for the episode that was chosen: what was searched, and what was looked at."""
        told = {
            "budget": self.budget, "tokens": self.tokens, "scorer_tokens": self.scorer_tokens, "nodes": self.nodes,
            "episodes": self.episodes, "steps": self.steps, "replayed": self.replayed, "forked": self.forks, "forks": rights.forks,
            "oracle": rights.oracle, "words": self.words,
        }  # fmt: skip
        if self.usage.prompt is not None:
            told["prompt_tokens"] = self.usage.prompt
        if self.usage.cost is not None:
            told["cost"] = self.usage.cost
        return {f"search_{name}": float(value) for name, value in told.items()}


def tokens_of(reply: Reply) -> int:
    """The tokens of a reply; where neither policy nor server tells any, its words, at least one."""
    words = len(reply.message.content.split()) + sum(1 + len(c.arguments) for c in reply.message.tool_calls)
    return reply.tokens or max(1, words)


class Metered:
    """A policy whose replies are counted, and which ends the episode where it may not go on.

    Attributes:
        stopped: it ended the episode itself.
    """

    def __init__(self, policy: Policy, cost: SearchCost, last: float) -> None:
        self._policy, self._cost, self._last = policy, cost, last
        self.name, self.stopped = policy.name, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)  # an engine that admission looks at, a program's `leave`

    @property
    def version(self) -> int:
        return self._policy.version

    async def act(self, history: History) -> Reply:
        """The policy's reply; the end where the turn asked for is reached or the budget is spent."""
        if self._cost.left <= 0 or len(history.turns) >= self._last:
            self.stopped = True
            end = EndReason.TOKEN_LIMIT if self._cost.left <= 0 else EndReason.TURN_LIMIT
            return Reply(Message("assistant", ""), end=end)
        reply = await self._policy.act(history)
        if reply.end is None:
            self._cost.charge(reply)
        return reply

    def close(self) -> None:
        """The policy stays open."""
