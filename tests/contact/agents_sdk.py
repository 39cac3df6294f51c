"""Agents that know nothing of Turnwise: a loop of tools in the SDKs of OpenAI and Anthropic, in LangGraph and in pydantic-ai."""

from __future__ import annotations

HEAD = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import urllib.request
def act(name, **arguments):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = json.dumps({"name": name, "arguments": arguments}).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["SESSION_URL"] + "/act", body, headers)) as answer:
        return json.load(answer)["text"]
def look(place: str) -> str:
    "Look into a drawer (a to h), or into the ledger."
    return act("look", place=place)
def hand_over(tag: int) -> str:
    "Hand a thing over by its tag. Ends the task."
    return act("hand_over", tag=tag)
DO = {"look": look, "hand_over": hand_over}
SCHEMA = {
    name: {"type": "object", "properties": {key: {"type": kind}}, "required": [key]}
    for name, key, kind in (("look", "place", "string"), ("hand_over", "tag", "integer"))
}
prompt = sys.stdin.read()
"""

OPENAI = """
import openai
client, talk = openai.OpenAI(max_retries=0), [{"role": "user", "content": prompt}]
tools = [{"type": "function", "function": {"name": n, "description": DO[n].__doc__, "parameters": SCHEMA[n]}} for n in DO]
while True:
    said = client.chat.completions.create(model="policy", messages=talk, tools=tools).choices[0].message
    talk.append(said.model_dump(exclude_none=True))
    if not said.tool_calls:
        break
    for call in said.tool_calls:
        result = DO[call.function.name](**json.loads(call.function.arguments))
        talk.append({"role": "tool", "tool_call_id": call.id, "content": result})
"""

ANTHROPIC = """
import anthropic
client, talk = anthropic.Anthropic(max_retries=0), [{"role": "user", "content": prompt}]
tools = [{"name": n, "description": DO[n].__doc__, "input_schema": SCHEMA[n]} for n in DO]
while True:
    said = client.messages.create(model="policy", max_tokens=8000, messages=talk, tools=tools)
    talk.append({"role": "assistant", "content": said.content})
    calls = [block for block in said.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": DO[c.name](**c.input)} for c in calls]
    talk.append({"role": "user", "content": results})
"""

LANGGRAPH = """
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
agent = create_react_agent(ChatOpenAI(model="policy", max_retries=0), [look, hand_over])
agent.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 30})
"""

PYDANTIC_AI = """
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
model = OpenAIChatModel("policy", provider=OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0)))
Agent(model, tools=[look, hand_over]).run_sync(prompt)
"""

SEEN = """
pictures = []
def act(name, **arguments):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = json.dumps({"name": name, "arguments": arguments}).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["SESSION_URL"] + "/act", body, headers)) as answer:
        told = json.load(answer)
    pictures.extend(told.get("images", []))
    return told["text"]
"""
"""Before an agent's script: what an action shows is kept in ``pictures``."""

OPENAI_SEES = (
    SEEN
    + OPENAI
    + """
    if pictures:
        talk.append({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}} for url in pictures]})
        pictures.clear()
"""
)

ANTHROPIC_SEES = (
    SEEN
    + ANTHROPIC
    + """
    for url in pictures:
        kind, data = url.removeprefix("data:").split(";base64,")
        results.append({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
    pictures.clear()
"""
)

SEEING_AGENTS = {"openai": ("openai", OPENAI_SEES), "anthropic": ("anthropic", ANTHROPIC_SEES)}
"""Those of :data:`AGENTS` that hand pictures on."""

AGENTS = {
    "openai": ("openai", OPENAI),
    "anthropic": ("anthropic", ANTHROPIC),
    "langgraph": ("langgraph", LANGGRAPH),
    "pydantic-ai": ("pydantic_ai", PYDANTIC_AI),
}
"""The package that each imports, and its script."""
