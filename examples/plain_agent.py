"""An agent in thirty lines that knows nothing of who runs it: a chat API, and an environment that takes plain text.

turnwise train shop-quick --set 'agent.command=[python3,-S,examples/plain_agent.py]' --set agent.prompt=messages
"""

import http.client
import json
import os
import sys
from urllib.parse import urlsplit


def post(address: str, body: dict) -> dict:
    url = urlsplit(address)
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    connection.request("POST", url.path, json.dumps(body), headers)
    with connection.getresponse() as answer:
        return json.load(answer)


model, world = os.environ["OPENAI_BASE_URL"], os.environ["SESSION_URL"]
connection = http.client.HTTPConnection(urlsplit(model).netloc)
messages = json.load(sys.stdin)
for _ in range(40):
    answer = post(f"{model}/chat/completions", {"model": "policy", "messages": messages})
    if "choices" not in answer:  # the context is full, or the budget is spent
        break
    messages.append(answer["choices"][0]["message"])
    seen = post(f"{world}/act", {"text": messages[-1]["content"]})
    messages.append({"role": "user", "content": seen["text"]})
    if seen["end"]:
        break
