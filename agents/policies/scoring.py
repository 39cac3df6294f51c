"""Log-probabilities of texts that a policy did not say, and its chances of yes and no.

A policy whose model can be asked has the two methods of :class:`Scorer`: one that is sampled here, by its engine's ``score``, and
one behind a server that tells log-probabilities. All others are refused by :func:`scorer_of`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from turnwise.agents.core import Policy
from turnwise.envs.messages import Message
from turnwise.errors import EngineError


class GivenReply(NamedTuple):
    """A reply, as somebody wrote it, to the last of some messages."""

    messages: Sequence[Message]
    text: str


class ScoredTokens(NamedTuple):
    """Tokens that are read, and those after them that are scored."""

    prompt: Sequence[int]
    reply: Sequence[int]


class YesNo(NamedTuple):
    """Log-probabilities, in nats, that an answer begins with yes and with no; both −∞ where the model said neither.

    >>> told = YesNo(-0.1, -2.3)
    >>> round(told.odds, 4), round(told.chance, 4), YesNo(-math.inf, -math.inf).chance
    (2.2, 0.9002, 0.0)
    """

    yes: float
    no: float

    @property
    def readable(self) -> bool:
        """True where it is known how likely one of them is."""
        return max(self.yes, self.no) > -math.inf

    @property
    def odds(self) -> float:
        """log P(yes) − log P(no), between −20 and 20; 0 where neither is known."""
        return max(-MOST, min(MOST, self.yes - self.no)) if self.readable else 0.0

    @property
    def chance(self) -> float:
        """P(yes) / (P(yes) + P(no)); 0 where neither is known, so that nothing is paid for it."""
        return 1 / (1 + math.exp(-self.odds)) if self.readable else 0.0


MOST = 20.0
"""Odds beyond this, in nats, are certain; a server that lists few tokens tells no more."""
NEITHER = YesNo(-math.inf, -math.inf)


@runtime_checkable
class Scorer(Protocol):
    """A policy that says how likely its model finds a text."""

    async def score(self, replies: Sequence[GivenReply]) -> list[tuple[float, ...]]:
        """The log-probability of each token of each reply, at temperature 1, its end of turn among them."""
        ...

    async def yes_no(self, questions: Sequence[str | GivenReply]) -> list[YesNo]:
        """Chances that the answer to each question begins with yes, and with no; of a reply that was begun, that it goes on so."""
        ...


def scorer_of(policy: Policy) -> Scorer:
    """The policy, if its model can be asked for log-probabilities.

    Raises:
        EngineError: it cannot: a script, a person, a program.
    """
    if isinstance(policy, Scorer):
        return policy
    raise EngineError(
        f"The policy {policy.name} tells no log-probabilities.",
        "Name a model that is sampled here (torch:PATH, vllm:PATH), a server that tells them (openai:MODEL@URL), or ask it in words.",
    )
