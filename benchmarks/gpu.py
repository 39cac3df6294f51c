"""What the GPU's part of a run costs: learner, engine, weights on their way, memory; each beside what the card can do.

``python benchmarks/gpu.py ceilings learner bare torch vllm compiled rollout [--model 0.5b] [--out FILE]`` prints JSON like ``turnwise bench``; with ``--out``
figures are joined with those that the file has. Models have the shapes of published ones (Qwen2.5) and random weights, since speed, memory and
rounding are asked for and no answers. Runs on a CPU too (``--model tiny``), where it says nothing about GPUs.

* ``ceilings``: a bfloat16 matrix product of 8,192³, and a copy within the card's memory.
* ``learner``: ``Learner.update``, with and without gradient checkpointing, and with kernels that add up in any order; bytes.
* ``bare``: the learner beside bare training loops on the same rows; three models at once.
* ``torch``, ``vllm``, ``compiled`` (vLLM with its model compiled): the engine in process: raw sampling, an update of its weights, the canary's gap, what stays allocated when it is closed.
* ``rollout``: ``turnwise bench rollout`` with a model of this shape, in process and with an engine elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import functools
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnwise.agents.bench.rollout import RolloutWorkload, bench_rollout
from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.registry import open_engine
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.machine import describe
from turnwise.trainers.bench.contenders import Bare, Prepared
from turnwise.trainers.bench.train import TrainWorkload, make_batch
from turnwise.trainers.core import TokenView
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import choose_device, deterministic, load_model
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.run.learning import LearningSetup

GB = 1e9
DEVICE = choose_device("auto")
CUDA = DEVICE.type == "cuda"


class Shape(NamedTuple):
    """Sizes of a Qwen2 with tied embeddings."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    micro_tokens: int = 16_384  # of one forward pass, as many as an H100 has memory for


SHAPES = {
    "tiny": Shape(2, 64, 2, 1, 128, 1_000),
    "0.5b": Shape(24, 896, 14, 2, 4_864, 151_936),
    "1.5b": Shape(28, 1_536, 12, 2, 8_960, 151_936, 8_192),
}
CONTEXT = 2_048


class Load(NamedTuple):
    """How much is done; less of it where a CPU is only to show that this runs."""

    repeats: int
    copies: int  # a row of the shop's, so often one after the other: longer rows
    requests: int
    prompt: int
    answer: int


LOAD = Load(5, 8, 256, 256, 128) if CUDA else Load(1, 2, 4, 16, 8)


def model_in(folder: Path, shape: Shape) -> Path:
    """A model of random weights, in bfloat16 as published ones are."""
    import transformers

    config = transformers.Qwen2Config(
        vocab_size=shape.vocabulary, hidden_size=shape.width, intermediate_size=shape.inner, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads, max_position_embeddings=CONTEXT, tie_word_embeddings=True,
        eos_token_id=0, bos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    with DEVICE:
        model: Any = transformers.Qwen2ForCausalLM(config)
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


# --- ceilings ------------------------------------------------------------------------------------


def ceilings(_: Path, __: Shape) -> dict[str, BenchmarkFigure]:
    """TFLOP/s of a large product, TB/s of a large copy (read and written bytes)."""
    side = 8_192 if CUDA else 512
    a, b = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    source = torch.randn(side * side * 8, device=DEVICE)
    target = torch.empty_like(source)
    product = [timed(lambda: a @ b) for _ in range(12)][2:]
    copy = [timed(lambda: target.copy_(source)) for _ in range(12)][2:]
    return {
        "matmul": figure([2 * side**3 / s / 1e12 for s in product], "TFLOP/s"),
        "copy": figure([2 * source.nbytes / s / 1e12 for s in copy], "TB/s"),
    }


# --- learner -------------------------------------------------------------------------------------


def learner(folder: Path, shape: Shape) -> dict[str, BenchmarkFigure]:
    """One update of 128 long episodes, with and without gradient checkpointing, and with kernels that add up in any order; memory."""
    found: dict[str, BenchmarkFigure] = {}
    for ends, checkpointing in (("", False), ("_checkpointed", True)):
        contender = one_learner(folder, shape, checkpointing)
        setup, batch, update = contender.setup, contender.batch, contender.update
        update()  # makes the moments
        held = allocated() - contender.began
        forget_peak()
        seconds = [timed(update) for _ in range(LOAD.repeats)]
        tokens = int(batch.rows.length_R.sum())
        above = (
            peak() - contender.began - held
        ) / setup.optimizer.micro_tokens  # gradients and autocast's copies among it
        found |= {
            "learner_row_tokens": figure([batch.rows.token_RT.shape[1]], "tokens"),
            f"bytes_held{ends}": figure([held / parameters(contender.learner.model)], "bytes/weight"),
            f"above_held{ends}": figure([above / 1e6], "MB/token"),
            f"learner{ends}": figure([tokens / s for s in seconds], "tokens/s"),
            f"learner_flops{ends}": figure([flops(shape, batch) / s / 1e12 for s in seconds], "TFLOP/s"),
        }
        if not checkpointing:
            pairs = [(timed(update), timed(contender.any_order)) for _ in range(LOAD.repeats)]
            found["any_order_times"] = figure([one / other for one, other in pairs], "")
        del contender, update
        free()
    return found


def bare(folder: Path, shape: Shape) -> dict[str, BenchmarkFigure]:
    """The learner and two bare loops, in turns: one computes all logits, the lean one those of sampled tokens, as the learner does."""
    contender = one_learner(folder, shape, checkpointing=False)
    setup, batch = contender.setup, contender.batch
    prepared = [
        Prepared(load_model(folder / "model", DEVICE), setup.optimizer, batch, contender.advantage_BK, 1)
        for _ in range(2)
    ]
    ways = {
        "learner": contender.any_order,
        "bare": Bare(prepared[0]),
        "lean": Bare(prepared[1], lean=True),
    }
    for way in ways.values():
        way()
    rounds = [{name: timed(way) for name, way in ways.items()} for _ in range(LOAD.repeats)]
    found: dict[str, BenchmarkFigure] = {}
    for name in ("bare", "lean"):
        tokens = int(batch.rows.length_R.sum())
        found[name] = figure([tokens / one[name] for one in rounds], "tokens/s")
        found[f"share_of_{name}"] = figure([one[name] / one["learner"] for one in rounds], "")
    return found


class Contender(NamedTuple):
    """A learner with what it learns from."""

    learner: Learner
    setup: LearningSetup
    batch: TrainingBatch
    advantage_BK: torch.Tensor
    began: int  # bytes that were allocated before it was made

    def update(self) -> None:
        """As a run makes it."""
        with deterministic(DEVICE):
            self.any_order()

    def any_order(self) -> None:
        """With whatever kernels PyTorch takes unasked."""
        self.learner.update(self.batch, self.advantage_BK, self.setup.objective)


def one_learner(folder: Path, shape: Shape, checkpointing: bool) -> Contender:
    setup, batch = long_batch(folder, shape.micro_tokens)
    began = allocated()
    model = load_model(folder / "model", DEVICE, gradient_checkpointing=checkpointing)
    made = Learner(model, setup.optimizer, temperature=setup.temperature)
    advantage_BK = torch.randn(batch.turns.mask_BK.shape) * batch.turns.mask_BK
    return Contender(made, setup, batch, advantage_BK, began)


def long_batch(folder: Path, micro_tokens: int) -> tuple[LearningSetup, TrainingBatch]:
    """The shop's rows, each so often one after the other; one optimizer step on all of them, from behaviour of even odds."""
    setup, batch = make_batch(
        folder / "shop", TrainWorkload(tasks=16 if CUDA else 1, micro_tokens=micro_tokens)
    )
    rows = batch.rows
    shortest = int(rows.length_R.min())  # no padding between copies

    def copied(x_RT: torch.Tensor) -> torch.Tensor:
        return x_RT[:, :shortest].repeat(1, LOAD.copies)

    rows = rows._replace(
        token_RT=copied(rows.token_RT),
        mask_RT=copied(rows.mask_RT),
        turn_RT=copied(rows.turn_RT),
        behaviour_logp_RT=copied(rows.behaviour_logp_RT),
        known_RT=copied(rows.known_RT),
        source_RT=copied(rows.source_RT),
        length_R=torch.full_like(rows.length_R, shortest * LOAD.copies),
    )
    options = dataclasses.replace(setup.optimizer, minibatches=1, epochs=1)
    view = TokenView(rows.token_RT, rows.mask_RT, rows.turn_RT, rows.trajectory_R)
    turns = dataclasses.replace(batch.turns, tokens=view)
    return setup._replace(optimizer=options), batch._replace(rows=rows, turns=turns)


def flops(shape: Shape, batch: TrainingBatch) -> float:
    """Operations of one forward and backward pass: products of the layers and of the head where a token was sampled, attention as if causality saved nothing."""
    width, rows = shape.width, batch.rows
    key = width // shape.heads * shape.kv_heads
    layer = 2 * width * width + 2 * width * key + 3 * width * shape.inner
    length_R = rows.length_R.double()
    tokens, sampled = float(length_R.sum()), float(rows.mask_RT.sum())
    attention = 12 * shape.layers * width * float((length_R**2).sum())
    return 6 * shape.layers * layer * tokens + 6 * width * shape.vocabulary * sampled + attention


# --- engine --------------------------------------------------------------------------------------


def engine(name: str, folder: Path, _: Shape, **options: Any) -> dict[str, BenchmarkFigure]:
    """Raw sampling, an update, and what is left when it is closed."""
    model = load_model(folder / "model", DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=1e-3)
    called = "_".join((name, *options))
    return {
        f"{called}_{key}": value for key, value in one_engine(name, folder / "model", model, options).items()
    }


def one_engine(name: str, folder: Path, model: Any, options: dict[str, Any]) -> dict[str, BenchmarkFigure]:
    """The figures of one engine."""
    free()
    before = used()
    found = _measured(name, folder, model, options)
    free()
    return found | {"left_allocated": figure([(used() - before) / GB], "GB")}


def _measured(name: str, folder: Path, model: Any, options: dict[str, Any]) -> dict[str, BenchmarkFigure]:
    began = time.perf_counter()
    opened: Any = open_engine(
        name, str(folder), context_length=CONTEXT, max_sequences=LOAD.requests, **options
    )
    started = time.perf_counter() - began
    try:
        reports = [push_weights(model, opened, version) for version in range(1, 4)]
        ask(opened, 0)
        seconds: list[float] = []
        answers: list[list[Completion]] = []
        for repeat in range(1, LOAD.repeats + 1):
            seconds.append(timed(functools.partial(_keep, answers, opened, repeat)))
        again = ask(opened, LOAD.repeats)
    finally:
        opened.close()
    tokens = [sum(len(answer.token_ids) for answer in batch) for batch in answers]
    same = [a.token_ids == b.token_ids for a, b in zip(again, answers[-1], strict=True)]
    return {
        "start": figure([started], "s"),
        "sampling": figure([n / s for n, s in zip(tokens, seconds, strict=True)], "tokens/s"),
        "same_again": figure([statistics.mean(same)], "share of answers"),
        "push": figure([report.load_seconds for report in reports], "s"),
        "canary_gap": figure([report.max_logp_gap for report in reports], "nats"),
        "canary_gap_mean": figure([report.mean_logp_gap for report in reports], "nats"),
    }


def _keep(answers: list[list[Completion]], opened: Any, seed: int) -> None:
    answers.append(ask(opened, seed))


def ask(opened: Any, seed: int) -> list[Completion]:
    """Answers of full length to prompts that nobody asked before."""
    rng = torch.Generator().manual_seed(seed)
    prompts = torch.randint(1, 900, (LOAD.requests, LOAD.prompt), generator=rng).tolist()
    sampling = Sampling(max_tokens=LOAD.answer)

    async def all_of() -> list[Completion]:
        return list(
            await asyncio.gather(
                *(opened.generate(ids, sampling, stop_ids=(), seed=n) for n, ids in enumerate(prompts))
            )
        )

    return asyncio.run(all_of())


# --- rollout -------------------------------------------------------------------------------------


def rollout(_: Path, shape: Shape) -> dict[str, BenchmarkFigure]:
    """Episodes of the shop beside the engine's raw sampling; the vocabulary is the shop's, since prompts are."""
    load = RolloutWorkload(tasks=8, layers=shape.layers, width=shape.width, heads=shape.heads)
    found = bench_rollout(repeats=2, workload=load, engines=(1,))
    return {f"rollout_{key}": value for key, value in found.items()}


# --- counting ------------------------------------------------------------------------------------


def timed(work: Callable[[], object]) -> float:
    """Seconds, of the card's work too."""
    wait()
    began = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - began


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def free() -> None:
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()


def allocated() -> int:
    """Bytes that tensors have."""
    return torch.cuda.memory_allocated() if CUDA else 0


def used() -> int:
    """Bytes of the card that are not free."""
    if not CUDA:
        return 0
    there, whole = torch.cuda.mem_get_info()
    return whole - there


def forget_peak() -> None:
    if CUDA:
        torch.cuda.reset_peak_memory_stats()


def peak() -> int:
    return torch.cuda.max_memory_allocated() if CUDA else 0


def parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))


PARTS: dict[str, Callable[[Path, Shape], dict[str, BenchmarkFigure]]] = {
    "ceilings": ceilings,
    "learner": learner,
    "bare": bare,
    "torch": functools.partial(engine, "torch"),
    "vllm": functools.partial(engine, "vllm"),
    "compiled": functools.partial(engine, "vllm", compile=True),
    "rollout": rollout,
}


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--model", choices=SHAPES, default="0.5b")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    shape = SHAPES[asked.model]
    shm = "/dev/shm" if Path("/dev/shm").is_dir() else None
    told: dict[str, Any] = {"name": "gpu", "machine": describe(), "figures": {}}
    if asked.out is not None and asked.out.exists():
        told["figures"] = json.loads(asked.out.read_text("utf-8"))["figures"]
    with tempfile.TemporaryDirectory(prefix="turnwise-gpu-", dir=shm) as name:
        model_in(Path(name) / "model", shape)
        for part in asked.parts:
            began = time.perf_counter()
            for key, value in PARTS[part](Path(name), shape).items():
                named = key if part == "ceilings" else f"{key}/{asked.model}"
                told["figures"][named] = value._asdict()
                print(f"{named:32} {value.value:14.4g} {value.unit:16} spread {value.spread:.2g}", flush=True)
            print(f"({part}: {time.perf_counter() - began:.0f} s)", flush=True)
            if asked.out is not None:
                asked.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
