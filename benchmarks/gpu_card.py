"""One GPU shared by learner and engine: trees, sleep, parts of weights on one rank, TRL beside; at most eight minutes on an H100.

``python benchmarks/gpu_card.py [trees sleep adapters sharded trl] [--model 0.5b] [--published FOLDER] [--seconds 480] [--out FILE]``. What a part found is written as soon as it is done, in the order of
their names, and none is begun after ``--seconds``. With ``--model tiny`` it runs on a CPU, where ``sleep`` says that it was not run and no figure says
anything about GPUs (``tests/benchmarks/test_gpu_card.py``, in `make test-full`).

* ``trees``: a group of eight that shares its prompt, learned as rows, as a tree, and on a GPU as a tree by one kernel: seconds, gradients, model FLOP/s by rows and by nodes.
* ``sleep``: seconds to fall asleep and to wake, bytes of the KV cache that were freed, the canary after it; ``kv`` and ``weights``.
* ``adapters``: a push of adapters merged and added, tokens sampled with either, the canary's gap.
* ``sharded``: an update with FSDP2 on one rank beside whole weights.
* ``trl``: ``turnwise bench train --model`` of a published model in FOLDER, TRL on the same card; not run without a folder.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from gpu import (
    CONTEXT,
    CUDA,
    DEVICE,
    GB,
    LOAD,
    SHAPES,
    Shape,
    allocated,
    ask,
    figure,
    free,
    model_in,
    timed,
    used,
)

from turnwise.agents.engines.registry import open_engine
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.machine import describe
from turnwise.trainers.bench.prefix import Unmoved, advantages_of, objective_of
from turnwise.trainers.bench.prefix_batches import VOCABULARY, Workload, made_up
from turnwise.trainers.bench.train import TrainWorkload, bench_train
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.group import process_group
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.mesh import Mesh
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import LoraOptions, OptimizerOptions
from turnwise.trainers.learn.ranks import Meeting
from turnwise.trainers.learn.shards import divide
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.tree import count_nodes

Found = dict[str, BenchmarkFigure]
NOMINAL = 989.5e12
"""Dense bfloat16 FLOP/s of an H100, as its maker says."""


class Place(NamedTuple):
    """Where a model of random weights lies, its shape, and a published one's folder if there is one."""

    folder: Path
    shape: Shape
    published: str


# --- trees ---------------------------------------------------------------------------------------------


def trees(at: Place) -> Found:
    """A group of eight by rows and by nodes, from the same weights, in turns."""
    prompt, action = (1_000, 50) if CUDA else (40, 6)
    batch = collate([made_up(Workload(((prompt, action),), members=8)) for _ in range(4 if CUDA else 1)])
    rows = batch.rows
    tokens, nodes = int(rows.length_R.sum()), count_nodes(rows.token_RT, rows.length_R)
    seconds, gradients = dict[str, list[float]](), dict[str, list[torch.Tensor]]()
    for share in ("rows", "tree", "flex") if CUDA else ("rows", "tree"):
        options = OptimizerOptions(share=share, micro_tokens=at.shape.micro_tokens)
        learner = Unmoved(load_model(at.folder, DEVICE), options)
        update = _update(learner, batch)
        update()
        seconds[share] = [timed(update) for _ in range(LOAD.repeats)]
        gradients[share] = [one.cpu() for one in learner.gradients]
        del learner, update
        free()
    ratios = {
        share: [row / own for row, own in zip(seconds["rows"], seconds[share], strict=True)]
        for share in seconds
    }
    largest = max(float(x.abs().max()) for x in gradients["rows"])
    gaps = {
        share: max(float((x - y).abs().max()) for x, y in zip(gradients["rows"], own, strict=True)) / largest
        for share, own in gradients.items()
    }
    each = 6 * _weights(at.shape)  # operations of a token, attention and the head aside
    found = {
        "tree_times_rows": figure(ratios["tree"], "×"),
        "tree_tokens_per_node": figure([tokens / nodes], "×"),
        "tree_gradient_gap": figure([gaps["tree"]], "of the largest"),
        "rows_mfu": figure([each * tokens / s / NOMINAL for s in seconds["rows"]], "of nominal"),
        "tree_mfu_by_nodes": figure([each * nodes / s / NOMINAL for s in seconds["tree"]], "of nominal"),
        "tree_mfu_by_rows": figure([each * tokens / s / NOMINAL for s in seconds["tree"]], "of nominal"),
    }
    if "flex" in seconds:
        found["flex_times_rows"] = figure(ratios["flex"], "×")
        found["flex_gradient_gap"] = figure([gaps["flex"]], "of the largest")
    return found


def _update(learner: Learner, batch: TrainingBatch) -> Callable[[], object]:
    return lambda: learner.update(batch, advantages_of(batch), objective_of())


def _weights(shape: Shape) -> int:
    key = shape.width // shape.heads * shape.kv_heads
    layer = 2 * shape.width**2 + 2 * shape.width * key + 3 * shape.width * shape.inner
    return shape.layers * layer


# --- sleep ---------------------------------------------------------------------------------------------


def sleep(at: Place) -> Found:
    """Both kinds of sleep, three times each; nothing on a CPU, where vLLM has none."""
    if not CUDA:
        print("sleep: not run, since vLLM sleeps on a GPU only", flush=True)
        return {}
    found: Found = {}
    for kind in ("kv", "weights"):
        model = load_model(at.folder, DEVICE)
        engine: Any = open_engine(
            "vllm", str(at.folder), context_length=CONTEXT, max_sequences=LOAD.requests, sleep=kind
        )
        try:
            push_weights(model, engine, 0)
            before = used()
            laps = [_nap(engine, model, version) for version in range(1, 4)]
        finally:
            engine.close()
        del model
        free()
        cache = [lap.freed / before for lap in laps]
        found |= {
            f"sleep_{kind}": figure([lap.asleep for lap in laps], "s"),
            f"sleep_{kind}_wake_and_push": figure([lap.awake for lap in laps], "s"),
            f"sleep_{kind}_freed": figure([lap.freed / GB for lap in laps], "GB"),
            f"sleep_{kind}_freed_share": figure(cache, "of what the engine and the trainer had"),
            f"sleep_{kind}_canary_gap": figure([lap.gap for lap in laps], "nats"),
        }
    return found


class Nap(NamedTuple):
    """Seconds until an engine slept, and until it had new weights; bytes that were free meanwhile; the canary's gap."""

    asleep: float
    awake: float
    freed: int
    gap: float


def _nap(engine: Any, model: Any, version: int) -> Nap:
    ask(engine, version)
    before, gaps = used(), list[float]()
    asleep = timed(engine.sleep)
    freed = before - used()
    awake = timed(lambda: gaps.append(push_weights(model, engine, version).max_logp_gap))
    return Nap(asleep, awake, freed, gaps[0])


# --- adapters ------------------------------------------------------------------------------------------


def adapters(at: Place) -> Found:
    """Adapters of rank 16 merged into vLLM's weights, and added as it computes."""
    found: Found = {}
    for name, rank in (("merged", 0), ("added", 16)):
        model = load_model(at.folder, DEVICE, LoraOptions(16, 32, "all-linear"))
        memory = {} if CUDA else {"kv_cache_gib": 0.1}
        engine: Any = open_engine(
            "vllm",
            str(at.folder),
            context_length=CONTEXT,
            max_sequences=LOAD.requests,
            adapter_rank=rank,
            **memory,
        )
        try:
            reports = [push_weights(model, engine, version) for version in range(1, 5)][1:]
            ask(engine, 0)
            seconds = [timed(functools.partial(ask, engine, seed)) for seed in range(1, 1 + LOAD.repeats)]
        finally:
            engine.close()
        del model
        free()
        found |= {
            f"adapters_{name}_push": figure([one.load_seconds for one in reports], "s"),
            f"adapters_{name}_sampling": figure(
                [LOAD.requests * LOAD.answer / s for s in seconds], "tokens/s"
            ),
            f"adapters_{name}_canary_gap": figure([one.max_logp_gap for one in reports], "nats"),
        }
    return found


# --- sharded -------------------------------------------------------------------------------------------


def sharded(at: Place) -> Found:
    """FSDP2 of one rank (NCCL on a GPU) beside whole weights; it proves paths, and costs what it costs."""
    batch = collate([made_up(Workload(((200, 50), (100, 50)), members=8 if CUDA else 2))])
    options = OptimizerOptions(micro_tokens=at.shape.micro_tokens)
    seconds, held = dict[str, list[float]](), dict[str, int]()
    for name in ("whole", "sharded"):
        began = allocated()
        with (
            tempfile.TemporaryDirectory() as meeting,
            process_group(0, 1, Meeting.in_file(Path(meeting, "m"), 1), DEVICE, 60.0),
        ):
            model = load_model(at.folder, DEVICE)
            learner = Learner(divide(model, Mesh(DEVICE)) if name == "sharded" else model, options)
            update = _update(learner, batch)
            update()
            held[name] = allocated() - began
            seconds[name] = [timed(update) for _ in range(LOAD.repeats)]
            del model, learner, update
        free()
    ratios = [one / other for one, other in zip(seconds["sharded"], seconds["whole"], strict=True)]
    return {
        "sharded_times_whole": figure(ratios, "×"),
        "sharded_held": figure([held["sharded"] / GB], "GB"),
        "whole_held": figure([held["whole"] / GB], "GB"),
    }


def trl(at: Place) -> Found:
    """``turnwise bench train --model``."""
    if not at.published:
        print("trl: not run, since no --published model was given", flush=True)
        return {}
    load = TrainWorkload(tasks=4, micro_tokens=4096, model=at.published)
    return {f"published_{name}": value for name, value in bench_train(repeats=3, workload=load).items()}


PARTS: Mapping[str, Callable[[Place], Found]] = {
    "trees": trees,
    "sleep": sleep,
    "adapters": adapters,
    "sharded": sharded,
    "trl": trl,
}


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--model", choices=SHAPES, default="0.5b")
    parser.add_argument("--published", default="")
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    shape, until = SHAPES[asked.model], time.monotonic() + asked.seconds
    shape = shape if shape.vocabulary >= VOCABULARY else shape._replace(vocabulary=VOCABULARY)
    told: dict[str, Any] = {"name": "gpu-card", "machine": describe(), "figures": {}, "not run": []}
    with tempfile.TemporaryDirectory(prefix="turnwise-card-") as name:
        at = Place(model_in(Path(name) / "model", shape), shape, asked.published)
        for part in asked.parts or PARTS:
            found = PARTS[part](at) if time.monotonic() < until else {}
            told["not run"] += [] if found else [part]
            for key, value in found.items():
                told["figures"][f"{key}/{asked.model}"] = value._asdict()
                print(f"{key:32} {value.value:14.4g} {value.unit:16} spread {value.spread:.2g}", flush=True)
            if asked.out is not None:
                asked.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
