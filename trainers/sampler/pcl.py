"""Prompts of middling difficulty, as a regressor over the words of tasks expects it, without a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import (
    GroupRequest,
    SamplerSetup,
    SeenGroup,
    memory_from,
    memory_state,
)
from turnwise.trainers.sampler.remembered import FromPool, require_option


def nearest(values: Sequence[float], target: float, count: int) -> list[int]:
    """The places of the ``count`` values that are nearest to a target, the nearest first; of equals the first."""
    return sorted(range(len(values)), key=lambda i: abs(values[i] - target))[:count]


class WordValue:
    """V(x) = 0.5 + mean weight of the words of a text, times √ of their number: linear, and 0.5 where nothing is known.

    A step on one text takes its error times ``rate`` off, and that of others by what they share.

    >>> value = WordValue(0.5)
    >>> value.of("buy a mug"), value.learn("buy a mug", 0.0)
    (0.5, 0.25)
    >>> round(value.of("buy a mug"), 4), round(value.of("buy a hat"), 4)
    (0.25, 0.3333)
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.weights: dict[str, float] = {}

    def of(self, text: str) -> float:
        """Return the success that is expected."""
        words = _words(text)
        return 0.5 + sum(self.weights.get(word, 0.0) for word in words) / sqrt(len(words))

    def learn(self, text: str, success: float) -> float:
        """Take a step of gradient descent on the squared error, and return that error as it was before."""
        words, short = _words(text), success - self.of(text)
        for word in words:
            self.weights[word] = self.weights.get(word, 0.0) + self.rate * short / sqrt(len(words))
        return short**2


def _words(text: str) -> list[str]:
    """The different words, in the order of the alphabet."""
    return sorted({*text.lower().split()})


@component("sampler", "pcl", paper="2510.01135")
class PCL(FromPool):
    """Of k times as many candidates those are played whose expected success is nearest to a half.

    PCL (Gao et al. 2025): k·m prompts are drawn evenly, V tells the expected success of each from the prompt alone, and the m of the smallest
    |V − ``target``| are played; then V is fitted to their mean success by squared error, so that it lags one update. Here candidates are
    ``candidates``·m tasks of the pool, or all of it, and V is linear in the words of a task's suite and prompt, one step of ``rate`` for each
    task that was played (ours; the paper's V is a model of the policy's size). Until something was played all V are 0.5, and ties are drawn by lot. The paper's loss is
    that of the policy's own samples: `credit: dr_grpo`, no KL, one update of each batch.

    Figure: ``loss``, the mean squared error of V in the newest update, on what it had not seen of it.

    Worked by hand from the book: the nearest three of six to a half, and the loss of V = 0.42 where the mean is 0.5.

    >>> nearest([0.05, 0.42, 0.61, 0.97, 0.50, 0.30], 0.5, 3), round((0.42 - 0.5) ** 2, 4)
    ([4, 1, 2], 0.0064)
    """

    over = "tasks of its pool whose success a regressor over their words expects to be nearest to the target"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 256,
        candidates: int = 4,
        target: float = 0.5,
        rate: float = 0.3,
    ) -> None:
        super().__init__(setup, size)
        require_option("pcl", candidates > 0, f"candidates={candidates} leave none", "Give 1 or more.")
        require_option("pcl", 0 <= target <= 1, f"target={target:g} is no success", "Give 0 to 1.")
        require_option("pcl", 0 < rate < 2, f"rate={rate:g} does not come to rest", "Give 0 < rate < 2.")
        self.candidates, self.target, self.value = candidates, target, WordValue(rate)
        self.texts: dict[int, str] = {}
        self.restore(PartState())

    def text(self, index: int) -> str:
        """Return what V reads of a task."""
        if index not in self.texts:
            one = self.request(index)
            self.texts[index] = f"{one.suite} {one.task.prompt}"
        return self.texts[index]

    def chosen(self, update: int) -> list[GroupRequest]:
        rng, most = derive_rng("pcl", self.setup.seed, update), self.setup.most
        drawn = rng.sample(range(self.size), min(self.size, self.candidates * most))
        found = [drawn[i] for i in nearest([self.value.of(self.text(i)) for i in drawn], self.target, most)]
        rng.shuffle(found)
        return [self.request(index) for index in found]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        super().seen(update, groups)
        told = [group for group in groups if group.episodes]
        errors = [self.value.learn(self.text(group.request.index), group.rate) for group in told]
        self.loss = sum(errors) / max(1, len(errors))

    def figures(self) -> Mapping[str, float]:
        return {"loss": self.loss}

    def state(self) -> PartState:
        memory = {**memory_state(self.memory).numbers}
        return PartState({"memory": memory, "weights": {**self.value.weights}, "loss": self.loss})

    def restore(self, state: PartState) -> None:
        self.memory = memory_from(PartState(state.numbers.get("memory", {})))
        self.value.weights = {str(word): float(w) for word, w in state.numbers.get("weights", {}).items()}
        self.loss = float(state.numbers.get("loss", 0.0))
