"""A whole agent that knows nothing of who runs it: OpenAI's API for its thoughts, an MCP server for its deeds.

turnwise eval shop/easy --policy command:examples/agent_program.yaml --model torch:PATH
"""

import itertools
import json
import os
import sys
from urllib.request import Request, urlopen

KEY = os.environ["OPENAI_API_KEY"]
numbers = itertools.count(1)


def post(url: str, body: dict) -> dict:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=600) as answer:
        return json.load(answer)


def mcp(method: str, **params: object) -> dict:
    message = {"jsonrpc": "2.0", "id": next(numbers), "method": method, "params": params}
    return post(os.environ["MCP_SERVER_URL"], message)["result"]


def do(name: str, arguments: dict) -> str:
    return mcp("tools/call", name=name, arguments=arguments)["content"][0]["text"]


offered = {one["name"]: one for one in mcp("tools/list")["tools"]}
functions = [{"name": name, "parameters": one["inputSchema"], "description": one["description"]}
             for name, one in offered.items() if name not in ("say", "task")]  # fmt: skip
tools = {"tools": [{"type": "function", "function": one} for one in functions]} if functions else {}
messages = json.load(sys.stdin)
for _ in range(40):
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    reply = post(url, {"model": "policy", "messages": messages, **tools})["choices"][0]["message"]
    messages.append(reply)
    for call in reply.get("tool_calls", ()):
        seen = do(call["function"]["name"], json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": seen})
    if not reply.get("tool_calls"):
        if "say" not in offered:
            break
        messages.append({"role": "user", "content": do("say", {"text": reply["content"]})})
