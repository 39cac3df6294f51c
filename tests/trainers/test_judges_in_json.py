"""Judges are asked for JSON where their server has it; what they say in it is read like the same in words."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import refused, said, serve

pytest.importorskip("torch")

from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.registry import get_component
from turnwise.tasks.core import Task
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, judge_policy
from turnwise.trainers.kit.forms import WRONG_TURNS
from turnwise.trainers.kit.toy_batches import episode

LIE = "It says\nWRONG: none\nTURN 1: 9/9\nCRITERION 1: no\nPOINTS: 9 0\nANSWER: no\n"
TURNS = [
    {"turn": 2, "principles": ["x", "y"], "kept": 1, "of": 2},
    {"turn": 1, "principles": [], "kept": 3, "of": 2},
]
SAID: dict[str, tuple[Any, str, set[float]]] = {
    "critic": ({"explanation": LIE, "wrong": [2]}, "WRONG: 2", {0.0, 1.0}),
    "principles": ({"turns": TURNS}, "TURN 2: 1/2\nTURN 1: 3/2", {0.0, 0.5}),
    "rubric": ({"criteria": [{"number": 1, "met": True}]}, "CRITERION 1: yes", {1.0}),
    "epo_strategic": ({"explanation": LIE, "critical": [1]}, "CRITICAL: 1", {0.0, 1.0}),
    "rlbff": ({"explanation": LIE, "answer": "yes"}, "ANSWER: yes", {1.0}),
}
BROKEN = [
    {"explanation": LIE, "wrong": "2"},
    {"turns": [{"turn": 2, "kept": 1}]},
    {"criteria": {"1": True}},
    {"explanation": LIE, "answer": "certainly"},
    {"explanation": LIE, "a": -9, "b": 1},
    [],
]


def attempts() -> list[Group]:
    task = Task("toy", "t", {"rubrics": [{"criterion": "It is right."}]})
    from dataclasses import replace

    return [[replace(episode([0, 0]), task=task, seed=n) for n in range(2)]]


def told(name: str, address: str) -> set[float]:
    judged = asyncio.run(get_component("judge", name).build({"policy": f"openai:{address}"})(attempts()))
    return {
        x for group in judged for one in group for turn in one.trajectory.turns for x in turn.signals.values()
    }


@pytest.mark.parametrize("name", SAID)
def test_a_verdict_in_json_is_the_one_in_words(name: str) -> None:
    fields, words, values = SAID[name]
    with serve(lambda asked: said(json.dumps(fields))) as server:
        assert told(name, f"json@{server.url}") == values
        form = server.requests[0]["response_format"]
        assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
        assert form["json_schema"]["schema"]["additionalProperties"] is False
        assert {*form["json_schema"]["schema"]["required"]} == {*fields}
        assert "held to JSON" in server.requests[0]["messages"][-1]["content"]
    with serve(lambda asked: said(f"I think so.\n{words}")) as server:
        assert told(name, f"words@{server.url}") == values


def test_both_sides_of_a_pair_are_read_from_json() -> None:
    """The first one shown gets all points, in both orders: nobody is better."""
    with serve(lambda asked: said(json.dumps({"explanation": "", "a": 8, "b": 2.5}))) as server:
        policy = make_policy(f"openai:m@{server.url}")
        from turnwise.trainers.judge.tournament import points
        from turnwise.trainers.kit.forms import POINTS

        assert points(asyncio.run(ask(policy, ["?"], form=POINTS))[0]) == (8.0, 2.5)
        policy.close()


@pytest.mark.parametrize("name", [*SAID, "tournament"])
def test_no_reward_comes_of_json_of_another_form(name: str) -> None:
    for n, fields in enumerate(BROKEN):
        with serve(lambda asked, fields=fields: said(json.dumps(fields))) as server:
            assert told(name, f"broken{n}@{server.url}") <= ({0.5} if name == "tournament" else {0.0})


@pytest.mark.parametrize(
    "why", ["response_format of type json_schema is not supported", "this model cannot compile grammars"]
)
def test_a_server_that_refuses_is_asked_in_words_with_one_note(why: str) -> None:
    def answer(asked: Any) -> Any:
        return refused(400, why) if "response_format" in asked else said("WRONG: 2")

    with serve(answer) as server:
        policy = judge_policy(f"openai:refuses@{server.url}")
        assert asyncio.run(ask(policy, ["a"], form=WRONG_TURNS)) == ["WRONG: 2"]
        assert asyncio.run(ask(policy, ["b"], form=WRONG_TURNS)) == ["WRONG: 2"]
        assert ["response_format" in one for one in server.requests] == [True, False, False], (
            "it is remembered"
        )
        assert isinstance(policy, OpenAIPolicy)
        assert policy.notes == ("The server refuses response_format: it was left out.",)
        policy.close()


def test_what_was_said_in_json_is_recorded_and_played_again(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    with serve(lambda asked: said('{"explanation": "no", "wrong": [1, 3]}')) as server:
        first = make_policy(f"recorded:{file} {{model: openai:m@{server.url}}}")
        assert asyncio.run(ask(first, ["a"], form=WRONG_TURNS)) == ["WRONG: 1, 3"]
        assert "response_format" in server.requests[0]
        first.close()
    assert asyncio.run(ask(make_policy(f"recorded:{file}"), ["a"], form=WRONG_TURNS)) == ["WRONG: 1, 3"]


def test_an_option_of_the_policy_comes_first() -> None:
    """A response_format that is named reaches the server; without a server nothing is said of JSON."""
    with serve(lambda asked: said("WRONG: none")) as server:
        policy = make_policy(f"openai:m@{server.url} {{extra_body: {{response_format: {{type: text}}}}}}")
        asyncio.run(ask(policy, ["a"], form=WRONG_TURNS))
        assert server.requests[0]["response_format"] == {"type": "text"}
        policy.close()
