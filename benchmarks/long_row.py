"""One row of many tokens learned by a model of a million weights with gradient checkpointing: peak memory and processor seconds.

``python benchmarks/long_row.py [8192 16384 65536] [--out FILE]``; lengths that FILE has already stay in it. Each length has a process of its own, so that its peak is its own: resident memory
at most, less what it was before the update; and bytes that wait for the backward pass at most (``turnwise.trainers.bench.held``). One
thread, one repetition.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnwise.machine import describe
from turnwise.trainers.bench.held import held_bytes
from turnwise.trainers.bench.prefix import Unmoved, advantages_of, objective_of
from turnwise.trainers.bench.prefix_batches import Workload, made_up, small_model
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.learn.options import OptimizerOptions

LENGTHS = (8_192, 16_384, 65_536)
SAMPLED = 64


class Learned(NamedTuple):
    """A length's processor seconds, megabytes of resident memory above the start, megabytes held for the backward pass, and weights."""

    seconds: float
    peak: float
    held: float
    weights: int


def learn(length: int) -> Learned:
    """Make one update of one row, in this process."""
    torch.set_num_threads(1)
    model = small_model()
    model.gradient_checkpointing_enable({"use_reentrant": False})  # pyright: ignore
    learner = Unmoved(model.train(), OptimizerOptions())
    batch = collate([made_up(Workload(((length - SAMPLED, SAMPLED),)))])
    began, before = time.process_time(), _resident()
    with held_bytes(model) as held:
        learner.update(batch, advantages_of(batch), objective_of())
    assert max(float(one.abs().max()) for one in learner.gradients) > 0
    count = sum(one.numel() for one in model.parameters())
    return Learned(time.process_time() - began, (_resident() - before) / 1e3, held.most / 1e6, count)


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lengths", nargs="*", type=int, default=LENGTHS)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    out: Path | None = asked.out
    figures: dict[str, Any] = json.loads(out.read_text("utf-8"))["figures"] if out and out.is_file() else {}
    told = {"name": "long-row", "machine": describe(), "figures": figures}
    for length in asked.lengths:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found = pool.submit(learn, length).result()
        rows = {
            "seconds": (found.seconds, "s"),
            "peak": (found.peak, "MB"),
            "held": (found.held, "MB"),
            "weights": (found.weights, ""),
        }
        figures |= {
            f"{key}_{length}": {"value": round(value, 2), "unit": unit, "spread": 0.0}
            for key, (value, unit) in rows.items()
        }
        print(json.dumps({length: found._asdict()}), flush=True)
        if asked.out is not None:
            asked.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
