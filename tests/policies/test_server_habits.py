"""What servers want of requests, and what they say about replies: nothing of it is guessed, lost or taken for the model's."""
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiohttp import web
from chat_server import refused, said, serve
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.agents.core import Finish, History, Outcome, Usage
from turnwise.agents.policies.openai import openai as made_of_target
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.served.answers import AnswerForm, ServerRefusal, most_bytes, read_answer
from turnwise.agents.policies.served.manners import Manners
from turnwise.agents.policies.served.naming import ToolNames
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.agents.policies.served.written import MessageForm, conversation
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import EngineError, NotFoundError, TurnwiseError, WishRefusedError
from turnwise.fault import FaultCause
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall, Verbatim, tool

TASK = suite_task(get_suite("shop/easy"), Split.TEST, 0)
ORIGIN = "openai:m@http://here"


def golden(request):
    """Plays the gold solution, by following the episode's own messages."""
    env = make(TASK.env)
    env.reset(seed=0, options={"task": TASK})
    for message in request["messages"]:
        if message["role"] == "assistant":
            env.step(message["content"] or "")
    return said(str(env.gold(env.state)))


def play(policy, episodes=1, **limits):
    played = run_episodes(
        [Request(TASK, seed) for seed in range(episodes)],
        policy,
        retries=0,
        concurrency=1,
        limits=Limits(**limits),
    )
    policy.close()
    return played


def read(message, finish=None, most=None, **around):
    body = {"choices": [{"message": message, "finish_reason": finish}], **around}
    return read_answer(json.dumps(body).encode(), AnswerForm(ORIGIN, most=most))


# --- what a server says about its answer -----------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "means"),
    [
        ("stop", Finish.STOP), ("tool_calls", Finish.CALLS), ("length", Finish.LENGTH), ("MAX_TOKENS", Finish.LENGTH),
        ("content_filter: SAFETY", Finish.CONTENT_FILTER), ("refusal", Finish.REFUSAL), ("end_turn", Finish.STOP),
        ("something new", Finish.UNKNOWN), (None, Finish.UNKNOWN), (5, Finish.UNKNOWN),
    ],
)  # fmt: skip
def test_why_a_reply_ended_is_read_in_the_words_of_many_servers(finish, means):
    assert read({"content": "x"}, finish).served.finish is means


@pytest.mark.parametrize(
    ("message", "content", "thoughts"),
    [
        ({"content": "go", "reasoning_content": "hm"}, "go", "hm"),
        ({"content": "go", "reasoning": "hm", "reasoning_details": [{"text": "hm"}]}, "go", "hm"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "go"}]}, "go", "hm"),
        ({"content": [{"type": "reasoning", "text": "hm"}, "go"]}, "go", "hm"),
        ({"content": [{"type": "text", "text": "go"}, {"type": "audio", "data": "…"}]}, "go", ""),
    ],
)  # fmt: skip
def test_thoughts_are_told_apart_from_words_in_every_form(message, content, thoughts):
    answer = read(message)
    assert (answer.message.content, answer.message.malformed, answer.served.thoughts) == (
        content,
        "",
        thoughts,
    )


def test_a_refusal_in_a_field_of_its_own_is_the_model_s_words_and_told_as_one():
    answer = read({"content": None, "refusal": "I cannot."}, "stop")
    assert (answer.message.content, answer.served.finish, answer.served.refusal) == (
        "I cannot.",
        Finish.REFUSAL,
        "I cannot.",
    )
    parts = read({"content": [{"type": "refusal", "refusal": "No."}]}, "stop")
    assert (parts.message.content, parts.served.finish) == ("No.", Finish.REFUSAL)


def test_thoughts_do_not_count_in_the_length_that_a_reply_may_have():
    long = "x" * 200_000
    most = most_bytes(256)
    assert not read({"content": "go", "reasoning_content": long}, most=most).message.malformed
    parts = [{"type": "thinking", "thinking": long}, {"type": "text", "text": "go"}]
    assert not read({"content": parts}, most=most).message.malformed
    assert "longer than" in read({"content": long}, most=most).message.malformed


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, Usage(9, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 33, "completion_tokens_details": {"reasoning_tokens": 20}}, Usage(9, 24, 20)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 8, "cost": 0.25}, Usage(9, 4, None, 8, 0.25)),
        ({"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 7}}, Usage(9, 4, None, 7)),
        ({"prompt_tokens": -1, "completion_tokens": "4", "total_tokens": 10**400, "cost": True}, Usage()),
        (None, Usage()),
    ],
)  # fmt: skip
def test_usage_is_read_as_servers_count_it(usage, found):
    assert read({"content": "x"}, usage=usage).served.usage == found


@pytest.mark.parametrize("arguments", ["null", '{}""', '""', "", None, '"{}"'])
def test_arguments_that_can_only_mean_none_are_none(arguments):
    call = {"id": "a", "function": {"name": "look", "arguments": arguments}}
    (found,) = read({"tool_calls": [call]}).message.tool_calls
    assert (found.arguments, found.written) == ({}, "")


def test_a_reply_that_its_server_broke_off_is_asked_again():
    for body in ({"content": "half"}, {}):
        with pytest.raises(ServerRefusal) as caught:
            read(body, "insufficient_system_resource")
        assert caught.value.blame.cause is FaultCause.SERVER_FAILED
        assert caught.value.blame.cause.passes


# --- what comes back to whom -----------------------------------------------------------------------


def test_what_a_server_wrote_beside_comes_back_verbatim_to_it_alone():
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "look", "arguments": '{"x":  1.50}'},
        "extra_content": {"sig": "c2"},
    }
    message = read({"content": None, "reasoning_content": "hm", "audio": None, "tool_calls": [call]}).message
    (back,) = conversation([message], MessageForm(ORIGIN))
    assert back == {
        "role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call],
    }  # fmt: skip
    (other,) = conversation([message], MessageForm("openai:m@http://elsewhere"))
    assert other["tool_calls"][0].keys() == {"id", "type", "function"}
    assert "reasoning_content" not in other
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "go"}]
    (back,) = conversation([read({"content": parts}).message], MessageForm(ORIGIN))
    assert back["content"] == parts


@tool
def look() -> str:
    """Look."""
    return "Seen."


class Watching(AgentEnv[int]):
    tools = (look,)
    seen: list[Message] = []  # noqa: RUF012

    def initial(self, task):
        return 0, "Say."

    def transition(self, state, action):
        self.seen.append(action)
        return Transition(state + 1, "Heard.")


def test_no_environment_sees_what_a_server_wrote_beside():
    env = Watching()
    env.reset(seed=0, options={"task": Task("test/Watching-v0", "Say.")})
    beside = Verbatim.of(ORIGIN, {"sealed": "x"})
    env.step(Message("assistant", "go", (ToolCall("look", {}, "a", extra=beside),), extra=beside))
    (seen,) = env.seen
    assert (seen.extra, seen.tool_calls[0].extra) == (None, None)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "function", "function": {"name": "files.read"}}, {"type": "function", "function": {"name": "files_read"}}),
        ({"type": "function", "name": "files.read"}, {"type": "function", "name": "files_read"}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "files.read"}}, 3]}},
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "files_read"}}, 3]}},
        ),
        ({"type": "allowed_tools", "tools": [{"type": "function", "name": "files.read"}]}, {"type": "allowed_tools", "tools": [{"type": "function", "name": "files_read"}]}),
        ("required", "required"),
    ],
)  # fmt: skip
def test_a_tool_that_is_chosen_has_the_name_that_it_is_sent_under(choice, sent):
    assert ToolNames(["files.read"]).sent_choice(choice) == sent


@settings(max_examples=60)
@given(st.lists(st.text(max_size=80), max_size=6, unique=True))
def test_names_of_tools_are_such_that_servers_accept_them_and_lead_back(names):
    mapped = ToolNames(names)
    sent = [mapped.sent(name) for name in names]
    assert len({*sent}) == len(names)
    for name, one in zip(names, sent, strict=True):
        assert one.isascii()
        assert one.replace("_", "a").replace("-", "a").isalnum()
        assert 2 <= len(one) <= 64
        assert mapped.ours(one) == name


# --- requests as servers want them -------------------------------------------------------------------


def named(parameter, message=None):
    error = {
        "message": message or f"Unsupported parameter: '{parameter}' is not supported with this model.",
        "param": parameter,
    }
    return web.json_response({"error": error}, status=400)


def refusing(*parameters, then=golden):
    def answer(request):
        return next((named(name) for name in parameters if name in request), None) or then(request)

    return answer


def test_what_was_not_asked_for_is_not_sent_and_one_call_is_asked_for_where_a_turn_takes_one():
    with serve(golden) as server:
        play(OpenAIPolicy("m", server.url))
    assert all(
        request.keys() == {"model", "messages", "tools", "parallel_tool_calls"} for request in server.requests
    )
    assert server.requests[0]["parallel_tool_calls"] is False


def test_a_parameter_that_is_refused_by_its_name_is_left_out_once_said_and_remembered():
    with serve(refusing("temperature", "parallel_tool_calls")) as server:
        policy = make_policy(f"openai:m@{server.url}", temperature=0.2, top_p=0.9)
        played = play(policy, episodes=2)
    assert [one.end for one in played] == [EndReason.SOLVED] * 2
    refusals = [one for one in server.requests if {"temperature", "parallel_tool_calls"} & one.keys()]
    assert len(refusals) == 2  # one for each, and never again
    assert all(request["top_p"] == 0.9 for request in server.requests)
    assert policy.notes == ("The server refuses temperature: it was left out.",)


def test_nothing_is_learned_from_a_request_that_is_refused_in_any_form():
    def answer(request):
        return named("temperature") if len(server.requests) <= 2 else golden(request)

    with serve(answer) as server:
        policy = make_policy(
            f"openai:m@{server.url}", temperature=0.2, extra_body={"parallel_tool_calls": True}
        )
        first, second = play(policy, episodes=2)
    assert (first.outcome, second.end) == (Outcome.INFRA_ERROR, EndReason.SOLVED)
    assert "temperature" in server.requests[-1]
    assert policy.notes == ()


@pytest.mark.parametrize(
    "taught",
    [
        Manners(left_out=frozenset({"top_k"})), Manners(limit_key="max_tokens"), Manners(needs_limit=True), Manners(most=9),
        Manners(words_for_tools=True), *(Manners(form=MessageForm()._replace(**{name: value})) for name, value in {
            "silence": 1, "left_out": frozenset({"x"}), "short_ids": True, "single_calls": True, "joined": True, "no_system": True,
        }.items()),
    ],
    ids=str,
)  # fmt: skip
def test_what_one_request_taught_another_does_not_take_away(taught):
    assert Manners().learned(taught) == taught
    assert taught.learned(Manners()) == taught


def test_a_server_that_takes_no_system_message_is_told_the_rules_by_the_user_once_it_said_so():
    def answer(request):
        if request["messages"][0]["role"] == "system":
            return refused(400, "System role not supported")
        return golden(request)

    with serve(answer) as server:
        first, second = play(make_policy(f"openai:m@{server.url}"), episodes=2)
    assert (first.end, second.end) == (EndReason.SOLVED, EndReason.SOLVED)
    assert [one["messages"][0]["role"] for one in server.requests].count("system") == 1


@pytest.mark.parametrize(
    ("option", "words", "sent"),
    [
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", ("max_completion_tokens", 4000)),
        ("max_completion_tokens", "max_completion_tokens: Extra inputs are not permitted", ("max_tokens", 4000)),
        ("max_tokens", "max_tokens: 4000 > 1024, which is the maximum allowed number of output tokens", ("max_tokens", 1024)),
    ],
)  # fmt: skip
def test_a_limit_is_given_under_the_name_and_in_the_size_that_a_server_takes(option, words, sent):
    def answer(request):
        return refused(400, words) if request.get(option) == 4000 else golden(request)

    with serve(answer) as server:
        policy = make_policy(f"openai:m@{server.url}", **{option: 4000})
        (episode,) = play(policy)
    assert episode.end is EndReason.SOLVED
    name, value = sent
    assert server.requests[-1][name] == value
    assert len(policy.notes) == 1


def test_where_a_limit_is_required_one_is_given_and_said():
    def answer(request):
        return golden(request) if "max_tokens" in request else refused(400, "max_tokens: Field required")

    with serve(answer) as server:
        policy = OpenAIPolicy("m", server.url)
        (episode,) = play(policy)
    assert (episode.end, server.requests[1]["max_tokens"]) == (EndReason.SOLVED, 32_000)
    assert "requires max_tokens" in policy.notes[0]


def test_where_there_is_less_room_than_the_limit_the_reply_is_as_long_as_the_room():
    full = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion)."

    def answer(request):
        return refused(400, full) if "max_tokens" in request else golden(request)

    with serve(answer) as server:
        (episode,) = play(OpenAIPolicy("m", server.url, request={"max_tokens": 8000}))
    assert episode.end is EndReason.SOLVED


def test_a_server_that_takes_no_tools_is_told_of_them_in_the_text():
    def answer(request):
        if "tools" in request:
            return refused(
                400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            )
        told = request["messages"]
        assert "as JSON schemas" in told[0]["content"]
        assert all(one["role"] in ("system", "user", "assistant") for one in told)
        return said('<tool_call>{"name": "search", "arguments": {"query": "red"}}</tool_call>')

    with serve(answer) as server:
        (episode,) = play(OpenAIPolicy("m", server.url))
    assert episode.trajectory.turns[-1].action.tool_calls[0].name == "search"
    assert not any(turn.bad_action for turn in episode.trajectory.turns[:1])
    assert "<tool_call>" in server.requests[-1]["messages"][-2]["content"]


def test_content_beside_calls_is_null_and_where_that_is_refused_empty():
    def answer(request):
        if any(one["content"] is None for one in request["messages"]):
            return refused(400, "messages[2].content: none is not an allowed value")
        return said("", [("search", '{"query": "red"}')])

    with serve(answer) as server:
        (episode,) = play(OpenAIPolicy("m", server.url), generate_s=60)
    assert episode.outcome.counts
    contents = [
        one["content"]
        for request in server.requests
        for one in request["messages"]
        if one["role"] == "assistant"
    ]
    assert contents.count(None) == 1
    assert {*contents} == {None, ""}


def test_a_silent_reply_is_a_placeholder_in_the_next_request():
    with serve(lambda _: said("")) as server:
        (episode,) = play(OpenAIPolicy("m", server.url))
    assert episode.end is EndReason.TURN_LIMIT
    assert {one["content"] for one in server.requests[-1]["messages"] if one["role"] == "assistant"} == {
        "(empty)"
    }


# --- whose fault it is -------------------------------------------------------------------------------


def test_a_rate_limit_costs_no_try_and_is_named_before_the_deadline():
    limited = {"Retry-After": "0.01"}
    with serve(*[lambda _: refused(429, "slow down", **limited)] * 4, golden) as server:
        (episode,) = play(OpenAIPolicy("m", server.url, attempts=2, longest_wait_s=0.05))
    assert episode.end is EndReason.SOLVED
    with serve(lambda _: refused(429, "slow down", **{"Retry-After": "7200"})) as server:
        (episode,) = play(OpenAIPolicy("m", server.url, longest_wait_s=7200), generate_s=3600)
        assert len(server.requests) == 1, "there is no time left to ask again"
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "rate_limited (429): slow down" in episode.error
    assert "--concurrency" in episode.error


@pytest.mark.parametrize(("status", "words"), [(400, "Content Exists Risk"), (403, "your input was flagged")])
def test_a_provider_that_refuses_the_conversation_ends_it_and_it_counts(status, words):
    with serve(golden, lambda _: refused(status, words)) as server:
        (episode,) = play(OpenAIPolicy("m", server.url))
    assert (episode.outcome, episode.end, episode.cause) == (
        Outcome.LIMIT,
        EndReason.REFUSED,
        FaultCause.CONTENT_FILTERED,
    )
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<function=look {"}, "<function=look {"),
        (500, {"message": "Failed to parse tool call arguments as JSON: unexpected end", "type": "server_error", "code": 500}, ""),
        (500, {"message": "error parsing tool call: raw='{\"a', err=unexpected end of JSON input"}, ""),
    ],
)  # fmt: skip
def test_a_call_that_its_own_server_cannot_read_is_the_model_s_mistake(status, error, words):
    with serve(lambda _: web.json_response({"error": error}, status=status), golden) as server:
        (episode,) = play(OpenAIPolicy("m", server.url))
    first = episode.trajectory.turns[0]
    assert (first.bad_action, first.action.content, episode.end) == (True, words, EndReason.SOLVED)
    assert error["message"][:20] in first.action.malformed


def test_the_body_of_an_error_is_told_whatever_its_form():
    detail = {
        "detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]
    }
    body = {"object": "error", "message": detail, "type": "invalid_request_error"}
    with serve(lambda _: web.json_response(body, status=422)) as server:
        (episode,) = play(OpenAIPolicy("m", server.url))
    assert "(422): Extra inputs are not permitted" in episode.error


def test_a_wish_of_an_agent_is_handed_on_or_refused_by_its_name():
    env = make(TASK.env)
    observation, _ = env.reset(seed=0, options={"task": TASK})
    history = History(env, TASK, 0, observation)

    async def run(policy, **wishes):
        return await policy.act(history, wishes)

    with serve(refusing("stop")) as server:
        policy = OpenAIPolicy("m", server.url, request={"temperature": 0.5})
        asyncio.run(run(policy, temperature=0.1, max_tokens=20))
        assert (server.requests[-1]["temperature"], server.requests[-1]["max_tokens"]) == (0.1, 20)
        with pytest.raises(WishRefusedError) as caught:
            asyncio.run(run(policy, stop=["x"]))
        policy.close()
    assert caught.value.parameter == "stop"
    assert isinstance(caught.value, EngineError)


def test_tokens_of_a_server_count_in_the_budget_of_an_episode():
    def answer(request):
        return web.json_response(
            {"choices": [{"message": {"content": "hm"}}], "usage": {"completion_tokens": 18}}
        )

    with serve(answer) as server:
        (episode,) = play(OpenAIPolicy("m", server.url), episode_tokens=40)
    assert (episode.end, len(episode.trajectory.turns)) == (EndReason.TOKEN_LIMIT, 3)


# --- options ------------------------------------------------------------------------------------------


def test_options_of_a_policy_may_stand_in_its_spec():
    policy = make_policy(
        "openai:claude@2025@http://host/v1 {reasoning_effort: high, extra_body: {stop: [x]}}", temperature=0
    )
    policy.close()
    assert (policy.name, policy._model) == ("openai:claude@2025@http://host/v1", "claude@2025")
    assert policy._keys == {"temperature": 0.0, "reasoning_effort": "high", "stop": ["x"]}
    with pytest.raises(NotFoundError, match="reasoning_effort"):
        make_policy("openai:m@http://host/v1 {reasning_effort: high}")
    with pytest.raises(TurnwiseError, match="cannot be read"):
        make_policy("openai:m@http://host/v1 {temperature: [}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 3, "max_completion_tokens": 3}, "two names of one limit"),
        ({"top_p": 0.0}, "more than 0"),
        ({"extra_body": {"messages": []}}, "writes itself"),
        ({"extra_body": {"stream": True}}, "whole reply"),
        ({"extra_body": {"x": float("nan")}}, "values of JSON"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, message):
    with pytest.raises(TurnwiseError, match=message):
        make_policy("scripted:gold", **options)


def test_a_price_that_is_none_is_refused():
    with pytest.raises(TurnwiseError, match="PROMPT/COMPLETION"):
        made_of_target("m@http://host/v1", PolicyOptions(price="cheap"))


# --- strangers -----------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["content", "text", "type", "thinking", "reasoning_content", "tool_calls", "function", "name", "arguments", "id", "refusal",
     "<think>", "<tool_call>{", "length", "error", "choices", "message", "usage", "total_tokens", "\ud800", "null", "{}\"\"", ""]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**20) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "x"), JSON)
)  # fmt: skip


@settings(max_examples=100)
@given(MESSAGES, JSON, JSON, JSON)
def test_whatever_a_server_answers_is_read_or_refused(message, finish, usage, error):
    choice = {"message": message, "finish_reason": finish, "error": error}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    try:
        answer = read_answer(body, AnswerForm(ORIGIN, most=100))
    except ServerRefusal:
        return
    json.dumps(answer.message.to_json()).encode()
    json.dumps(conversation([answer.message], MessageForm(ORIGIN)))


@pytest.mark.parametrize(
    "message",
    [
        lambda n: {"content": "<think>" * (n // 7)},
        lambda n: {"content": [{"type": "thinking", "thinking": "x"}] * (n // 50)},
        lambda n: {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a":"' + "\\u0041" * (n // 6)}}]},
        lambda n: {"content": "", "x": ["{"] * (n // 6)},
    ],
)  # fmt: skip
def test_answers_are_read_in_time_that_grows_with_their_length(message):
    def seconds(n):
        body = json.dumps({"choices": [{"message": message(n)}]}).encode()
        started = time.process_time()
        read_answer(body, AnswerForm(ORIGIN))
        return time.process_time() - started

    seconds(1000)
    small, large = min(seconds(100_000) for _ in range(3)), min(seconds(800_000) for _ in range(2))
    assert large < 24 * small + 0.05


def test_messages_take_the_forms_that_some_servers_want():
    calls = (ToolCall("look", {"place": "a"}, "call_1"), ToolCall("look", {"place": "b"}, "call_2"))
    talk = [
        Message("system", "Rules."),
        Message("user", "Go."),
        Message("assistant", "", calls),
        Message("tool", "A.", tool_call_id="call_1"),
        Message("tool", "B.", tool_call_id="call_2"),
        Message("user", "And?"),
    ]
    single = conversation(talk, MessageForm(single_calls=True))
    assert [(one["role"], len(one.get("tool_calls", ()))) for one in single[2:6]] == [
        ("assistant", 1), ("tool", 0), ("assistant", 1), ("tool", 0),
    ]  # fmt: skip
    joined = conversation(talk, MessageForm(joined=True))
    assert [one["role"] for one in joined] == ["system", "user", "assistant", "tool", "tool"]
    assert joined[-1]["content"] == "B.\n\nAnd?"
    alone = conversation(talk, MessageForm(no_system=True))
    assert (alone[0]["role"], alone[0]["content"]) == ("user", "Rules.\n\nGo.")
    short = conversation(talk, MessageForm(short_ids=True))
    ids = [call["id"] for call in short[2]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in short[3:5]]
    assert all(len(one) == 9 and one.isalnum() for one in ids)
