"""A few trials of benchmarks/gateway_faults.py, and whether their judge sees what is wrong."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnwise.agents.gateway import sessions
from turnwise.agents.hosting.resent import Resent
from turnwise.agents.hosting.session_host import Host

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def trials() -> Iterator[Any]:
    """The module of the trials."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("faulting.sessions")
    finally:
        sys.path.remove(str(BENCHMARKS))


def violations(trials: Any, number: int) -> str:
    return "; ".join(asyncio.run(trials.trial(number, 2)).violations)


@pytest.mark.parametrize("number", range(3))
def test_sessions_stand_clients_that_repeat_themselves_hang_up_and_pay_twice(
    trials: Any, number: int
) -> None:
    assert violations(trials, number) == ""


async def _again(self: Resent, key: object, said: object, carry_out: Any) -> Any:
    return await carry_out()


async def _untold(self: Host, playing: Any, opened: Any) -> Any:
    (episode,) = await playing
    return episode


@pytest.mark.parametrize(
    ("owner", "name", "broken", "seen"),
    [
        (Resent, "once", _again, "three times the same end"),
        (Host, "_played", _untold, "episodes were kept"),
        (sessions, "request_key", lambda body, patient=False: str(id(body)), "two answers"),
    ],
)
def test_the_judge_sees_a_broken_gateway(
    trials: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, broken: Any, seen: str
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert any(seen in violations(trials, number) for number in range(4))
