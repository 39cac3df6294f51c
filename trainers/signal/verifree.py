"""VeriFree: how likely the policy finds the right answer after its own reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import cut_answers, forced, spread


@component("signal", "verifree", paper="2505.21493", gives=("verifree",), reads=("gold", "context"))
def verifree(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], *, tag: str = "") -> Measured:
    """R = exp(Σ_t log π(y_t | reasoning)), the probability of the whole right answer y, on every turn of a trajectory.

    VeriFree (Zhou et al. 2025): its expectation is the chance that the policy's own answer is y, where y is the only right one, with
    less variance than a verifier's 0 and 1. The answer and the reasoning are those of `rlpr`; with a ``tag`` the reasoning goes up to the
    last one in a message ("<answer", whose end tokens agree on), and y is what gold's last act says behind it. A message without it has 0. The product
    shrinks with the answer's length: use it where answers are short.

    The gradient has two halves. R, paid by `reward: {name: own_probability, signal: verifree, weight: 1, format: 0, answered: true}`, makes
    reasoning likelier with the credit rule `rloo`. R·∇log π(y | reasoning) is `source: [{name: verifree, loss: [verifree]}]`, of the same ``tag``.

    >>> verifree.__name__
    'verifree'

    Raises:
        RunError: the last act of gold has no such tag.
    """
    cut = cut_answers(see, batch, groups, tag)
    told = forced(see.learner.score, cut.contexts, cut.answers, see.context)
    return Measured({"verifree": spread(batch, {b: logp.sum().exp().item() for b, logp in told.items()})})
