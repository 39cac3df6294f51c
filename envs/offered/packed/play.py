#!/usr/bin/env python3
"""Acts in the world of this task, which lies in another container.

play                                say again what was heard last
play say WORDS …                    say words; "play say -" reads them from stdin
play call NAME '{"argument": …}'    call a tool
play do '{"text": …, "calls": […]}' both, as JSON

Each of the last three is a turn. There is one try.
"""

import json
import os
import sys
import urllib.error
import urllib.request

WORLD = os.environ.get("TURNWISE_WORLD", "http://world:8000")
TOKEN = os.environ.get("TURNWISE_TOKEN", "@TOKEN@")


def ask(path: str, data: "dict | None" = None) -> dict:
    """Ask the world for something; its own words on what is refused."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(WORLD + path, body, {"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        told = error.read().decode("utf-8", "replace")
        sys.exit(json.loads(told)["error"] if told.startswith("{") else told)
    except OSError as error:
        sys.exit(
            f"The world at {WORLD} does not answer ({error}): its container must be up, and TURNWISE_WORLD name it."
        )


def main(words: "list[str]") -> None:
    if words == ["score"]:
        print(ask("/score", {})["reward"])
        return
    if not words:
        seen = ask("/opening")
    elif words[0] == "say" and len(words) > 1:
        seen = ask("/step", {"text": sys.stdin.read() if words[1:] == ["-"] else " ".join(words[1:])})
    elif words[0] == "call" and len(words) in (2, 3):
        seen = ask(
            "/step", {"calls": [{"name": words[1], "arguments": json.loads(words[2] if words[2:] else "{}")}]}
        )
    elif words[0] == "do" and len(words) == 2:
        seen = ask("/step", json.loads(words[1]))
    else:
        sys.exit(__doc__)
    print(seen["text"])
    if seen["end"]:
        print(f"[The episode has ended: {seen['end']}.]")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"That is no JSON: {error}")
