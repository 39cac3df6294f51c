"""The suites: gold scores 1 from anywhere, baselines hold, splits share nothing, forks are exact and cheap."""

import json
import pickle
import random
import warnings
from copy import deepcopy

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from gymnasium.wrappers import DelayObservation, FrameStackObservation
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.bench.memory import bench_env
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Image, Message, Messages
from turnwise.envs.registry import get_suite, make, suite_task, suite_tasks
from turnwise.envs.shop.env import ShopEnv
from turnwise.envs.spaces import SHARED_BYTES, MessagesSpace
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

SUITES = ["shop/quick", "shop/easy", "shop/standard", pytest.param("shop/hard", marks=pytest.mark.slow)]
TRIVIAL_BASELINES = {"shop/quick": 0.15}
FEW = {"shop/standard": 20, "shop/hard": 8}  # a task of theirs takes a tenth of a second to draw


def finish(env, act):
    """(turns, end, return) of the rest of an episode."""
    turns, total = 0, 0.0
    while True:
        step = env.step(act())
        turns, total = turns + 1, total + step.reward
        if step.info["end"] is not None:
            return turns, step.info["end"], total


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_gold_solves_every_task_in_at_least_three_turns(name):
    env, turns = make("turnwise/Shop-v0"), set()
    for split in Split:
        for task in suite_tasks(get_suite(name), split, FEW.get(name, 40)):
            env.reset(seed=0, options={"task": task})
            n, end, total = finish(env, lambda: env.gold(env.state))
            assert (end, total) == (EndReason.SOLVED, 1.0), task
            turns.add(n)
    assert min(turns) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_random_valid_actions_seldom_succeed(name):
    env, rng, solved = make("turnwise/Shop-v0"), random.Random(0), 0
    tasks = list(suite_tasks(get_suite(name), Split.TEST, 40 if name in FEW else 200))
    for seed, task in enumerate(tasks):
        env.reset(seed=seed, options={"task": task})
        _, end, _ = finish(env, lambda: rng.choice(env.admissible(env.state)))
        solved += end is EndReason.SOLVED
    assert solved / len(tasks) <= TRIVIAL_BASELINES.get(name, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_splits_share_no_catalogue_no_goal_and_no_prompt_thing(name):
    suite = get_suite(name)
    catalogues, goals = {}, {}
    for split in Split:
        tasks = list(suite_tasks(suite, split, 20 if name in FEW else 120))
        assert len({task.id for task in tasks}) > len(tasks) / 2
        catalogues[split] = {task.options["catalogue"]["seed"] for task in tasks}
        goals[split] = {goal_key(task) for task in tasks}
    for found in (catalogues, goals):
        assert not found[Split.TRAIN] & found[Split.TEST]
        assert not found[Split.TRAIN] & found[Split.DEV]
        assert not found[Split.DEV] & found[Split.TEST]


def goal_key(task):
    env = make("turnwise/Shop-v0")
    env.reset(seed=0, options={"task": task})
    goal = env.state.world.goal
    goods = env.state.world.catalogue.facts is not None
    return task.prompt if goods else (goal.nouns, frozenset(goal.attributes), goal.options)


def test_tasks_are_self_contained_json():
    task = suite_task(get_suite("shop/standard"), Split.TEST, 3)
    copy = Task.from_json(json.loads(json.dumps(task.to_json())))
    assert copy.id == task.id
    a, b = make("turnwise/Shop-v0"), make("turnwise/Shop-v0")
    assert a.reset(seed=1, options={"task": task})[0] == b.reset(seed=1, options={"task": copy})[0]


# --- from any state ------------------------------------------------------------------------------

KNOBS = [
    {"products": 300, "catalogues": 2, "vocabulary": "small", "distractors": 5, "stray": 0.5, "per_page": 3,
     "attributes": [1, 3], "titled": 1, "option_groups": 2, "price_cap": True, "turn_limit": 60},
    {"products": 80, "catalogues": 2, "vocabulary": "small", "pages": "compact", "labels": "position",
     "per_page": 4, "stray": 0.5, "turn_limit": 60},
]  # fmt: skip


@settings(max_examples=60)
@given(st.sampled_from(KNOBS), st.integers(0, 30), st.integers(0, 2**32), st.integers(0, 12))
def test_gold_and_forks_from_any_state(knobs, index, seed, walk):
    env, rng = ShopEnv(shaping=1.0), random.Random(seed)
    env.reset(seed=seed, options={"task": ShopEnv.generate(derive_rng(index), Split.TRAIN, **knobs)})
    assert env.potential(env.state) == 0
    total = 0.0
    for _ in range(walk):
        actions = [a for a in env.admissible(env.state) if "buy" not in a] + [
            "click[nowhere]",
            "search[red mug]",
        ]
        snapshot, fork, action = env.snapshot(), env.fork(), rng.choice(actions)
        step = env.step(action)
        total += step.reward
        assert fork.step(action) == step
        assert 0 <= env.potential(env.state) < 1
        after = env.snapshot()
        env.restore(pickle.loads(pickle.dumps(snapshot)))
        assert env.step(action) == step
        env.restore(after)
    turns, end, rest = finish(env, lambda: env.gold(env.state))
    assert end is EndReason.SOLVED
    assert turns <= 20
    assert total + rest == pytest.approx(1.0)  # shaping telescopes: Φ(start) = Φ(end) = 0


def test_potential_rises_along_the_solution():
    env = ShopEnv()
    env.reset(seed=0, options={"task": suite_task(get_suite("shop/easy"), Split.TRAIN, 0)})
    seen = [env.potential(env.state)]
    while env.step(env.gold(env.state)).info["end"] is None:
        seen.append(env.potential(env.state))
    assert seen == [0.0, 0.25, 0.5, 0.75]  # found, open, an option; the purchase is the fourth step


def test_buying_the_right_product_without_its_option_scores_in_part_and_fails():
    env = make("turnwise/Shop-v0")
    env.reset(seed=0, options={"task": suite_task(get_suite("shop/quick"), Split.TRAIN, 0)})
    while env.state.item < 0:
        env.step(env.gold(env.state))
    step = env.step("click[buy]")
    attributes = len(env.state.world.goal.attributes)
    assert step.info["end"] is EndReason.FAILED
    assert step.reward == pytest.approx((attributes + 1) / (attributes + 2))
    assert step.info["details"] == {
        "total": step.reward, "r_type": 1.0, "attributes": attributes, "options": 0, "price": True,
    }  # fmt: skip


def test_the_turn_limit_truncates():
    env = make("turnwise/Shop-v0")
    task = suite_task(get_suite("shop/quick"), Split.TRAIN, 0)
    env.reset(seed=0, options={"task": task})
    turns, end, _ = finish(env, lambda: "search[mug]")
    assert (turns, end) == (task.options["turn_limit"], EndReason.TURN_LIMIT)


def test_state_keys_are_for_states_not_for_paths():
    env = make("turnwise/Shop-v0")
    tasks = list(suite_tasks(get_suite("shop/quick"), Split.TRAIN, 2))
    _, info = env.reset(seed=0, options={"task": tasks[0]})
    start, first = info["state_key"], env.step("search[mug]").info["state_key"]
    env.step("click[1]")
    back = env.step("click[prev]").info["state_key"]
    again = env.step("search[  MUG ]").info["state_key"]
    assert start != first == back == again
    assert env.reset(seed=0, options={"task": tasks[1]})[1]["state_key"] != start


# --- knobs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"product": 100}, "Did you mean 'products'"),
        ({"products": "many"}, "products"),
        ({"attributes": [3, 2]}, "attributes"),
        ({"values": 9}, "values must be at most"),
        ({"titled": 5}, "titled must be at most"),
        ({"price_cap": True, "show_prices": False}, "price_cap needs show_prices"),
        ({"differ": ["price"]}, "differ leaves nothing"),
        ({"differ": ["brand"]}, "differ"),
        ({"data": "/tmp", "vocabulary": "small"}, "vocabulary"),
        ({"language": "natural", "pages": "compact"}, "needs pages: full"),
        ({"language": "natural", "asked": [3, 2]}, "asked"),
        ({"language": "natural", "distractors": 3}, "distractors"),
        ({"language": "latin"}, "language"),
    ],
)
def test_unknown_and_impossible_knobs_are_refused(knobs, said):
    with pytest.raises(EnvError, match=said):
        ShopEnv.generate(derive_rng(0), Split.TRAIN, **knobs)


def test_a_task_of_something_else_is_refused():
    with pytest.raises(EnvError, match="no task of"):
        make("turnwise/Shop-v0").reset(options={"task": Task("other", "x")})


# --- gymnasium -----------------------------------------------------------------------------------


def test_gymnasium_makes_and_checks_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("turnwise/Shop-v0")
        check_env(env.unwrapped)
    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(observation)
    assert env.reset(seed=3)[1]["task_id"] == info["task_id"] != env.reset(seed=4)[1]["task_id"]
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasium_vector_environments(mode):
    spawned = (
        {} if mode == "sync" else {"vector_kwargs": {"context": "spawn"}}
    )  # in shared memory, the default
    envs = gymnasium.make_vec("turnwise/Shop-v0", num_envs=3, vectorization_mode=mode, **spawned)
    observations, _ = envs.reset(seed=[1, 2, 3])
    single = gymnasium.make("turnwise/Shop-v0")
    assert [str(o) for o in observations] == [str(single.reset(seed=seed)[0]) for seed in (1, 2, 3)]
    observations, rewards, terminated, truncated, _ = envs.step(("search[mug]", "click[x]", "?"))
    assert "Page 1" in str(observations[0])
    assert "is not here" in str(observations[1])
    assert [array.any() for array in (rewards, terminated, truncated)] == [False] * 3
    later, *_ = envs.step(("click[x]",) * 3)
    assert "Page 1" in str(observations[0])  # what was handed out stays
    assert "Page 1" not in str(later[0])
    envs.close()


def test_observations_come_back_from_shared_memory():
    space = MessagesSpace()
    memory = create_shared_memory(space, n=2)
    seen = read_from_shared_memory(space, memory, n=2)
    assert [*seen] == [Messages(), Messages()]
    long = Messages((Message("tool", "ŝ\ud800😀" * 5000, tool_call_id="a", images=(Image(b"\0\xff"),)),))
    write_to_shared_memory(space, 0, Messages((Message("user", "x" * 50_000),)), memory)
    write_to_shared_memory(space, 1, long, memory)
    write_to_shared_memory(space, 0, Messages((Message("user", "short"),)), memory)
    assert seen[:] == (Messages((Message("user", "short"),)), long)
    with pytest.raises(EnvError, match=r"(?s)no room.*shared_memory\W+False"):
        write_to_shared_memory(space, 0, Messages((Message("user", "x" * SHARED_BYTES),)), memory)
    assert deepcopy(seen) == seen[:]


@pytest.mark.slow
def test_bench_measures():
    figures = bench_env("turnwise/Shop-v0", repeats=2, tasks=5)
    assert set(figures) >= {"gold_steps_1000_products", "memory_1000_100000_products", "fork_1000_products"}
    assert all(figure.value > 0 and figure.spread >= 0 for figure in figures.values())


def test_wrappers_that_stack_or_delay_observations_begin_with_nothing_said():
    stacked = FrameStackObservation(gymnasium.make("turnwise/Calc-v0"), 2, padding_type="zero")
    first, _ = stacked.reset(seed=0)
    assert [len(frame) > 0 for frame in first] == [False, True]
    assert [len(frame) > 0 for frame in stacked.step("1")[0]] == [True, True]
    delayed = DelayObservation(gymnasium.make("turnwise/Calc-v0"), 1)
    begin, _ = delayed.reset(seed=0)
    assert begin == Messages()
    assert delayed.step("1")[0] == first[1]
