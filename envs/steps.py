"""Parts of a step: why an episode ended, what kinds of reward there are, what an action did."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypedDict, TypeVar

from turnwise.envs.messages import Messages
from turnwise.tasks.core import Json, Task

State = TypeVar("State")


class EndReason(enum.StrEnum):
    """Reason why an episode ended. Truncated ends cut it short; the others end it."""

    SOLVED = "solved"  #            the task is done, fully
    FAILED = "failed"  #            the task can no longer be done, or was done wrongly
    GAVE_UP = "gave_up"  #          the agent said that it stops
    TURN_LIMIT = "turn_limit"  #    the last allowed turn was played
    TOKEN_LIMIT = "token_limit"  #  the context or the token budget is full
    TIME_LIMIT = "time_limit"  #    the episode's wall-clock budget is spent
    REFUSED = "refused"  #          the agent's provider refuses the conversation

    @property
    def truncated(self) -> bool:
        return self in _TRUNCATED


_TRUNCATED = frozenset({EndReason.TURN_LIMIT, EndReason.TOKEN_LIMIT, EndReason.TIME_LIMIT, EndReason.REFUSED})


class ForkCost(enum.StrEnum):
    """Cost of going on a second time from a moment of an episode."""

    FREE = "free"  #      a reference: the state is a value
    COPY = "copy"  #      a live world is copied
    REPLAY = "replay"  #  the episode's actions are played once more: its depth times a step
    NONE = "none"  #      it cannot be done: the world does not answer the same twice

    @property
    def dear(self) -> bool:
        return self is not ForkCost.FREE


class RewardKind(enum.StrEnum):
    """Kind of a reward component.

    ``OUTCOME`` is how well the task was done, the score. ``POTENTIAL`` is γΦ(s′) − Φ(s), which moves credit and never the
    optimal policy. ``STEP`` is paid for a step as such, like a valid call. ``COST`` is charged for a step.
    """

    OUTCOME = "outcome"  #      how well the task was done: the score
    POTENTIAL = "potential"  #  γΦ(s′) − Φ(s): moves credit, never the optimal policy
    STEP = "step"  #            paid for a step as such (a valid call, a format)
    COST = "cost"  #            charged for a step


class Info(TypedDict, total=False):
    """The fifth value of ``step``."""

    rewards: Mapping[str, float]
    end: EndReason | None
    state_key: str
    task_id: str
    turn: int
    bad_action: bool
    details: Mapping[str, Json]
    agent: str  # who moves next, where an environment has several agents
    rewards_to: Mapping[str, Mapping[str, float]]  # what this turn earned agents that did not act
    messages_to: Mapping[str, Messages]  # for agents that neither acted nor act next


class Step(NamedTuple):
    """Gymnasium's five values, with their names."""

    observation: Messages
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class Transition(NamedTuple, Generic[State]):
    """Result of an action: the next state, what the policy observes, what it earned, whether it is over.

    With several agents ``observation`` is for the one who moves next (at the end: for the one who moved),
    ``messages_to`` is for other agents, and ``rewards_to`` is what those earned by this turn.
    """

    state: State
    observation: str | Messages
    rewards: Mapping[str, float] = {}
    end: EndReason | None = None
    details: Mapping[str, Json] = {}
    rewards_to: Mapping[str, Mapping[str, float]] = {}
    messages_to: Mapping[str, str | Messages] = {}


class Guard(NamedTuple):
    """Reason to refuse an option that a log gives and its reader does not.

    The option loosens isolation, or names files or addresses.

    Attributes:
        does: what it does, as a verb with its object.
        words: a plain word is harmless, and only a path, an address, code or a reference is not.
    """

    does: str
    words: bool = False


class Snapshot(NamedTuple, Generic[State]):
    """A moment of an episode that can be returned to."""

    task: Task
    seed: int
    state: State
    turn: int
    end: EndReason | None
    addressed: frozenset[str] = frozenset()  # the agents who were given their system message
    seen: frozenset[str] = frozenset()  # keys of earlier states, where an environment must know them
    world: object = None  # what lies outside of ``state``: a container, a browser (envs/live.py)
