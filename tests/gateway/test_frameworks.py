"""Agents of others, unmodified, evaluated on a suite through the gateway, and a coding agent's loop."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import turnwise
from turnwise.agents.core import PREVIOUS
from turnwise.agents.gateway.agent_program import AgentProgram
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.command import ProgramPolicy

ROOT = Path(__file__).parents[2]
HEAD = """
import asyncio, json, os, sys, warnings
warnings.simplefilter("ignore")
import urllib.request
def act(text: str) -> str:
    "Say something to the shop."
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = json.dumps({"text": text}).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["SESSION_URL"] + "/act", body, headers)) as answer:
        return json.load(answer)["text"]
prompt = sys.stdin.read()
"""
OPENAI_STREAMED = """
import openai
client, said, talk = openai.OpenAI(), prompt, []
while "episode is over" not in said:
    talk.append({"role": "user", "content": said})
    chunks = client.chat.completions.create(model="policy", messages=talk, stream=True)
    reply = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    said = act(reply)
    talk.append({"role": "assistant", "content": reply})
"""

OPENAI_RESPONSES = """
import openai
client, said, before = openai.OpenAI(), prompt, None
while "episode is over" not in said:
    given = {"previous_response_id": before} if before else {}
    response = client.responses.create(model="policy", input=said, **given)
    said, before = act(response.output_text), response.id
"""

ANTHROPIC = """
import anthropic
client, said, talk = anthropic.Anthropic(), prompt, []
while "episode is over" not in said:
    talk.append({"role": "user", "content": said})
    message = client.messages.create(model="policy", max_tokens=200, messages=talk)
    said = act(message.content[0].text)
    talk.append({"role": "assistant", "content": message.content})
"""

ANTHROPIC_STREAMED = """
import anthropic
client, said, talk = anthropic.Anthropic(), prompt, []
while "episode is over" not in said:
    talk.append({"role": "user", "content": said})
    with client.messages.stream(model="policy", max_tokens=200, messages=talk) as stream:
        reply = "".join(stream.text_stream)
    said = act(reply)
    talk.append({"role": "assistant", "content": reply})
"""

LANGGRAPH = """
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
model = ChatOpenAI(model="policy")
def think(state): return {"messages": [model.invoke(state["messages"])]}
def do(state): return {"messages": [("user", act(state["messages"][-1].content))]}
def more(state): return END if "episode is over" in state["messages"][-1].content else "think"
graph = StateGraph(MessagesState)
graph.add_node("think", think); graph.add_node("do", do)
graph.add_edge(START, "think"); graph.add_edge("think", "do"); graph.add_conditional_edges("do", more)
graph.compile().invoke({"messages": [("user", prompt)]}, {"recursion_limit": 60})
"""

PYDANTIC_AI = """
from pydantic_ai import Agent
agent, said, history = Agent("openai:policy"), prompt, None
while "episode is over" not in said:
    result = agent.run_sync(said, message_history=history)
    said, history = act(result.output), result.all_messages()
"""

LITELLM = """
import litellm
said, talk = prompt, []
while "episode is over" not in said:
    talk.append({"role": "user", "content": said})
    reply = litellm.completion(model="openai/policy", messages=talk).choices[0].message
    said = act(reply.content)
    talk.append(reply.model_dump(include={"role", "content"}))
"""

AGENTS = """
from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
set_tracing_disabled(True)
async def play():
    given = {"url": os.environ["MCP_SERVER_URL"], "headers": {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}}
    async with MCPServerStreamableHttp(given) as server:
        agent, said, talk = Agent(name="clerk", model="policy", mcp_servers=[server]), prompt, []
        while "episode is over" not in said:
            result = await Runner.run(agent, [*talk, {"role": "user", "content": said}])
            talk, said = result.to_input_list(), act(result.final_output)
asyncio.run(play())
"""

SMOLAGENTS = """
from smolagents import ChatMessage, OpenAIModel
model = OpenAIModel("policy", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
said, talk = prompt, []
while "episode is over" not in said:
    talk.append(ChatMessage("user", said))
    talk.append(model.generate(talk))
    said = act(talk[-1].content)
"""

LOCAL = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # LiteLLM would fetch a list of prices when it is imported


APART = ("openai-agents==0.24.0", "smolagents==1.26.0")
"""Those that cannot be installed beside what we pin, as an agent need not be: it is a program, with libraries of its own."""


@pytest.fixture(scope="module")
def interpreter_apart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has these frameworks and nothing of ours."""
    folder = tmp_path_factory.mktemp("frameworks")
    python = str(folder / "bin" / "python")
    for command in (["venv", str(folder)], ["pip", "install", "--python", python, *APART]):
        made = subprocess.run(
            [sys.executable, "-m", "uv", "--no-progress", *command],
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        if made.returncode:
            pytest.skip(f"uv {command[0]} failed: {made.stderr[-300:].strip()}")
    return python


def check_gold(python: str, module: str, text: str, suite: str, folder: Path) -> None:
    """An agent of these words, in this interpreter, plays four tasks whose policy is the gold one, and solves them."""
    script = folder / "agent.py"  # in a folder of its own: one of the modules has the name of a folder here
    script.write_text(HEAD + text)
    program = AgentProgram(
        (python, str(script)), workdir=str(folder), timeout=240, env=LOCAL, preload=(module,)
    )
    gold = turnwise.make_policy("scripted:gold")
    log = folder / "log.jsonl.zst"
    done = turnwise.evaluate(suite, ProgramPolicy(gold, program), episodes=4, retries=0, log=log)
    assert (done.success, done.outcomes["ok"]) == (1.0, 4)
    assert turnwise.replay(log).ok
    turns = [turn for record in LogReader(log) for turn in record.episode.trajectory.turns]
    assert len(turns) > 8
    assert all(
        turn.reply.parent == PREVIOUS for turn in turns
    )  # what it tells back is what was said: one branch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("openai", OPENAI_STREAMED),
        ("openai", OPENAI_RESPONSES),
        ("anthropic", ANTHROPIC),
        ("anthropic", ANTHROPIC_STREAMED),
    ],
    ids=["openai, streamed", "openai, responses", "anthropic", "anthropic, streamed"],
)
def test_an_agent_of_an_sdk_plays_gold(module, text, tmp_path):
    check_gold(sys.executable, module, text, "shop/easy", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "text"),
    [("langgraph", LANGGRAPH), ("pydantic_ai", PYDANTIC_AI), ("litellm", LITELLM)],
    ids=["langgraph", "pydantic-ai", "litellm"],
)
def test_an_agent_of_a_framework_plays_gold(module, text, tmp_path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    check_gold(sys.executable, module, text, "shop/easy", tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "text", "suite"),
    [("agents", AGENTS, "functioncall/single"), ("smolagents", SMOLAGENTS, "shop/easy")],
    ids=["openai-agents", "smolagents"],
)
def test_an_agent_of_a_framework_in_an_interpreter_of_its_own_plays_gold(
    interpreter_apart, module, text, suite, tmp_path
):
    check_gold(interpreter_apart, module, text, suite, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_coding_agent_s_loop_mends_a_package_by_the_tools_of_its_environment(tmp_path):
    """It reads, edits and submits by MCP, in calls that the policy makes by OpenAI's API."""
    program = AgentProgram(
        (sys.executable, "-S", "examples/agent_program.py"), workdir=str(ROOT), prompt="messages"
    )
    gold = turnwise.make_policy("scripted:gold")
    log = tmp_path / "log.jsonl.zst"
    done = turnwise.evaluate("swe/small", ProgramPolicy(gold, program), episodes=2, retries=0, log=log)
    assert (done.success, done.turns) == (1.0, 3)
    assert turnwise.replay(log).ok
