"""Suites whose solutions rest on what was told long ago: how far back, and who can play them."""

from __future__ import annotations

import pytest

from turnwise.envs.check.horizon import FAR, horizon, horizon_suites, length, measure, remembers
from turnwise.envs.core import EndReason
from turnwise.envs.household.env import HouseholdEnv
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.tasks.core import Split, Task

HOUSE = {
    "rooms": [["kitchen", ["counter", "shelf", "sink", "microwave", "fridge", "bin"]]],
    "doors": [],
    "objects": [["mug", 0], ["apple", 1], ["bowl", 0]],
    "goals": [],
    "orders": [[1, 2, 1, -1], [0, 1, 0, -1], [0, 0, 1, 1]],
    "text": "full", "commands": "hidden", "turn_limit": 30, "irreversible": True, "slip": 0.0, "known": False,
    "hidden": False, "lure": 0.05,
}  # fmt: skip


def start(**options):
    env = HouseholdEnv()
    first, _ = env.reset(
        seed=0, options={"task": Task("turnwise/Household-v0", "Orders.", {**HOUSE, **options})}
    )
    return env, first[-1].content


def test_a_day_worked_out_by_hand():
    env, opening = start()
    assert opening.endswith("Order 1: put apple 1, which is on shelf 1, in sink 1.")
    said = []
    for command in (
        "go to shelf 1", "take apple 1", "go to sink 1", "put apple 1 in sink 1", "go to counter 1", "take mug 1",
        "go to shelf 1", "put mug 1 on shelf 1", "take mug 1", "go to counter 1",
    ):  # fmt: skip
        said.append(env.step(command).observation[-1].content)
    assert said[3].splitlines()[1:] == ["Done.", "Order 2: put mug 1, which is on counter 1, on shelf 1."]
    assert said[7].splitlines()[1:] == [
        "Done.",
        "Order 3: take back to where it was what you moved for order 2.",
    ]
    last = env.step("put mug 1 on counter 1")
    assert (last.info["end"], last.reward) == (EndReason.SOLVED, 1.0)


def test_a_wrong_delivery_is_mended_and_a_lure_is_paid_and_costs():
    env, _ = start()
    for command in ("go to shelf 1", "take apple 1", "go to counter 1", "put apple 1"):
        assert not env.step(command).terminated
    assert env.gold(env.state) == "take apple 1 from counter 1"
    for command in ("take apple 1", "go to bin 1"):
        env.step(command)
    step = env.step("put apple 1 in bin 1")
    assert step.info["rewards"] == {"lure": 0.05}
    assert env.gold(env.state) == "look", "what is gone comes to no sink"


def test_an_order_that_takes_back_rests_on_the_line_of_the_earlier_one():
    env, _ = start()
    task = env.task
    found = horizon(env, task)
    assert [age.turns if age else None for age in found.ages] == [
        None, None, None, None, 1, 2, 3, 4, 5, 6, 7,
    ]  # fmt: skip
    assert found.unshown == 0
    assert remembers(env, task, 10_000)
    assert not remembers(env, task, 20)


def test_where_a_hidden_thing_lies_must_have_been_seen():
    env, opening = start(hidden=True)
    assert opening.endswith("Order 1: put apple 1 in sink 1.")
    assert horizon(env, env.task).unshown > 0, "this solution knows more than it was shown"


@pytest.mark.parametrize("suite", horizon_suites(), ids=lambda suite: suite.name)
def test_a_third_of_all_actions_rests_on_what_is_far_back(suite):
    far_turns, far_tokens = FAR[length(suite)]
    env = make(suite.env)
    found = [horizon(env, task) for task in suite_tasks(suite, Split.DEV, 6)]
    turns = sum(len(one.ages) for one in found)
    assert abs(turns / 6 - length(suite)) <= length(suite) / 3
    assert sum(one.far(far_turns, far_tokens) * len(one.ages) for one in found) >= 0.3 * turns
    assert sum(one.padding for one in found) <= 0.2 * turns
    assert not any(one.unshown for one in found)


@pytest.mark.parametrize("name", [suite.name for suite in horizon_suites() if length(suite) == 30])
def test_who_remembers_less_solves_less(name):
    few, most = measure(get_suite(name), 4, (200, 8000)).solved
    assert (few, most) == (0.0, 1.0)


def test_other_households_are_what_they_were():
    """Tasks without orders have the same ids, so that logs of before still name them."""
    (task,) = suite_tasks(get_suite("household/easy"), Split.TRAIN, 1)
    assert "orders" not in task.options
    assert task.id == "7bd78b3bc976a643"
