"""Environments out of MCP servers, and environments served over MCP.

McpEnv is a base class: tasks, their solution and their judgement are what a subclass writes, and what the server
answers is shown as it is, so there are no modules tasks, knobs, solver, render and vocabulary.

env        McpEnv: tasks out of any MCP server        live     running servers, brought to where calls lead
state      the calls so far                           serve    an episode served over MCP, for agents elsewhere
actions    calls out of a message; ``finish``
"""
