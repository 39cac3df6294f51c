"""Episodes begin while nothing is short; those in flight are never held back."""

from __future__ import annotations

import asyncio
import os
import resource

import pytest

from turnwise.agents.execution import admission
from turnwise.agents.execution.admission import Admission, Pressure, cores, measured
from turnwise.agents.policies.scripted import scripted
from turnwise.open_files import OpenFiles, open_files, raise_open_files

CALM = Pressure(free=0.5)


async def admitted(pressures: list[Pressure], *, wanted: int = 10, blocking: bool = False) -> list[int]:
    """How many are in flight at each look, and in the end, when nobody ever leaves; the last pressure lasts."""
    looks = iter(pressures)
    seen: list[int] = []
    flying = 0

    def measure(_: object) -> Pressure:
        seen.append(flying)
        return next(looks, pressures[-1])

    gate = Admission(wanted, scripted("null"), measure)

    async def one() -> None:
        nonlocal flying
        async with gate.place(blocking=blocking):
            flying += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(one()) for _ in range(wanted)]
    while flying < wanted and len(seen) < len(pressures) + 20:
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return [*seen, flying]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LOOK_S", 0.0)


@pytest.mark.parametrize(
    "short",
    [Pressure(free=0.01), Pressure(cached=0.99), Pressure(files=OpenFiles(900, 1024))],
    ids=["memory", "kv cache", "files"],
)
def test_what_is_short_delays_all_but_one(short: Pressure) -> None:
    assert max(asyncio.run(admitted([short] * 5))) == 1


def test_it_goes_on_when_the_pressure_is_gone() -> None:
    seen = asyncio.run(admitted([Pressure(free=0.01)] * 5 + [CALM]))
    assert max(seen[:6]) == 1
    assert seen[-1] == 10


def test_busy_cores_delay_blocking_environments_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "SMOOTHING", 1.0)
    monkeypatch.setattr(admission, "cores", lambda: 2)
    busy = [Pressure(runnable=100.0)] * 5
    assert max(asyncio.run(admitted(busy, blocking=True))) == 4  # two for each core, however busy others are
    assert max(asyncio.run(admitted(busy, blocking=False))) == 10


def test_a_moment_of_pressure_on_the_cores_is_not_taken_for_a_shortage() -> None:
    one_spike = [CALM, Pressure(runnable=50.0), CALM]
    assert max(asyncio.run(admitted(one_spike, wanted=2 * cores() + 6, blocking=True))) == 2 * cores() + 6


def test_the_machine_is_measured() -> None:
    found = measured(scripted("null"))
    assert 0 < found.free <= 1
    assert found.cached == 0
    assert found.shortage(blocking=False) == "" or found.free < admission.LEAST_FREE


def test_what_began_since_the_last_look_is_taken_to_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Pressure(files=OpenFiles(20, 100))
    monkeypatch.setattr(admission, "LOOK_S", 0.01)
    seen = asyncio.run(admitted([few, few._replace(files=OpenFiles(70, 100)), CALM], wanted=40))
    assert [*seen[:3], seen[-1]] == [1, 17, 20, 40]


def test_the_limit_of_open_files_is_raised_and_those_of_this_process_are_counted() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 900), hard))
        before = open_files()
        assert before.most == min(hard, 900)
        with open(os.devnull):
            assert open_files().open == before.open + 1
        raise_open_files()
        assert open_files().most == min(hard, 65_536)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        raise_open_files()
        assert open_files().most == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_files_have_no_limit_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    assert Pressure(free=0.5, files=open_files()).shortage(blocking=True, begun=1000) == ""
