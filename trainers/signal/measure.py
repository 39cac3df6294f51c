"""Measures the signals of a batch that the parts of a run ask for.

What forks and judges measure is in the turns already. All signals that read the policy's forward pass share one.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from turnwise.registry import Component
from turnwise.trainers.core import Group, Stateful, TurnBatch
from turnwise.trainers.kit.meter import PartMeter
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.heads import Head
from turnwise.trainers.signal.choose import ChosenSignal
from turnwise.trainers.signal.core import Measure, Measured, Reading, Signal, SignalContext, SignalSetup


class RunningSignal(NamedTuple):
    """A signal in a run."""

    entry: Component
    signal: Signal | Measure

    def measure(
        self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]
    ) -> Measured | Reading:
        measure = self.signal.measure if isinstance(self.signal, Signal) else self.signal
        return measure(see, batch, groups)


class Signals:
    """The signals of a run: measures them, and keeps the state of those that learn or remember."""

    def __init__(self, chosen: Sequence[ChosenSignal], setup: SignalSetup) -> None:
        self.chosen, self._reader = chosen, setup.reader
        self._running: list[RunningSignal] = []
        for entry, options in chosen:
            built = entry.build(options)
            made = built(setup) if inspect.isclass(entry.target) else built
            self._running.append(RunningSignal(entry, made))

    @property
    def heads(self) -> list[Head]:
        """Those that are trained in the policy's own passes."""
        return [one.signal for one in self._learned() if one.signal.module is not None]

    def measure(
        self,
        see: SignalContext,
        batch: TrainingBatch,
        groups: Sequence[Group],
        only: Collection[str] | None = None,
    ) -> tuple[TrainingBatch, dict[str, float]]:
        """The batch with the signals that are needed, and metrics of what was learned and what it took.

        A signal that the batch has already is not measured again.

        Args:
            see: what signals are read from.
            batch: of all that was played.
            groups: the same episodes.
            only: names that are wanted now; all if None.
        """
        wanted = see.needs - batch.turns.measured if only is None else frozenset(only)
        found: list[Measured] = []
        readings: list[Reading] = []
        meter = PartMeter()

        def tokens() -> int:
            return see.learner.reader.tokens_read + self._reader.tokens_read

        for one in self._running:
            if wanted & {*one.entry.gives}:
                with meter.of(f"signal_{one.entry.name}", tokens):
                    result = one.measure(see, batch, groups)
                (readings if isinstance(result, Reading) else found).append(result)  # pyright: ignore[reportArgumentType]
        if readings:
            with meter.of("signal_forward_pass", tokens):
                see.learner.read(batch.rows, [reading.read for reading in readings])
                found.extend(reading.done() for reading in readings)
        return _with(batch, found), {**_metrics(found), **meter.metrics}

    @property
    def stateful(self) -> dict[str, Stateful]:
        """Those that learn or remember, by KIND/NAME."""
        return {f"signal/{one.entry.name}": one.signal for one in self._learned()}

    def _learned(self) -> Iterator[_Learned]:
        for one in self._running:
            if isinstance(one.signal, Signal):
                yield _Learned(one.entry, one.signal)


class _Learned(NamedTuple):
    entry: Component
    signal: Signal


def _with(batch: TrainingBatch, found: Sequence[Measured]) -> TrainingBatch:
    turn, view = dict(batch.turns.signals), batch.turns.tokens
    token = dict(view.signals) if view else {}
    for one in found:
        turn |= {name: x.to(batch.turns.reward_BK.dtype) for name, x in one.turn.items()}
        token |= {name: x.to(batch.turns.reward_BK.dtype) for name, x in one.token.items()}
    tokens = view and dataclasses.replace(view, signals=token)
    turns: TurnBatch = dataclasses.replace(batch.turns, signals=turn, tokens=tokens)
    return batch._replace(turns=turns)


def _metrics(found: Sequence[Measured]) -> dict[str, float]:
    return {name: value for one in found for name, value in one.metrics.items()}
