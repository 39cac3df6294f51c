"""Signals as a run makes them, for tests of single ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from turnwise.registry import get_component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.signal.choose import ChosenSignal
from turnwise.trainers.signal.core import SignalContext, SignalSetup
from turnwise.trainers.signal.measure import Signals

CPU = torch.device("cpu")


def signals(
    kind: str,
    *needs: str,
    width: int = 64,
    seed: int = 0,
    critic: str = "advantages",
    copy: Callable[[], Any] | None = None,
    **options: Any,
) -> Signals:
    """The signal of this name alone, asked for these of its names (all unless given)."""
    entry = get_component("signal", kind)
    setup = SignalSetup(
        needs=frozenset(needs or entry.gives),
        width=width,
        device=CPU,
        seed=seed,
        reader=Reader(CPU, 1.0, "float32"),
        micro_tokens=40,
        copy_policy=copy or (lambda: None),  # pyright: ignore[reportArgumentType]
        load=lambda path: None,  # pyright: ignore[reportArgumentType]
        tokenizer=None,
        critic=critic,
    )
    return Signals([ChosenSignal(entry, options)], setup)


def measured(
    signals: Signals, learner: Learner, batch: TrainingBatch, groups: Sequence[Group] = (), **context: Any
) -> TrainingBatch:
    """The batch with what these signals measure."""
    given: dict[str, Any] = {"tokenizer": None, "renderer": None, "context": 64, "env_options": {}, **context}
    needs = frozenset(name for one in signals.chosen for name in one.entry.gives)
    bare = dataclasses.replace(batch.turns, signals={})
    view = bare.tokens and dataclasses.replace(bare.tokens, signals={})
    batch = batch._replace(turns=dataclasses.replace(bare, tokens=view))
    return signals.measure(SignalContext(needs=needs, learner=learner, **given), batch, groups)[0]
