"""``turnwise bench rollout``: the speed of episodes relative to the engine's raw sampling, here and elsewhere.

The same model samples the same tokens twice: in multi-turn episodes of the shop, hundreds in flight, and
as plain batches of the recorded prompts by the engine's own blocking loop, with nothing around it. Both start
with an empty prefix cache and run one after the other, several times. The scripted gold agent chooses
what is done in the shop, so that pages and numbers of turns are those of real episodes; what the (random)
model samples is paid for, kept in the prompts and otherwise ignored.

Then the same episodes are played with engines in processes of their own (`turnwise serve-engine`), one and two of them, on
the same machine. Their raw rate is their own: the same prompts are sent to the same servers, as many at a time, by a client that does
nothing but send and throw away. At last weights are published in the middle of some episodes, in flight: the stall is how
long an engine sampled nothing for it.

Engines and client share the processor here, so beside the clock stands the processor time of both sides. What it comes to is a
share too, which holds on a busy machine, and which no client on the same cores can exceed while there is always work.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import aiohttp
import psutil

from turnwise.agents.core import Completion, Engine, Episode, History, Kv, Reply, Sampling
from turnwise.agents.engines.vllm import VllmEngine, VllmJob
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.remote.client import new_session
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.gpus import share_gpus
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.local import EnginePlan, local_engines
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.protocol import GENERATE, GenerateBody, SamplingBody
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
    layers: int = 4
    width: int = 128
    heads: int = 4


def of_a_model(concurrency: int) -> RolloutWorkload:
    """The size for a model that is given: so many episodes at once, each task played by eight."""
    load = RolloutWorkload(new_tokens=16, context_length=2048)
    tasks = -(-concurrency // load.group)
    return load._replace(tasks=tasks, concurrency=concurrency, max_sequences=concurrency)


class Spent(NamedTuple):
    """Time that something took: seconds by the clock, and processor seconds of this process and of the engines' servers."""

    seconds: float
    client: float
    engines: float = 0.0

    @property
    def processor(self) -> float:
        return self.client + self.engines


class RolloutFigures(NamedTuple):
    """One repetition, of one way."""

    tokens: int
    rollout: Spent
    raw: Spent
    stalls: Sequence[float] = ()  # of updates in flight


def bench_rollout(
    *,
    repeats: int = 5,
    workload: RolloutWorkload | None = None,
    engines: Sequence[int] = (1, 2),
    model: str | Path | None = None,
) -> dict[str, BenchmarkFigure]:
    """Sampled tokens per second in episodes and raw, and their ratio; medians, spread = largest − smallest.

    * ``rollout``, ``raw``: tokens per second; ``share_of_raw``: their ratio, ``…_processor`` by processor time of all.
    * ``client``, ``engines``: processor seconds per 1,000 tokens in episodes, of this process and of the servers.
    * ``stall``: seconds for which an update in flight held an engine.

    Names end in ``_N_elsewhere`` where N engines are in processes of their own. The first repetition of each way warms up and is
    not counted.

    Args:
        repeats: how often each is measured.
        workload: how much is played.
        engines: how many of them are elsewhere, each a way of its own.
        model: the folder of one; a small one with random weights is made for it unless given.
    """
    load = workload or RolloutWorkload()
    tasks = list(suite_tasks(get_suite(SUITE), Split.TRAIN, load.tasks * (repeats + 1)))
    batches = [tasks[i : i + load.tasks] for i in range(0, len(tasks), load.tasks)]
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder:
        model = Path(model or _model(Path(folder) / "model", batches[0], load))
        here = VllmEngine(model, context_length=load.context_length, max_sequences=load.max_sequences)
        policy = BenchPolicy(here, model, load.new_tokens)
        try:
            runs = [_measure(policy, here, batch, load) for batch in batches][1:]
        finally:
            policy.close()
        elsewhere = _elsewhere(model, batches, load, engines, Path(folder)) if engines else {}
    figures = _figures(runs, "")
    for count, found in elsewhere.items():
        figures |= _figures(found, f"_{count}_elsewhere")
    return figures


def _figures(runs: Sequence[RolloutFigures], ends: str) -> dict[str, BenchmarkFigure]:
    """The figures of one way; what is none of it is left out."""

    def over(name: str, unit: str, of: Callable[[RolloutFigures], float]) -> None:
        found[name + ends] = _figure([of(run) for run in runs], unit)

    found: dict[str, BenchmarkFigure] = {}
    over("rollout", "tokens/s", lambda run: run.tokens / run.rollout.seconds)
    over("raw", "tokens/s", lambda run: run.tokens / run.raw.seconds)
    over("share_of_raw", "", lambda run: run.raw.seconds / run.rollout.seconds)
    over("share_of_raw_processor", "", lambda run: run.raw.processor / run.rollout.processor)
    over("client", "s/1000 tokens", lambda run: 1000 * run.rollout.client / run.tokens)
    if any(run.rollout.engines for run in runs):
        over("engines", "s/1000 tokens", lambda run: 1000 * run.rollout.engines / run.tokens)
    if stalls := [stall for run in runs for stall in run.stalls]:
        found["stall" + ends] = _figure(stalls, "s")
    return found


def _elsewhere(
    model: Path, batches: Sequence[Sequence[Task]], load: RolloutWorkload, counts: Sequence[int], folder: Path
) -> dict[int, list[RolloutFigures]]:
    """The same episodes with so many engines in processes of their own; what warms up is left out."""
    gpus = share_gpus("auto", learners=0, engines=max(counts)).engines  # the engine in process is closed
    plan = EnginePlan(str(model), "vllm", load.context_length, load.max_sequences, gpus=gpus)
    found: dict[int, list[RolloutFigures]] = {}
    with local_engines(plan, max(counts), folder) as engines:
        for count in counts:
            options = RemoteOptions(token=read_token(engines.token_file))
            fleet = RemoteFleet(engines.urls[:count], context_length=load.context_length, options=options)
            servers = [psutil.Process(engine.pid) for engine in engines.engines[:count]]
            there = _Elsewhere(fleet, engines.urls[:count], servers, model)
            policy = BenchPolicy(fleet, model, load.new_tokens)
            try:
                found[count] = [_played_elsewhere(policy, there, batch, load) for batch in batches][1:]
            finally:
                policy.close()
    return found


class _Elsewhere(NamedTuple):
    """Engines in processes of their own."""

    fleet: RemoteFleet
    urls: Sequence[str]
    servers: Sequence[psutil.Process]
    model: Path

    def publish(self, kv: Kv | None = None) -> None:
        """The same weights again; caches of prefixes are empty then."""
        from safetensors.torch import load_file

        weights = load_file(self.model / "model.safetensors")
        self.fleet.load_weights(weights.items(), self.fleet.version + 1, kv=kv)

    def processor_seconds(self) -> float:
        """Of the servers and all that they started."""
        family = [one for server in self.servers for one in (server, *server.children(recursive=True))]
        return sum(sum(one.cpu_times()[:2]) for one in family)


def _played_elsewhere(
    policy: BenchPolicy, there: _Elsewhere, tasks: Sequence[Task], load: RolloutWorkload
) -> RolloutFigures:
    """One repetition: episodes, the same tokens raw, and some of the episodes with an update in flight."""
    there.publish()
    recorder = policy.engine = _Recorder(there.fleet)
    episodes: list[Episode] = []
    played = _spent(lambda: episodes.extend(_play(policy, tasks, load)), there.processor_seconds)
    there.publish()
    raw = _spent(
        lambda: asyncio.run(_ask_raw(there.urls, recorder.jobs, load.concurrency)), there.processor_seconds
    )
    few = tasks[: max(1, len(tasks) // 4)]
    asyncio.run(_update_in_flight(policy, there, few, load))
    return RolloutFigures(_tokens(episodes), played, raw, [row.stall_s for row in there.fleet.health()])


def _play(policy: BenchPolicy, tasks: Sequence[Task], load: RolloutWorkload) -> Sequence[Episode]:
    return asyncio.run(rollout(_requests(tasks, load), policy, concurrency=load.concurrency))


async def _update_in_flight(
    policy: BenchPolicy, there: _Elsewhere, tasks: Sequence[Task], load: RolloutWorkload
) -> None:
    """Publish weights when about half of the tokens of these episodes are there."""
    policy.sampled = 0
    half = len(tasks) * load.group * load.new_tokens  # of two turns at least
    playing = asyncio.ensure_future(rollout(_requests(tasks, load), policy, concurrency=load.concurrency))
    while policy.sampled < half and not playing.done():
        await asyncio.sleep(0.01)
    await asyncio.to_thread(there.publish, "recompute")
    await playing


async def _ask_raw(urls: Sequence[str], jobs: Sequence[VllmJob], at_once: int) -> None:
    """Send prompts to servers in turn, so many at a time; answers are read as bytes and thrown away."""
    bodies = [
        GenerateBody(
            request_id=f"raw-{secrets.token_hex(8)}",
            token_ids=list(job.prompt_ids),
            sampling_params=SamplingBody.of(job.sampling, job.sampling.max_tokens, (), job.seed or 0),
            stream=False,
        ).model_dump_json(exclude_none=True)
        for job in jobs
    ]
    waiting = iter(enumerate(bodies))

    async def work(session: aiohttp.ClientSession) -> None:
        for number, body in waiting:
            url = f"{urls[number % len(urls)]}{GENERATE}"
            headers = {"Content-Type": "application/json"}
            async with session.post(url, data=body, headers=headers) as response:
                await response.read()
                response.raise_for_status()

    async with new_session() as session:
        await asyncio.gather(*(work(session) for _ in range(at_once)))


def _spent(work: Callable[[], object], servers: Callable[[], float] = lambda: 0.0) -> Spent:
    """Do something and say what it took."""
    began, client, engines = time.perf_counter(), time.process_time(), servers()
    work()
    return Spent(time.perf_counter() - began, time.process_time() - client, servers() - engines)


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

    def __init__(self, engine: Engine) -> None:
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
    episodes: list[Episode] = []
    played = _spent(lambda: episodes.extend(_play(policy, tasks, load)))
    engine.reset_prefix_cache()
    answers: list[Completion] = []
    seedless = [job._replace(seed=None) for job in recorder.jobs]
    raw = _spent(lambda: answers.extend(engine.generate_all(seedless)))
    assert _tokens(episodes) == sum(len(answer.token_ids) for answer in answers)
    return RolloutFigures(_tokens(episodes), played, raw)


def _requests(tasks: Sequence[Task], load: RolloutWorkload) -> list[Request]:
    return [Request(task, seed) for task in tasks for seed in range(load.group)]


def _tokens(episodes: Sequence[Episode]) -> int:
    return sum(len(turn.reply.action_ids) for e in episodes for turn in e.trajectory.turns)


def _model(folder: Path, tasks: Sequence[Task], load: RolloutWorkload) -> Path:
    from turnwise.agents.models.small import build_small_model

    made = build_small_model(
        folder,
        _texts(tasks),
        context=load.context_length,
        layers=load.layers,
        width=load.width,
        heads=load.heads,
    )
    return Path(made)


def _texts(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the texts of the gold agent's episodes, to learn a vocabulary from."""
    for episode in run_episodes([Request(task, 0) for task in tasks], scripted("gold")):
        for turn in episode.trajectory.turns:
            yield from (message.content for message in (*turn.observation, turn.action))


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
