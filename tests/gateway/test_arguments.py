"""The arguments of calls reach clients as they were sampled, and come back as the tokens that were sampled."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from gateway_kit import check_exact

from turnwise.agents.core import PREVIOUS
from turnwise.tools.dialects import hermes, llama, mistral

ODD = [
    '{"b":  2.50,"a":1.0 }',  # spaces, the order of keys, numbers as they are written
    '{ "z": 1, "a": {"y": [1 ,2], "x": null},\n "m": "caf\\u00e9 \\ud83d\\ude00 \\/ café" }',
    '{"n": -0.0, "e": 1E3, "big": 123456789012345678901, "arguments": "{\\"name\\": 1}", "": true}',
    "{}",
]
TOOL = {"name": "f", "description": "", "parameters": {"type": "object"}}
QUESTION = {"role": "user", "content": "go"}


def written_by(written: str):
    call = f'<tool_call>{{"arguments" :{written} , "name": "f"}}</tool_call>'
    return lambda text: "done" if "seen" in text else call


def continued(served) -> None:
    """The second prompt holds the first one and what was sampled, token for token."""
    first, second = served.engine.asked
    sampled = served.engine.sampled[0].token_ids
    assert second[: len(first) + len(sampled)] == (*first, *sampled)
    assert [reply.parent for reply in served.replies] == [PREVIOUS, PREVIOUS]
    check_exact(served.replies, served.engine)


async def by_chat(served, written: str, stream: bool) -> None:
    """A call is made, and told back with its result, by chat completions."""
    async with served.openai() as client:
        said = {"model": "m", "tools": [{"type": "function", "function": TOOL}], "messages": [QUESTION]}
        if stream:
            async with client.chat.completions.stream(**said) as events:
                async for _ in events:
                    pass
                message = (await events.get_final_completion()).choices[0].message
        else:
            message = (await client.chat.completions.create(**said)).choices[0].message
        (call,) = message.tool_calls
        assert call.function.arguments == written
        told = message.model_dump(include={"role", "content", "tool_calls"})
        answer = {"role": "tool", "tool_call_id": call.id, "content": "seen"}
        await client.chat.completions.create(**said | {"messages": [QUESTION, told, answer]})


async def by_responses(served, written: str, stream: bool) -> None:
    """The same by responses."""
    async with served.openai() as client:
        said = {"model": "m", "tools": [{"type": "function", "strict": False, **TOOL}]}
        if stream:
            async with client.responses.stream(input=[QUESTION], **said) as events:
                kind = "response.function_call_arguments.delta"
                assert "".join([e.delta async for e in events if e.type == kind]) == written
                first = await events.get_final_response()
        else:
            first = await client.responses.create(input=[QUESTION], **said)
        (call,) = [item for item in first.output if item.type == "function_call"]
        assert call.arguments == written
        answer = {"type": "function_call_output", "call_id": call.call_id, "output": "seen"}
        await client.responses.create(input=[QUESTION, *first.output, answer], **said)


async def by_messages(served, written: str, stream: bool) -> None:
    """The same by messages; where arguments are an object and no text, they stand in the answer's own text as sampled."""
    tools = [{"name": "f", "input_schema": TOOL["parameters"]}]
    body = {"model": "m", "max_tokens": 200, "messages": [QUESTION], "tools": tools, "stream": stream}
    async with (
        aiohttp.ClientSession(headers=served.headers) as client,
        client.post(f"{served.url}/v1/messages", json=body) as response,
    ):
        text = await response.text()
    if stream:
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        pieces = [e["delta"]["partial_json"] for e in events if "partial_json" in e.get("delta", {})]
        assert "".join(pieces) == written
        call_id = next(e["content_block"]["id"] for e in events if e["type"] == "content_block_start")
    else:
        assert f'"input": {written}}}' in text
        call_id = json.loads(text)["content"][0]["id"]
    told = {"type": "tool_use", "id": call_id, "name": "f", "input": as_javascript(written)}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "seen"}
    said = [QUESTION, {"role": "assistant", "content": [told]}, {"role": "user", "content": [result]}]
    import anthropic

    async with anthropic.AsyncAnthropic(base_url=served.url, api_key=served.seat.key, max_retries=0) as sdk:
        await sdk.messages.create(model="m", max_tokens=100, messages=said, tools=tools)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("written", ODD)
@pytest.mark.parametrize("talk", [by_chat, by_responses, by_messages])
def test_arguments_are_sent_as_sampled_and_go_on_as_the_same_tokens_when_told_back(
    serve, talk, written, stream
):
    async def run():
        async with serve(written_by(written)) as served:
            await talk(served, written, stream)
            continued(served)

    asyncio.run(run())


def as_javascript(written: str) -> object:
    """What a client of JavaScript makes of it: 1.0 is 1. (Numbers beyond 2 ** 53 would be others there.)"""
    return json.loads(
        written, parse_float=lambda number: float(number) if float(number) % 1 else int(float(number))
    )


def test_a_key_that_occurs_twice_is_no_call_and_is_told_as_it_was_written(serve):
    """Clients would keep one of the two values, and not all the same one."""
    said = '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>'

    async def run():
        async with (
            serve(lambda text: said) as served,
            served.openai() as client,
        ):
            tools = [{"type": "function", "function": TOOL}]
            done = await client.chat.completions.create(model="m", messages=[QUESTION], tools=tools)
            assert (done.choices[0].message.content, done.choices[0].message.tool_calls) == (said, None)

    asyncio.run(run())


@pytest.mark.parametrize("written", ODD)
@pytest.mark.parametrize(
    ("parse", "form"),
    [
        (hermes.read, '<tool_call>\n{{"name" : "f", "arguments":{0}}}\n</tool_call>'),
        (llama.read, '{{"name": "f", "parameters": {0}}}'),
        (llama.read, '{{"name": "f", "arguments": {0} }}; {{"name": "f", "parameters": {{}}}}'),
        (
            mistral.read,
            '[TOOL_CALLS] [ {{"name": "f", "arguments": {0}, "id": "a1b2c3d4e"}} , {{"name": "f"}} ]',
        ),
        (mistral.read, "[TOOL_CALLS]f[ARGS]{0}[TOOL_CALLS]g[ARGS]{{}}"),
    ],
)
def test_dialects_of_json_keep_the_text_of_arguments(parse, form, written):
    call = parse(form.format(written), []).calls[0]
    assert call.written == written
    assert call.arguments == json.loads(written)
