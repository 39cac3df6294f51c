"""A day of orders in a workshop: worked out by hand, its mistakes, what is told once, and gold from any state."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check.horizon import horizon, remembers
from turnwise.envs.core import EndReason
from turnwise.envs.craft.env import CraftEnv
from turnwise.envs.craft.solver import distance
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

DAY = {
    "raw": ["ore", "wood", "sand"],
    "recipes": [["rod", {"ore": 1}], ["axle", {"wood": 2}], ["lens", {"sand": 1, "ore": 2}], ["lamp", {"axle": 1, "lens": 1}]],
    "orders": [["rod", []], ["axle", []], ["lens", []], ["lamp", [1, 2]]],
    "goal": "lamp", "stock": [9, 9, 9], "batch": 2, "slip": 0.0, "told": False, "asked": False, "lure": 0.05,
    "text": "full", "commands": "hidden", "turn_limit": 50,
}  # fmt: skip


def start(**options):
    env = CraftEnv()
    first, _ = env.reset(seed=0, options={"task": Task("turnwise/Craft-v0", "Orders.", {**DAY, **options})})
    return env, first[-1].content


def say(env, *commands):
    return [env.step(command) for command in commands][-1].observation[-1].content.splitlines()


def test_a_day_worked_out_by_hand():
    env, opening = start()
    assert opening.splitlines()[1:] == [
        "The store has 9 ore, 9 wood, 9 sand.",
        "Order 1: make a rod from 1 ore.",
    ]
    assert distance(env.state) == 2 + 2 + 3 + (2 + 3 + 1)
    assert say(env, "get 1 ore") == ["You have 1 ore.", "The store has 8 ore, 9 wood, 9 sand."]
    assert say(env, "make rod")[:3] == ["Done.", "Order 2: make an axle from 2 wood.", "You have nothing."]
    assert say(env, "get 2 wood", "make axle")[1] == "Order 3: make a lens from 1 sand, 2 ore."
    said = say(env, "get sand", "get 2 ore", "make lens")
    assert said[1] == "Order 4: make a lamp from what you made for orders 2 and 3."
    assert say(env, "get 2 wood", "make axle")[0] == "You have 1 axle."
    assert env.potential(env.state) == pytest.approx(9 / 13)
    step = [env.step(command) for command in ("get 2 ore", "get 1 sand", "make lens", "make lamp")][-1]
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)


def test_compact_text_says_the_same_in_few_words():
    env, opening = start(text="compact")
    assert opening.splitlines()[1:] == [
        "store : ore 9 , wood 9 , sand 9 .",
        "order 1 : make rod from ore 1 .",
    ]
    said = say(env, *[env.gold(env.state) for _ in range(1)], "make rod .", "get wood 2", "make axle .")
    assert said[:2] == ["done .", "order 3 : make lens from sand 1 , ore 2 ."]
    assert say(env, "get sand 1", "get ore 2", "make lens .")[1] == "order 4 : make lamp from orders 2 , 3 ."


def test_material_that_is_not_just_what_a_thing_is_made_of_is_spoiled_and_the_day_goes_on():
    env, _ = start()
    before = distance(env.state)
    step = [env.step(command) for command in ("get 2 ore", "make rod")][-1]
    assert step.observation[-1].content.splitlines()[0] == (
        "That is not what it is made of: the material is spoiled."
    )
    assert step.info["rewards"] == {"lure": 0.05}
    assert (distance(env.state), env.state.stock, sum(env.state.have)) == (before, (7, 9, 9), 0)
    assert say(env, "make rod") == ["Parts of rod are missing."]
    say(env, "get wood")
    assert (env.gold(env.state), distance(env.state)) == ("make rod", before + 1)
    assert "lure" not in env.step("get ore").info["rewards"]


def test_what_is_spoiled_is_wanting_later():
    env, _ = start(stock=[6, 4, 2])
    assert distance(env.state) == 13
    say(env, "get 2 ore", "make rod")
    assert (distance(env.state), env.gold(env.state)) == (float("inf"), "inventory")


def test_what_is_made_beside_an_order_is_gone_when_it_is_done():
    """Otherwise two of everything, made while its recipe is in sight, would do without memory."""
    env, _ = start()
    assert say(env, "get 2 wood", "make axle", "get ore")[0] == "You have 1 ore, 1 axle."
    assert say(env, "make rod")[2] == "You have nothing."


def test_a_thing_made_of_others_leaves_them_when_its_material_is_spoiled():
    env, _ = start()
    while env.state.served < 3:
        env.step(env.gold(env.state))
    while env.gold(env.state) != "make lamp":
        env.step(env.gold(env.state))
    assert say(env, "get ore", "make lamp")[1] == "You have 1 axle, 1 lens."
    assert env.step("make lamp").info["end"] == EndReason.SOLVED


def test_a_later_order_rests_on_the_lines_of_both_earlier_ones():
    env, _ = start()
    found = horizon(env, env.task)
    turns = [age.turns if age else None for age in found.ages]
    #         rod         axle  lens     axle  lens     lamp
    assert turns == [None, None, 1, 2, 1, 2, 3, 6, 7, 6, 7, 8, 11]
    assert (found.unshown, found.padding) == (0, 0)
    assert remembers(env, env.task, 10_000)
    assert not remembers(env, env.task, 20)


def test_a_recipe_that_must_be_asked_for_is_told_once_and_only_for_the_order_of_now():
    env, opening = start(asked=True)
    assert opening.splitlines()[-1] == "Order 1: make a rod."
    assert say(env, "recipe axle") == ["No recipe is told twice, nor before its order."]
    assert (env.gold(env.state), distance(env.state)) == ("recipe rod", 13 + 3)
    assert say(env, "recipe rod") == ["For rod you need 1 ore."]
    assert say(env, "recipe rod") == ["No recipe is told twice, nor before its order."]
    found = horizon(env, env.task)
    assert (len(found.ages), found.unshown, found.padding) == (16, 0, 0)
    told, _ = start()
    assert say(told, "recipe rod") == ["No recipe is told twice, nor before its order."]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(0, 2**32), st.integers(0, 25), st.booleans())
def test_gold_from_any_state_of_a_day(index, seed, turns, asked):
    env, rng = CraftEnv(), random.Random(seed)
    knobs = {"orders": 8, "back": 2, "raw": 6, "batch": 2, "spare": 60, "turn_limit": 300}
    task = CraftEnv.generate(
        derive_rng(index), Split.TRAIN, **knobs, recipes="asked" if asked else "told", amount=3
    )
    env.reset(seed=seed, options={"task": task})
    for _ in range(turns):
        if env.snapshot().end is None:
            before = distance(env.state)
            env.step(rng.choice([*env.admissible(env.state), env.gold(env.state), env.gold(env.state)]))
            assert distance(env.state) >= before - (2 if asked else 1)
    while env.snapshot().end is None:
        before = distance(env.state)
        env.step(env.gold(env.state))
        assert distance(env.state) == before - 1
    assert env.snapshot().end is EndReason.SOLVED


def test_material_in_the_hands_is_used_where_it_saves_a_turn():
    """One wood of four saves no turn with two at once, and one of three does: the lens comes first, though the axle is named first."""
    recipes = [
        ["rod", {"ore": 1}],
        ["axle", {"wood": 4}],
        ["lens", {"wood": 3}],
        ["lamp", {"axle": 1, "lens": 1}],
    ]
    env, _ = start(recipes=recipes, stock=[20, 20, 20])
    while env.state.served < 3:
        env.step(env.gold(env.state))
    before = distance(env.state)
    env.step("get wood")
    assert (before, distance(env.state), env.gold(env.state)) == (3 + 3 + 1, 6, "get 2 wood")
    env.step("get 2 wood")
    assert env.gold(env.state) == "make lens"


def test_a_recipe_is_asked_for_among_what_can_be_done_until_it_was_told():
    env, _ = start(asked=True)
    assert "recipe rod" in env.admissible(env.state)
    env.step("recipe rod")
    assert not [command for command in env.admissible(env.state) if "recipe" in command]
    told, _ = start()
    assert "recipe rod" not in told.admissible(told.state)


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"orders": 8, "back": 3}, "lower back"),
        ({"raw": 9}, "The craft's knobs: raw must be at most 8, the names of split dev in text full."),
        ({"raw": 13, "text": "compact"}, "raw must be at most 12, the names of split train in text compact"),
        ({"orders": 4, "raw": 29}, "raw must be at most 28, the names of split dev"),
        ({"orders": 47}, "orders must be at most 46, the names of split test"),
        ({"depth": 8, "width": 4}, "depth times width must be at most 28"),
        ({"orders": 4, "depth": 3}, "depth can have no effect with orders: leave it out"),
        (
            {"back": 2, "lure": 0.1},
            "back and lure can have no effect without orders: set orders, or leave it out",
        ),
        ({"orders": 4, "parts": [0, 1]}, "knob parts: give the least, 1 or more, and then the most"),
        ({"horizon": [9, 3]}, "knob horizon: give the least"),
        ({"spare": -1}, "knob spare: Input should be greater than or equal to 0"),
    ],
    ids=str,
)
def test_knobs_that_do_not_fit_are_refused(knobs, said):
    with pytest.raises(EnvError, match=re.escape(said)):
        CraftEnv.generate(derive_rng("x"), Split.TRAIN, **knobs)
