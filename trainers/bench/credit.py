"""``turnwise bench credit``: milliseconds of every credit rule per 1,000 turns, beside an update on them."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.registry import components
from turnwise.trainers.bench.train import TrainWorkload, make_batch, make_contenders
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.toy_batches import OF_TRAJECTORIES
from turnwise.trainers.signal.sampled import logp_and_tokens

_REPEATS = 7


def bench_credit(
    *, repeats: int = _REPEATS, workload: TrainWorkload | None = None
) -> dict[str, BenchmarkFigure]:
    """Time each rule on the batch of ``bench train`` (the quickstart's update); medians and spreads.

    * the rule's name: milliseconds per 1,000 turns, on the CPU. What its signals cost is not in it: those of
      forks are in the metrics of a run (``fork_steps``), values come from the learner's own passes.
    * ``update``: ``Learner.update`` with one optimizer step on the same turns.
    * ``largest_share``: the dearest rule's part of an update, in percent.
    """
    load = (workload or TrainWorkload())._replace(trl=False)
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
        setup, batch = make_batch(Path(folder), load)
        update = make_contenders(Path(folder), setup, batch, trl=False)["learner"]
        turns = with_every_signal(batch.turns, logp_and_tokens(batch))
        thousands = int(turns.mask_BK.sum()) / 1000
        figures = {
            entry.name: _figure([s / thousands for s in _seconds(entry.build({}), turns, repeats)])
            for entry in components("credit")
        }
        laps = [_lap(update) for _ in range(min(repeats, 3) + 1)][1:]
        figures["update"] = _figure([s / thousands for s in laps])
    dearest = max(figure.value for name, figure in figures.items() if name != "update")
    figures["largest_share"] = BenchmarkFigure(100 * dearest / figures["update"].value, "%", 0.0)
    return figures


def with_every_signal(turns: TurnBatch, measured: dict[str, torch.Tensor]) -> TurnBatch:
    """The batch with all signals that any rule needs; those that are not measured are drawn at random."""
    generator, dtype = torch.Generator().manual_seed(0), turns.reward_BK.dtype
    named = {need for entry in components("credit") for need in entry.needs_with({})}
    signals = {
        name: torch.rand(turns.mask_BK.shape, generator=generator, dtype=dtype) * turns.mask_BK
        for name in sorted(named)
    }
    for name in named & OF_TRAJECTORIES:
        signals[name] = torch.rand(len(turns.group_B), generator=generator, dtype=dtype)
    signals["edge"] = torch.zeros_like(turns.reward_BK)
    tokens = turns.tokens
    if tokens is not None:
        drawn = {
            name: torch.rand(tokens.mask_RT.shape, generator=generator, dtype=dtype) * tokens.mask_RT
            for name in sorted(named)
            if name.startswith("token_")
        }
        tokens = dataclasses.replace(tokens, signals=drawn)
    signals |= {name: x.to(dtype) for name, x in measured.items()}
    return dataclasses.replace(turns, signals=signals, tokens=tokens)


def _seconds(credit: Callable[[TurnBatch], torch.Tensor], turns: TurnBatch, repeats: int) -> list[float]:
    """Seconds of single calls, after one that is not counted."""
    return [_lap(lambda: credit(turns)) for _ in range(repeats + 1)][1:]


def _lap(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _figure(seconds: Sequence[float]) -> BenchmarkFigure:
    milliseconds = [1000 * s for s in seconds]
    return BenchmarkFigure(
        statistics.median(milliseconds), "ms/1000 turns", max(milliseconds) - min(milliseconds)
    )
