"""ORPO: what is paid less for doing what the policy did not do where reinforcement began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import softplus

from turnwise.agents.core import Turn
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.word_net import WIDTH, WordNet, by_turns, logged, word_features
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup

Penalty: TypeAlias = Literal["sqrt_chi2", "chi2", "kl"]


@component("signal", "orpo", paper="2403.03185", gives=("orpo",), reads=("outcomes", "memory"), learns=True)
class Orpo(Signal):
    """−λ times how much likelier a turn is among those that are played now than among those of a base policy, on every turn.

    ORPO (occupancy regularisation): a discriminator d, the logarithm of that ratio, is fitted by softplus(−d) on what is played and softplus(d) on
    the base's turns, each in the mean. The penalty is d (``kl``), e^d − 1 (``chi2``) or that over the root of its mean (``sqrt_chi2``; as it is where the mean
    is not above 0), a mean without the ``trim`` least and greatest; it is kept between ±``most`` (ours: the paper clips the reward that comes of it). λ is ``coefficient`` times the deviation of the base's
    rewards. `reward: {name: from_signal, signal: orpo}` pays it beside the environment's. Guards against hacks of a reward that
    the tokens' KL lets through. The base is the log at ``path``, or what the policy played in the first ``updates`` updates, which have no penalty.
    Ours: d is a network of ``hidden`` units over the words of a turn's observation and act, ``steps`` of gradient descent on each batch before it is read.

    Figures: ``orpo_loss`` of the discriminator before its last step, and ``orpo_chi2``, the mean of e^d − 1.

    Worked by hand from the book: d = .5, 1, −.5, 2.

    >>> def rounded(penalty):
    ...     return [round(x, 4) for x in penalties(torch.tensor([0.5, 1, -0.5, 2]).double(), penalty, 0.0).tolist()]
    >>> rounded("chi2"), rounded("sqrt_chi2")
    ([0.6487, 1.7183, -0.3935, 6.3891], [0.4487, 1.1884, -0.2721, 4.4187])
    >>> rounded("kl"), penalties(torch.tensor([-1.0, 0.0]), "sqrt_chi2", 0.0).tolist()[1]
    ([0.5, 1.0, -0.5, 2.0], 0.0)

    Raises:
        RecipeError: an option is below 0, or ``trim`` takes all away.
        RunError: when it is asked: the log has no episode.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        path: str = "",
        updates: int = 1,
        penalty: Penalty = "sqrt_chi2",
        coefficient: float = 0.1,
        most: float = 10.0,
        trim: float = 0.01,
        hidden: int = 32,
        steps: int = 20,
        learning_rate: float = 0.5,
    ) -> None:
        not_below_zero(
            "signal 'orpo'", coefficient=coefficient, most=most, trim=trim, learning_rate=learning_rate
        )
        if trim >= 0.5 or min(updates, hidden, steps) < 1:
            raise RecipeError(
                f"signal 'orpo': trim={trim:g}, updates={updates}, hidden={hidden}, steps={steps}.",
                "Give a trim below 0.5, and 1 or more of the others.",
            )
        self.penalty: Penalty = penalty
        self.path, self.updates, self.steps = path, updates, steps
        self.coefficient, self.most, self.trim = coefficient, most, trim
        self.net = WordNet(setup.seed, hidden=hidden, learning_rate=learning_rate)
        self.base_ND, self.paid_N, self.seen = word_features([]), torch.zeros(0, dtype=torch.float64), 0

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        if self.path and not len(self.base_ND):
            self._add([logged("signal 'orpo'", self.path)])
        shape, now_ND = batch.turns.mask_BK.shape, word_features(_turns(groups))
        begins, self.seen = not self.path and self.seen < self.updates, self.seen + 1
        if begins:
            self._add(groups)
        if begins or not len(self.base_ND) or not len(now_ND):
            return Measured({"orpo": torch.zeros(shape)})
        loss = torch.zeros(())
        for _ in range(self.steps):
            loss = softplus(-self.net(now_ND)).mean() + softplus(self.net(self.base_ND)).mean()
            self.net.descend(loss)
        d_N = self.net(now_ND)
        penalty_N = penalties(d_N, self.penalty, self.trim).clamp(-self.most, self.most)
        weight = self.coefficient * self.paid_N.std(correction=0)
        told_BK = by_turns(
            -weight * penalty_N, [len(one.trajectory.turns) for group in groups for one in group], shape
        )
        return Measured(
            {"orpo": told_BK}, metrics={"orpo_loss": loss.item(), "orpo_chi2": d_N.expm1().mean().item()}
        )

    def _add(self, groups: Sequence[Group]) -> None:
        turns = _turns(groups)
        self.base_ND = torch.cat([self.base_ND, word_features(turns)])
        self.paid_N = torch.cat(
            [self.paid_N, torch.tensor([turn.reward for turn in turns], dtype=torch.float64)]
        )

    def state(self) -> PartState:
        return PartState({"seen": self.seen}, {**self.net.kept(), "base": self.base_ND, "paid": self.paid_N})

    def restore(self, state: PartState) -> None:
        self.seen = int(state.numbers["seen"])
        self.net.load(state.tensors)
        self.base_ND, self.paid_N = (
            state.tensors["base"].clone().view(-1, WIDTH),
            state.tensors["paid"].clone(),
        )


def penalties(d_N: Tensor, penalty: Penalty, trim: float) -> Tensor:
    """What each turn is charged for its log ratio d, before λ."""
    if penalty == "kl":
        return d_N
    more_N = d_N.expm1()
    cut = int(trim * len(more_N))
    mean = more_N.sort().values[cut : len(more_N) - cut].mean()
    return more_N / mean.sqrt() if penalty == "sqrt_chi2" and mean > 0 else more_N


def _turns(groups: Sequence[Group]) -> list[Turn]:
    return [turn for group in groups for one in group for turn in one.trajectory.turns]
