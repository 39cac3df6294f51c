"""Agents of others, unmodified, evaluated on a suite through the gateway: LangGraph's loop."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import turnwise
from turnwise.agents.gateway.program import AgentProgram
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


@pytest.mark.slow
@pytest.mark.skipif(find_spec("langgraph") is None, reason="LangGraph is not installed")
def test_an_agent_of_langgraph_plays_gold():
    program = AgentProgram((sys.executable, "-c", HEAD + LANGGRAPH), workdir=str(ROOT), timeout=240)
    gold = turnwise.make_policy("scripted:gold")
    done = turnwise.evaluate("shop/easy", ProgramPolicy(gold, program), episodes=2, retries=0)
    assert (done.success, done.outcomes["ok"]) == (1.0, 2)
