"""CausalRM: a reward learned from feedback that is wrong now and then and that not everybody gives."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import torch
from torch import Tensor
from torch.nn.functional import softplus

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.word_net import WordNet, logged, word_features
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup
from turnwise.trainers.signal.forced import spread


@component(
    "signal", "causal_rm", gives=("causal_rm",), hears=("label",), reads=("outcomes", "memory"), learns=True
)
class CausalRM(Signal):
    """The chance σ(f) that an episode is good, on every turn, learned from labels of which some are wrong and some are not there.

    A good episode is called bad with the chance ``missed`` (ρ₁) and a bad one good with ``false`` (ρ₀). With ℓ₁ = −log σ(f) and ℓ₀ = −log(1 − σ(f)) a
    label of 1 costs ((1 − ρ₀)ℓ₁ − ρ₁ℓ₀)/(1 − ρ₀ − ρ₁) and one of 0 costs ((1 − ρ₁)ℓ₀ − ρ₀ℓ₁)/(1 − ρ₀ − ρ₁), so that in the mean over the errors it is the
    cost of the right label. What is labelled weighs 1/e, e the chance that such an episode is labelled, ``least`` or more; the costs are summed and divided by
    the number of all episodes. Labels are the mean of the signal ``label`` over the turns that have it, 1 from a half on: of the log at ``path``, or of what was just played,
    where a judge writes it (CausalRM; a judge whose errors are known is corrected too). Ours: f and e are networks of ``hidden`` units over the words of observations and acts, in the mean
    over turns, each with ``steps`` of gradient descent on each batch before it is read; where all are labelled e is 1.
    Paid alone: `reward: {name: own_probability, signal: causal_rm, weight: 1, format: 0}`.

    Figures: ``causal_rm_loss`` before the last step, and ``causal_rm_labelled``, the share of episodes with a label.

    Worked by hand from the book: ρ₁ = .2, ρ₀ = .1 and σ(f) = .8; the mean over the errors for a good one; and e = .25.

    >>> cost = costs(torch.tensor(0.8).logit(), 0.2, 0.1)
    >>> [round(x.item(), 4) for x in cost], round((0.8 * cost[1] + 0.2 * cost[0]).item(), 4), round(cost[1].item() / 0.25, 4)
    ([1.8075, -0.1729], 0.2231, -0.6918)

    Raises:
        RecipeError: an option is below 0, or labels say nothing because errors are as frequent as not.
        RunError: when it is asked: the log has no episode.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        label: str = "principle",
        path: str = "",
        missed: float = 0.0,
        false: float = 0.0,
        least: float = 0.05,
        hidden: int = 32,
        steps: int = 20,
        learning_rate: float = 0.5,
    ) -> None:
        not_below_zero("signal 'causal_rm'", missed=missed, false=false, learning_rate=learning_rate)
        if missed + false >= 1 or not 0 < least <= 1 or min(hidden, steps) < 1:
            raise RecipeError(
                f"signal 'causal_rm': missed={missed:g}, false={false:g}, least={least:g}, hidden={hidden}, steps={steps}.",
                "Give errors that are less than 1 together, a least above 0 and at most 1, and 1 or more of the others.",
            )
        self.label, self.path, self.missed, self.false = label, path, missed, false
        self.least, self.steps = least, steps
        self.worth = WordNet(setup.seed, hidden=hidden, learning_rate=learning_rate)
        self.chance = WordNet(setup.seed + 1, hidden=hidden, learning_rate=learning_rate)

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        played = [one for group in groups for one in group]
        known = logged("signal 'causal_rm'", self.path) if self.path else played
        metrics = self._learn([one for one in known if one.trajectory.turns])
        found = {
            b: self.worth(_mean(one)).sigmoid().item() for b, one in enumerate(played) if one.trajectory.turns
        }
        return Measured({"causal_rm": spread(batch, found)}, metrics=metrics)

    def _learn(self, episodes: Sequence[Episode]) -> dict[str, float]:
        said = [self._label(one) for one in episodes]
        labelled = [i for i, label in enumerate(said) if label is not None]
        if not labelled:
            return {}
        x_ND = torch.cat([_mean(one) for one in episodes])
        weight_M = 1 / self._chances(x_ND, labelled) / len(episodes)
        good_M = torch.tensor([said[i] for i in labelled])
        loss = torch.zeros(())
        for _ in range(self.steps):
            bad_cost_M, good_cost_M = costs(self.worth(x_ND[labelled]), self.missed, self.false)
            loss = (weight_M * torch.where(good_M, good_cost_M, bad_cost_M)).sum()
            self.worth.descend(loss)
        return {"causal_rm_loss": loss.item(), "causal_rm_labelled": len(labelled) / len(episodes)}

    def _chances(self, x_ND: Tensor, labelled: Sequence[int]) -> Tensor:
        """How likely each of those that are labelled was to be."""
        if len(labelled) == len(x_ND):
            return torch.ones(len(x_ND), dtype=torch.float64)
        sign_N = torch.ones(len(x_ND), dtype=torch.float64)
        sign_N[[*labelled]] = -1.0
        for _ in range(self.steps):
            self.chance.descend(softplus(sign_N * self.chance(x_ND)).mean())
        return self.chance(x_ND).detach().sigmoid()[[*labelled]].clamp(min=self.least)

    def _label(self, episode: Episode) -> bool | None:
        said = [turn.signals[self.label] for turn in episode.trajectory.turns if self.label in turn.signals]
        return mean(said) >= 0.5 if said else None

    def state(self) -> PartState:
        worth, chance = self.worth.kept().items(), self.chance.kept().items()
        return PartState(
            {}, {f"worth_{name}": x for name, x in worth} | {f"chance_{name}": x for name, x in chance}
        )

    def restore(self, state: PartState) -> None:
        for net, said in ((self.worth, "worth_"), (self.chance, "chance_")):
            net.load(
                {name.removeprefix(said): x for name, x in state.tensors.items() if name.startswith(said)}
            )


def costs(f: Tensor, missed: float, false: float) -> tuple[Tensor, Tensor]:
    """What the labels 0 and 1 cost, corrected for their errors."""
    good, bad = softplus(-f), softplus(f)
    apart = 1 - false - missed
    return ((1 - missed) * bad - false * good) / apart, ((1 - false) * good - missed * bad) / apart


def _mean(episode: Episode) -> Tensor:
    """The words of an episode, in the mean over its turns, (1, D)."""
    return word_features(episode.trajectory.turns).mean(0, keepdim=True)
