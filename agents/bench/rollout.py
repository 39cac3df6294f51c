"""``turnwise bench rollout``: the speed of episodes relative to the engine's raw sampling.

The same model samples the same tokens twice: in multi-turn episodes of the shop, hundreds in flight, and
as plain batches of the recorded prompts by vLLM's own blocking loop, with nothing around it. Both start
with an empty prefix cache and run one after the other, several times. The scripted gold agent chooses
what is done in the shop, so that pages and numbers of turns are those of real episodes; what the (random)
model samples is paid for, kept in the prompts and otherwise ignored.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import Completion, History, Reply, Sampling
from turnwise.agents.engines.vllm import VllmEngine, VllmJob
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout, run_episodes
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, Task

SUITE = "shop/quick"


class RolloutWorkload(NamedTuple):
    """The size of the benchmark: how many episodes are played, and on how many sequences."""

    tasks: int = 16  # new ones for each repetition
    group: int = 8  # episodes of each task, as in training
    concurrency: int = 96  # more than max_sequences, so that the engine always finds a full batch
    max_sequences: int = 64
    new_tokens: int = 24  # per turn
    context_length: int = 1024


class RolloutFigures(NamedTuple):
    """One repetition."""

    tokens: int
    rollout_s: float
    raw_s: float


def bench_rollout(*, repeats: int = 5, workload: RolloutWorkload | None = None) -> dict[str, BenchmarkFigure]:
    """Sampled tokens per second in episodes and raw, and their ratio; medians, spread = largest − smallest.

    The first repetition warms up and is not counted.
    """
    load = workload or RolloutWorkload()
    tasks = list(suite_tasks(get_suite(SUITE), Split.TRAIN, load.tasks * (repeats + 1)))
    batches = [tasks[i : i + load.tasks] for i in range(0, len(tasks), load.tasks)]
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
        policy = _policy(Path(folder), batches[0], load)
        try:
            runs = [_measure(policy, batch, load) for batch in batches][1:]
        finally:
            policy.close()
    return {
        "rollout": _figure([run.tokens / run.rollout_s for run in runs], "tokens/s"),
        "raw": _figure([run.tokens / run.raw_s for run in runs], "tokens/s"),
        "share_of_raw": _figure([run.raw_s / run.rollout_s for run in runs], ""),
    }


class BenchPolicy(ModelPolicy):
    """Samples with the model, acts with the gold script, and notes what was asked of the engine."""

    def __init__(self, engine: VllmEngine, model: Path, new_tokens: int) -> None:
        from transformers import AutoTokenizer

        from turnwise.agents.tokens.renderer import Renderer

        renderer = Renderer(AutoTokenizer.from_pretrained(model))
        super().__init__(engine, renderer, Sampling(max_tokens=new_tokens))
        self.vllm = engine
        self.engine = _Recorder(engine)
        self.gold = scripted("gold")

    async def act(self, history: History) -> Reply:
        sampled = await super().act(history)
        return sampled._replace(message=(await self.gold.act(history)).message)


class _Recorder:
    """An engine that notes each request with the length of its answer."""

    def __init__(self, engine: VllmEngine) -> None:
        self.jobs: list[VllmJob] = []
        self._engine = engine
        self.version = engine.version
        self.context_length = engine.context_length

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        index = len(self.jobs)
        self.jobs.append(VllmJob(tuple(prompt_ids), sampling, seed))
        done = await self._engine.generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)
        exact = sampling._replace(max_tokens=len(done.token_ids))
        self.jobs[index] = self.jobs[index]._replace(sampling=exact)
        return done

    def close(self) -> None:
        self._engine.close()


def _measure(policy: BenchPolicy, tasks: Sequence[Task], load: RolloutWorkload) -> RolloutFigures:
    requests = [Request(task, seed) for task in tasks for seed in range(load.group)]
    recorder = policy.engine = _Recorder(policy.vllm)
    policy.vllm.reset_prefix_cache()
    began = time.perf_counter()
    episodes = asyncio.run(rollout(requests, policy, concurrency=load.concurrency))
    rollout_s = time.perf_counter() - began
    tokens = sum(len(turn.reply.action_ids) for e in episodes for turn in e.trajectory.turns)
    policy.vllm.reset_prefix_cache()
    began = time.perf_counter()
    answers = policy.vllm.generate_all(recorder.jobs)
    raw_s = time.perf_counter() - began
    assert tokens == sum(len(answer.token_ids) for answer in answers)
    return RolloutFigures(tokens, rollout_s, raw_s)


def _policy(folder: Path, tasks: Sequence[Task], load: RolloutWorkload) -> BenchPolicy:
    from turnwise.agents.models.small import build_small_model

    model = build_small_model(folder, _texts(tasks), context=load.context_length)
    engine = VllmEngine(model, context_length=load.context_length, max_sequences=load.max_sequences)
    return BenchPolicy(engine, model, load.new_tokens)


def _texts(tasks: Sequence[Task]) -> Iterator[str]:
    """What is said in the gold agent's episodes, to learn a vocabulary from."""
    for episode in run_episodes([Request(task, 0) for task in tasks], scripted("gold")):
        for turn in episode.trajectory.turns:
            yield from (message.content for message in (*turn.observation, turn.action))


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
