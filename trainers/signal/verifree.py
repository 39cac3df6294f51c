"""VeriFree: how likely the policy finds the right answer after its own reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import after_reasoning, forced, right_answers, spread


@component("signal", "verifree", paper="2505.21493", gives=("verifree",), reads=("gold", "context"))
def verifree(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """exp(Σ_t log π(y_t | reasoning)), the probability of the whole right answer y, on every turn of a trajectory.

    VeriFree (Zhou et al. 2025): its expectation is the chance that the policy's own answer is y, where y is the only right one, with
    less variance than a verifier's 0 and 1. The answer and the reasoning are those of `rlpr`. Paid by
    `reward: {name: own_probability, signal: verifree, weight: 1, format: 0, answered: true}` with the credit rule `rloo`. The product
    shrinks with the answer's length: use it where answers are short. Left out: the other half of the gradient, R·∇log π(y | reasoning).

    >>> verifree.__name__
    'verifree'
    """
    told = forced(see.learner.score, after_reasoning(see, batch), right_answers(see, groups), see.context)
    return Measured({"verifree": spread(batch, {b: logp.sum().exp().item() for b, logp in told.items()})})
