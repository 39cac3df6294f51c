"""``turnwise bench train``: the learner's speed beside a bare training loop and TRL's GRPOTrainer.

Real episodes of the shop, their tokens and the quickstart's model. Every contender takes optimizer steps
on the same rows in the same padded micro-batches, with a model and AdamW of its own. They take turns, and
a ratio is formed of two passes of the same round, so that what else runs on the machine weighs on both.
Tokens are counted without padding.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.agents.models.small import build_small_model
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split
from turnwise.trainers.bench.contenders import Bare, Contender, Prepared, Trl
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import choose_device, load_model
from turnwise.trainers.learn.warm_start import texts
from turnwise.trainers.run.learning import LearningSetup, learning_setup

RECIPE = "shop-quick"


class TrainWorkload(NamedTuple):
    """The size of the benchmark's batch; by default it is that of the recipe's update."""

    tasks: int = 16
    group: int = 8
    micro_tokens: int = 16384
    trl: bool | None = None  # None: where it is installed
    model: str = ""  # a published one's folder; "": the recipe's small one, made for the batch


def of_a_model(folder: str) -> TrainWorkload:
    """Return the batch for a published model here: smaller than the recipe's, and on a CPU such that an update takes a minute."""
    if torch.cuda.is_available():
        return TrainWorkload(2, micro_tokens=4096, model=folder)
    return TrainWorkload(1, 4, micro_tokens=2048, model=folder)


class Lap(NamedTuple):
    """One pass of one contender over the batch."""

    wall_s: float
    cpu_s: float


_RATIOS = (  # name, whose speed, divided by whose
    ("share_of_bare", "learner", "bare"),
    ("share_of_lean", "learner", "lean"),
    ("share_of_bare_2_steps", "learner_2_steps", "bare_2_steps"),
    ("times_trl", "learner", "trl"),
)


def bench_train(*, repeats: int = 5, workload: TrainWorkload | None = None) -> dict[str, BenchmarkFigure]:
    """Tokens per second of every contender, and ratios; medians, spread = largest − smallest.

    * ``learner``: ``Learner.update``, one optimizer step on the batch.
    * ``bare``: forward, cross-entropy on the sampled tokens, backward, clipping, AdamW.
    * ``lean``: the same, computing logits only where a token was sampled, as the learner does.
    * ``trl``: GRPOTrainer's ``training_step`` on each micro-batch, then clipping, AdamW.
    * ``share_of_bare``, ``share_of_lean``, ``times_trl``: the learner's speed divided by theirs.
    * ``share_of_bare_2_steps``: with two optimizer steps on the batch. The learner must score the second
      half with the old weights first; the bare loop has no such pass.
    * ``…_cpu``: the same by processor time, which what else runs disturbs less.

    Of a published model (``model``) the learner, the lean loop and TRL alone take turns.
    Where TRL is not installed (``pip install trl``), its figures are missing. The first round warms up and
    is not counted.
    """
    load = workload or TrainWorkload()
    with_trl = find_spec("trl") is not None if load.trl is None else load.trl
    if load.trl is None and not with_trl:
        warnings.warn("TRL is not installed: no figures of it. Remedy: pip install trl", stacklevel=2)
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder, _no_progress_bars():
        model = Path(load.model or folder)
        setup, batch = make_batch(model, load)
        contenders = make_contenders(model, setup, batch, trl=with_trl, few=bool(load.model))
        rounds = [_round(contenders, first) for first in range(repeats + 1)][1:]
    tokens = int(batch.rows.length_R.sum())
    figures = {
        name: _figure([tokens / laps[name].wall_s for laps in rounds], "tokens/s")
        for name in ("learner", "bare", "lean", "trl")
        if name in contenders
    }
    for ratio, ours, theirs in _RATIOS:
        if theirs in contenders:
            pairs = [(laps[theirs], laps[ours]) for laps in rounds]
            figures[ratio] = _figure([a.wall_s / b.wall_s for a, b in pairs], "")
            figures[f"{ratio}_cpu"] = _figure([a.cpu_s / b.cpu_s for a, b in pairs], "")
    return figures


def make_batch(folder: Path, load: TrainWorkload) -> tuple[LearningSetup, TrainingBatch]:
    """Make a batch of demonstrations to learn from, and the recipe's small model in ``folder``, unless a published one lies there."""
    setup = learning_setup(RECIPE, {"optimizer.micro_tokens": load.micro_tokens})
    tasks = suite_tasks(get_suite(setup.suite), Split.TRAIN, load.tasks)
    requests = [Request(task, seed) for task in tasks for seed in range(load.group)]
    episodes = run_episodes(requests, scripted(setup.demonstrator))
    if not load.model:
        build_small_model(folder, texts([episode.trajectory for episode in episodes]), **setup.sizes)
    told = run_episodes(requests, DemonstrationPolicy(scripted(setup.demonstrator), _renderer(folder, setup)))
    batch = collate([told[i : i + load.group] for i in range(0, len(told), load.group)])
    logp_RT = _learner(folder, setup, 1).score(batch.rows)  # what an engine would have reported
    return setup, batch._replace(
        rows=batch.rows._replace(behaviour_logp_RT=logp_RT, known_RT=batch.rows.mask_RT)
    )


def make_contenders(
    folder: Path, setup: LearningSetup, batch: TrainingBatch, *, trl: bool, few: bool = False
) -> dict[str, Contender]:
    """The training loops to be measured, by name; ``few`` are those that say most, since each has weights and moments of its own."""
    advantage_BK = _advantages(batch)
    objective = setup.objective

    def learner(steps: int) -> Contender:
        learner = _learner(folder, setup, steps)
        return lambda: learner.update(batch, advantage_BK, objective)

    def prepared(steps: int) -> Prepared:
        device = choose_device(setup.device)
        return Prepared(load_model(folder, device), setup.optimizer, batch, advantage_BK, steps)

    contenders: dict[str, Contender] = {"learner": learner(1), "lean": Bare(prepared(1), lean=True)}
    if not few:
        contenders["bare"] = Bare(prepared(1))
        contenders |= {"learner_2_steps": learner(2), "bare_2_steps": Bare(prepared(2))}
    if trl:
        contenders["trl"] = Trl(prepared(1), folder)
    return contenders


def _learner(folder: Path, setup: LearningSetup, steps: int) -> Learner:
    options = dataclasses.replace(setup.optimizer, minibatches=steps, epochs=1)
    model = load_model(folder, choose_device(setup.device))
    return Learner(model, options, temperature=setup.temperature)


def _renderer(folder: Path, setup: LearningSetup) -> Renderer:
    from transformers import AutoTokenizer

    return Renderer(AutoTokenizer.from_pretrained(folder), tools_format=setup.tools)


def _advantages(batch: TrainingBatch) -> Tensor:
    """Of both signs, (B, K): how long a pass takes does not depend on their values."""
    mask_BK = batch.turns.mask_BK
    return torch.randn(mask_BK.shape, generator=torch.Generator().manual_seed(0)) * mask_BK


def _round(contenders: Mapping[str, Contender], first: int) -> dict[str, Lap]:
    """A lap of everyone; who begins changes from round to round."""
    names = list(contenders)
    first %= len(names)
    return {name: _lap(contenders[name]) for name in names[first:] + names[:first]}


def _lap(contender: Contender) -> Lap:
    wall, cpu = time.perf_counter(), time.process_time()
    contender()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Lap(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Loading a model of a megabyte needs none."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
