"""Playing ahead: who is admitted when, how far behind tokens may be, and whose lengths are trained on.

Time is simulated: sleeping moves the event loop's clock, so that heavy tails cost nothing.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import statistics
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")

from turnwise.agents.core import Episode, History, Outcome, Reply, Trajectory, Turn, VersionSpan
from turnwise.agents.execution.admission import Admission, Pressure
from turnwise.agents.policies.scripted import scripted
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RunError
from turnwise.tasks.core import Task, derive_rng
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.ahead import Lag, PlayAhead, check_lag, lag_of
from turnwise.trainers.run.collect import collect
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.sampler.core import example_setup
from turnwise.trainers.sampler.uniform import Uniform

GROUPS, UPDATES, LEARN_S = 8, 60, 1.0


class SimulatedTime(asyncio.SelectorEventLoop):
    """An event loop that never waits: where nothing is ready, its clock jumps to what comes next."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def simulate(work: Coroutine[Any, Any, Any]) -> Any:
    loop = SimulatedTime()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class Played(NamedTuple):
    """An episode of the simulation: how long it takes, and the versions of the weights while it does."""

    seconds: float
    versions: tuple[int, ...]


def duration(update: int, group: int) -> float:
    """Log-normal with a heavy tail: the mean is 1, and one in a hundred takes more than 8."""
    return math.exp(derive_rng("duration", update, group).gauss(-0.6, 1.1))


class Engine:
    """Knows the version of its weights; an episode notes it ten times while it is played."""

    def __init__(self, concurrency: int) -> None:
        self.version = 0
        self.busy = 0.0  # seconds of all places
        self.places = Admission(concurrency, {}, lambda _: Pressure())
        self.flying: set[int] = set()

    async def play(self, update: int, group: int = 0) -> Played:
        async with self.places.place(blocking=False):
            seconds, versions = duration(update, group), []
            for _ in range(10):
                versions.append(self.version)
                await asyncio.sleep(seconds / 10)
            self.busy += seconds
            return Played(seconds, (*versions, self.version))


class Consumed(NamedTuple):
    """What a simulated run trained on, update by update; how much it had played; how much was admitted at most."""

    trained: list[list[Played]]
    most_admitted: int
    seconds: float
    busy: float


async def run(staleness: int, *, concurrency: int = 64) -> Consumed:
    """Updates that take a second each, of groups that are played ahead."""
    engine, most, trained = Engine(concurrency), 0, list[list[Played]]()

    async def play(update: int) -> list[Played]:
        return list(await asyncio.gather(*(engine.play(update, g) for g in range(GROUPS))))

    ahead = PlayAhead(play, staleness=staleness, first=0, updates=UPDATES)
    async with ahead:
        for update in range(UPDATES):
            ahead.published(update)
            most = max(most, len(ahead.admitted))
            assert ahead.admitted[0] == update, "the oldest comes first"
            trained.append((await ahead.take(update))[0])
            await asyncio.sleep(LEARN_S)
            engine.version = update + 1
            ahead.published(update + 1)
            most = max(most, len(ahead.admitted))
    return Consumed(trained, most, asyncio.get_running_loop().time(), engine.busy)


@pytest.mark.parametrize("staleness", [0, 1, 2, 5])
def test_no_token_is_staler_than_the_bound_however_long_its_episode_takes(staleness: int) -> None:
    found = simulate(run(staleness))
    lags = [
        update - version
        for update, played in enumerate(found.trained)
        for one in played
        for version in one.versions
    ]
    assert max(lags) == staleness, "the bound is reached and kept"
    assert min(lags) >= 0
    assert found.most_admitted == staleness + 1


def test_playing_ahead_saves_the_time_of_the_longest_episodes() -> None:
    plain, ahead = (simulate(run(staleness)).seconds for staleness in (0, 4))
    assert ahead < 0.75 * plain


def test_the_page_says_how_much_of_the_tail_is_filled() -> None:
    """As many places as an update has episodes, of which one in a hundred takes eight times the mean."""
    rows = list[str]()
    for staleness in (0, 1, 2, 4):
        found = simulate(run(staleness, concurrency=GROUPS))
        empty = 1 - found.busy / (GROUPS * found.seconds)
        rows.append(f"| {staleness} | {empty:.0%} | {found.seconds / UPDATES:.1f} |")
    page = Path(__file__).parents[2] / "docs" / "asynchronous.md"
    assert "\n".join(rows) in page.read_text("utf-8")


class Waiting:
    """A gold agent whose episode takes as many seconds as its number says."""

    version, name = 0, "waiting"

    def __init__(self) -> None:
        self.begun = 0

    async def act(self, history: History) -> Reply:
        if not history.turns:
            self.begun += 1
            await asyncio.sleep(self.begun)
        return await scripted("gold").act(history)

    def close(self) -> None: ...


def test_the_tail_begins_when_a_quarter_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr("turnwise.trainers.run.collect.time", clock)
    shop = {"suite": "shop/quick", "model": {"path": "Qwen/Qwen3-0.6B"}}
    recipe = check_recipe({**shop, "rollout": {"groups": 2, "group_size": 4}})
    sampler = Uniform(example_setup(groups=2, group_size=4, most=2))
    found = simulate(collect(recipe.rollout, sampler, Waiting(), build_parts(recipe), 0, 0))
    assert found.figures["tail_seconds"] == pytest.approx(8 - 6)


def ks_distance(ones: list[float], others: list[float]) -> float:
    """The largest difference of two empirical distribution functions."""
    merged = heapq.merge(
        ((x, 1 / len(ones)) for x in sorted(ones)), ((x, -1 / len(others)) for x in sorted(others))
    )
    total = largest = 0.0
    for _, step in merged:
        total += step
        largest = max(largest, abs(total))
    return largest


def critical(ones: list[float], others: list[float]) -> float:
    """Beyond which distributions differ, at the level 0.001."""
    return math.sqrt(-math.log(0.0005) / 2 * (1 / len(ones) + 1 / len(others)))


def reference() -> list[float]:
    """Lengths of episodes as they are played: many more of the same distribution."""
    return [duration(10_000 + i, 0) for i in range(20_000)]


def test_the_lengths_that_are_trained_on_are_those_that_are_played() -> None:
    found = simulate(run(4, concurrency=16))
    lengths = [one.seconds for played in found.trained for one in played]
    assert sorted(lengths) == sorted(duration(u, g) for u in range(UPDATES) for g in range(GROUPS))
    assert ks_distance(lengths, reference()) < critical(lengths, reference())


async def discarding(staleness: int, concurrency: int = 48) -> tuple[list[float], int]:
    """The rule that we do not have: whoever is done is trained on, and what is too old is thrown away.

    Returns the lengths that it trains on, and how many episodes it throws away.
    """
    engine, trained, lost = Engine(concurrency), list[float](), 0
    numbers = iter(range(10**9))
    flying = {asyncio.ensure_future(engine.play(next(numbers))) for _ in range(concurrency)}
    for update in range(UPDATES):
        batch: list[Played] = []
        while len(batch) < GROUPS:
            done, flying = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
            for one in (task.result() for task in done):
                if update - one.versions[0] > staleness:
                    lost += 1
                else:
                    batch.append(one)
                flying.add(asyncio.ensure_future(engine.play(next(numbers))))
        trained += [one.seconds for one in batch]
        await asyncio.sleep(LEARN_S / 4)
        engine.version = update + 1
    for task in flying:
        task.cancel()
    await asyncio.gather(*flying, return_exceptions=True)
    return trained, lost


@pytest.mark.slow
def test_a_rule_that_discards_what_is_old_trains_on_short_episodes() -> None:
    trained, lost = simulate(discarding(4))
    assert lost > 0
    assert statistics.fmean(trained) < 0.9 * statistics.fmean(reference())
    assert ks_distance(trained, reference()) > critical(trained, reference())


def test_what_is_left_of_a_run_is_not_played_on() -> None:
    async def leave() -> int:
        engine = Engine(64)

        async def play(update: int) -> Played:
            return await engine.play(update)

        async with PlayAhead(play, staleness=3, first=7, updates=9) as ahead:
            ahead.published(7)
            assert ahead.admitted == [7, 8], "none is played beyond the last update"
            await ahead.take(7)
        assert ahead.admitted == []
        return len(asyncio.all_tasks())

    assert simulate(leave()) == 1


def test_what_fails_while_it_is_played_ahead_is_told_when_its_turn_comes() -> None:
    async def fail() -> None:
        async def play(update: int) -> int:
            if update == 1:
                raise RunError("no", "none")
            return update

        async with PlayAhead(play, staleness=2, first=0, updates=5) as ahead:
            ahead.published(0)
            assert (await ahead.take(0))[0] == 0
            with pytest.raises(RunError, match="no"):
                await ahead.take(1)

    simulate(fail())


def turn(*spans: tuple[int, int], tokens: int, known: bool = True) -> Turn:
    reply = Reply(
        Message("assistant", "a"),
        (1,),
        tuple(range(tokens)),
        (-1.0,) * tokens if known else (),
        tuple(VersionSpan(*span) for span in spans),
    )
    return Turn(Messages(), reply, 0.0, {}, "")


def test_lags_are_counted_token_by_token() -> None:
    turns = (turn((0, 3), (4, 5), tokens=10), turn((0, 5), tokens=2), turn((0, 0), tokens=7, known=False))
    episode = Episode(Task("a", "?"), 0, {"agent": Trajectory(turns)}, Outcome.OK)
    lag = lag_of([[episode]], 5)
    assert lag == Lag(mean=4 * 2 / 12, most=2, tokens=12)
    check_lag(lag, 2, 5)
    with pytest.raises(RunError, match="sampled 2 versions ago"):
        check_lag(lag, 1, 5)
