"""Trajectories of a group that ended in the same words."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.spoken import said
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext


@component("signal", "answer", paper="2505.12346", gives=("answer",), reads=("outcomes",))
def answer(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """A number for each trajectory: the same for those of a group whose last action says the same (SEED-GRPO's clusters).

    Actions are the same if their words and their tools' names and arguments are, but for case and white space. Equal
    meaning in other words is not seen; the paper asks a model of entailment. A trajectory without a turn is like no other.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> answer(None, training_batch([[[-1.0]]] * 3), [[episode([0]), episode([1]), episode([0, 1])]]).turn["answer"].tolist()
    [0.0, 0.0, 0.0]
    """
    number_of: dict[tuple[int, str], int] = {}
    told = [
        (g, said(episode) or f"{b} said nothing")
        for g, group in enumerate(groups)
        for b, episode in enumerate(group)
    ]
    numbers = [number_of.setdefault(key, len(number_of)) for key in told]
    return Measured({"answer": torch.tensor(numbers, dtype=torch.float64)})
