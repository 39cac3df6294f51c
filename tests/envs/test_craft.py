"""Craft: recipes worked out by hand, shortest plans, scarcity, commands, baselines and splits."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.craft.env import CraftEnv
from turnwise.envs.craft.solver import distance
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

ENV = "turnwise/Craft-v0"
SUITES = ["easy", "medium", "asked", "deep"]
OPTIONS = {
    "raw": ["ore", "wood"], "goal": "lamp", "stock": [99, 99], "batch": 1, "slip": 0.0, "told": True,
    "recipes": [["rod", {"ore": 2}], ["nail", {"ore": 1}], ["lamp", {"rod": 2, "wood": 1}]],
    "text": "compact", "commands": "hidden", "turn_limit": 50,
}  # fmt: skip


def start(**options):
    env = CraftEnv()
    env.reset(seed=0, options={"task": Task(ENV, "make lamp .", {**OPTIONS, **options})})
    return env


def say(env, *commands):
    return [env.step(command) for command in commands][-1].observation[-1].content


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=6)
    assert report.ok, str(report)


def test_an_episode_worked_out_by_hand():
    env = start()
    first, _ = env.reset(seed=0, options={"task": env.task})
    told = "make lamp .\nraw : ore , wood .\nlamp : rod 2 , wood 1 .\nnail : ore 1 .\nrod : ore 2 ."
    assert first[-1].content == told
    assert distance(env.state) == 8  # four ores, a wood, two rods, the lamp
    assert say(env, "get ore", "make rod") == "parts of rod are missing , it needs ore 2 ."
    assert say(env, "get ore", "make rod") == "have rod 1 ."
    assert distance(env.state) == 5
    assert env.potential(env.state) == pytest.approx(3 / 8)
    assert say(env, "get ore", "make nail") == "have rod 1 , nail 1 ."  # a turn lost, and another
    assert distance(env.state) == 5
    assert say(env, "get ore", "get ore", "make rod", "get wood") == "have wood 1 , rod 2 , nail 1 ."
    step = env.step("make lamp")
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)


def test_what_is_wasted_is_lost_where_material_is_scarce():
    env = start(stock=[4, 1])
    assert distance(env.state) == 8
    assert say(env, "get ore", "get wood", "get wood") == "there is only wood 0 ."
    assert distance(env.state) == 6
    say(env, "make nail")
    assert distance(env.state) == float("inf")
    assert env.potential(env.state) == 0.0
    assert env.gold(env.state) == "inventory ."


def test_several_materials_can_be_fetched_at_once():
    env = start(batch=3)
    assert distance(env.state) == 2 + 1 + 3
    assert say(env, "get 4 ore") == "get at most 3 at once ."
    assert say(env, "get 3 ore") == "have ore 3 ."
    assert env.gold(env.state) == "make rod ."


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Gather one ore!", "have ore 1 ."),
        ("Action: collect ore", "have ore 1 ."),
        ("craft the rod", "parts of rod are missing , it needs ore 2 ."),
        ("recipe lamp", "lamp : rod 2 , wood 1 ."),
        ("recipe ore", "ore : raw ."),
        ("get rod", "rod must be made ."),
        ("make ore", "ore is raw : get it ."),
        ("make helm", "there is nothing called helm here ."),
        ("craft helms using 2 ore", "there is nothing called helms here ."),
        ("make it", "make what ?"),
        ("get 0 ore", "get at least 1 ."),
        ("get all ore", "say how many , at most 1 at once ."),
        ("get as much ore as possible", "say how many , at most 1 at once ."),
        ("list recipes", "recipe what ? name one thing ."),
        ("What is the recipe?", "recipe what ? name one thing ."),
        ("What is the recipe of the lamp?", "lamp : rod 2 , wood 1 ."),
        ("inventory", "have nothing ."),
        ("smelt ore", "unknown verb smelt"),
    ],
)
def test_commands_are_read_tolerantly_and_refused_with_the_reason(said, answer):
    assert answer in say(start(), said)


def test_recipes_that_are_not_told_can_be_asked_for():
    env = start(told=False)
    first, _ = env.reset(seed=0, options={"task": env.task})
    assert first[-1].content == "make lamp .\nraw : ore , wood ."
    assert say(env, "make rod") == "parts of rod are missing ."
    assert say(env, "recipe rod") == "rod : ore 2 ."


def test_full_text_is_in_sentences():
    env = start(text="full", stock=[9, 2], batch=3)
    first, _ = env.reset(seed=0, options={"task": env.task})
    told = "Raw materials: 9 ore, 2 wood.\nLamp: 2 rod, 1 wood.\nNail: 1 ore.\nRod: 2 ore."
    assert first[-1].content == f"make lamp .\n{told}"
    assert say(env, "inventory") == "You have nothing."
    assert say(env, "get 3 ore", "get wood") == "You have 3 ore, 1 wood."
    assert say(env, "recipe rod") == "For rod you need 2 ore."
    assert say(env, "recipe ore") == "Ore is raw."
    assert say(env, "make lamp") == "Parts of lamp are missing, it needs 2 rod, 1 wood."
    assert say(env, "smelt ore") == "Unknown verb smelt: say get, make, recipe or inventory."
    assert say(env, "make rod", "get 3 ore", "make rod", "make lamp") == "Done."


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_gold_is_shortest_and_baselines_hold(name):
    env, suite = CraftEnv(), get_suite(f"craft/{name}")
    tasks = [task for split in Split for task in suite_tasks(suite, split, 15)]
    for seed, task in enumerate(tasks):
        walked = walk(env, task, "gold", seed=seed)
        assert walked.success
        if not task.options["slip"]:
            assert len(walked.steps) == task.gold["turns"]
    played = {
        script: sum(walk(env, task, script, seed=seed).success for seed, task in enumerate(tasks))
        / len(tasks)
        for script in ("demonstrator", "random")
    }
    assert played["random"] <= CraftEnv.max_trivial_score
    assert 0.1 < played["demonstrator"] < 0.95


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(0, 30), st.integers(0, 2**32), st.integers(0, 20))
def test_gold_from_any_state(depth, index, seed, turns):
    env, rng = CraftEnv(), random.Random(seed)
    knobs = {"depth": depth, "turn_limit": 300}
    env.reset(seed=seed, options={"task": CraftEnv.generate(derive_rng(index), Split.TRAIN, **knobs)})
    for _ in range(turns):
        if env.snapshot().end is None:
            before = distance(env.state)
            env.step(rng.choice(env.admissible(env.state)))
            assert distance(env.state) >= before - 1  # no act is worth more than a turn of the plan
    while env.snapshot().end is None:
        left = distance(env.state)
        env.step(env.gold(env.state))
        assert distance(env.state) == left - 1
    assert env.snapshot().end is EndReason.SOLVED


@pytest.mark.slow
def test_splits_share_no_tree():
    suite = get_suite("craft/easy")
    trees = {split: {tree(task) for task in suite_tasks(suite, split, 400)} for split in Split}
    assert all(len(found) > 300 for found in trees.values())
    assert not trees[Split.TRAIN] & trees[Split.TEST]
    assert not trees[Split.TRAIN] & trees[Split.DEV]
    assert not trees[Split.DEV] & trees[Split.TEST]


def tree(task):
    recipes = dict(task.options["recipes"])
    edge = [task.options["goal"]]
    for name in edge:
        edge += [part for part in recipes[name] if part in recipes and part not in edge]
    return str([(name, sorted(recipes[name].items())) for name in sorted(edge)])


def test_in_compact_text_every_word_has_a_space_behind_it():
    env = CraftEnv()
    for task in suite_tasks(get_suite("craft/medium"), Split.TRAIN, 10):
        walked = walk(env, task, "demonstrator")
        told = [*walked.first, *walked.actions, *(m for step in walked.steps for m in step.observation)]
        for message in told:
            assert not re.search(r"[a-z](?![a-z ])", message.content), message.content


def test_knobs_are_checked():
    with pytest.raises(EnvError, match="parts must be at most"):
        CraftEnv.generate(derive_rng(0), Split.TRAIN, parts=[1, 5], raw=2)
    with pytest.raises(EnvError, match="Did you mean 'depth'"):
        CraftEnv.generate(derive_rng(0), Split.TRAIN, dept=8)
    with pytest.raises(EnvError, match="no craft task"):
        CraftEnv().reset(options={"task": Task("other", "x")})
