"""Suites whose solutions rest on what was told long ago: how far back, and who can play them."""

from __future__ import annotations

import pytest

from turnwise.envs.check.horizon import FAR, horizon, horizon_suites, length, measure, remembers
from turnwise.envs.core import EndReason
from turnwise.envs.household.env import HouseholdEnv
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.library import world_pages
from turnwise.envs.search.schema import schema
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

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


IDS = {
    "household/easy": "7bd78b3bc976a643",
    "search/easy": "abe386357d6c2918",
    "search/quick": "b2ccdbf20fede7d7",
    "lab/easy": "81d88af72bdd9050",
    "lab/standard": "bc5af554d4c67cb2",
    "craft/easy": "b61325c91fb984a4",
    "craft/asked": "53f8d36d818d1f5e",
}


@pytest.mark.parametrize(("name", "known"), IDS.items())
def test_tasks_without_horizon_are_what_they_were(name, known):
    """Their ids are the same, so that logs of before still name them."""
    (task,) = suite_tasks(get_suite(name), Split.TRAIN, 1)
    assert not {"orders", "later"} & {*task.options, *task.gold}
    assert task.id == known


def begun(name, index=0):
    suite = get_suite(name)
    env, task = make(suite.env), list(suite_tasks(suite, Split.TRAIN, index + 1))[index]
    env.reset(seed=0, options={"task": task})
    return env


def played(env, actions):
    """Play ``actions(state)`` to the end."""
    while True:
        step = env.step(actions(env.state))
        if step.terminated:
            return step
        assert not step.truncated


def test_a_wrong_answer_costs_its_share_and_what_was_right_is_told():
    env = begun("search/horizon-30")
    wrong = env.step("answer[Nowhere at all]")
    right = env.task.gold["answers"][0]
    assert wrong.observation[-1].content.startswith(
        f"Wrong. The answer to question 1 is {right}.\nQuestion 2 of 10: "
    )
    assert (wrong.reward, wrong.terminated) == (0.0, False)
    last = played(env, env.gold)
    assert last.reward == pytest.approx(0.9)
    assert last.info["end"] == EndReason.FAILED


def test_a_question_about_earlier_answers_names_none_of_them():
    for index in range(5):
        questions = begun("search/horizon-100", index).state.quest.questions
        assert sum(bool(one.refers) for one in questions) == 10
        for one in questions[-10:]:
            assert one.refers
            assert max(one.refers) < 23
            for number in one.refers:
                assert not any(name in one.text for name in questions[number].answers)
                assert f"question {number + 1}" in one.text


def test_the_older_of_two_answers_is_older():
    """By the world's own years, looked up by name."""
    for index in range(3):
        env = begun("search/horizon-30", index)
        quest = env.state.quest
        source = {key: value for key, value in env.task.options["library"].items() if key != "type"}
        graph = world_pages(WorldSpec(**source)).graph
        at = {graph.name(entity): entity for entity in range(graph.size)}
        compared = [one for one in quest.questions if one.form == "comparison"]
        assert len(compared) == 2
        for one in compared:
            both = [quest.questions[number].answers[0] for number in one.refers]
            years = {name: graph.target(at[name], schema().year_of[graph.kind(at[name])]) for name in both}
            assert one.answers[0] == min(years, key=years.__getitem__)
            assert set(one.rivals) == set(both) - {one.answers[0]}


def test_a_wrong_focus_ends_a_day_and_orders_done_ahead_are_all_told():
    env = begun("lab/horizon-30")
    lab = env.state.lab
    cubes = [lab.readings[number].thing for number in range(6)]
    assert sorted(cubes) != cubes, "the number of an order must not be that of its cube"
    while len(env.state.lab.orders) - env.state.done > 6:
        step = env.step(env.gold(env.state))
    assert step.observation[-1].content.splitlines()[-1] == f"Order 7: {lab.orders[6]}"
    best = lab.goals[6].a
    other = next(cube for cube in cubes if cube != best and env.state.can_reach(cube))
    failed = env.step(f"focus on {lab.names[other]}")
    assert (failed.info["end"], failed.reward) == (EndReason.FAILED, 0.0)


def test_an_order_that_was_carried_out_before_its_turn_is_told_too():
    env = begun("lab/horizon-30")
    orders = env.state.lab.orders
    second = env.state._replace(done=1)  # what the second order asks for, done before the first
    env.restore(env.snapshot()._replace(state=second))
    while env.state.done == 1:
        env.step(env.gold(env.state))
    ahead = env.state._replace(done=0, used=env.state.used & ~1)
    env.restore(env.snapshot()._replace(state=ahead))
    while env.state.done == 0:
        step = env.step(env.gold(env.state))
    assert step.observation[-1].content.splitlines()[-2:] == [
        f"Order 2: {orders[1]}",
        f"Order 3: {orders[2]}",
    ]


@pytest.mark.parametrize("knobs", [{"orders": 8, "back": 4}, {"orders": 12, "back": 7}])
def test_days_that_have_too_little_to_refer_to_are_refused(knobs):
    with pytest.raises(EnvError, match="refer to none"):
        make("turnwise/Lab-v0").generate(derive_rng("x"), Split.TRAIN, **knobs)
