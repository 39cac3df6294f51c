"""``turnwise bench rollout``: the speed of episodes relative to the engine's raw sampling, here and elsewhere.

The same model samples the same tokens twice: in multi-turn episodes of the shop, hundreds in flight, and
as plain batches of the recorded prompts by the engine's own blocking loop, with nothing around it. Both start
with an empty prefix cache and run one after the other, several times. The scripted gold agent chooses
what is done in the shop, so that pages and numbers of turns are those of real episodes; what the (random)
model samples is paid for, kept in the prompts and otherwise ignored.

Then the same episodes are played with engines in processes of their own (`turnwise serve-engine`), one and two of them, on
the same machine: their share is of the same raw rate, that of one engine in this process. In the middle of each
such repetition the weights are published again, in flight: the stall is how long an engine sampled nothing for it.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import Completion, Engine, Episode, History, Reply, Sampling
from turnwise.agents.engines.vllm import VllmEngine, VllmJob
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.gpus import share_gpus
from turnwise.agents.remote.local import EnginePlan, local_engines
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
    """One repetition, of one way; ``stalls`` are of updates in flight."""

    tokens: int
    rollout_s: float
    raw_s: float = 0.0
    stalls: Sequence[float] = ()


def bench_rollout(
    *, repeats: int = 5, workload: RolloutWorkload | None = None, engines: Sequence[int] = (1, 2)
) -> dict[str, BenchmarkFigure]:
    """Sampled tokens per second in episodes and raw, and their ratio; medians, spread = largest − smallest.

    The first repetition of each way warms up and is not counted.

    Args:
        repeats: how often each is measured.
        workload: how much is played.
        engines: how many of them are elsewhere, each a way of its own.
    """
    load = workload or RolloutWorkload()
    tasks = list(suite_tasks(get_suite(SUITE), Split.TRAIN, load.tasks * (repeats + 1)))
    batches = [tasks[i : i + load.tasks] for i in range(0, len(tasks), load.tasks)]
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
        model = _model(Path(folder) / "model", batches[0], load)
        here = VllmEngine(model, context_length=load.context_length, max_sequences=load.max_sequences)
        policy = BenchPolicy(here, model, load.new_tokens)
        try:
            runs = [_measure(policy, here, batch, load) for batch in batches][1:]
        finally:
            policy.close()
        elsewhere = _elsewhere(model, batches, load, engines, Path(folder)) if engines else {}
    raw = [run.tokens / run.raw_s for run in runs]
    figures = {
        "rollout": _figure([run.tokens / run.rollout_s for run in runs], "tokens/s"),
        "raw": _figure(raw, "tokens/s"),
        "share_of_raw": _figure([run.raw_s / run.rollout_s for run in runs], ""),
    }
    for count, found in elsewhere.items():
        rates = [run.tokens / run.rollout_s for run in found]
        stalls = [stall for run in found for stall in run.stalls]
        figures[f"rollout_{count}_elsewhere"] = _figure(rates, "tokens/s")
        figures[f"share_of_raw_{count}_elsewhere"] = _figure(
            [rate / statistics.median(raw) for rate in rates], ""
        )
        figures[f"stall_{count}_elsewhere"] = _figure(stalls, "s")
    return figures


def _elsewhere(
    model: Path, batches: Sequence[Sequence[Task]], load: RolloutWorkload, counts: Sequence[int], folder: Path
) -> dict[int, list[RolloutFigures]]:
    """The same episodes with so many engines in processes of their own; what warms up is left out."""
    gpus = share_gpus("auto", learners=1, engines=max(counts)).engines  # the engine in process has the first
    plan = EnginePlan(str(model), "vllm", load.context_length, load.max_sequences, gpus=gpus)
    found: dict[int, list[RolloutFigures]] = {}
    with local_engines(plan, max(counts), folder) as engines:
        for count in counts:
            fleet = RemoteFleet(engines.urls[:count], context_length=load.context_length)
            policy = BenchPolicy(fleet, model, load.new_tokens)
            try:
                found[count] = [_played_elsewhere(policy, fleet, model, batch, load) for batch in batches][1:]
            finally:
                policy.close()
    return found


def _played_elsewhere(
    policy: BenchPolicy, fleet: RemoteFleet, model: Path, tasks: Sequence[Task], load: RolloutWorkload
) -> RolloutFigures:
    """One repetition, with an update in flight when about half of its tokens are there."""
    from safetensors.torch import load_file

    weights = load_file(model / "model.safetensors")
    fleet.load_weights(weights.items(), fleet.version + 1)  # empties the caches of prefixes
    policy.sampled = 0
    half = len(tasks) * load.group * load.new_tokens  # of two turns at least

    async def play() -> Sequence[Episode]:
        playing = asyncio.ensure_future(rollout(_requests(tasks, load), policy, concurrency=load.concurrency))
        while policy.sampled < half and not playing.done():
            await asyncio.sleep(0.01)
        if not playing.done():
            await asyncio.to_thread(fleet.load_weights, weights.items(), fleet.version + 1, kv="recompute")
        return await playing

    began = time.perf_counter()
    episodes = asyncio.run(play())
    seconds = time.perf_counter() - began
    return RolloutFigures(_tokens(episodes), seconds, stalls=[row.stall_s for row in fleet.health()])


class BenchPolicy(ModelPolicy):
    """Samples with the model, and acts with the gold script."""

    def __init__(self, engine: Engine, model: Path, new_tokens: int) -> None:
        from transformers import AutoTokenizer

        from turnwise.agents.tokens.renderer import Renderer

        renderer = Renderer(AutoTokenizer.from_pretrained(model))
        super().__init__(engine, renderer, Sampling(max_tokens=new_tokens))
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


def _measure(
    policy: BenchPolicy, engine: VllmEngine, tasks: Sequence[Task], load: RolloutWorkload
) -> RolloutFigures:
    recorder = policy.engine = _Recorder(engine)
    engine.reset_prefix_cache()
    began = time.perf_counter()
    episodes = asyncio.run(rollout(_requests(tasks, load), policy, concurrency=load.concurrency))
    rollout_s = time.perf_counter() - began
    engine.reset_prefix_cache()
    began = time.perf_counter()
    answers = engine.generate_all(recorder.jobs)
    raw_s = time.perf_counter() - began
    assert _tokens(episodes) == sum(len(answer.token_ids) for answer in answers)
    return RolloutFigures(_tokens(episodes), rollout_s, raw_s)


def _requests(tasks: Sequence[Task], load: RolloutWorkload) -> list[Request]:
    return [Request(task, seed) for task in tasks for seed in range(load.group)]


def _tokens(episodes: Sequence[Episode]) -> int:
    return sum(len(turn.reply.action_ids) for e in episodes for turn in e.trajectory.turns)


def _model(folder: Path, tasks: Sequence[Task], load: RolloutWorkload) -> Path:
    from turnwise.agents.models.small import build_small_model

    return Path(build_small_model(folder, _texts(tasks), context=load.context_length))


def _texts(tasks: Sequence[Task]) -> Iterator[str]:
    """What is said in the gold agent's episodes, to learn a vocabulary from."""
    for episode in run_episodes([Request(task, 0) for task in tasks], scripted("gold")):
        for turn in episode.trajectory.turns:
            yield from (message.content for message in (*turn.observation, turn.action))


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
