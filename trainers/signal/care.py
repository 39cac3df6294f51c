"""GRPO-CARE: how likely a slow copy of the policy finds the agent's own answer after the agent's own reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.thoughts import thought_length
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup
from turnwise.trainers.signal.forced import forced, last_turn, spread
from turnwise.trainers.signal.moving_copy import MovingCopy

MOST = 0.95
"""Confidence beyond which all are alike."""


@component(
    "signal", "care", paper="2506.16141", gives=("care",), reads=("tokens", "context", "copy of the policy")
)  # fmt: skip
class Care(Signal):
    """min(exp(mean log π_φ(answer's tokens | what came before)), .95) on every turn of a trajectory, under an average φ of the policy.

    The answer is what the last turn says after its thoughts; φ ← ``decay``·φ + (1 − decay)·θ after every ``every``-th update (GRPO-CARE,
    Chen et al. 2025). A reasoning that does not lead to its answer finds it unlikely; reward `care` pays the others. A trajectory whose
    last turn never came out of its thoughts has 0.

    >>> MOST
    0.95
    """

    def __init__(self, setup: SignalSetup, *, decay: float = 0.995, every: int = 10) -> None:
        self.copy = MovingCopy(setup, "signal 'care'", decay, every)

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        contexts, answers = dict[int, list[int]](), dict[int, list[int]]()
        for b, turns in enumerate(batch.turns.length_B.tolist()):
            if turns:
                before, said = last_turn(batch, b)
                thought = thought_length(said, see.tokenizer.decode)
                if thought < len(said):
                    contexts[b], answers[b] = [*before, *said[:thought]], said[thought:]
        found = forced(self.copy.score, contexts, answers, see.context)
        self.copy.follow(see.learner.model)
        sure = {b: min(logp.mean().exp().item(), MOST) for b, logp in found.items()}
        return Measured({"care": spread(batch, sure)})

    def state(self) -> PartState:
        return self.copy.state()

    def restore(self, state: PartState) -> None:
        self.copy.restore(state)
