"""Implicit rewards, read off a copy of the policy that learns to tell success from failure (PRIME, iStar)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup
from turnwise.trainers.signal.reward_model import ImplicitKind, ImplicitReward

MEANING = ("π_φ", "a copy of the policy that learns to tell success from failure: the reward model")


class Implicit(Signal):
    """Holder of a reward model: a copy of the policy as it was when reinforcement began."""

    kind: ClassVar[ImplicitKind]

    def __init__(self, setup: SignalSetup, *, learning_rate: float = 1e-6) -> None:
        self.model = ImplicitReward(
            setup.copy_policy(),
            setup.reader,
            self.kind,
            learning_rate=learning_rate,
            micro_tokens=setup.micro_tokens,
        )

    def state(self) -> PartState:
        return PartState(tensors=self.model.tensors())

    def restore(self, state: PartState) -> None:
        self.model.load(state.tensors)


@component(
    "signal", "implicit_tokens", paper="2502.01456", gives=("token_implicit",), needs=("reference",),
    reads=("copy of the policy", "outcomes"), learns=True, stand_in=lambda p: {"token_implicit": 0.1 * wave(p)},
)  # fmt: skip
class ImplicitTokens(Implicit):
    """β·log φ/π_ref of each token, where σ of a trajectory's sum is its chance of success (PRIME, eq. 3).

    The model takes its step on a batch before it is read.

    >>> ImplicitTokens.kind
    'outcomes'
    """

    kind = "outcomes"
    symbols: ClassVar = {"token_implicit": MEANING}

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        reference_RT = see.learner.score(batch.rows, reference=True)
        loss = self.model.learn(batch, reference_RT, batch.success_B)
        found_RT = self.model.rewards(batch.rows, reference_RT)
        return Measured(token={"token_implicit": found_RT}, metrics={"implicit_loss": loss})


@component(
    "signal", "implicit_turns", paper="2509.19199", gives=("implicit",), reads=("copy of the policy", "outcomes"),
    learns=True, stand_in=lambda p: {"implicit": 0.1 * wave(p)},
)  # fmt: skip
class ImplicitTurns(Implicit):
    """β·log φ/π_old of each turn, where a success of a group has a higher mean over turns than a failure (iStar, eq. 4).

    The model takes its step on a batch after it is read. Where nobody knows how likely a token was, as in stored episodes
    that a script played, the policy's own log-probability now stands for π_old.

    >>> ImplicitTurns.kind
    'pairs'
    """

    kind = "pairs"
    symbols: ClassVar = {"implicit": MEANING}

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
        old_RT = _known_or_own(see, batch)
        reward_RT = self.model.rewards(rows, old_RT)
        turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[rows.mask_RT]
        reward_BK = torch.zeros(B * K).index_add_(0, turn_N, reward_RT[rows.mask_RT]).view(B, K)
        loss = self.model.learn(batch, old_RT, batch.success_B)
        return Measured({"implicit": reward_BK}, metrics={"implicit_loss": loss})


def _known_or_own(see: SignalContext, batch: TrainingBatch) -> torch.Tensor:
    """log π_old of each sampled token, and the policy's own where that is unknown, (R, T)."""
    rows = batch.rows
    if bool(rows.known_RT[rows.mask_RT].all()):
        return rows.behaviour_logp_RT
    return torch.where(rows.known_RT, rows.behaviour_logp_RT, see.learner.score(rows))
