"""``turnwise bench client``: what a turn costs beside the engine.

An engine that answers at once, with tokens that were written before, takes no time of its own: what is left is the client's work.
It is measured in two ways, both in microseconds of this thread's processor time.

* By suite: episodes of four suites, 64 in flight and in groups of eight, by the engine's loop, with their log. The answers are the
  gold script's, so that pages, calls and numbers of turns are those of real episodes.
* By kind of chat template: one long conversation at a time, from the engine's answer to its next request. Turns 8 to 12 stand for turn
  10 and so on. Beside the times stand counts of the work (:class:`turnwise.agents.tokens.work.TokenWork`), which are the same on every machine.

Nothing repeats between conversations but what repeats in training: the tools, and the first prompts of a group.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from turnwise.agents.bench.families import FAMILIES, family_tokenizer
from turnwise.agents.core import Completion, Episode, History, Policy, Reply, Sampling
from turnwise.agents.engines.loop import EngineLoop
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.model import DemonstrationPolicy, ModelPolicy, sampling_seed
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout_episode, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.work import TokenWork
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.core import AgentEnv, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import EngineError
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall, tool

SUITES = ("shop/easy", "household/easy", "toolworld/retail", "functioncall/single")
CONTEXT = 1 << 20
WORDS = [
    "the",
    "red",
    "scarf",
    "of",
    "wool",
    "costs",
    "12",
    "dollars",
    "and",
    "ships",
    "in",
    "3",
    "days",
    "see",
    "page",
    "4",
    "for",
    "size",
    "M",
    "or",
    "ask",
    "the",
    "shop",
    "next",
]


class ClientWorkload(NamedTuple):
    """The size of the benchmark."""

    tasks: int = 16  # new ones of a suite for each repetition
    group: int = 8
    concurrency: int = 64
    turns: int = 104  # of a long conversation
    words: int = 120  # of an observation in it
    said: int = 12  # words of a reply in it
    vocabulary: int = 4096


class CannedEngine:
    """Answers each request at once with the tokens that stand under its seed.

    Attributes:
        asked: the thread's processor time at each request, and at the answer to it.
    """

    version, context_length = 0, CONTEXT

    def __init__(self, answers: Mapping[int, tuple[int, ...]], renderer: Renderer) -> None:
        self.answers, self.renderer = answers, renderer
        self.asked: list[tuple[float, float]] = []
        self.work: list[TokenWork] = []

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        came = time.thread_time()
        self.work.append(replace(self.renderer.encoder.work))
        await asyncio.sleep(0)  # let whatever watches the event loop see that it turns
        answer = canned(self.answers, seed)
        self.asked.append((came, time.thread_time()))
        return answer

    def close(self) -> None:
        """Nothing is held."""


class _LoopedEngine:
    """The same by the loop that drives engines which work in steps; each step answers all that wait."""

    version, context_length = 0, CONTEXT

    def __init__(self, answers: Mapping[int, tuple[int, ...]]) -> None:
        self._answers = answers
        self._waiting: list[tuple[int, int]] = []
        self._loop = EngineLoop[int, Completion](self, threaded=False)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        return await self._loop.submit(seed)

    def add(self, key: int, request: int) -> None:
        self._waiting.append((key, request))

    def abort(self, keys: Sequence[int]) -> None:
        self._waiting = [one for one in self._waiting if one[0] not in keys]

    def step(self) -> Iterable[tuple[int, Completion]]:
        answered, self._waiting = self._waiting, []
        return [(key, canned(self._answers, seed)) for key, seed in answered]

    def close(self) -> None:
        self._loop.close()


def canned(answers: Mapping[int, tuple[int, ...]], seed: int) -> Completion:
    """The answer that stands under a seed.

    Raises:
        EngineError: none does.
    """
    if (said := answers.get(seed)) is None:
        raise EngineError("The canned engine has no answer.", "Play the same episodes as when it was filled.")
    return Completion(said, (-0.6931471805599453,) * len(said), True)


class _Filling:
    """A policy whose replies' tokens are noted under the seeds of their requests."""

    version = 0

    def __init__(self, policy: Policy, answers: dict[int, tuple[int, ...]]) -> None:
        self.policy, self.answers, self.name = policy, answers, policy.name

    async def act(self, history: History) -> Reply:
        await asyncio.sleep(0)  # let whatever watches the event loop see that it turns
        seed = sampling_seed(history)
        reply = await self.policy.act(history)
        self.answers[seed] = reply.action_ids
        return reply

    def close(self) -> None:
        self.policy.close()


# --- by suite ----------------------------------------------------------------------------------------


class ClientRound(NamedTuple):
    """One repetition over a suite: turns, processor microseconds and work."""

    turns: int
    microseconds: float
    work: TokenWork


class SuiteClient:
    """A suite, the tasks of all repetitions, and the renderer that they share."""

    def __init__(self, suite: str, family: str, load: ClientWorkload, repeats: int) -> None:
        self.load = load
        tasks = list(suite_tasks(get_suite(suite), Split.TRAIN, load.tasks * repeats))
        self.rounds = [tasks[i : i + load.tasks] for i in range(0, len(tasks), load.tasks)]
        corpus = tuple(_texts(self.rounds[0]))
        self.renderer = Renderer(family_tokenizer(family, corpus, load.vocabulary))

    def play(self, number: int) -> ClientRound:
        """One repetition: fill the engine with answers, then play them through it."""
        requests = [Request(task, seed) for task in self.rounds[number] for seed in range(self.load.group)]
        answers: dict[int, tuple[int, ...]] = {}
        self._played(requests, _Filling(DemonstrationPolicy(scripted("gold"), self._apart()), answers))
        engine = _LoopedEngine(answers)
        policy = ModelPolicy(engine, self.renderer, Sampling(max_tokens=1 << 16))
        before, began = replace(self.renderer.encoder.work), time.thread_time()
        episodes = self._played(requests, policy)
        spent = time.thread_time() - began
        policy.close()
        turns = sum(len(one.turns) for episode in episodes for one in episode.trajectories.values())
        return ClientRound(turns, 1e6 * spent, self.renderer.encoder.work - before)

    def _apart(self) -> Renderer:
        """A renderer for the answers, so that the one that is measured has seen none of them."""
        return Renderer(self.renderer.tokenizer)

    def _played(self, requests: Sequence[Request], policy: Policy) -> Sequence[Episode]:
        with (
            tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder,
            EpisodeLog(Path(folder) / "episodes.jsonl.zst") as log,
        ):
            return run_episodes(
                requests,
                policy,
                concurrency=self.load.concurrency,
                on_episode=lambda _, episode: log.append(episode),
            )


def _texts(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the texts of the gold agent's episodes, to learn a vocabulary from."""
    for episode in run_episodes([Request(task, 0) for task in tasks], scripted("gold")):
        for turn in episode.trajectory.turns:
            yield from (str(message) for message in (*turn.observation, turn.action))


# --- by kind of template -----------------------------------------------------------------------------


def look(query: str, page: int = 1, sort: str = "price") -> None:
    """Look words up in the catalogue of the shop, one page of ten products at a time."""


def order(product: str, quantity: int = 1, note: str = "") -> None:
    """Order a product by its name, with a note for those who pack it."""


class TalkEnv(AgentEnv[int]):
    """A shop that says something new in every turn, whatever it is asked."""

    system = "You buy things in a shop. Answer briefly."
    blocking = False

    def __init__(self, words: int, salt: int, *, tools: bool) -> None:
        super().__init__()
        self.words, self.salt = words, salt
        self.tools = (tool(look), tool(order)) if tools else ()

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, self._page(0)

    def transition(self, state: int, action: Message) -> Transition[int]:
        return Transition(state + 1, self._page(state + 1))

    def _page(self, number: int) -> str:
        return spoken(derive_rng("page", self.salt, number), self.words)


def spoken(rng: Random, words: int) -> str:
    """Words of the shop in a random order."""
    return " ".join(rng.choices(WORDS, k=words))


class TalkKind(NamedTuple):
    """A kind of chat template, and how replies look: in plain words, as calls, or after a thought."""

    family: str
    form: str

    @property
    def tools(self) -> bool:
        return self.form == "calls"


KINDS = (
    *(TalkKind(name, form) for name in FAMILIES for form in ("words", "calls")),
    TalkKind("thinking", "thoughts"),
)


class Talked(NamedTuple):
    """A long conversation: what was asked, and microseconds and work from each answer to the next request."""

    prompts: Sequence[tuple[int, ...]]
    microseconds: Sequence[float]  # before the request of turn 2, 3, …
    work: Sequence[TokenWork]


def talk(kind: TalkKind, renderer: Renderer, load: ClientWorkload, salt: int) -> Talked:
    """Have one long conversation with a canned engine."""
    env = TalkEnv(load.words, salt, tools=kind.tools)
    task = Task("turnwise-bench/Talk-v0", "", {"turn_limit": load.turns, "salt": salt})
    said = [_reply(kind, derive_rng("said", salt, turn), load.said) for turn in range(load.turns)]
    engine = CannedEngine(_answers(env, task, said, renderer), renderer)
    gc.collect()  # of all that was made before; it takes 0.1 s, and would fall on one of these turns
    episode = asyncio.run(rollout_episode(env, ModelPolicy(engine, renderer), task, seed=salt))
    if len(engine.asked) < load.turns:
        raise EngineError(f"The conversation of {kind} ended early: {episode.error}.", "Report it as a bug.")
    times = [
        1e6 * (after[0] - before[1]) for before, after in zip(engine.asked, engine.asked[1:], strict=False)
    ]
    work = [after - before for before, after in zip(engine.work, engine.work[1:], strict=False)]
    prompts = [turn.reply.prompt_ids for turn in episode.trajectory.turns]
    return Talked(prompts, times, work)


def _answers(
    env: AgentEnv[int], task: Task, said: Sequence[Message], renderer: Renderer
) -> dict[int, tuple[int, ...]]:
    """The tokens of replies under the seeds of their turns."""
    history = History(env, task, task.options["salt"], Messages())
    answers: dict[int, tuple[int, ...]] = {}
    for message in said:
        answers[sampling_seed(history)] = renderer.reply_ids(message)
        history.note(Reply(message), "")
    return answers


def _reply(kind: TalkKind, rng: Random, words: int) -> Message:
    if kind.form == "calls":
        call = ToolCall("look", {"query": spoken(rng, words), "page": rng.randrange(1, 9)}, "call_0")
        return Message("assistant", "", (call,))
    text = spoken(rng, words)
    if kind.form == "thoughts":
        return Message("assistant", f"<think>\n{spoken(rng, words)}\n</think>\n\n{text}")
    return Message("assistant", text)


# --- figures -----------------------------------------------------------------------------------------


def bench_client(*, repeats: int = 5, workload: ClientWorkload | None = None) -> dict[str, BenchmarkFigure]:
    """Microseconds of this thread's processor per turn, and counts; medians, spread = largest − smallest.

    * ``SUITE``: a turn in all, its share of the episode's begin, end and log among it; ``SUITE: encoded`` and so on: counts.
    * ``KIND: turn 10``, ``KIND: turn 100``: from an answer to the next request; ``KIND: growth``: the second by the first.
    * ``KIND: encoded at 10`` and so on: counts.

    Args:
        repeats: how often each is measured, each time with new tasks; one more warms up.
        workload: how much is played.
    """
    load = workload or ClientWorkload()
    figures: dict[str, BenchmarkFigure] = {}
    for suite in SUITES:
        client = SuiteClient(suite, "chatml", load, repeats + 1)
        rounds = [client.play(number) for number in range(repeats + 1)][1:]
        figures[suite] = _figure([one.microseconds / one.turns for one in rounds], "µs/turn")
        for name in _COUNTS:
            counts = [getattr(one.work, name) / one.turns for one in rounds]
            figures[f"{suite}: {name}"] = _figure(counts, "/turn")
    for kind in KINDS:
        figures |= _kind_figures(kind, load, repeats)
    return figures


def _kind_figures(kind: TalkKind, load: ClientWorkload, repeats: int) -> dict[str, BenchmarkFigure]:
    made = kind_renderer(kind)
    talks = [talk(kind, made, load, salt) for salt in range(repeats + 1)][1:]
    name, late = f"{kind.family}, {kind.form}", load.turns - 4
    early = [at_turn(one.microseconds, 10) for one in talks]
    last = [at_turn(one.microseconds, late) for one in talks]
    growth = [b / a for a, b in zip(early, last, strict=True)]
    figures = {
        f"{name}: turn 10": _figure(early, "µs"),
        f"{name}: turn {late}": _figure(last, "µs"),
        f"{name}: growth": _figure(growth, ""),
    }
    for count in _COUNTS:
        for turn in (10, late):
            counts = [at_turn([getattr(work, count) for work in one.work], turn) for one in talks]
            figures[f"{name}: {count} at {turn}"] = _figure(counts, "")
    return figures


def kind_renderer(kind: TalkKind) -> Renderer:
    """A renderer of this kind of template, in which nothing was rendered yet."""
    return Renderer(family_tokenizer(kind.family), tools_format="auto" if kind.tools else "none")


def at_turn(values: Sequence[float], turn: int) -> float:
    """The mean around a turn of what is noted before turns 2, 3, ….

    >>> at_turn([0, 1, 2, 3, 4, 5, 6], 5)
    3
    """
    return statistics.mean(values[turn - 4 : turn + 1])


_COUNTS = ("renderings", "rendered", "guarded", "encoded")


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
