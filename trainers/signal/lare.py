"""LaRe: what each turn was worth, by factors of turns that are fitted to the returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Turn
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup

FACTORS: Mapping[str, Callable[[Sequence[Turn], int], float]] = {
    "one": lambda turns, k: 1.0,
    "valid": lambda turns, k: float(not turns[k].bad_action),
    "new": lambda turns, k: float(all(turn.state_key != turns[k].state_key for turn in turns[:k])),
    "again": lambda turns, k: float(any(turn.action == turns[k].action for turn in turns[:k])),
    "calls": lambda turns, k: float(len(turns[k].action.tool_calls)),
    "tokens": lambda turns, k: turns[k].reply.tokens / 100,
    "last": lambda turns, k: float(k == len(turns) - 1),
}
"""By name: what a turn of an episode has of it."""


@component("signal", "lare", gives=("lare",), reads=("outcomes", "memory"), learns=True)
class LaRe(Signal):
    """r̂_k = w·φ_k on every turn: φ are factors of the turn, and w is fitted to the returns R of all episodes so far, as the environment paid them.

    w minimises the mean over episodes of (mean of r̂ over its turns − R/T)² plus ``ridge``·|w|², a ridge regression. With ``sampled`` = K the mean is over K turns
    that are drawn (randomised return decomposition), and ``corrected`` takes off what that adds, Var(r̂ of these)·(1 − K/T)/K, a sample variance;
    what is then below 0 counts as 0 (ours). LaRe (latent reward) has φ written by a language model as code, and a network of three layers in
    place of w, which the book finds too much for a small gym. Here φ are ``factors`` by name: one (a constant), valid (the environment could read the act),
    new (in a state that the episode had not met), again (an act that it had said), calls (of tools), tokens (hundreds) and last (the last turn).
    Paid alone, as there: `reward: [{name: from_signal, signal: lare}, {name: weighted, weights: {lare: 1}}]`.

    Figure: ``lare_loss``, the mean of (mean of r̂ − R/T)² in the batch, after the fit.

    Worked by hand from the book: r̂ = .2, .5, −.1, .4 and R = 1, over all turns, over the first two, and corrected.

    >>> def loss(places, corrected):
    ...     gram, aim, rest = quadratic(torch.tensor([[0.2], [0.5], [-0.1], [0.4]]), 1.0, places, corrected)
    ...     return round((gram - 2 * aim + rest).item(), 5)
    >>> loss([0, 1, 2, 3], True), loss([0, 1], False), loss([0, 1], True)
    (0.0, 0.01, -0.00125)

    Raises:
        RecipeError: a factor is unknown or none is named, the ridge is not above 0, or turns are to be sampled that cannot be.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        factors: tuple[str, ...] = ("one", "valid", "new", "last"),
        sampled: int = 0,
        corrected: bool = True,
        ridge: float = 0.01,
    ) -> None:
        unknown = [name for name in factors if name not in FACTORS]
        if unknown or not factors:
            raise RecipeError(
                f"signal 'lare': {', '.join(unknown) or 'nothing'} is no factor of turns.",
                f"Choose among {', '.join(FACTORS)}.",
            )
        if ridge <= 0 or sampled < 0 or (corrected and sampled == 1):
            raise RecipeError(
                f"signal 'lare': ridge={ridge:g}, sampled={sampled}.",
                "Give a ridge above 0, and 2 or more turns to be sampled (1 without corrected, 0 for all).",
            )
        self.factors, self.sampled, self.corrected, self.ridge = factors, sampled, corrected, ridge
        self.seed, self.count = setup.seed, 0
        self.gram_FF = torch.zeros(len(factors), len(factors), dtype=torch.float64)
        self.aim_F = torch.zeros(len(factors), dtype=torch.float64)

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        played = [one.trajectory.turns for group in groups for one in group]
        returns = [one.trajectory.total_reward for group in groups for one in group]
        known = [self._factors(turns) for turns in played]
        for factor_KF, total in zip(known, returns, strict=True):
            if len(factor_KF):
                self._take(factor_KF, total)
        weight_F = self._weights()
        told_BK, errors = torch.zeros(batch.turns.mask_BK.shape, dtype=torch.float64), list[float]()
        for b, (factor_KF, total) in enumerate(zip(known, returns, strict=True)):
            told_BK[b, : len(factor_KF)] = factor_KF @ weight_F
            if len(factor_KF):
                errors.append((told_BK[b].sum().item() - total) ** 2 / len(factor_KF) ** 2)
        return Measured({"lare": told_BK}, metrics={"lare_loss": sum(errors) / max(1, len(errors))})

    def _factors(self, turns: Sequence[Turn]) -> Tensor:
        said = [FACTORS[name](turns, k) for k in range(len(turns)) for name in self.factors]
        return torch.tensor(said, dtype=torch.float64).view(-1, len(self.factors))

    def _take(self, factor_KF: Tensor, total: float) -> None:
        turns = len(factor_KF)
        places = [*range(turns)]
        if 0 < self.sampled < turns:
            places = derive_rng("lare", self.seed, self.count).sample(places, self.sampled)
        gram_FF, aim_F, _ = quadratic(factor_KF, total, places, self.corrected)
        self.gram_FF, self.aim_F, self.count = self.gram_FF + gram_FF, self.aim_F + aim_F, self.count + 1

    def _weights(self) -> Tensor:
        """Solve for the least loss; the correction may have left directions that are worth less than nothing."""
        episodes = max(1, self.count)
        size_F, turned_FF = torch.linalg.eigh(self.gram_FF / episodes)
        aim_F = turned_FF.T @ self.aim_F / episodes
        return turned_FF @ (aim_F / (size_F.clamp(min=0) + self.ridge))

    def state(self) -> PartState:
        return PartState({"count": self.count}, {"gram": self.gram_FF, "aim": self.aim_F})

    def restore(self, state: PartState) -> None:
        self.count = int(state.numbers["count"])
        self.gram_FF, self.aim_F = state.tensors["gram"].clone(), state.tensors["aim"].clone()


def quadratic(
    factor_KF: Tensor, total: float, places: Sequence[int], corrected: bool
) -> tuple[Tensor, Tensor, float]:
    """G, a and c of one episode's loss w·G·w − 2·a·w + c, over the turns at ``places``."""
    seen_JF = factor_KF[list(places)]
    mean_F, aim = seen_JF.mean(0), total / len(factor_KF)
    gram_FF = torch.outer(mean_F, mean_F)
    if corrected and len(places) < len(factor_KF):
        apart_JF, drawn = seen_JF - mean_F, len(places)
        gram_FF = gram_FF - apart_JF.T @ apart_JF / (drawn - 1) * (1 - drawn / len(factor_KF)) / drawn
    return gram_FF, mean_F * aim, aim**2
