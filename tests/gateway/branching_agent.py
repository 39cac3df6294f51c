"""An agent whose conversations are a tree: it sends requests again, asks sub-agents, asks twice from one place and edits its history.

It is a program (tests/gateway/test_training.py runs it) and knows nothing of turnwise.
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


def ask(messages: list, **more: str) -> dict:
    answer = post(f"{model}/chat/completions", {"model": "policy", "messages": messages, **more})
    return answer["choices"][0]["message"]


if __name__ == "__main__":
    model, world = os.environ["OPENAI_BASE_URL"], os.environ["SESSION_URL"]
    connection = http.client.HTTPConnection(urlsplit(model).netloc)
    talk, end, turn = json.load(sys.stdin), None, 0
    while end is None:
        reply = ask(talk)
        if ask(talk) != reply:  # as SDKs do when a connection fails
            sys.exit("the same request had two answers")
        ask([{"role": "user", "content": f"Say letters {turn}"}])  # a sub-agent
        ask(talk, user="another")  # a second sample of the same place
        seen = post(f"{world}/act", {"text": reply["content"]})
        talk += [reply, {"role": "user", "content": seen["text"]}]
        if turn == 1:
            talk = [*talk[:1], talk[-1]]  # the middle is forgotten
        turn, end = turn + 1, seen["end"]
