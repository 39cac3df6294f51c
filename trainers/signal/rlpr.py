"""RLPR: how much likelier the policy's reasoning made the right answer, token by token in the mean."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import cut_answers, forced, spread


@component("signal", "rlpr", paper="2506.18254", gives=("rlpr",), reads=("gold", "context"))
def rlpr(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], *, tag: str = "") -> Measured:
    """max(mean p(y_t | reasoning) − mean p(y_t | task alone), 0) over the tokens of the right answer y, on every turn of a trajectory.

    The policy's last words are replaced by the right answer: the task's ``gold`` where that is a text, else the last act of gold's
    solution. Its reasoning is all that it was told and said before, and the thoughts of its last turn. With a ``tag`` the
    reasoning goes up to the last one in a message ("<answer", whose end tokens agree on), y is what gold's last act says behind
    it, and the task alone is followed by the tag; a message without it has 0. Give a tag wherever the policy says more than its
    answer after its thoughts: else y stands in the place of all that, and each p is about 0. Probabilities, not logarithms, are
    averaged, so that one unlikely token counts little (RLPR, Yu et al. 2025). Use it with
    `reward: {name: own_probability, signal: rlpr}`, and the filter `rlpr`.

    Worked by hand: p = .9, .6, .3 with the reasoning, .4 each without it.

    >>> round(rise([0.9, 0.6, 0.3], [0.4, 0.4, 0.4]), 4), rise([0.1], [0.4])
    (0.2, 0.0)

    Raises:
        RunError: the last act of gold has no such tag.
    """
    cut = cut_answers(see, batch, groups, tag)
    told = forced(see.learner.score, cut.contexts, cut.answers, see.context)
    bare = forced(see.learner.score, cut.bare, cut.answers, see.context)
    found = {b: rise(told[b].exp().tolist(), bare[b].exp().tolist()) for b in told}
    return Measured({"rlpr": spread(batch, found)})


def rise(with_reasoning: Sequence[float], without: Sequence[float]) -> float:
    """The gain in the mean probability of a token; 0 where there is none."""
    return max(0.0, sum(with_reasoning) / len(with_reasoning) - sum(without) / len(without))
