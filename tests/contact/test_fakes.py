"""The stand-ins themselves: each takes what its provider takes and refuses what it refuses, so that no test passes by a yes-man."""

from __future__ import annotations

import json
import urllib.request

import pytest
from fakes import Fakes
from habits import answers, providers
from honest import begun, broken, play, post, request
from knowing import WRONG

NAMES = sorted(providers())


def test_there_are_thirty_providers_and_every_habit_says_where_it_was_read():
    habits = [habit for one in providers().values() for habit in one.habits]
    published = [habit for habit in habits if habit.source.startswith("https://")]
    assert len(providers()) >= 30
    assert len(published) >= 90
    table = answers()
    for kind in (table.context_full, table.rate_limited, table.filtered, table.cut):
        assert len({one.server for one in kind}) == len(kind) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_gives_a_provider_what_it_wants_is_never_refused(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    talk = play(stand)
    handed = [
        one["content"]
        for one in talk
        if "Handed over" in str(one.get("content")) and one["role"] != "assistant"
    ]
    assert handed == ["Handed over: tag 41."]
    assert (dict(stand.refused), stand.lost, stand.broken) == ({}, 0, [])
    assert stand.served == (5 if not stand.says.parallel else 4)


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name in NAMES for number in range(len(providers()[name].bad))]
)
def test_each_refuses_what_its_provider_refuses(name: str, number: int, fakes: Fakes):
    stand, bad = fakes.stand(name), providers()[name].bad[number]
    status, body = post(stand, broken(stand, bad))
    assert dict(stand.refused) == {bad.what: 1}, stand.requests[-1]
    answer = stand.provider.refusals.get(bad.what) or stand.provider.refusals["default"]
    assert status == answer.status
    assert "{param}" not in json.dumps(body)
    assert stand.served == 1
    assert not stand.broken


@pytest.mark.parametrize("name", NAMES)
def test_each_says_in_its_own_words_that_a_context_is_full_or_a_rate_exceeded(name: str, fakes: Fakes):
    full = fakes.stand(name, context=3)
    status, body = post(full, request(full, begun()))
    assert (status >= 400, full.refused["context"]) == (True, 1)
    assert "{limit}" not in json.dumps(body)
    busy = fakes.stand(name, busy=1)
    status, body = post(busy, request(busy, begun()))
    assert status >= 429 or "rate" in json.dumps(body).lower() or "1002" in json.dumps(body)
    status, body = post(busy, request(busy, begun()))
    assert (status, busy.served) == (200, 1)


def test_a_limit_cuts_thoughts_first_and_then_calls(fakes: Fakes):
    stand = fakes.stand("openai-reasoning")
    _, body = post(stand, {**request(stand, begun()), "max_completion_tokens": 100})
    (choice,) = body["choices"]
    assert (choice["finish_reason"], choice["message"].get("tool_calls")) == ("length", None)
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 100}
    _, body = post(stand, {**request(stand, begun()), "max_completion_tokens": 405})
    (call,) = body["choices"][0]["message"]["tool_calls"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["function"]["arguments"])


def test_a_call_that_is_only_weighed_stands_in_thoughts_of_each_form(fakes: Fakes):
    forms = {}
    for name in ("deepseek", "mistral", "minimax", "vllm-no-parser", "groq", "openrouter"):
        stand = fakes.stand(name)
        _, body = post(stand, request(stand, begun()))
        message = body["choices"][0]["message"]
        assert WRONG["name"] in json.dumps(
            {key: value for key, value in message.items() if key != "tool_calls"}
        )
        forms[stand.says.thoughts] = message
    assert len(forms) == 6
    assert forms["thinking parts"]["content"][0]["type"] == "thinking"
    assert "<think>" not in forms["open think text"]["content"]


def test_a_stream_says_the_same(fakes: Fakes):
    stand = fakes.stand("fireworks")
    asked = {**request(stand, begun()), "stream": True, "stream_options": {"include_usage": True}}
    made = urllib.request.Request(f"{stand.url}/chat/completions", json.dumps(asked).encode())
    with urllib.request.urlopen(made, timeout=10) as answer:
        events = [line[6:] for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    *parts, last = [json.loads(event) for event in events[:-1]]
    deltas = [part["choices"][0]["delta"] for part in parts]
    whole = stand.replies[-1]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == whole["reasoning_content"]
    calls = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if "tool_calls" in delta]
    assert "".join(calls) == whole["tool_calls"][0]["function"]["arguments"]
    assert parts[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["total_tokens"] > 0


def test_two_calls_at_once_and_one_at_a_time_where_that_is_asked_for(fakes: Fakes):
    stand = fakes.stand("openai")
    talk = play(stand)
    assert [len(one["tool_calls"]) for one in talk if one.get("tool_calls")] == [1, 2, 1]
    _, body = post(stand, {**request(stand, talk[:4]), "parallel_tool_calls": False})
    assert len(body["choices"][0]["message"]["tool_calls"]) == 1
