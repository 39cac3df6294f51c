"""The SDKs of OpenAI and Anthropic, as they are, against the gateway: answers, calls, streams, errors, counts."""

from __future__ import annotations

import asyncio

import pytest
from gateway_kit import CALL, check_exact
from lazily import Lazily

from turnwise.agents.core import PREVIOUS, after

anthropic, openai = Lazily("anthropic"), Lazily("openai")

ADD = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": ADD}}]


def play(text: str) -> str:
    """Calls once, then says the sum."""
    if "result" in text:
        return "The sum is 3."
    return f"I add.{CALL}" if "add" in text else "hello"


def test_chat_completions_with_a_tool_are_one_row_of_tokens(serve):
    async def run():
        async with (
            serve(play) as served,
            served.openai() as client,
        ):
            messages = [
                {"role": "system", "content": "You add."},
                {"role": "user", "content": "What is 1 + 2?"},
            ]
            first = await client.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS)
            choice = first.choices[0]
            (call,) = choice.message.tool_calls
            assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I add.")
            assert (call.function.name, call.function.arguments) == ("add", '{"a": 1, "b": 2.50}')
            assert first.usage.completion_tokens == len(served.replies[0].action_ids)
            assert first.usage.prompt_tokens == len(served.engine.asked[0])
            messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "result 3"}]
            second = await client.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS)
            assert (second.choices[0].message.content, second.choices[0].finish_reason) == (
                "The sum is 3.",
                "stop",
            )
            assert [reply.parent for reply in served.replies] == [PREVIOUS, PREVIOUS]
            assert served.engine.asked[1][: len(served.engine.asked[0])] == served.engine.asked[0]
            check_exact(served.replies, served.engine)
            assert [model.id async for model in client.models.list()] == ["small"]

    asyncio.run(run())


def test_streams_of_chat_completions_add_up_to_the_answer(serve):
    async def run():
        async with (
            serve(play) as served,
            served.openai() as client,
        ):
            said = {
                "messages": [{"role": "user", "content": "add 1 and 2"}],
                "model": "m",
                "tools": CHAT_TOOLS,
            }
            stream = await client.chat.completions.create(
                **said, stream=True, stream_options={"include_usage": True}
            )
            text, arguments, usage, reasons = "", "", None, []
            async for chunk in stream:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    reasons.append(choice.finish_reason)
                    for call in choice.delta.tool_calls or ():
                        arguments += call.function.arguments or ""
            assert (text, arguments, reasons[-1]) == ("I add.", '{"a": 1, "b": 2.50}', "tool_calls")
            assert usage.completion_tokens == len(served.replies[0].action_ids)
            whole = await client.chat.completions.create(
                **said
            )  # the same request: answered again, not sampled again
            assert whole.choices[0].message.content == "I add."
            assert (len(served.replies), served.seat.session.counts.resent) == (1, 1)

    asyncio.run(run())


def test_responses_with_a_tool_by_items_and_by_the_previous_response(serve):
    async def run():
        async with (
            serve(play) as served,
            served.openai() as client,
        ):
            tools = [
                {
                    "type": "function",
                    "name": "add",
                    "description": "Adds.",
                    "parameters": ADD,
                    "strict": False,
                }
            ]
            said = {"model": "m", "instructions": "You add.", "tools": tools}
            asked = [{"role": "user", "content": "What is 1 + 2?"}]
            first = await client.responses.create(input=asked, **said)
            assert [item.type for item in first.output] == ["message", "function_call"]
            assert first.output_text == "I add."
            result = {
                "type": "function_call_output",
                "call_id": first.output[1].call_id,
                "output": "result 3",
            }
            by_items = await client.responses.create(input=[*asked, *first.output, result], **said)
            assert by_items.output_text == "The sum is 3."
            followed = await client.responses.create(input=[result], previous_response_id=first.id, **said)
            assert followed.output_text == "The sum is 3."
            assert [reply.parent for reply in served.replies] == [PREVIOUS, PREVIOUS, after(0)]
            assert served.engine.asked[1] == served.engine.asked[2]
            check_exact(served.replies, served.engine)
            async with client.responses.stream(input="add it", **said) as stream:
                kinds = [event.type async for event in stream]
                final = await stream.get_final_response()
            assert kinds[0] == "response.created"
            assert "response.function_call_arguments.delta" in kinds
            assert (final.output_text, final.output[1].arguments) == ("I add.", '{"a": 1, "b": 2.50}')
            with pytest.raises(openai.NotFoundError, match="no response"):
                await client.responses.create(model="m", input="x", previous_response_id="resp_other")

    asyncio.run(run())


def test_messages_with_a_tool_streamed_and_counted(serve):
    async def run():
        async with (
            serve(play) as served,
            anthropic.AsyncAnthropic(base_url=served.url, api_key=served.seat.key, max_retries=0) as client,
        ):
            tools = [{"name": "add", "description": "Adds.", "input_schema": ADD}]
            said = {"model": "m", "max_tokens": 100, "system": "You add.", "tools": tools}
            messages = [{"role": "user", "content": [{"type": "text", "text": "What is 1 + 2?"}]}]
            counted = await client.messages.count_tokens(
                model="m", system="You add.", tools=tools, messages=messages
            )
            first = await client.messages.create(messages=messages, **said)
            assert counted.input_tokens == first.usage.input_tokens == len(served.engine.asked[0])
            assert (first.stop_reason, [block.type for block in first.content]) == (
                "tool_use",
                ["text", "tool_use"],
            )
            assert first.content[1].input == {"a": 1, "b": 2.5}
            result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "result 3"}
            messages += [
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": [result]},
            ]
            async with client.messages.stream(messages=messages, **said) as stream:
                pieces = [piece async for piece in stream.text_stream]
                final = await stream.get_final_message()
            assert ("".join(pieces), final.stop_reason) == ("The sum is 3.", "end_turn")
            assert final.usage.output_tokens == len(served.replies[1].action_ids)
            assert [reply.parent for reply in served.replies] == [PREVIOUS, PREVIOUS]
            check_exact(served.replies, served.engine)
            async with client.messages.stream(
                messages=[{"role": "user", "content": "add"}], **said
            ) as stream:
                called = await stream.get_final_message()
            assert called.content[1].input == {"a": 1, "b": 2.5}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"temperature": 0.2}, "temperature"),
        ({"top_p": 0.5}, "top_p"),
        ({"n": 2}, "n"),
        ({"stop": ["x"]}, "stop"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": CHAT_TOOLS, "tool_choice": "required"}, "tool_choice"),
        (
            {"tools": CHAT_TOOLS, "tool_choice": {"type": "function", "function": {"name": "add"}}},
            "tool_choice",
        ),
        ({"logprobs": True}, "logprobs"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"extra_body": {"top_k": 5}}, "top_k"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "image",
        ),
        (
            {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "I be"}]},
            "last message",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_its_name(serve, more, named):
    async def run():
        async with (
            serve(play) as served,
            served.openai() as client,
        ):
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | more
            with pytest.raises(openai.BadRequestError, match=named):
                await client.chat.completions.create(**asked)
            assert served.replies == []

    asyncio.run(run())


def test_what_asks_for_what_is_done_anyway_is_accepted_and_max_tokens_is_honest(serve):
    async def run():
        async with (
            serve(play) as served,
            served.openai() as client,
        ):
            asked = {"model": "any-name", "messages": [{"role": "user", "content": "hi"}], "user": "me"}
            neutral = {
                "temperature": 1,
                "top_p": 1.0,
                "n": 1,
                "presence_penalty": 0,
                "tool_choice": "none",
                "seed": 5,
            }
            done = await client.chat.completions.create(**asked, **neutral, response_format={"type": "text"})
            assert (done.model, done.choices[0].finish_reason) == ("any-name", "stop")
            cut = await client.chat.completions.create(**asked, max_completion_tokens=1)
            assert (cut.choices[0].finish_reason, cut.usage.completion_tokens) == ("length", 1)
            check_exact(served.replies, served.engine)

    asyncio.run(run())


def test_a_full_context_is_told_in_the_words_that_agents_know(serve):
    async def run():
        said = [{"role": "user", "content": "hi " * 50}]
        async with serve(play, context_length=20) as served:
            given = {"api_key": served.seat.key}
            async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", **given) as client:
                with pytest.raises(openai.BadRequestError, match="maximum context length") as caught:
                    await client.chat.completions.create(model="m", messages=said)
                assert caught.value.code == "context_length_exceeded"
            async with anthropic.AsyncAnthropic(base_url=served.url, **given) as claude:
                with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
                    await claude.messages.create(model="m", max_tokens=9, messages=said)
            assert served.seat.session.cut == "token_limit"

    asyncio.run(run())
