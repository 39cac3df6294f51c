"""What the first text gives away is found by an agent that only copies, and only that."""

import itertools
import re
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import pytest

from turnwise.envs import registry
from turnwise.envs.check import leaks as leaks_module
from turnwise.envs.check.command import check_env
from turnwise.envs.check.leaks import Leak, leaks
from turnwise.envs.registry import env_class, env_entries, environment_suites, resolve

FILE = Path(__file__).with_name("leaky_envs.py")


@pytest.fixture
def desk(monkeypatch):
    """Registers a class of leaky_envs for one test only, by its file."""
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    names = []

    def enter(cls: str) -> str:
        names.append(resolve(f"{FILE}:{cls}"))
        return names[-1]

    yield enter
    for name in names:
        gymnasium.registry.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "how"),
    [
        ("ShortGold", "the first observation shows the gold"),
        ("GoldInPrompt", "the first observation shows the gold, such as 'book-"),
        ("ReserveAtOnce", "a copying agent takes the first number of the first text ('reserve["),
        ("ToldByTheDesk", "a copying agent takes the "),
    ],
)
def test_the_answer_in_what_is_shown_first_breaks_the_check(desk, cls, how):
    result = check_env(desk(cls), only=["E8"]).requirements["E8"]
    assert not result.ok
    assert how in result.detail
    assert re.search(r"tasks, [0-3] with the text of another task, above the bound of 10%", result.detail)
    assert "Take the answer out of what is shown first." in result.detail


@pytest.mark.slow
@pytest.mark.parametrize("cls", ["ShortGold", "GoldInPrompt", "ReserveAtOnce", "ToldByTheDesk"])
def test_a_copying_agent_solves_each_of_them(desk, cls):
    name = desk(cls)
    _, copied = leaks(env_class(name)(), environment_suites(name)[0], seconds=60)
    assert (copied.own, copied.n) == (20, 20), copied
    assert copied.other <= 2


def test_a_desk_that_tells_nothing_passes_and_says_what_was_tried(desk):
    result = check_env(desk("Desk"), only=["E8"]).requirements["E8"]
    assert result.ok
    assert "a copying agent solves at most 0 of 20 tasks (leaky/Desk-v0)" in result.detail


def test_what_is_so_by_design_is_declared_and_stands_on_the_card(desk):
    result = check_env(desk("Declared"), only=["E8"]).requirements["E8"]
    assert result.ok
    assert "a copying agent solves at most 20 of 20 tasks" in result.detail
    assert "declared: the ticket names the book" in result.detail


@pytest.mark.slow
def test_naming_the_candidates_is_no_leak_where_the_bound_says_so(desk):
    assert check_env(desk("OneOfTwo"), only=["E8"]).requirements["E8"].ok


@pytest.mark.parametrize("blocking", [False, True])
def test_a_busy_machine_makes_the_test_no_smaller_where_nothing_is_waited_for(desk, monkeypatch, blocking):
    late = itertools.count(step=50)
    clocks = SimpleNamespace(monotonic=lambda: float(next(late)), thread_time=time.thread_time)
    monkeypatch.setattr(leaks_module, "time", clocks)
    env = env_class(name := desk("Desk"))()
    env.blocking = blocking
    found = leaks(env, environment_suites(name)[0], seconds=60)
    assert isinstance(found, str) == blocking


@pytest.mark.parametrize(
    ("name", "why"), [("turnwise/Tracker-v0", "a live world"), ("turnwise/Code-v0", "a live world")]
)
def test_what_cannot_be_tried_says_so(name, why):
    from turnwise.envs.check.leaks import not_checked

    assert why in not_checked(env_class(name))


def test_several_agents_are_not_checked(desk):
    result = check_env(desk("Two"), only=["E8"]).requirements["E8"]
    assert "leaks not checked: several agents" in result.detail


@pytest.mark.parametrize(
    ("own", "other", "n", "bound", "leaks"),
    [
        (20, 0, 20, 0.1, True),
        (20, 20, 20, 0.1, False),  # what another task's text gives as well is merely common
        (2, 0, 20, 0.1, False),  # may be luck
        (8, 0, 20, 0.1, True),
        (8, 0, 20, 0.4, False),  # the bound allows it
    ],
)
def test_when_copying_is_a_leak(own, other, n, bound, leaks):
    assert Leak("s", own, other, n, "").above(bound) is leaks


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "turnwise/Sort-v0",
        *(pytest.param(f"turnwise/{name}-v0", marks=pytest.mark.full) for name in ("Craft", "Calc")),
    ],
)
def test_our_own_give_nothing_away(name):
    result = check_env(name, only=["E8"]).requirements["E8"]
    assert result.ok, result.detail
