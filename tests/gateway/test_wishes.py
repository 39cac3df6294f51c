"""What an agent asks for reaches the policy's server, or is refused by its name; what that server says reaches the agent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from lazily import Lazily

from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.gateway.sessions import AgentSession
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.core import AgentEnv
from turnwise.tasks.core import Task

anthropic, openai = Lazily("anthropic"), Lazily("openai")

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "add", "description": "", "parameters": SCHEMA}}
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


class ChatServer:
    """A chat-completions server that says what it is told to say, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.status, self.body, self.message, self.finish = 200, {}, {"content": "fine"}, "stop"

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        if self.status != 200:
            return web.json_response(self.body, status=self.status)
        message = {"role": "assistant", **self.message}
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE}
        )

    @property
    def last(self) -> dict:
        """The newest request but for its conversation."""
        return {key: value for key, value in self.asked[-1].items() if key not in ("model", "messages")}


@asynccontextmanager
async def gateway():
    """A chat server, and a gateway with one session whose policy asks it."""
    there, app = ChatServer(), web.Application()
    app.router.add_post("/v1/chat/completions", there.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    policy = make_policy(f"openai:m@http://{host}:{port}/v1")
    session = AgentSession(policy, Task("", "x"), AgentEnv[int]())
    server = GatewayServer("m")
    seat = server.add(Seat(session))
    await server.start()
    url = f"{server.address}/sessions/{seat.name}"
    try:
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=seat.key, max_retries=0) as chat,
            anthropic.AsyncAnthropic(base_url=url, api_key=seat.key, max_retries=0) as claude,
        ):
            yield there, session, chat, claude
    finally:
        await server.close()
        policy.close()
        await runner.cleanup()


def test_a_tool_that_an_agent_chooses_is_chosen_under_the_name_that_the_server_is_sent():
    function = {"name": "files.read", "description": "", "parameters": SCHEMA}

    async def run():
        async with gateway() as (there, _, chat, claude):
            await chat.chat.completions.create(
                model="m", messages=HI, tools=[{"type": "function", "function": function}],
                tool_choice={"type": "function", "function": {"name": "files.read"}},
            )  # fmt: skip
            await claude.messages.create(
                model="m", messages=HI, max_tokens=9, tools=[{"name": "files.read", "input_schema": SCHEMA}],
                tool_choice={"type": "tool", "name": "files.read"},
            )  # fmt: skip
            for asked in there.asked:
                assert asked["tools"][0]["function"]["name"] == "files_read"
                assert asked["tool_choice"] == {"type": "function", "function": {"name": "files_read"}}

    asyncio.run(run())


def test_what_is_asked_for_by_each_api_is_what_the_server_is_asked_for_and_nothing_else_is_sent():
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}
    add = {"type": "function", "function": {"name": "add"}}

    async def run():
        async with gateway() as (there, _, chat, claude):
            await chat.chat.completions.create(model="m", messages=HI)
            assert there.last == {}
            wishes = {
                "temperature": 0, "top_p": 0.5, "max_completion_tokens": 20, "stop": ["x"], "seed": 3, "response_format": form,
                "tool_choice": add, "parallel_tool_calls": False, "reasoning_effort": "low", "frequency_penalty": 0.5,
            }  # fmt: skip
            await chat.chat.completions.create(model="m", messages=HI, tools=[CHAT_TOOL], **wishes, n=1)
            assert {key: there.last.get(key) for key in wishes} == wishes
            assert {*there.last} == {*wishes, "tools"}
            tool = {
                "type": "function",
                "name": "add",
                "description": "",
                "parameters": SCHEMA,
                "strict": False,
            }
            await chat.responses.create(
                model="m", input="hi", max_output_tokens=20, temperature=0, tools=[tool], parallel_tool_calls=False,
                tool_choice={"type": "function", "name": "add"}, reasoning={"effort": "low"},
                text={"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
            )  # fmt: skip
            told = {
                "max_completion_tokens": 20, "temperature": 0, "parallel_tool_calls": False, "tool_choice": add,
                "reasoning_effort": "low", "response_format": form, "verbosity": "low",
            }  # fmt: skip
            assert {key: value for key, value in there.last.items() if key != "tools"} == told
            tool = {"name": "add", "description": "", "input_schema": SCHEMA}
            thinking = {"type": "enabled", "budget_tokens": 1024}
            await claude.messages.create(
                model="m", max_tokens=2000, messages=HI, tools=[tool], stop_sequences=["x"], extra_body={"temperature": 1, "top_k": 5},
                tool_choice={"type": "any", "disable_parallel_tool_use": True}, thinking=thinking,
            )  # fmt: skip
            told = {
                "max_tokens": 2000, "stop": ["x"], "temperature": 1, "top_k": 5, "tool_choice": "required",
                "parallel_tool_calls": False, "thinking": thinking,
            }  # fmt: skip
            assert {key: value for key, value in there.last.items() if key != "tools"} == told
            for more in (
                {"n": 2},
                {"logprobs": True},
                {"extra_body": {"fallbacks": ["better"]}},
                {"audio": {}},
            ):
                with pytest.raises(openai.BadRequestError, match=next(iter(more.get("extra_body", more)))):
                    await chat.chat.completions.create(model="m", messages=HI, **more)

    asyncio.run(run())


def test_a_wish_or_a_request_that_the_server_refuses_is_the_agent_s_and_a_failure_is_not():
    refused = {"error": {"message": "Unsupported parameter: 'reasoning_effort'", "param": "reasoning_effort"}}

    async def run():
        async with gateway() as (there, session, chat, _):
            there.status, there.body = 400, refused
            with pytest.raises(openai.BadRequestError) as caught:
                await chat.chat.completions.create(model="m", messages=HI, reasoning_effort="low")
            assert (caught.value.param, session.fault, session.cut) == ("reasoning_effort", "", None)
            there.body = {
                "error": {"message": "Invalid schema for function 'add'", "type": "invalid_request_error"}
            }
            with pytest.raises(openai.BadRequestError, match="Invalid schema"):
                await chat.chat.completions.create(model="m", messages=HI)
            assert session.fault == ""
            there.body = {"error": {"message": "too long", "code": "context_length_exceeded"}}
            with pytest.raises(openai.BadRequestError, match="maximum context length") as caught:
                await chat.chat.completions.create(model="m", messages=HI)
            assert (caught.value.code, session.cut, session.fault) == (
                "context_length_exceeded",
                "token_limit",
                "",
            )
            there.status, there.body = 401, {"error": {"message": "no such key"}}
            with pytest.raises(openai.InternalServerError):
                await chat.chat.completions.create(model="m", messages=HI)
            assert session.fault != ""

    asyncio.run(run())


def test_a_cut_reply_says_so_and_usage_and_thoughts_are_told_in_every_api():
    async def run():
        async with gateway() as (there, session, chat, claude):
            there.message, there.finish = {"content": "I thi", "reasoning_content": "Well, so."}, "length"
            said = {"model": "m", "messages": HI}
            done = await chat.chat.completions.create(**said)
            choice, usage = done.choices[0], done.usage
            assert (choice.finish_reason, choice.message.reasoning_content) == ("length", "Well, so.")
            assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (11, 7, 18)
            assert usage.completion_tokens_details.reasoning_tokens == 5
            stream = await chat.chat.completions.create(
                **said, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            deltas = [one.choices[0] for one in chunks if one.choices]
            assert (
                "".join(getattr(one.delta, "reasoning_content", None) or "" for one in deltas) == "Well, so."
            )
            assert (deltas[-1].finish_reason, chunks[-1].usage.total_tokens) == ("length", 18)
            response = await chat.responses.create(model="m", input="hi")
            assert (response.status, response.incomplete_details.reason) == (
                "incomplete",
                "max_output_tokens",
            )
            assert [item.type for item in response.output] == ["reasoning", "message"]
            assert response.output[0].summary[0].text == "Well, so."
            assert (response.usage.input_tokens, response.usage.output_tokens_details.reasoning_tokens) == (
                11,
                5,
            )
            async with chat.responses.stream(model="m", input="hi") as events:
                heard = [event async for event in events]
            assert {"response.reasoning_summary_text.delta", "response.incomplete"} <= {
                one.type for one in heard
            }
            assert [one.to_dict() for one in heard[-1].response.output] == [
                one.to_dict() for one in response.output
            ]
            quiet = await claude.messages.create(model="m", max_tokens=9, messages=HI)
            assert [block.type for block in quiet.content] == ["text"]
            asked = {
                "model": "m",
                "max_tokens": 2000,
                "messages": HI,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
            }
            aloud = await claude.messages.create(**asked)
            assert (aloud.stop_reason, aloud.content[0].thinking) == ("max_tokens", "Well, so.")
            assert (
                aloud.usage.input_tokens,
                aloud.usage.cache_read_input_tokens,
                aloud.usage.output_tokens,
            ) == (7, 4, 7)
            async with claude.messages.stream(**asked) as stream:
                streamed = (await stream.get_final_message()).content
            assert (streamed[0], streamed[1].text) == (aloud.content[0], "I thi")
            assert session.counts.tokens == 7 * session.counts.replies

    asyncio.run(run())


def test_a_refusal_and_a_filter_are_told_as_such():
    async def run():
        async with gateway() as (there, session, chat, claude):
            there.message = {"content": None, "refusal": "I cannot."}
            done = await chat.chat.completions.create(model="m", messages=HI)
            assert done.choices[0].message.refusal == "I cannot."
            response = await chat.responses.create(model="m", input="hi")
            assert response.output[0].content[0].to_dict() == {"type": "refusal", "refusal": "I cannot."}
            assert (
                await claude.messages.create(model="m", max_tokens=9, messages=HI)
            ).stop_reason == "refusal"
            there.message, there.finish = {"content": "so"}, "content_filter"
            done = await chat.chat.completions.create(model="m", messages=HI, user="2")
            assert done.choices[0].finish_reason == "content_filter"
            there.status = 400
            there.body = {"error": {"message": "filtered", "code": "content_filter"}}
            with pytest.raises(openai.BadRequestError) as caught:
                await chat.chat.completions.create(model="m", messages=HI, user="3")
            assert (caught.value.code, session.fault) == ("content_filter", "")

    asyncio.run(run())


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
def test_what_the_server_wrote_beside_a_reply_goes_back_to_it_whatever_the_client_drops(form):
    sealed = [{"type": "reasoning.encrypted", "data": "xyz"}]
    call = {
        "id": "a1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'},
        "extra_content": {"google": {"thought_signature": "sig"}},
    }  # fmt: skip

    async def run():
        async with gateway() as (there, _, chat, claude):
            there.message = {
                "content": None,
                "tool_calls": [call],
                "reasoning_content": "Hm.",
                "reasoning_details": sealed,
            }
            there.finish = "tool_calls"
            if form == "chat":
                first = await chat.chat.completions.create(model="m", messages=HI, tools=[CHAT_TOOL])
                message = first.choices[0].message
                assert message.reasoning_details == sealed
                assert message.tool_calls[0].extra_content == call["extra_content"]
                own = {"role": "assistant", "content": "", "tool_calls": [
                    {"id": one.id, "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}} for one in message.tool_calls
                ]}  # fmt: skip
                result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "1"}
                await chat.chat.completions.create(model="m", messages=[*HI, own, result], tools=[CHAT_TOOL])
            elif form == "responses":
                tool = {
                    "type": "function",
                    "name": "add",
                    "description": "",
                    "parameters": SCHEMA,
                    "strict": False,
                }
                first = await chat.responses.create(model="m", input=HI, tools=[tool])
                items = [one.to_dict() for one in first.output]
                assert [one["type"] for one in items] == ["reasoning", "function_call"]
                result = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": "1"}
                await chat.responses.create(model="m", input=[*HI, *items, result], tools=[tool])
            else:
                tool = {"name": "add", "description": "", "input_schema": SCHEMA}
                thinking = {"type": "enabled", "budget_tokens": 1024}
                asked = {"model": "m", "max_tokens": 2000, "tools": [tool], "thinking": thinking}
                first = await claude.messages.create(messages=HI, **asked)
                assert [block.type for block in first.content] == ["thinking", "tool_use"]
                result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "1"}
                talk = [
                    *HI,
                    {"role": "assistant", "content": first.content},
                    {"role": "user", "content": [result]},
                ]
                await claude.messages.create(messages=talk, **asked)
            back = next(one for one in there.asked[-1]["messages"] if one["role"] == "assistant")
            assert (back["reasoning_content"], back["reasoning_details"]) == ("Hm.", sealed)
            assert back["tool_calls"][0]["extra_content"] == call["extra_content"]
            assert back["tool_calls"][0]["function"]["arguments"] == '{"a":1}'

    asyncio.run(run())
