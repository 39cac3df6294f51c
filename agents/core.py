"""Parts of an agent: engines sample tokens, policies choose messages, episodes are records.

Nothing here imports torch. ``Engine`` is the token level (vLLM, torch), ``Policy`` the message level
(a model behind a renderer, an OpenAI-compatible server, a script, a person).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

from turnwise.envs.core import AgentEnv, EndReason, Info, Step
from turnwise.envs.messages import Message, Messages
from turnwise.fault import FaultCause
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import Tool
from turnwise.tools.thoughts import without_thoughts


class Outcome(enum.StrEnum):
    """The end of an episode, as far as training is concerned.

    Only ``ok`` and ``limit`` enter baselines and advantages; the others are retried, then masked and counted.
    They are never a reward of 0 (docs/architecture.md#the-episode-and-its-outcome).
    """

    OK = "ok"  #                          the environment ended it
    LIMIT = "limit"  #                    a turn, token or time limit cut it
    ENV_ERROR = "env_error"  #            the environment broke its contract
    VERIFIER_ERROR = "verifier_error"  #  the judgement could not be made
    INFRA_ERROR = "infra_error"  #        the engine, a sandbox or a deadline failed

    @property
    def counts(self) -> bool:
        return self in (Outcome.OK, Outcome.LIMIT)


class Sampling(NamedTuple):
    """Settings with which tokens are drawn. ``temperature`` 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256


Kv: TypeAlias = Literal["recompute", "keep"]
"""Treatment of the keys and values of requests in flight when the weights change under them.

``recompute`` computes them anew, so that every later token is drawn from exactly the new weights' distribution, given all
tokens before it. ``keep`` leaves those of the old weights, which costs nothing, and draws later tokens from a mixture that
no single version describes; its gap is measured in docs/asynchronous.md. Either way no later request reads an old one's.
"""


class VersionSpan(NamedTuple):
    """Sampled tokens from ``start`` on, up to the next span, come from this version of the weights."""

    start: int
    version: int


class Completion(NamedTuple):
    """An engine's sample. ``logprobs`` are of the distribution that was sampled from."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stopped: bool  # True: a stop token ended it (and is the last id); False: max_tokens did
    versions: tuple[VersionSpan, ...] = (VersionSpan(0, 0),)


SURE = 1e-3
"""By how much rounding may lift the log-probability of a certain token above 0, in nats."""


def lie_in(
    token_ids: Sequence[int], logprobs: Sequence[float], stop_ids: Container[int], vocabulary: int
) -> str:
    """Why these cannot be tokens that an engine sampled one after the other; empty where they can.

    >>> lie_in([3, 9], [-0.5, 0.0], {9}, 10), lie_in([9, 3], [-0.5, -0.5], {9}, 10)
    ('', 'token 2 comes after a stop token')
    >>> lie_in([12], [-0.5], {9}, 10), lie_in([1], [float("nan")], {9}, 10)
    ('token 1 is 12, and the model has those from 0 to 9', 'token 1 has the log-probability nan')

    Args:
        token_ids: that came.
        logprobs: of them.
        stop_ids: that end an answer.
        vocabulary: how many tokens there are.
    """
    if len(logprobs) != len(token_ids):
        return f"{len(token_ids)} tokens came with {len(logprobs)} log-probabilities"
    if (
        token_ids
        and math.isfinite(sum(logprobs))  # so that none of them is infinite or no number
        and max(logprobs) <= SURE
        and min(token_ids) >= 0
        and max(token_ids) < vocabulary
        and not any(map(stop_ids.__contains__, token_ids[:-1]))
    ):
        return ""
    for number, (token, logprob) in enumerate(zip(token_ids, logprobs, strict=True), 1):
        if not 0 <= token < vocabulary:
            return f"token {number} is {token!r:.40}, and the model has those from 0 to {vocabulary - 1}"
        if not -math.inf < logprob <= SURE:
            return f"token {number} has the log-probability {logprob!r:.40}"
        if number < len(token_ids) and token in stop_ids:
            return f"token {number + 1} comes after a stop token"
    return ""


class Engine(Protocol):
    """Samples tokens. Many calls may be in flight; the engine batches them as it likes."""

    @property
    def version(self) -> int: ...

    @property
    def context_length(self) -> int: ...

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion: ...

    def close(self) -> None: ...


class TurnPlace(NamedTuple):
    """A place among the turns of an agent: :data:`PREVIOUS`, :data:`ROOT` or :func:`after` a certain turn.

    >>> PREVIOUS.turn(3), after(1).turn(3), ROOT.turn(3), PREVIOUS.turn(0)
    (2, 1, None, None)
    """

    at: int | Literal["previous", "root"]

    def turn(self, number: int) -> int | None:
        """The turn after which turn ``number`` stands, if this is its place; None: after none. Turns count from 0."""
        if self.at == "previous":
            return number - 1 if number else None
        return None if self.at == "root" else self.at


PREVIOUS, ROOT = TurnPlace("previous"), TurnPlace("root")


def after(turn: int) -> TurnPlace:
    """The place after a certain turn, counted from 0."""
    return TurnPlace(turn)


class Finish(enum.StrEnum):
    """Why a reply ended, as whoever sampled it says. The members are the words of the chat-completions protocol, and ours."""

    UNKNOWN = "unknown"  #              nobody says
    STOP = "stop"  #                    the model ended it
    CALLS = "tool_calls"  #             the same, with calls
    LENGTH = "length"  #                a limit of tokens cut it
    REFUSAL = "refusal"  #              the model or its provider refused to answer
    CONTENT_FILTER = "content_filter"  # the provider withheld the rest
    CONTEXT = "context_full"  #         the context had no room for a reply
    ERROR = "error"  #                  the server gave up within the reply


class Usage(NamedTuple):
    """Tokens and cost of a reply, as its server counts them; None: the server does not say.

    Attributes:
        prompt: tokens that were read, the cached ones among them.
        completion: tokens that were sampled, thoughts among them.
        reasoning: of these, thoughts.
        cached: of the tokens that were read, those that the server had kept.
        cost: in the provider's currency, where it tells one.
    """

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    cost: float | None = None

    def __or__(self, other: Usage) -> Usage:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Both together; what one does not say counts as nothing where the other says something.

        >>> (Usage(3, 4) | Usage(1, 2, reasoning=1))[:4]
        (4, 6, 1, None)
        """
        pairs = zip(self, other, strict=True)
        return Usage(*(b if a is None else a if b is None else a + b for a, b in pairs))  # pyright: ignore[reportArgumentType]


class Served(NamedTuple):
    """Facts *about* a reply, told by the server or engine that sampled it.

    Attributes:
        finish: why it ended.
        said: the server's own word for that, where it is another.
        usage: tokens and cost.
        thoughts: what the model thought, where the server tells it apart from the message.
        refusal: the words of a refusal.
        model: that answered, where the server names another than was asked for.
    """

    finish: Finish = Finish.UNKNOWN
    said: str = ""
    usage: Usage = Usage()
    thoughts: str = ""
    refusal: str = ""
    model: str = ""


class MemoryMark(NamedTuple):
    """The mark of a reply that is kept for later contexts and is no action: the environment is not told of it.

    Attributes:
        asked: the end of what the policy read before it, which a context manager asked and the environment did not say.
        told: what the policy reads next, as the result of a tool that a context manager has.
    """

    asked: Messages = Messages()
    told: Messages = Messages()


class Reply(NamedTuple):
    """A policy's choice for one turn, with the exact tokens where there are any (T1).

    Attributes:
        message: what was chosen.
        prompt_ids: the tokens between those of the parent, its action the last of them, and this action.
        action_ids: the tokens of the message.
        logprobs: of these; empty where they are unknown, because nobody sampled them.
        versions: of the weights that sampled them, by where they begin.
        parent: the turn that the prompt extends; at the root ``prompt_ids`` are the whole prompt, as where the chat template
            rewrote what stood before.
        caller: where the prompt extends none, the turn whose call this conversation carries out, as that of a sub-agent; None:
            nobody knows.
        continues: where the prompt extends none, the turn whose conversation goes on here under another beginning, such as a
            summary of it; None: it begins one, or nobody knows.
        scored_ids: what stands in place of ``prompt_ids`` where the action is learned under another prompt than it was
            sampled under; None: the same.
        source: who chose it, where it was not the policy that is trained, such as ``guide/prefix``.
        end: set when the policy cannot go on: its context is full.
        silent: the environment is not told of it, because a program stands between them and acts by itself.
        of: ``message`` is such a program's action, for the turn after which this place is; at the root for none, because the
            program acts before the policy said anything. None: it is the policy's own, and makes a turn.
        served: what is said about it by whoever sampled it.
        memory: set where it makes a turn of kind ``memory``.
    """

    message: Message
    prompt_ids: tuple[int, ...] = ()
    action_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    versions: tuple[VersionSpan, ...] = ()
    parent: TurnPlace = PREVIOUS
    scored_ids: tuple[int, ...] | None = None
    source: str = ""
    end: EndReason | None = None
    silent: bool = False
    of: TurnPlace | None = None
    caller: int | None = None
    continues: int | None = None
    served: Served = Served()
    memory: MemoryMark | None = None

    @property
    def cause(self) -> FaultCause | None:
        """The cause that is named beside the figures where something went wrong with it; None: nothing did."""
        cause = _CAUSES.get(self.served.finish)
        if cause is not FaultCause.CUT_BY_LIMIT or self.message.tool_calls:
            return cause
        content = self.message.content
        thought = self.served.thoughts or self.served.usage.reasoning or content.strip()
        only_thoughts = thought and not without_thoughts(content).strip()
        return FaultCause.THOUGHTS_ATE_BUDGET if only_thoughts else cause

    @property
    def tokens(self) -> int:
        """The tokens that were sampled for it: those that are here, or else as its server counts them."""
        return len(self.action_ids) or self.served.usage.completion or 0


_CAUSES = {
    Finish.LENGTH: FaultCause.CUT_BY_LIMIT,
    Finish.REFUSAL: FaultCause.REFUSED,
    Finish.CONTENT_FILTER: FaultCause.CONTENT_FILTERED,
    Finish.CONTEXT: FaultCause.CONTEXT_FULL,
    Finish.ERROR: FaultCause.SERVER_FAILED,
}


class Act(NamedTuple):
    """An action that a program played for a turn.

    Attributes:
        message: the action.
        number: of the action among all such of the episode, from 0.
        turns: how many turns stood when it was played.
        bad_action: the environment refused it.
    """

    message: Message
    number: int
    turns: int
    bad_action: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One policy message and the environment's answer: a :class:`Reply` joined with a ``Step``.

    Where a program stands between them, ``acts`` is what it played for this turn, and the rewards are those of all of it;
    None: the environment was told the message itself.
    """

    observation: Messages  # what the policy observed before it acted
    reply: Reply
    reward: float
    rewards: Mapping[str, float]
    state_key: str  # of the state in which the policy acted
    bad_action: bool = False
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    signals: Mapping[str, float] = field(default_factory=dict[str, float])  # measured in the rollout
    weight: float = 1.0  # in training; a turn of another source with weight 0 is read like a prompt
    acts: tuple[Act, ...] | None = None

    @property
    def action(self) -> Message:
        return self.reply.message

    @property
    def kind(self) -> Literal["action", "memory"]:
        """``memory`` where the policy wrote for its own later contexts, and the environment was not told."""
        return "action" if self.reply.memory is None else "memory"

    @property
    def said(self) -> Messages:
        """The observation without what a context manager asked."""
        asked = len(self.reply.memory.asked) if self.reply.memory else 0
        return Messages(self.observation[: len(self.observation) - asked]) if asked else self.observation


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One agent's turns, in order, and ``final``, what it observed after the last of them."""

    turns: tuple[Turn, ...]
    agent: str = "agent"
    final: Messages = field(default_factory=Messages)

    @property
    def total_reward(self) -> float:
        """The return: the sum of the rewards."""
        return sum(turn.reward for turn in self.turns)

    @property
    def score(self) -> float:
        """Score of the task: the sum of the ``outcome`` reward component."""
        return sum(turn.rewards.get("outcome", 0.0) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Episode:
    """A record that is saved and evaluated: the task, the seed, what each agent did, how it ended.

    ``cause`` names what ended it where that is neither the environment nor a word of an agent: its context is full, say.
    """

    task: Task
    seed: int
    trajectories: Mapping[str, Trajectory]
    outcome: Outcome
    end: EndReason | None = None
    error: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    cause: FaultCause | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The only trajectory, or the first agent's."""
        return next(iter(self.trajectories.values()))

    @property
    def success(self) -> bool:
        return self.end is EndReason.SOLVED

    @property
    def score(self) -> float:
        return self.trajectory.score


@dataclass(slots=True)
class History:
    """An episode in the making, as the policy of one of its agents sees it.

    ``env`` is privileged: scripted policies (gold, baselines, people) use it, learned ones must not. ``seed`` is
    what the policy's chance is derived from; each agent has its own.
    """

    env: AgentEnv[Any]
    task: Task
    seed: int
    observation: Messages
    agent: str = "agent"
    turns: list[Turn] = field(default_factory=list[Turn])
    token_ids: list[int] = field(default_factory=list[int])  # the current branch, as the engine saw it
    memory: object = None  # whatever its policy keeps of this episode
    rendered: object = None  # whatever a renderer keeps of this conversation between its turns
    shown: object = None  # whatever a context manager keeps of it between its turns
    metrics: dict[str, float] = field(
        default_factory=dict[str, float]
    )  # that its policy measured, for the episode's

    @property
    def tools(self) -> Sequence[Tool]:
        return self.env.tools_for(self.agent)

    @property
    def calls_per_turn(self) -> int | None:
        """Calls that a turn takes; None: nobody says."""
        return self.env.calls_per_turn

    def messages(self) -> list[Message]:
        """The conversation so far, from the system message to the newest observation."""
        said: list[Message] = []
        for turn in self.turns:
            said.extend((*turn.observation, turn.action))
        return [*said, *self.observation]

    def note(self, reply: Reply, state_key: str) -> None:
        """Record a turn of which the environment was not told: a program stands between, or it is one of kind ``memory``."""
        memory, acts = reply.memory or MemoryMark(), () if reply.silent else None
        observed = Messages((*self.observation, *memory.asked))
        self.turns.append(Turn(observed, reply._replace(silent=False), 0.0, {}, state_key, acts=acts))
        self.observation = memory.told

    def add(self, reply: Reply, step: Step, state_key: str) -> None:
        """Record a turn that was played, or an action that was played for one that stands."""
        info: Info = step.info
        if reply.of is not None:
            self._add_act(reply, step, state_key)
            return
        self.turns.append(
            Turn(
                self.observation,
                reply,
                step.reward,
                info.get("rewards", {}),
                state_key,
                info.get("bad_action", False),
                info.get("details", {}),
            )
        )
        self.observation = Messages()

    def _add_act(self, reply: Reply, step: Step, state_key: str) -> None:
        bad, rewards = step.info.get("bad_action", False), step.info.get("rewards", {})
        number = sum(len(turn.acts or ()) for turn in self.turns)
        act = Act(reply.message, number, len(self.turns), bad)
        place = reply.of.turn(len(self.turns)) if reply.of is not None else None
        if place is None:  # the program acts before the policy said anything
            place = len(self.turns)
            self.note(Reply(reply.message), state_key)
        turn = self.turns[place]
        total = {name: turn.rewards.get(name, 0.0) + value for name, value in rewards.items()}
        self.turns[place] = replace(
            turn,
            acts=(*(turn.acts or ()), act),
            reward=turn.reward + step.reward,
            rewards={**turn.rewards, **total},
            bad_action=turn.bad_action or bad,
            details={**turn.details, **step.info.get("details", {})},
        )

    def add_pending_reward(self, rewards: Mapping[str, float]) -> None:
        """Add what the last turn earned afterwards; what is earned before an agent's first turn is nobody's."""
        if rewards and self.turns:
            last = self.turns[-1]
            total = {
                name: last.rewards.get(name, 0.0) + rewards.get(name, 0.0)
                for name in {**last.rewards, **rewards}
            }
            self.turns[-1] = replace(last, rewards=total, reward=sum(total.values()))


class Policy(Protocol):
    """Chooses the next message. Token-exact policies fill in the tokens of their :class:`Reply`."""

    name: str

    @property
    def version(self) -> int: ...

    async def act(self, history: History) -> Reply: ...

    def close(self) -> None: ...


@runtime_checkable
class Attending(Protocol):
    """A policy that is with an episode from its first turn to its end, such as a program that plays it.

    It keeps its own deadlines, and is told when the episode is over, however it ended.
    """

    async def leave(self, history: History, end: EndReason | None) -> Sequence[Reply]:
        """The episode is over (None: it failed); the replies that were sampled and are not yet among its turns."""
        ...


def attends(policy: Policy | Attending) -> TypeGuard[Attending]:
    """Return whether a policy is an :class:`Attending` one; asked in every turn, where a check of the protocol takes its
    time."""
    return getattr(policy, "leave", None) is not None
