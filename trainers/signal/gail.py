"""Lipschitz GAIL: what is paid for acting as an expert, by a discriminator that may not be steep."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.word_net import WIDTH, WordNet, by_turns, logged, word_features
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup

TINY = 1e-8


@component("signal", "gail", paper="2006.16785", gives=("gail",), reads=("outcomes", "memory"), learns=True)
class Gail(Signal):
    """−log(1 − σ(D) + 1e-8) on every turn, D a discriminator of an expert's turns and the policy's whose slope may not exceed 1.

    Lipschitz GAIL: D is fitted by cross-entropy, an expert's turns with labels drawn between ``low`` and ``high`` and the policy's with 0, each in the mean, and
    ``penalty``·max(0, ‖∇_x D‖ − 1)² in the mean over points between the two, one for each of the policy's turns. Without that a
    discriminator is steep and its reward of no use to a policy. ``spectral`` divides each layer by its largest singular value besides. The expert's turns are those of
    the solved episodes in the log at ``path``; without one, those of all episodes that the policy itself solved so far (ours). Ours too: D is a network of ``hidden`` units over the words of a
    turn's observation and act, with ``steps`` of gradient descent on each batch before it is read. Paid alone, as there:
    `reward: [{name: from_signal, signal: gail}, {name: weighted, weights: {gail: 1}}]`. Left out: the preconditioner of rewards.

    Figure: ``gail_loss`` before the last step.

    Worked by hand from the book: σ(D) = .6, and a slope of 1.5; no turn is worth more than −log 1e-8.

    >>> round(worth(torch.tensor(0.6).logit()).item(), 4), round(10 * too_steep(torch.tensor([1.5])).item(), 4)
    (0.9163, 2.5)
    >>> round(worth(torch.tensor(90.0)).item(), 4)
    18.4207

    Raises:
        RecipeError: an option is below 0, or the labels are in no order.
        RunError: when it is asked: the log has no solved episode.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        path: str = "",
        penalty: float = 10.0,
        spectral: bool = False,
        low: float = 0.7,
        high: float = 1.2,
        hidden: int = 32,
        steps: int = 20,
        learning_rate: float = 0.1,
    ) -> None:
        not_below_zero("signal 'gail'", penalty=penalty, low=low, learning_rate=learning_rate)
        if low > high or min(hidden, steps) < 1:
            raise RecipeError(
                f"signal 'gail': low={low:g}, high={high:g}, hidden={hidden}, steps={steps}.",
                "Give labels in their order, and 1 or more units and steps.",
            )
        self.path, self.penalty, self.steps = path, penalty, steps
        self.low, self.high, self.seed, self.seen = low, high, setup.seed, 0
        self.net = WordNet(setup.seed, hidden=hidden, learning_rate=learning_rate, spectral=spectral)
        self.expert_ND = word_features([])

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        played = [one for group in groups for one in group]
        if self.path and not len(self.expert_ND):
            shown = logged("signal 'gail'", self.path, solved=True)
            self.expert_ND = word_features([turn for one in shown for turn in one.trajectory.turns])
        elif not self.path:
            solved = [turn for one in played if one.success for turn in one.trajectory.turns]
            self.expert_ND = torch.cat([self.expert_ND, word_features(solved)])
        own_ND = word_features([turn for one in played for turn in one.trajectory.turns])
        if not len(self.expert_ND) or not len(own_ND):
            return Measured({"gail": torch.zeros(batch.turns.mask_BK.shape)})
        loss = torch.zeros(())
        for step in range(self.steps):
            loss = self._loss(own_ND, step)
            self.net.descend(loss)
        self.seen += 1
        lengths = [len(one.trajectory.turns) for one in played]
        told_BK = by_turns(worth(self.net(own_ND)), lengths, batch.turns.mask_BK.shape)
        return Measured({"gail": told_BK}, metrics={"gail_loss": loss.item()})

    def _loss(self, own_ND: Tensor, step: int) -> Tensor:
        rng = derive_rng("gail", self.seed, self.seen, step)
        label_N = torch.tensor(
            [rng.uniform(self.low, self.high) for _ in self.expert_ND], dtype=torch.float64
        )
        partner_N = [rng.randrange(len(self.expert_ND)) for _ in own_ND]
        share_N1 = torch.tensor([[rng.random()] for _ in own_ND], dtype=torch.float64)
        between_ND = share_N1 * self.expert_ND[partner_N] + (1 - share_N1) * own_ND
        d_N = self.net(self.expert_ND)
        told_apart = (softplus(d_N) - label_N * d_N).mean() + softplus(self.net(own_ND)).mean()
        return told_apart + self.penalty * too_steep(self.net.slope(between_ND))

    def state(self) -> PartState:
        return PartState({"seen": self.seen}, {**self.net.kept(), "expert": self.expert_ND})

    def restore(self, state: PartState) -> None:
        self.seen = int(state.numbers["seen"])
        self.net.load(state.tensors)
        self.expert_ND = state.tensors["expert"].clone().view(-1, WIDTH)


def worth(d_N: Tensor) -> Tensor:
    """−log(1 − σ(D) + 1e-8)."""
    return -(logsigmoid(-d_N).exp() + TINY).log()


def too_steep(slope_N: Tensor) -> Tensor:
    """The mean square of what slopes have beyond 1."""
    return ((slope_N - 1).clamp(min=0) ** 2).mean()
