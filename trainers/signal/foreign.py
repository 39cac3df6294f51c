"""Episodes in which somebody else than the policy chose turns."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    """The policy plays all of it."""
    return {"foreign": 0.0 * turns_of(p)}


@component("signal", "foreign", gives=("foreign",), reads=("tokens",), exact=_exact)
def foreign(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """1 on turns that a guide or a source chose or had a hand in, 0 on those that the policy chose alone.

    It is read from ``Reply.source``, and counts turns that are only read, too.

    >>> from turnwise.trainers.guide.acnchor import acnchor
    >>> from turnwise.trainers.guide.toy import played_with
    >>> from turnwise.trainers.learn.collate import collate
    >>> _, guided = played_with(acnchor, "shop/quick", groups=1, size=2)
    >>> foreign(None, collate(guided), guided).turn["foreign"][:, 0].tolist()
    [0.0, 1.0]
    """
    marks_BK = batch.turns.reward_BK.new_zeros(batch.turns.mask_BK.shape)
    for b, episode in enumerate(episode for group in groups for episode in group):
        for k, turn in enumerate(episode.trajectory.turns):
            marks_BK[b, k] = float(bool(turn.reply.source))
    return Measured({"foreign": marks_BK})
