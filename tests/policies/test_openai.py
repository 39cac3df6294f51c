"""The OpenAI policy against a real HTTP server: messages, tools, retries, time-outs, refusals."""

import asyncio
import base64
import gzip
import json
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator

import httpx2
import pytest
from chat_server import Endless, body, holding, refused, said, serve

from turnwise.agents.core import Outcome
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.served.answers import ReplyTooLong, cap, read_message
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.agents.policies.served.written import conversation
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.grid.env import GridEnv
from turnwise.envs.messages import Image, Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.tasks.core import Split, derive_rng

TASK = suite_task(get_suite("shop/easy"), Split.TEST, 0)


def play(policy, seed=0):
    (episode,) = run_episodes([Request(TASK, seed)], policy, retries=0)
    policy.close()
    return episode


def golden(request):
    """Plays the gold solution, by following the episode's own messages."""
    env = make(TASK.env)
    env.reset(seed=0, options={"task": TASK})
    for message in request["messages"]:
        if message["role"] == "assistant":
            env.step(message["content"] or "")
    return said(str(env.gold(env.state)))


def test_it_plays_an_episode_over_http():
    with serve(golden) as server:
        asked = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 64, "instruction": "Be quick."}
        policy = make_policy(f"openai:tiny@{server.url}", **asked)
        episode = play(policy)
    assert (episode.outcome, episode.end, episode.score) == (Outcome.OK, EndReason.SOLVED, 1.0)
    first, last = server.requests[0], server.requests[-1]
    assert (first["model"], first["temperature"], first["top_p"], first["max_tokens"]) == (
        "tiny",
        0.5,
        0.9,
        64,
    )
    assert [tool["function"]["name"] for tool in first["tools"]] == ["search", "click"]
    assert len(last["messages"]) == len(first["messages"]) + 2 * (len(server.requests) - 1)
    assert {*first} == {
        "model",
        "messages",
        "tools",
        "temperature",
        "top_p",
        "max_tokens",
        "parallel_tool_calls",
    }
    for request in (first, last):
        assert ["Be quick." in str(one["content"]) for one in request["messages"]].index(True) == 0
    assert policy.name == f"openai:tiny@{server.url}"


def test_tool_calls_go_out_and_results_come_back_with_their_id():
    with serve(lambda _: said("", [("search", '{"query": "red"}')]), lambda _: refused(400)) as server:
        episode = play(OpenAIPolicy("m", server.url))
    call = episode.trajectory.turns[0].action.tool_calls[0]
    assert (call.name, dict(call.arguments), call.id) == ("search", {"query": "red"}, "call_0")
    *_, request, result = server.requests[1]["messages"]
    assert request["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"query": "red"}'}
    assert (result["role"], result["tool_call_id"]) == ("tool", "call_0")


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: said("", [("search", '{"query": ')]),
        lambda _: said("", [("search", "[1]")]),
        lambda _: said("", [("no_such_tool", "{}")]),
        lambda _: said('<tool_call>{"name": "search"</tool_call>'),
    ],
)
def test_malformed_calls_are_the_policys_mistake_and_the_episode_goes_on(answer):
    with serve(answer, golden) as server:
        episode = play(OpenAIPolicy("m", server.url))
    assert episode.trajectory.turns[0].bad_action
    assert episode.end is EndReason.SOLVED


def test_hermes_tags_left_in_the_text_are_read():
    tagged = '<tool_call>{"name": "search", "arguments": {"query": "red"}}</tool_call>'
    with serve(lambda _: said(tagged), lambda _: refused(400)) as server:
        episode = play(OpenAIPolicy("m", server.url))
    assert episode.trajectory.turns[0].action.tool_calls[0].name == "search"


def test_passing_failures_are_retried():
    busy = {"Retry-After": "0.05"}
    answers = [lambda _: refused(503, **busy), lambda _: refused(429, **busy), lambda _: refused(500, **busy)]
    with serve(*answers, golden) as server:
        episode = play(OpenAIPolicy("m", server.url))
    assert episode.end is EndReason.SOLVED
    assert len(server.requests) == len(episode.trajectory.turns) + 3


def test_retry_after_is_kept_and_capped():
    with serve(lambda _: refused(429, **{"Retry-After": "0.4"}), golden) as server:
        started = time.monotonic()
        play(OpenAIPolicy("m", server.url))
        assert time.monotonic() - started >= 0.4
    with serve(lambda _: refused(429, **{"Retry-After": "3600"}), golden) as server:
        play(OpenAIPolicy("m", server.url, longest_wait_s=0.1))  # the test's own limit is far below an hour


def test_lasting_failures_are_infrastructure_errors_not_zeros():
    with serve(lambda _: refused(503, **{"Retry-After": "0"})) as server:
        episode = play(OpenAIPolicy("m", server.url, attempts=3))
    assert (episode.outcome, len(server.requests)) == (Outcome.INFRA_ERROR, 3)
    with serve(lambda _: refused(401, "wrong key")) as server:
        episode = play(OpenAIPolicy("m", server.url))
    assert (episode.outcome, len(server.requests)) == (Outcome.INFRA_ERROR, 1)
    assert "wrong key" in episode.error
    assert "OPENAI_API_KEY" in episode.error


def test_a_hanging_server_times_out():
    with serve(lambda _: 5.0) as server:
        episode = play(OpenAIPolicy("m", server.url, attempts=1, timeout_s=0.2))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "timed_out" in episode.error


def test_nobody_at_the_address():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        episode = play(OpenAIPolicy("m", url, attempts=2, longest_wait_s=0.05))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "Check the URL" in episode.error


def test_a_full_context_is_a_token_limit():
    with serve(golden, lambda _: refused(400, "maximum context length exceeded")) as server:
        episode = play(OpenAIPolicy("m", server.url))
    assert (episode.outcome, episode.end) == (Outcome.LIMIT, EndReason.TOKEN_LIMIT)
    assert len(episode.trajectory.turns) == 1


# --- whose fault is it? (the table in docs/threat-model.md) -------------------------------------

DEEP = "[" * 5000 + "]" * 5000


def call(**fields):
    return {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}} | fields


def function(**fields):
    return call(function={"name": "search", "arguments": '{"query": "red"}'} | fields)


MODELS_FAULT = {
    "deep arguments": said("", [("search", f'{{"query": {DEEP}}}')]),
    "deep arguments that are no text": body(
        f'{{"choices": [{{"message": {{"tool_calls": [{{"function": {{"name": "search", "arguments": {DEEP}}}}}]}}}}]}}'
    ),
    "half a surrogate pair in arguments": said("", [("search", '{"query": "\\ud800"}')]),
    "half a surrogate pair in a name": holding({"tool_calls": [function(name="\ud800")]}),
    "NaN": said("", [("search", '{"query": NaN}')]),
    "NaN in arguments that are no text": holding(
        {"tool_calls": [function(arguments={"query": float("nan")})]}
    ),
    "an endless number": said("", [("search", '{"query": 1e999}')]),
    "a number of 5,000 digits": said("", [("search", f'{{"query": {"9" * 5000}}}')]),
    "a key twice": said("", [("search", '{"query": "a", "query": "b"}')]),
    "arguments of 200 kB": said("", [("search", json.dumps({"query": "x" * 200_000}))]),
    "arguments that are a list": said("", [("search", "[1]")]),
    "arguments that are a number": holding({"tool_calls": [function(arguments=5)]}),
    "name null": holding({"content": None, "tool_calls": [function(name=None)]}),
    "name a number": holding({"tool_calls": [function(name=5)]}),
    "no function": holding({"tool_calls": [call(function=None)]}),
    "a call that is null": holding({"tool_calls": [None]}),
    "calls that are text": holding({"tool_calls": "search"}),
    "calls that are an object": holding({"tool_calls": {"name": "search"}}),
    "1,000 calls": holding({"tool_calls": [function()] * 1000}),
    "another type of call": holding({"tool_calls": [call(type="custom")]}),
    "content a number": holding({"content": 5}),
    "content an object": holding({"content": {"text": "x"}}),
    "a part without text": holding({"content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}),
    "a broken call in tags": said('<tool_call>{"name": "search"</tool_call>'),
    "endless": Endless(b'{"choices": [{"message": {"content": "'),
    "too long": holding({"content": "x" * 1_000_000}),
}
SERVERS_FAULT = {
    "garbage": body("<html>busy</html>"),
    "cut in the middle": body('{"choices": [{"message": {"content": "sea'),
    "nothing": body(""),
    "null": body("null"),
    "a list": body("[]"),
    "no choices": body('{"choices": []}'),
    "an error with status 200": body('{"error": {"message": "overloaded", "code": 502}}'),
    "no message": body('{"choices": [{"index": 0}]}'),
    "a message that is text": holding("search[red]"),
    "not all of its bytes": body('{"choices": ', **{"Content-Length": "999"}),
    "compressed": body(
        gzip.compress(b'{"choices": [{"message": {"content": "x"}}]}'), **{"Content-Encoding": "gzip"}
    ),
    "an endless error": Endless(b'{"error": "', status=500),
    "a drip": Endless(part=b" ", seconds=0.05),
}
READ = {
    "parts of text": holding(
        {"content": [{"type": "text", "text": "search"}, {"type": "text", "text": "[red]"}]}
    ),
    "content null": holding({"content": None, "tool_calls": [function()]}),
    "arguments as an object": holding({"tool_calls": [function(arguments={"query": "red"})]}),
    "ids that occur twice, or are none": holding({"tool_calls": [function() | {"id": None}]}),
    "half a surrogate pair in the text": holding({"content": "search[red\ud800]"}),
    "bytes that are no text": body(b'{"choices": [{"message": {"content": "search[red\xff]"}}]}'),
    "NaN beside the message": holding({"content": "search[red]"}, logprobs=float("nan")),
}


@pytest.mark.parametrize("case", MODELS_FAULT)
def test_what_stands_in_the_message_is_the_models_fault(case):
    """A bad action, and the episode goes on: it stays in the denominator."""
    with serve(lambda _: MODELS_FAULT[case], golden) as server:
        episode = play(OpenAIPolicy("m", server.url, attempts=1, request={"max_tokens": 4096}))
    first = episode.trajectory.turns[0]
    assert (first.bad_action, first.reward) == (True, 0.0), str(first.observation)
    assert ("longer than" in first.action.malformed) == (case in ("endless", "too long"))
    assert (episode.outcome, episode.end) == (Outcome.OK, EndReason.SOLVED)
    json.dumps(first.action.to_json()).encode()


@pytest.mark.slow
@pytest.mark.parametrize("case", SERVERS_FAULT)
def test_what_is_no_completion_is_the_servers_fault(case):
    """It is asked again; at last the episode is an infrastructure error and scores nothing."""
    with serve(lambda _: SERVERS_FAULT[case]) as server:
        policy = OpenAIPolicy("m", server.url, attempts=2, timeout_s=1.0, longest_wait_s=0.01)
        episode = play(policy)
        assert (episode.outcome, len(server.requests)) == (Outcome.INFRA_ERROR, 2), episode.error
    with serve(lambda _: SERVERS_FAULT[case], golden) as server:
        policy = OpenAIPolicy("m", server.url, attempts=2, timeout_s=1.0, longest_wait_s=0.01)
        assert play(policy).end is EndReason.SOLVED


@pytest.mark.parametrize("case", READ)
def test_what_can_be_read_counts(case):
    with serve(lambda _: READ[case], golden) as server:
        episode = play(OpenAIPolicy("m", server.url, attempts=1))
    first = episode.trajectory.turns[0]
    assert not first.bad_action
    assert episode.end is EndReason.SOLVED
    json.dumps(first.action.to_json()).encode()


def test_calls_have_ids_of_their_own():
    calls = [function() | {"id": given} for given in ("c", "c", "", 5, "call_1", "x" * 65, "\ud800")]
    ids = [call.id for call in read_message({"tool_calls": calls})[0].tool_calls]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "c"
    assert ids == [call.id for call in read_message({"tool_calls": calls})[0].tool_calls]


def test_an_endless_reply_takes_little_memory():
    with serve(lambda _: Endless(b'{"choices": [{"message": {"content": "')) as server:
        policy = OpenAIPolicy("m", server.url, attempts=1)
        peak = most_memory(lambda: play(policy))
        replies = len(server.requests)
        assert replies > 1
        assert (
            server.sent / replies < 16 << 20
        )  # what the kernel's buffers hold beside the 80 KiB that are read
    assert peak < 32 << 20


def most_memory(work):
    """How much memory of Python's the work took at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("asked", ["9" * 400, "1e9", "\u00b2", "-1", "nan", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_no_retry_after_holds_it_up(asked):
    with serve(lambda _: refused(429, **{"Retry-After": asked}), golden) as server:
        episode = play(OpenAIPolicy("m", server.url, attempts=2, longest_wait_s=0.05))
    assert episode.end is EndReason.SOLVED


# --- pictures ------------------------------------------------------------------------------------


def picture_task():
    knobs = {"game": "lake", "size": 5, "image": True, "turn_limit": 20}
    return GridEnv.generate(derive_rng("pictures"), Split.TEST, **knobs)


def seen(content):
    """The pictures of a message, decoded, and its text."""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    text = "".join(part["text"] for part in content if part["type"] == "text")
    return [base64.b64decode(url.partition(",")[2]) for url in urls], text


def test_pictures_are_sent_as_data_uris():
    task, env = picture_task(), GridEnv()
    observation, _ = env.reset(seed=0, options={"task": task})
    shown = [observation[-1]]
    while env.snapshot().end is None:
        shown.append(env.step(env.gold(env.state)).observation[-1])

    def next_move(request):
        env.reset(seed=0, options={"task": task})
        for message in request["messages"]:
            if message["role"] == "assistant":
                env.step(message["content"] or "")
        return said(env.gold(env.state))

    with serve(next_move) as server:
        policy = OpenAIPolicy("m", server.url)
        (episode,) = run_episodes([Request(task, 0)], policy, retries=0)
        policy.close()
    assert (episode.end, episode.score) == (EndReason.SOLVED, 1.0)
    told = [message["content"] for message in server.requests[-1]["messages"] if message["role"] == "user"]
    assert [seen(content) for content in told] == [([m.images[0].data], m.content) for m in shown[:-1]]
    assert isinstance(server.requests[0]["messages"][0]["content"], str)  # the system message stays text


def test_a_tools_picture_follows_its_result_as_the_users():
    calls = [("act", '{"command": "look"}')]
    with serve(lambda _: said("", calls), lambda _: refused(400)) as server:
        policy = OpenAIPolicy("m", server.url)
        run_episodes([Request(picture_task(), 0)], policy, retries=0)
        policy.close()
    *_, call, result, picture = server.requests[1]["messages"]
    assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])
    assert isinstance(result["content"], str)
    images, text = seen(picture["content"])
    assert (picture["role"], len(images), text) == ("user", 1, "")
    two = [
        Message("tool", "a", tool_call_id="1", images=(Image(b"1"),)),
        Message("tool", "b", tool_call_id="2"),
    ]
    assert [m["role"] for m in conversation([*two, Message("assistant", "")])] == [
        "tool",
        "tool",
        "user",
        "assistant",
    ]


def test_nothing_is_read_of_a_reply_that_says_itself_that_it_is_too_long() -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    class Body(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return never()

    for length in ("99999999", "9" * 5000):
        with pytest.raises(ReplyTooLong, match="longer than 8388608 bytes"):
            asyncio.run(cap(httpx2.Response(200, headers={"content-length": length}, stream=Body())))
    asyncio.run(cap(httpx2.Response(500, headers={"content-length": "99999999"}, stream=Body())))  # it is cut
