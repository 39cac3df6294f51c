"""``turnwise bench prefix``: learning rows as a tree beside learning them row by row, through the learner's own update.

Both learn the same batch from the same weights, in turns, in this process: processor seconds, so that other work counts little.
Batches are made up (a group with a long prompt, a rollout tree), played by a script (retail, a household) and, by
``turnwise bench prefix RUN``, the groups of a run's last update, learned by the model that lies beside it. Gradients are compared as they
are before the step.
"""

from __future__ import annotations

import copy
import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.registry import get_component
from turnwise.trainers.bench.held import held_bytes
from turnwise.trainers.bench.prefix_batches import WORKLOADS, MadeBatch, log_of, of_log
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.objective import LossTerm, Objective
from turnwise.trainers.learn.options import OptimizerOptions

ROUNDS = 3
MICRO_TOKENS = 16384


class Way(NamedTuple):
    """The way in which rows are read: ``tree``, ``rows`` or ``filled``, which is rows of like length up to ``micro_tokens``, whatever they pad."""

    name: str
    micro_tokens: int = MICRO_TOKENS

    def learner(self, made: MadeBatch, minibatches: int) -> Unmoved:
        options = OptimizerOptions(
            share="tree" if self.name == "tree" else "rows",
            micro_tokens=self.micro_tokens,
            minibatches=minibatches,
        )
        kind = Filled if self.name == "filled" else Unmoved
        return kind(copy.deepcopy(made.model), options)


class PrefixSetting(NamedTuple):
    """A batch, the ways of rows that the tree is beside, by what their figures are called, and the update's minibatches."""

    make: Callable[[], MadeBatch]
    beside: Mapping[str, Way]
    minibatches: int = 1


class WayLap(NamedTuple):
    """A way's updates: processor seconds, tokens that an update reads, bytes held for the backward pass, gradients."""

    seconds: list[float]
    read: int
    held: int
    gradients: list[Tensor]


def bench_prefix(run: str = "", *, rounds: int = ROUNDS) -> dict[str, BenchmarkFigure]:
    """Measure each workload; with a run also its last update, in two minibatches as the quickstart's. Medians of rounds.

    * ``times_rows``: processor seconds of rows divided by those of the tree.
    * ``share_of_token_ratio``: that, divided by how many times fewer tokens the tree reads.
    * ``tokens_saved``: the share of the rows' tokens that is not read.
    * ``max_gradient_gap``: the largest difference of a gradient's entry, of the largest entry.
    * ``rounding``: the same between rows and rows that are cut otherwise, which the order of sums in float32 alone parts.
    * ``memory``: bytes that wait for the backward pass at most, of the rows'.

    Raises:
        TurnwiseError: there is no such run.
    """
    rows = {"": Way("rows")}
    settings = {name: PrefixSetting(make, rows) for name, make in WORKLOADS.items()}
    if run:
        log = log_of(run)
        beside = {
            f"rows filled to {MICRO_TOKENS:,}": Way("filled"),
            f"rows at {MICRO_TOKENS:,}": Way("rows"),
            "rows at 2,048": Way("rows", 2048),
        }
        settings["last update of the run"] = PrefixSetting(lambda: of_log(log), beside, minibatches=2)
    figures: dict[str, BenchmarkFigure] = {}
    for name, setting in settings.items():
        for key, figure in compared(setting, rounds).items():
            figures[f"{name}, {key}" if ":" in key else f"{name}: {key}"] = figure
    return figures


def compared(setting: PrefixSetting, rounds: int = ROUNDS) -> dict[str, BenchmarkFigure]:
    """Return the figures of the tree beside each way of rows."""
    made = setting.make()
    tree, *others = measured(made, [Way("tree"), *setting.beside.values()], setting.minibatches, rounds)
    found: dict[str, BenchmarkFigure] = {}
    for name, rows in zip(setting.beside, others, strict=True):
        ratios = [row / node for row, node in zip(rows.seconds, tree.seconds, strict=True)]
        times = statistics.median(ratios)
        figures = {
            "times_rows": BenchmarkFigure(round(times, 2), "×", round(max(ratios) - min(ratios), 2)),
            "share_of_token_ratio": BenchmarkFigure(round(times / (rows.read / tree.read), 2), "of 1", 0.0),
            "tokens_saved": BenchmarkFigure(round(1 - tree.read / rows.read, 3), "of 1", 0.0),
            "max_gradient_gap": BenchmarkFigure(
                gap_of(tree.gradients, rows.gradients), "of the largest", 0.0
            ),
            "memory": BenchmarkFigure(round(tree.held / rows.held, 3), "of rows", 0.0),
        }
        found |= {f"{name}: {key}" if name else key: figure for key, figure in figures.items()}
    cut = [rows.gradients for rows in others]
    if not any(way.name == "filled" for way in setting.beside.values()):
        filled = Way("filled").learner(made, setting.minibatches)
        filled.update(made.batch, advantages_of(made.batch), objective_of())
        cut.append(filled.gradients)
    rounding = max(gap_of(one, other) for one, other in itertools.combinations(cut, 2))
    return found | {"rounding": BenchmarkFigure(rounding, "of the largest", 0.0)}


def gap_of(gradients: Sequence[Tensor], beside: Sequence[Tensor]) -> float:
    """Return the largest difference of two gradients' entries, of the largest entry."""
    largest = max(float(x.abs().max()) for x in beside)
    return max(float((x - y).abs().max()) for x, y in zip(gradients, beside, strict=True)) / largest


def measured(made: MadeBatch, ways: list[Way], minibatches: int, rounds: int) -> list[WayLap]:
    """Let each way learn the batch in turns; the first round, which loads kernels, counts bytes and no seconds."""
    learners = [way.learner(made, minibatches) for way in ways]
    advantage_BK, objective = advantages_of(made.batch), objective_of()
    seconds: dict[int, list[float]] = defaultdict(list)
    held = [0] * len(ways)
    for number in range(rounds + 1):
        for place in (*range(number % len(ways), len(ways)), *range(number % len(ways))):
            learner, before = learners[place], time.process_time()
            if number:
                learner.update(made.batch, advantage_BK, objective)
                seconds[place].append(time.process_time() - before)
                continue
            with held_bytes(learner.model) as meter:
                learner.update(made.batch, advantage_BK, objective)
            held[place] = meter.most
    return [
        WayLap(seconds[place], learner.reader.tokens_read // (rounds + 1), held[place], learner.gradients)
        for place, learner in enumerate(learners)
    ]


class Unmoved(Learner):
    """Keeps each step's gradients instead of following them, so that all rounds learn from the same weights."""

    gradients: list[Tensor]

    def _descend(self, learning_rate: float) -> float:
        parameters = [parameter for held in self.weights for parameter in held.trainable()]
        self.gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        self.optimizer.zero_grad(set_to_none=True)
        return 0.0


class Filled(Unmoved):
    """Cuts rows of like length, as many as come to ``micro_tokens`` with their padding: few passes, as loops that do not count padding make."""

    def _cut(self, rows: TokenRows, row_M: Tensor | None) -> list[list[Tensor]]:
        chosen = range(len(rows.length_R)) if row_M is None else row_M.tolist()
        length_R, parts = rows.length_R.tolist(), list[list[int]]()
        for row in sorted(chosen, key=lambda row: (-length_R[row], row)):
            if parts and (len(parts[-1]) + 1) * length_R[parts[-1][0]] <= self.options.micro_tokens:
                parts[-1].append(row)
            else:
                parts.append([row])
        return [[torch.tensor(part) for part in parts]]


def objective_of() -> Objective:
    """Return a clipped loss with entropy, by the mean over tokens."""
    terms = [LossTerm(name, get_component("loss", name).build({}), 1.0) for name in ("clip", "entropy")]
    return Objective(
        terms, get_component("reduce", "token_mean").build({}), get_component("correction", "none").build({})
    )


def advantages_of(batch: TrainingBatch) -> Tensor:
    """Return an advantage of either sign for each turn."""
    noise_BK = torch.randn(batch.turns.mask_BK.shape, generator=torch.Generator().manual_seed(0))
    return noise_BK * batch.turns.mask_BK
