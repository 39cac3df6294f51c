"""A listener: another model that reads the policy's reasoning, and must come to the right answer by it."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.model import same_tokens
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup
from turnwise.trainers.signal.forced import cut_answers, forced, spread


@component(
    "signal", "listener", paper="2506.22832", gives=("listener",), reads=("gold", "context", "copy of the policy")
)  # fmt: skip
class Listener(Signal):
    """The probability that a frozen model gives the right answer after the policy's reasoning, whose own answer it is not shown.

    p_L = exp(Σ_t log π_L(y_t | reasoning)), on every turn. The listener is the model at ``path``, which must have the policy's tokens, or
    the policy as it was when reinforcement began. A reasoning that supports its answer convinces another reader too (Gambashidze et
    al. 2025, whose reader sees a picture and chooses among answers). The answer, the reasoning and its ``tag`` are those of `rlpr`. Theirs is
    `reward: {name: own_probability, signal: listener, weight: 0.5, format: 1, outcome: 0.5}`.

    >>> Listener.__name__
    'Listener'

    Raises:
        RecipeError: the model has other tokens.
        RunError: the last act of gold has no such tag.
    """

    def __init__(self, setup: SignalSetup, *, path: str = "", tag: str = "") -> None:
        if path:
            same_tokens(setup.tokenizer, path, "The listener")
        self.model = (setup.load(path) if path else setup.copy_policy()).requires_grad_(False)
        self.reader, self.most, self.tag = setup.reader, setup.micro_tokens, tag

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        cut = cut_answers(see, batch, groups, self.tag)
        told = forced(
            lambda rows: self.reader.score(self.model, rows, self.most),
            cut.contexts,
            cut.answers,
            see.context,
        )
        return Measured({"listener": spread(batch, {b: logp.sum().exp().item() for b, logp in told.items()})})
