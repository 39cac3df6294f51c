"""The trainer's vocabulary. Tensors carry their axes: B trajectory, K turn, R row, T token.

A trajectory is normally one row of tokens. Where a context manager or a chat template starts a new
branch it has several; ``trajectory_R`` says whose each row is, ``turn_RT`` to which turn a token belongs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.tasks.core import Json

SEAMS = (
    "sampler", "strategy", "guide", "judge", "proposer", "source", "teacher", "signal", "reward", "credit", "filter",
    "shape", "correction", "loss", "reduce",
)  # fmt: skip
"""The kinds of parts that an update is made of, in the order in which a batch passes them."""

Group: TypeAlias = Sequence[Episode]
"""Episodes of one task, rolled out by one policy version, that serve each other as baseline."""


@dataclass(frozen=True)
class TokenView:
    """The sampled tokens of a batch of turns, as a credit rule sees them.

    Attributes:
        token_RT: their ids (and those of prompts, off the mask).
        mask_RT: True where the policy sampled the token.
        turn_RT: the turn of each sampled token, -1 off the mask.
        trajectory_R: whose row it is.
        signals: what the run measured of single tokens, by name (``value_RT`` as ``"token_value"``).
    """

    token_RT: Tensor
    mask_RT: Tensor
    turn_RT: Tensor
    trajectory_R: Tensor
    signals: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])


NO_TURN = -1
"""Stands for none among numbers of turns in a tensor."""


class TurnTree(NamedTuple):
    """Links between the conversations of a trajectory, where an agent has several; turns count from 0.

    Attributes:
        parent_BK: the turn whose conversation this one goes on with, be it under a context that was written anew;
            :data:`NO_TURN`: it begins one.
        caller_BK: of a turn that begins one, the turn whose call it carries out, as a sub-agent's first turn; :data:`NO_TURN`:
            nobody knows who began it.
    """

    parent_BK: Tensor
    caller_BK: Tensor


@dataclass(frozen=True)
class TurnBatch:
    """Input of a credit rule: rewards turn by turn, and which trajectories belong together.

    Attributes:
        reward_BK: rewards, zero where there is no turn.
        mask_BK: True where the turn exists. Turns are left-aligned: no gaps.
        group_B: which group a trajectory belongs to, numbered from 0.
        truncated_B: True where a limit cut the trajectory, so that its last state had a future.
        state_BK: hash of the state in which each turn was played; equal states, equal numbers.
        signals: what the run measured beside the rewards, by name (``value_BK`` as ``"value"``).
        tokens: the sampled tokens, for rules that give each of them its own advantage.
        tree: which turn goes on from which, for rules that declare ``branches``; None: each from the one before. All other
            rules take turns in the order of time, in which they are numbered.
        memory_BK: True where the policy wrote for its own later contexts (a turn of kind ``memory``); None: nowhere.
        role_B: which part a trajectory plays in the batch, numbered from 0: the environment, the option ``role`` of its task, and the
            agent; equal ones, equal numbers. None: all play one.
    """

    reward_BK: Tensor
    mask_BK: Tensor
    group_B: Tensor
    truncated_B: Tensor
    state_BK: Tensor
    signals: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    tokens: TokenView | None = None
    tree: TurnTree | None = None
    memory_BK: Tensor | None = None
    role_B: Tensor | None = None

    @property
    def measured(self) -> frozenset[str]:
        """Names of all signals, of turns and of tokens."""
        return frozenset(self.signals) | frozenset(self.tokens.signals if self.tokens else ())

    @property
    def return_B(self) -> Tensor:
        """Undiscounted return of each trajectory."""
        return (self.reward_BK * self.mask_BK).sum(-1)

    @property
    def length_B(self) -> Tensor:
        """Number of turns of each trajectory."""
        return self.mask_BK.sum(-1)

    @property
    def acts_BK(self) -> Tensor:
        """True where a turn takes time: all but those of kind ``memory``, which no limit of turns counts either."""
        return self.mask_BK if self.memory_BK is None else self.mask_BK & ~self.memory_BK

    def discount_BK(self, discount: float) -> Tensor:
        """The weight of all that comes after each turn, seen from it, (B, K): ``discount`` after an act, 1 after a memory."""
        return self.reward_BK.new_ones(self.mask_BK.shape).masked_fill(self.acts_BK, discount)


class TeacherTop(NamedTuple):
    """The likeliest next tokens under a teacher at each sampled token's place. Axis J: from the likeliest on.

    Attributes:
        token_RTJ: their ids, 0 off the mask.
        teacher_logp_RTJ: their log-probabilities under the teacher, in nats.
        logp_RTJ: the same under the weights being trained, with gradient; None where nothing asked for it yet.
    """

    token_RTJ: Tensor
    teacher_logp_RTJ: Tensor
    logp_RTJ: Tensor | None = None


@dataclass(frozen=True)
class TokenBatch:
    """Input of a loss: log-probabilities of sampled tokens and their advantages.

    Only positions where ``mask_RT`` is True were sampled by the policy; all others are zero and carry no
    loss (T3). ``logp_RT`` and ``entropy_RT`` carry gradient, everything else is constant.

    Attributes:
        logp_RT: log π(token), of the weights being trained, in nats.
        old_logp_RT: the same, by the trainer, of the weights at the start of this batch.
        behaviour_logp_RT: the same, as reported by the engine that sampled; where it is unknown, ``old_logp_RT``.
        entropy_RT: entropy of the policy at each sampled position, in nats.
        advantage_RT: each token's advantage (that of its turn, perhaps refined).
        mask_RT: True where the policy sampled the token.
        turn_RT: the turn of each token, -1 off the mask.
        trajectory_R: whose row it is.
        group_R: the group of that trajectory.
        reference_logp_RT: log-probability under the frozen reference, where a loss needs it.
        signals: what the run measured of tokens and the losses need, by name, (R, T); constants.
        top: what the teacher would say instead, where a loss needs it.
        mean_logp_RT: the mean of log π over the vocabulary at each sampled token's place, under the weights being trained and
            without gradient; given to losses that need the signal ``token_mean_logp``, which is the same before the update. None
            stands for that.
    """

    logp_RT: Tensor
    old_logp_RT: Tensor
    behaviour_logp_RT: Tensor
    entropy_RT: Tensor
    advantage_RT: Tensor
    mask_RT: Tensor
    turn_RT: Tensor
    trajectory_R: Tensor
    group_R: Tensor
    reference_logp_RT: Tensor | None = None
    signals: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    top: TeacherTop | None = None
    mean_logp_RT: Tensor | None = None


class TokenLoss(NamedTuple):
    """A loss per token, not yet reduced, and what to show of it (each metric a scalar tensor)."""

    loss_RT: Tensor
    metrics: Mapping[str, Tensor]


class Nucleus(NamedTuple):
    """Nucleus of a distribution: its likeliest tokens, as long as their mass is below ``mass``.

    ``crossing``: with the token by which it is reached.
    """

    mass: float
    crossing: bool = False


@dataclass(frozen=True)
class WholeBatch:
    """Input of a loss that declares ``whole``: a minibatch of whole groups, with its log-probabilities as leaves.

    Float64, on the CPU. Rows are those of trajectories whose weight is above 0, in no particular order, and groups and
    trajectories are numbered from 0; the trajectories include those that were played and have no row.

    Attributes:
        logp_RT: log π(token), of the weights being trained, in nats: a leaf, in which the loss has its slope.
        entropy_RT: entropy of the policy at each sampled position, in nats: a leaf too.
        old_logp_RT: log-probability under the weights at the start of this update.
        behaviour_logp_RT: the same, as reported by the engine that sampled.
        advantage_RT: each token's advantage, times the filter's weight and the correction.
        mask_RT: True where the policy sampled the token.
        turn_RT: the turn of each token, -1 off the mask.
        weight_RT: the reducer's weights: Σ weight·loss over tokens is how a token loss enters the objective.
        trajectory_R: whose row it is.
        group_B: the group of each trajectory.
        reward_BK: rewards turn by turn, as the recipe's reward pays them.
        return_B: their sums.
        success_B: True where the episode solved its task.
        weight_B: the filter's weights; 0: the trajectory has no row.
        reference_logp_RT: log-probability under the frozen reference, where a loss needs it.
        signals: what the run measured and the loss needs, by name: of turns (B, K) or trajectories (B,), and of tokens
            (R, T) under names that begin with ``token_``; constants.
        nucleus_RT: entropy of the nucleus at each sampled position, in nats: a leaf, for losses that ask for it by their attribute
            ``nucleus`` (a :class:`Nucleus`). None stands for ``entropy_RT``.
    """

    logp_RT: Tensor
    entropy_RT: Tensor
    old_logp_RT: Tensor
    behaviour_logp_RT: Tensor
    advantage_RT: Tensor
    mask_RT: Tensor
    turn_RT: Tensor
    weight_RT: Tensor
    trajectory_R: Tensor
    group_B: Tensor
    reward_BK: Tensor
    return_B: Tensor
    success_B: Tensor
    weight_B: Tensor
    reference_logp_RT: Tensor | None = None
    signals: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    nucleus_RT: Tensor | None = None


class WholeLoss(NamedTuple):
    """A loss of a whole minibatch, a scalar, and what to show of it (each metric a scalar tensor)."""

    loss: Tensor
    metrics: Mapping[str, Tensor]


class TokenCredit(NamedTuple):
    """Result of a token-level credit rule: an advantage for each sampled token, 0 elsewhere, (R, T)."""

    advantage_RT: Tensor


class PartState(NamedTuple):
    """State that a part that learns or remembers keeps in checkpoints."""

    numbers: Mapping[str, Json] = {}
    tensors: Mapping[str, Tensor] = {}


@runtime_checkable
class Stateful(Protocol):
    """A part that learns or remembers: a run that is killed and resumed makes the same next update."""

    def state(self) -> PartState: ...

    def restore(self, state: PartState) -> None: ...


class RowMask(NamedTuple):
    """Input of a reducer: the tokens of the *whole* minibatch as it was played, so that micro-batches need no second denominator.

    Trajectories that the filter dropped are in it: they count in denominators.
    """

    mask_RT: Tensor
    turn_RT: Tensor
    trajectory_R: Tensor


class ScheduleMoment(NamedTuple):
    """Input of a schedule before an update.

    Attributes:
        update: the number of updates that were made, from 0.
        updates: that the run makes in all.
        first: the number that the recipe gives.
        last: the number of the update before; ``first`` before the first one.
        metrics: of the update before, and the newest value of each that it lacks; empty before the first one.
        fresh: the names of those that the update before measured, such as ``dev_success`` after an evaluation.
    """

    update: int
    updates: int
    first: float
    last: float
    metrics: Mapping[str, float] = {}
    fresh: frozenset[str] = frozenset()


class ExactProcess(Protocol):
    """All trajectories of a small decision process under one policy, in float64, with what is known of them; a turn is one token.

    Axes: N trajectories, K turn, S state, A action. What gives signals says what these are here (``exact``, ``stand_in`` of
    :func:`turnwise.component`): per turn (N, K), 0 off the mask, or per trajectory (N,), without gradient.

    Attributes:
        logits_SA: the policy is their softmax.
        logp_NK: log π(a_k | s_k), 0 where there is no turn.
        mask_NK: True where there is a turn.
        reward_NK, state_NK, action_NK: of each turn.
        value_NK: the exact value of the state before each turn: the most that a critic can know who sees what the policy sees.
        fork_value_NK: the same of the world's state, in which a fork goes on; another one only where the policy does not see all of it.
        last_value_N: of the state in which the horizon cut the trajectory.
        probability_N: how likely each trajectory is.
        return_N: the sum of its rewards.
    """

    @property
    def logits_SA(self) -> Tensor: ...
    @property
    def logp_NK(self) -> Tensor: ...
    @property
    def mask_NK(self) -> Tensor: ...
    @property
    def reward_NK(self) -> Tensor: ...
    @property
    def state_NK(self) -> Tensor: ...
    @property
    def action_NK(self) -> Tensor: ...
    @property
    def value_NK(self) -> Tensor: ...
    @property
    def fork_value_NK(self) -> Tensor: ...
    @property
    def last_value_N(self) -> Tensor: ...
    @property
    def probability_N(self) -> Tensor: ...
    @property
    def return_N(self) -> Tensor: ...


Schedule: TypeAlias = Callable[[ScheduleMoment], float]
"""A number of the recipe as a function of the update, or of the metrics of the one before. One that remembers is a class, made
once for each number, and is Stateful."""
Judge: TypeAlias = Callable[[Sequence[Group]], Awaitable[list[Group]]]
"""Writes what someone else says of the turns into ``Turn.signals``."""
Reward: TypeAlias = Callable[[Group], Group]
"""Replaces rewards; pure."""
Credit: TypeAlias = Callable[[TurnBatch], "Tensor | TokenCredit"]
"""Rewards → advantage_BK; or, where tokens of one turn differ, a :class:`TokenCredit`."""
Filter: TypeAlias = Callable[[TurnBatch, "Tensor | TokenCredit"], Tensor]
"""All that was played and the credit rule's own advantages → weight_B ≥ 0 of each trajectory; 0: it is not trained on."""
Shape: TypeAlias = Callable[["Tensor | TokenCredit", TurnBatch], "Tensor | TokenCredit"]
"""Advantages → advantages, over all that was played, after the filter has looked at the credit rule's own."""
Correction: TypeAlias = Callable[[TokenBatch], Tensor]
"""Weights ≥ 0 (R, T) on the advantages, for the gap between engine and trainer, from old and behaviour
log-probabilities alone."""
Loss: TypeAlias = Callable[[TokenBatch], TokenLoss]
"""Unreduced loss per token; each row's is a function of that row."""
LossOfWhole: TypeAlias = Callable[[WholeBatch], WholeLoss]
"""A function of a whole minibatch, for losses of batch statistics, pairs and groups."""
Reduce: TypeAlias = Callable[[RowMask], Tensor]
"""Weights (R, T); the loss is their product with the token losses, summed."""


class Sink(Protocol):
    """Receives the figures of every update, beside the run's own records.

    It is made with the run's folder and the newest update that counts: those that an interrupted process wrote after
    it are played again.
    """

    def write(self, update: int, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...
