"""Function calling: worked out by hand, matched by type, and each way to be paid for nothing is shut."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check import check_env
from turnwise.envs.core import End
from turnwise.envs.functioncall.env import FunctionCallEnv
from turnwise.envs.functioncall.reward import Nearness, matches, nearness
from turnwise.envs.functioncall.values import same
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.walks import walk
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall

ENV = "turnwise/FunctionCall-v0"
SUITES = ["single", "parallel", "irrelevant", "missing", "failing", "multi"]


def function(name, /, **fields):
    parameters = {"type": "object", "properties": fields, "required": [k for k in fields if k != "warm"]}
    return {"name": name, "about": name, "parameters": {**parameters, "additionalProperties": False}}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
FUNCTIONS = [
    function("order", product_id=TEXT, quantity=NUMBER),
    function("find", name=TEXT),
    function("serve", dish=TEXT, guests=NUMBER, warm={"type": "boolean", "default": False}),
]


def wanted(name, /, gives="", after=(), fails="", reads=False, **arguments):
    return {
        "name": name,
        "arguments": arguments,
        "gives": gives,
        "after": [*after],
        "fails": fails,
        "reads": reads,
    }


def start(*rounds, **options):
    made = [{"say": "please", "calls": calls, "ask": ask} for calls, ask in rounds]
    env = FunctionCallEnv(**options)
    task = Task(ENV, "please", {"functions": FUNCTIONS, "rounds": made, "patience": 2, "turn_limit": 20})
    env.reset(seed=0, options={"task": task})
    return env


def call(env, *calls):
    made = tuple(ToolCall(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(calls))
    return env.step(Message("assistant", "", made))


SOUP = {"dish": "soup", "guests": 2}
ASK = {"words": ["guests", "number of people"], "told": ["dish", "table", "name"], "reply": "for 2 guests"}


def test_the_contract_is_kept():
    report = check_env(ENV, tasks=3)
    assert report.ok, str(report)


def test_a_lookup_and_parallel_calls_in_any_order():
    env = start(([wanted("find", name="lamp", gives="pr-1234", reads=True), wanted("order", after=[0], product_id="pr-1234", quantity=3), wanted("serve", **SOUP)], None))  # fmt: skip
    step = call(env, ("serve", SOUP), ("find", {"name": "lamp"}))
    assert [message.content for message in step.observation] == ['{"status": "ok"}', '{"id": "pr-1234"}']
    assert [message.tool_call_id for message in step.observation] == ["c0", "c1"]
    assert call(env, ("find", {"name": "lamp"})).info["end"] is None  # reading again changes nothing
    assert "404" in str(call(env, ("order", {"product_id": "pr-9999", "quantity": 3})).observation)
    call(env, ("order", {"product_id": "pr-1234", "quantity": 3}))
    step = env.step("It is done.")
    assert (step.reward, step.info["end"]) == (1.0, End.SOLVED)


def test_what_is_said_by_default_may_be_left_out_or_said():
    for arguments in (SOUP, {**SOUP, "warm": False}):
        env = start(([wanted("serve", **SOUP)], None))
        call(env, ("serve", arguments))
        assert env.step("Done.").info["end"] is End.SOLVED
    env = start(([wanted("serve", **SOUP)], None))
    assert call(env, ("serve", {**SOUP, "warm": True})).info["end"] is End.FAILED


@pytest.mark.parametrize(
    "calls",
    [
        [("serve", {"dish": "soup", "guests": 3})],
        [("serve", SOUP), ("serve", SOUP)],  # twice
        [("serve", SOUP), ("order", {"product_id": "x", "quantity": 1})],  # and something else
    ],
)
def test_a_call_that_nobody_wanted_fails_the_task(calls):
    step = call(start(([wanted("serve", **SOUP)], None)), *calls)
    assert (step.reward, step.info["end"]) == (0.0, End.FAILED)


@pytest.mark.parametrize(
    "arguments", [{}, {"dish": "soup"}, {**SOUP, "guests": "2"}, {**SOUP, "guests": True}, {**SOUP, "x": 1}]
)
def test_trap_calls_with_fewer_or_untyped_arguments_match_nothing(arguments):
    """τ²'s comparison looks at the predicted call's keys only, so an empty call matches any."""
    env = start(([wanted("serve", **SOUP)], None))
    step = call(env, ("serve", arguments))
    assert step.observation[0].content.startswith("error: ")
    assert step.info["end"] is None  # told, not punished
    call(env, ("serve", SOUP))
    assert env.step("Done.").info["end"] is End.SOLVED
    assert not matches(ToolCall("serve", arguments), ToolCall("serve", SOUP))


def test_trap_doing_nothing_passes_no_task():
    """23 of τ²'s 50 airline tasks pass by doing nothing."""
    for name in SUITES:
        for task in suite_tasks(get_suite(f"functioncall/{name}"), Split.TEST, 15):
            assert task.gold["calls"] >= 1
            env = FunctionCallEnv()
            env.reset(seed=0, options={"task": task})
            while env.snapshot().end is None:
                step = env.step("I have no function for that.")
            assert step.info["end"] is not End.SOLVED


def test_trap_declining_first_and_acting_if_the_user_insists():
    env = start(([wanted("serve", **SOUP)], None))
    assert env.step("I have no function for that.").info["end"] is End.FAILED


def test_where_no_function_fits_words_are_right_and_calls_are_wrong():
    env = start(([], None), ([wanted("serve", **SOUP)], None))
    assert env.step("I have no function for that.").info["end"] is None
    env = start(([], None), ([wanted("serve", **SOUP)], None))
    assert call(env, ("serve", SOUP)).info["end"] is End.FAILED


def test_what_is_missing_must_be_asked_for_by_its_name():
    env = start(([wanted("serve", **SOUP)], ASK))
    assert "What exactly" in str(env.step("What is missing?").observation)
    assert str(env.step("For what number of people?").observation) == "user: for 2 guests."
    call(env, ("serve", SOUP))
    assert env.step("Done.").info["end"] is End.SOLVED


def test_trap_guessing_what_is_missing_and_asking_for_everything():
    env = start(([wanted("serve", **SOUP)], ASK))
    assert call(env, ("serve", SOUP)).info["end"] is End.FAILED  # right by luck
    env = start(([wanted("serve", **SOUP)], ASK))
    spam = "Tell me the guests, the dish, the table and the name."
    assert env.step(spam).info["end"] is None
    assert env.step(spam).info["end"] is End.FAILED


def test_failures_are_overcome():
    env = start(
        ([wanted("serve", fails="busy", **SOUP)], None), ([wanted("serve", fails="session", **SOUP)], None)
    )
    assert "503" in str(call(env, ("serve", SOUP)).observation)
    call(env, ("serve", SOUP))
    env.step("Done.")
    assert "401" in str(call(env, ("serve", SOUP)).observation)
    assert "401" in str(call(env, ("serve", SOUP)).observation)
    call(env, ("renew_session", {}))
    call(env, ("serve", SOUP))
    assert env.step("Done.").info["end"] is End.SOLVED


def test_toolrl_by_hand():
    """papers/credit.md no. 41: 1.5, −1 and −3."""
    search = ToolCall("search", {"q": "x", "k": 3})
    assert nearness([ToolCall("search", {"q": "x", "k": 5})], [search]).correctness == pytest.approx(1.5)
    both = [search, ToolCall("open", {"id": 1})]
    assert nearness([ToolCall("search", {"q": "x"})], both).correctness == pytest.approx(-1.0)
    assert nearness([], both).correctness == pytest.approx(-3.0)
    assert nearness(both[::-1], both).correctness == pytest.approx(3.0)
    assert nearness([search], []) == Nearness()


def test_trap_repeating_a_half_right_call_is_paid_once():
    """ToolRL pays each message; summed over turns, half-right calls that change nothing would pay best."""
    env = start(([wanted("serve", **SOUP)], None), toolrl=1.0)
    first = call(env, ("serve", {"dish": "soup", "guests": "two"}))
    assert first.reward > 0
    assert [call(env, ("serve", {"dish": "soup", "guests": "two"})).reward for _ in range(5)] == [0.0] * 5
    total = first.reward + call(env, ("serve", SOUP)).reward
    assert total == pytest.approx(6.0 + 1.0)  # all of nearness, and a valid message


@given(st.lists(st.sampled_from([0, 1, True, "1", 1.0, None, "a"]), min_size=2, max_size=2))
def test_values_are_the_same_if_value_and_type_are(pair):
    first, second = pair
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in pair)
    assert same(first, second) == (first == second and (numbers or type(first) is type(second)))


@pytest.mark.parametrize("name", SUITES)
def test_gold_solves_and_demonstrations_do_not_always(name):
    env = FunctionCallEnv()
    tasks = [task for split in Split for task in suite_tasks(get_suite(f"functioncall/{name}"), split, 10)]
    assert all(walk(env, task, "gold", seed=seed).success for seed, task in enumerate(tasks))
    shown = sum(walk(env, task, "demonstrator", seed=seed).success for seed, task in enumerate(tasks))
    assert 0.1 < shown / len(tasks) < 0.97


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**32))
def test_gold_from_any_state_of_a_demonstration(index, seed):
    env, rng = FunctionCallEnv(), random.Random(seed)
    (task,) = suite_tasks(get_suite("functioncall/multi"), Split.TRAIN, 1, start=index)
    env.reset(seed=0, options={"task": task})
    for _ in range(rng.randrange(6)):
        if env.snapshot().end is None:
            env.step(env.demonstrate(env.state, rng))
    while env.snapshot().end is None:
        step = env.step(env.gold(env.state))
        if env.snapshot().end is not None:
            assert step.info["end"] is End.SOLVED
