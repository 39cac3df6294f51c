"""Pictures: clients send them and environments show them, and a policy that sees gets their bytes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sys
import zlib
from collections.abc import Callable
from typing import Any
from urllib.request import Request as Asked
from urllib.request import urlopen

import pytest
from chat_server import refused, said
from chat_server import serve as serve_model
from lazily import Lazily

import turnwise
from turnwise.agents.core import PREVIOUS, ROOT, History, Outcome, after
from turnwise.agents.gateway.agent_program import AgentProgram
from turnwise.agents.policies.command import ProgramPolicy
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.agents.policies.served.written import WHITE
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.grid.env import GridEnv
from turnwise.tasks.core import Split, Task, derive_rng

anthropic, openai = Lazily("anthropic"), Lazily("openai")

BEGINNING = b"\x89PNG\r\n\x1a\n"
RED, BLUE = (base64.b64encode(BEGINNING + colour).decode() for colour in (b"red", b"blue"))
JPEG = base64.b64encode(b"\xff\xd8\xff and so on").decode()


def seeing(seen: list[list[tuple[str, str, list[bytes]]]]) -> Callable[[History], str]:
    """A policy that notes what it is shown, and says a word that depends on all of it."""

    def act(history: History) -> str:
        told = [(m.role, m.content, [image.data for image in m.images]) for m in history.messages()]
        seen.append(told)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:20]

    return act


def chat(one: Any, picture: str, *, kind: str = "png", more: tuple[str, ...] = ()) -> str:
    url = {"url": f"data:image/{kind};base64,{picture}"}
    content = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": url}]
    talk: list[Any] = [{"role": "user", "content": content}]
    talk += [{"role": role, "content": text} for role, text in zip(("assistant", "user"), more, strict=False)]
    with openai.OpenAI(base_url=one.base_url, api_key=one.key, max_retries=0) as client:
        return str(client.chat.completions.create(model="m", messages=talk).choices[0].message.content)


def responses(one: Any, picture: str, *, kind: str = "png", more: tuple[str, ...] = ()) -> str:
    shown = {"type": "input_image", "detail": "auto", "image_url": f"data:image/{kind};base64,{picture}"}
    content = [{"type": "input_text", "text": "what is it?"}, shown]
    talk: list[Any] = [{"role": "user", "content": content}]
    talk += [{"role": role, "content": text} for role, text in zip(("assistant", "user"), more, strict=False)]
    with openai.OpenAI(base_url=one.base_url, api_key=one.key, max_retries=0) as client:
        return client.responses.create(model="m", input=talk).output_text


def messages(one: Any, picture: str, *, kind: str = "png", more: tuple[str, ...] = ()) -> str:
    source = {"type": "base64", "media_type": f"image/{kind}", "data": picture}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "what is it?"}]
    talk: list[Any] = [{"role": "user", "content": content}]
    talk += [{"role": role, "content": text} for role, text in zip(("assistant", "user"), more, strict=False)]
    with anthropic.Anthropic(base_url=one.url, api_key=one.key, max_retries=0) as client:
        done = client.messages.create(model="m", max_tokens=99, messages=talk)
    assert done.content[0].type == "text"
    return done.content[0].text


APIS = pytest.mark.parametrize("ask", [chat, responses, messages])


@APIS
def test_a_policy_that_sees_gets_the_picture_and_two_that_differ_share_no_branch(ask):
    seen: list[Any] = []
    with turnwise.session(seeing(seen), "Look.") as one:
        red, blue = ask(one, RED), ask(one, BLUE)
        assert ask(one, RED) == red  # sent again, and not counted again
        later = ask(one, RED, more=(red, "and now?"))
        other = ask(one, BLUE, more=(red, "and now?"))  # the words of the red one under the blue picture
        jpeg = ask(one, JPEG, kind="jpeg")
    assert len({red, blue, later, other, jpeg}) == len(seen) == 5
    assert seen[0] == [("user", "what is it?", [BEGINNING + b"red"])]
    assert seen[1] == [("user", "what is it?", [BEGINNING + b"blue"])]
    assert [role for role, _, _ in seen[2]] == ["user", "assistant", "user"]
    parents = [turn.reply.parent for turn in one.end().trajectory.turns]
    assert parents == [PREVIOUS, ROOT, after(0), ROOT, ROOT]


@APIS
def test_a_policy_of_tokens_refuses_a_picture_with_a_true_sentence(ask, serve):
    class Session:
        def __init__(self, served: Any) -> None:
            self.url, self.base_url, self.key = served.url, f"{served.url}/v1", served.seat.key

    async def run() -> None:
        async with serve(lambda text: "hello") as served:
            with pytest.raises(
                (openai.BadRequestError, anthropic.BadRequestError), match="small reads tokens of text"
            ):
                await asyncio.to_thread(ask, Session(served), RED)
            assert served.replies == []

    asyncio.run(run())


@APIS
@pytest.mark.parametrize(
    ("picture", "kind", "why"),
    [
        (JPEG, "png", "its bytes are not"),
        (RED[:-1] + "!", "png", "no base64"),
        (RED, "svg+xml", "pictures are image/png"),
    ],
)
def test_what_is_no_picture_is_the_client_s_mistake(ask, picture, kind, why):
    seen: list[Any] = []
    with turnwise.session(seeing(seen), "Look.") as one:
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match=why):
            ask(one, picture, kind=kind)
        assert (seen, one.end().outcome.value) == ([], "ok")


# --- pictures that a model's server cannot read ---------------------------------------------------


def pictures_in(request: dict[str, Any]) -> list[bytes]:
    """The pictures that a server is sent."""
    lists = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    urls = [part["image_url"]["url"] for parts in lists for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def is_whole(data: bytes) -> bool:
    """Whether all parts of a PNG are there and are what their checksums say."""
    place, kinds = len(BEGINNING), list[bytes]()
    while len(head := data[place : place + 8]) == 8:
        end = place + 8 + int.from_bytes(head[:4])
        kinds.append(head[4:])
        if zlib.crc32(data[place + 4 : end]) != int.from_bytes(data[end : end + 4]):
            return False
        place = end + 4
    return data.startswith(BEGINNING) and place == len(data) and kinds[-1:] == [b"IEND"]


def refusing(reads: Callable[[bytes], bool]) -> Any:
    """A model's server that answers 400 to pictures that it does not read."""

    def answer(request: dict[str, Any]) -> Any:
        whole = all(map(reads, pictures_in(request)))
        return said("I see.") if whole else refused(400, "cannot identify image file")

    return serve_model(answer)


@APIS
def test_a_picture_that_the_model_s_server_cannot_read_is_the_client_s_mistake(ask):
    """The server reads other pictures in its place, so it is neither its fault nor the conversation's."""
    with refusing(is_whole) as server:
        policy = OpenAIPolicy("m", server.url)
        with turnwise.session(policy, "Look.") as one:
            with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="cannot identify"):
                ask(one, RED)
            episode = one.end()
        policy.close()
    assert (episode.outcome, len(episode.trajectory.turns)) == (Outcome.OK, 0)
    broken, white = server.requests
    assert [is_whole(data) for request in (broken, white) for data in pictures_in(request)] == [False, True]
    words = [[p for p in r["messages"][-1]["content"] if p["type"] == "text"] for r in (broken, white)]
    assert words[0] == words[1]


def test_a_picture_for_a_server_that_reads_none_at_all_is_no_way_out_of_the_score():
    with refusing(lambda data: False) as server:
        policy = OpenAIPolicy("m", server.url)
        with turnwise.session(policy, "Look.") as one:
            with pytest.raises(openai.BadRequestError, match="cannot identify"):
                chat(one, RED)
            episode = one.end()
        policy.close()
    assert episode.outcome is Outcome.OK


SHOWING = """
import json, os, sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen
talk = json.load(sys.stdin)
if sys.argv[1]:
    shown = {"type": "image_url", "image_url": {"url": sys.argv[1]}}
    talk += [{"role": "user", "content": [{"type": "text", "text": "see"}, shown]}]
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
body = json.dumps({"messages": talk}).encode()
try:
    urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)).read()
except HTTPError as error:
    sys.exit(error.code // 100 - 4)
"""


@pytest.mark.parametrize(
    ("own", "reads", "outcome", "score"),
    [
        (f"data:image/png;base64,{RED}", is_whole, Outcome.OK, 0.0),  # broken by the agent
        ("", lambda data: data in WHOLE, Outcome.INFRA_ERROR, None),  # the environment's own, passed on
    ],
)
def test_an_episode_ends_by_the_agent_s_own_broken_picture_and_not_by_the_environment_s(
    own: str, reads: Callable[[bytes], bool], outcome: Outcome, score: float | None
):
    program = AgentProgram((sys.executable, "-S", "-c", SHOWING, own), prompt="messages")
    with refusing(reads) as server:
        policy = OpenAIPolicy("m", server.url)
        (episode,) = run_episodes([Request(picture_task(), 0)], ProgramPolicy(policy, program), retries=0)
        policy.close()
    assert episode.outcome is outcome
    assert score is None or (episode.score, episode.end) == (score, EndReason.GAVE_UP)
    assert len(server.requests) == 2


WHOLE = {base64.b64decode(WHITE.partition(",")[2])}
PNG = f"data:image/png;base64,{RED}"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]},
            "fetched",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]},
            "detail",
        ),
        ({"role": "system", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}, "image_url"),
        ({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}, "image_url"),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
            "only text and refusal and image_url",
        ),
    ],
)
def test_pictures_that_cannot_be_passed_on_are_refused(message, why):
    with (
        turnwise.session(seeing([]), "Look.") as one,
        openai.OpenAI(base_url=one.base_url, api_key=one.key, max_retries=0) as client,
        pytest.raises(openai.BadRequestError, match=why),
    ):
        client.chat.completions.create(model="m", messages=[message, {"role": "user", "content": "x"}])


def test_a_tool_s_result_may_be_a_picture_in_each_api():
    seen: list[Any] = []
    with turnwise.session(seeing(seen), "Look.") as one:
        function = {"name": "look", "arguments": "{}"}
        calling = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }
        begun: dict[str, Any] = {"role": "user", "content": "look"}
        with openai.OpenAI(base_url=one.base_url, api_key=one.key, max_retries=0) as client:
            shown = [{"type": "image_url", "image_url": {"url": PNG}}]
            client.chat.completions.create(
                model="m", messages=[begun, calling, {"role": "tool", "tool_call_id": "c", "content": shown}]
            )
            called = {"type": "function_call", "call_id": "c", **function}
            output = [{"type": "input_image", "detail": "auto", "image_url": PNG}]
            client.responses.create(
                model="m",
                input=[begun, called, {"type": "function_call_output", "call_id": "c", "output": output}],
            )
        source = {"type": "base64", "media_type": "image/png", "data": RED}
        result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": source}]}
        used = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
        with anthropic.Anthropic(base_url=one.url, api_key=one.key, max_retries=0) as client:
            talk: list[Any] = [
                begun,
                {"role": "assistant", "content": [used]},
                {"role": "user", "content": [result]},
            ]
            client.messages.create(model="m", max_tokens=9, messages=talk)
    assert [told[-1] for told in seen] == [("tool", "", [BEGINNING + b"red"])] * 3


# --- pictures of environments ---------------------------------------------------------------------


def picture_task() -> Task:
    knobs = {"game": "lake", "size": 5, "image": True, "turn_limit": 20}
    return GridEnv.generate(derive_rng("pictures"), Split.TEST, **knobs)


def pictures_of(task: Task) -> list[bytes]:
    """What an environment shows on the way of its gold, in order."""
    env = GridEnv()
    observation, _ = env.reset(seed=0, options={"task": task})
    shown = [observation[-1].images[0].data]
    while env.snapshot().end is None:
        shown.append(env.step(env.gold(env.state)).observation[-1].images[0].data)
    return shown


LOOKING = """
import json, os, sys
from urllib.request import Request, urlopen
def post(url, body):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)
talk, end = json.load(sys.stdin), None
while end is None:
    reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": talk})["choices"][0]["message"]
    seen = post(os.environ["SESSION_URL"] + "/act", {"text": reply["content"]})
    parts = [{"type": "text", "text": seen["text"]}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in seen.get("images", [])]
    talk, end = talk + [reply, {"role": "user", "content": parts}], seen["end"]
"""


def test_a_program_is_shown_what_the_environment_shows_and_shows_it_to_the_model():
    task, env = picture_task(), GridEnv()
    shown = pictures_of(task)

    def next_move(request: dict[str, Any]) -> Any:
        env.reset(seed=0, options={"task": task})
        for message in request["messages"]:
            if message["role"] == "assistant":
                env.step(message["content"])
        return said(str(env.gold(env.state)))

    program = AgentProgram((sys.executable, "-S", "-c", LOOKING), prompt="messages")
    with serve_model(next_move) as server:
        policy = OpenAIPolicy("m", server.url)
        (episode,) = run_episodes([Request(task, 0)], ProgramPolicy(policy, program), retries=0)
        policy.close()
    assert (episode.end, episode.score) == (EndReason.SOLVED, 1.0)
    assert len(shown) > 2
    parts = [part for message in server.requests[-1]["messages"] for part in message["content"]]
    urls = [
        part["image_url"]["url"] for part in parts if isinstance(part, dict) and part["type"] == "image_url"
    ]
    assert [base64.b64decode(url.partition(",")[2]) for url in urls] == shown[:-1]


def test_an_environment_s_pictures_are_told_by_mcp_and_to_whoever_asks_for_the_task():
    task = picture_task()
    shown = pictures_of(task)
    with turnwise.session("scripted:gold", task) as one:
        number = 0

        def call(name: str, **arguments: str) -> list[dict[str, Any]]:
            nonlocal number
            number += 1
            params = {"name": name, "arguments": arguments}
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            headers = {"Authorization": f"Bearer {one.key}"}
            with urlopen(Asked(f"{one.url}/mcp", json.dumps(body).encode(), headers), timeout=60) as answer:
                return json.load(answer)["result"]["content"]

        env = GridEnv()
        env.reset(seed=0, options={"task": task})
        move = str(env.gold(env.state))
        for content, data in ((call("task"), shown[0]), (call("say", text=move), shown[1])):
            assert [part["type"] for part in content] == ["text", "image"]
            assert content[1]["mimeType"] == "image/png"
            assert base64.b64decode(content[1]["data"]) == data
