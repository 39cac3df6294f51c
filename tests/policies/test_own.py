"""Policies of one's own: functions and objects, in Python and by name."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from turnwise.agents.core import History, Reply
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.policies.own import FunctionPolicy, as_policy, load_policy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.scripted import scripted
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError


def gold(history: History) -> str:
    return history.env.gold(history.env.state)


async def gold_async(history: History) -> Message:
    await asyncio.sleep(0)
    return Message("assistant", gold(history))


class Agent:
    name, version = "agent of mine", 7

    async def act(self, history: History) -> Reply:
        return Reply(Message("assistant", gold(history)), action_ids=(1, 2))

    def say(self, history: History) -> str:
        return gold(history)

    def close(self) -> None: ...


class NoPolicy:
    async def act(self, history: History) -> Reply:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (gold, "gold"),
        (gold_async, "gold_async"),
        (Agent(), "agent of mine"),
        (Agent().say, "Agent.say"),
        (lambda history: gold(history), "test_a_function_or_object_of_ones_own_plays.<lambda>"),
    ],
)
def test_a_function_or_object_of_ones_own_plays(policy, name):
    result = evaluate("shop/easy", policy, episodes=6)
    assert (result.success, result.policy.rpartition(".")[2]) == (1.0, name.rpartition(".")[2])


def test_functions_that_wait_play_side_by_side():
    """Six in flight meet at a barrier: none of them waits on the event loop."""
    together = threading.Barrier(6, timeout=60)

    def waits(history: History) -> str:
        if not history.turns:
            together.wait()
        return gold(history)

    assert evaluate("shop/easy", waits, episodes=6, concurrency=6).success == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (NoPolicy(), "NoPolicy is no policy: it has no name, version, close"),
        (Agent, "Agent is a class and no policy"),
        ([1, 2], "[1, 2] (a list) is no policy"),
        (None, "None is no policy"),
        ("scripted:gould", "There is no script 'gould'"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_sentence(given, said):
    with pytest.raises(TurnwiseError) as caught:
        evaluate("shop/easy", given, episodes=2)
    assert said in caught.value.cause
    assert caught.value.remedy


@pytest.mark.parametrize("returned", [None, {"role": "assistant"}, 3, Message("user", "hello")])
def test_what_a_function_must_not_return_is_named_with_its_line(returned):
    def mine(history: History) -> object:
        return returned

    with pytest.raises(TurnwiseError, match="None of the 2 episodes") as caught:
        evaluate("shop/easy", mine, episodes=2)
    assert "mine returned" in str(caught.value)
    assert ",." not in str(caught.value)
    assert "test_own.py:" in str(caught.value)


def test_an_error_in_a_function_is_told_with_its_line():
    def mine(history: History) -> str:
        raise KeyError("no such tool")

    with pytest.raises(TurnwiseError) as caught:
        evaluate("shop/easy", mine, episodes=2)
    assert "KeyError: 'no such tool'" in str(caught.value)
    assert "test_own.py:" in str(caught.value)


def test_opponents_may_be_functions_too():
    result = evaluate(
        "games/kuhn-self", scripted("random"), episodes=4, opponents={"opponent": lambda history: "pass"}
    )
    assert result.episodes == 4


CODE = """
def gold(history):
    return history.env.gold(history.env.state)

class Agent:
    name, version = "from a class", 0
    async def act(self, history):
        raise NotImplementedError
    def close(self): ...

class Greedy:
    def __init__(self, temperature): ...

made = Agent()
number = 3
"""


def test_a_policy_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_agent_of_mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    for target in (
        "my_agent_of_mine:gold",
        f"{tmp_path}/my_agent_of_mine.py:gold",
        "my_agent_of_mine.py:gold",
    ):
        for spec in (f"python:{target}", target):
            assert make_policy(spec).name == f"python:{target}"
            assert evaluate("shop/easy", spec, episodes=2).success == 1.0
    assert make_policy("python:my_agent_of_mine:Agent").name == "from a class"
    assert make_policy("python:my_agent_of_mine:made").name == "from a class"
    for target, said in [
        ("my_agent_of_mine:gould", "Did you mean 'gold'?"),
        ("my_agent_of_mine:number", "3 (a int) is no policy"),
        ("my_agent_of_mine:Greedy", "cannot be made: TypeError"),
        ("my_agent_of_mine", "Write python:MODULE:OBJECT"),
        ("no_such_module_here:gold", "There is no module 'no_such_module_here'"),
    ]:
        with pytest.raises(TurnwiseError) as caught:
            load_policy(target)
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("vlm:some/model", "Did you mean 'vllm'?"),
        ("no_such_module_here:act", "There is no kind of policy 'no_such_module_here'"),
        ("no_such_file.py:act", "There is no file no_such_file.py"),
        ("no_such_file.py:", "which policy in it is meant"),
        ("mine.py", "Write mine.py:NAME"),
    ],
)
def test_a_spec_that_names_nothing(spec, said):
    with pytest.raises(TurnwiseError) as caught:
        make_policy(spec)
    assert said in str(caught.value)


def test_as_policy_leaves_a_policy_alone():
    policy = scripted("gold")
    assert as_policy(policy) is policy
    named = FunctionPolicy(gold, "mine")
    assert (as_policy(named), named.name) == (named, "mine")
