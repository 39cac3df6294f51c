"""Count what is different among a suite's tasks: kinds of requests and skeletons of gold solutions.

python benchmarks/skeletons.py toolworld/retail lab/standard …   # prints a line of JSON for each
PYTHONPATH=OLD/src python benchmarks/skeletons.py …              # the same of another checkout

A skeleton is the sequence of what gold does, without arguments: names of tools (of the API, where a tool calls one by its
name), verbs of commands, and what a person was brought to do with a device of his own; other words to a person are left out,
and so are repetitions. The spelling of an API's name does not count, and a click on a button that every page of its sort has counts as that
button. ``requests`` are the skeletons of single requests, where a user has several. A kind is the prompt with numbers,
identifiers and names taken out. All of the first 1,000 train tasks.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import Any

TASKS = 1000
_VALUE = re.compile(
    r"[\"'“][^\"'”]*[\"'”]|\b\w*\d[\w.-]*|(?<![.!?:] )(?<!^)\b[A-Z][\w-]+|[^\w\s]", re.MULTILINE
)
_CALL = re.compile(r"[a-z_]+")
BUTTONS = frozenset(
    ("buy now", "< prev", "next >", "specification", "features", "reviews", "description", "attributes")
)
"""What can be clicked on every page of a shop's product, or of its results."""


def kind(prompt: str) -> str:
    """A prompt without what distinguishes tasks of one kind.

    >>> kind("Assign ticket T-12 to Ada Finch by 5 May.")
    'Assign ticket to by'
    """
    return " ".join(_VALUE.sub(" ", prompt).split())


def verbs(action: Any) -> list[str]:
    """What a message does; nothing where it only says something to somebody."""
    if action.tool_calls:
        return [
            name
            for call in action.tool_calls
            if call.name not in ("say", "respond")
            for name in named_apis(call.name, call.arguments)
        ]
    text = action.content.strip()
    named = re.match(r"([a-z_]+)\s*[\[(](.*)", text)
    if not named:
        return []
    button = named[2].rstrip("])").strip()
    return [f"{named[1]} {button}" if named[1] == "click" and button in BUTTONS else named[1]]


def named_apis(name: str, arguments: Any) -> list[str]:
    """The APIs that a call is for; where it is for none, the tool.

    >>> named_apis("call_api", {"api": "mail.star", "arguments": {}}), named_apis("get_order", {"order_id": "5"})
    (['mail.star'], ['getorder'])
    """
    if not isinstance(arguments, dict):
        return [name]
    batch = arguments.get("calls", [arguments])
    found = [
        f"{name} {each['api']}" if name == "read_doc" else each["api"] for each in batch if "api" in each
    ]
    return found or ["".join(part for part in name.lower() if part != "_")]


def command(action: Any) -> list[str]:
    """The verb of a command in plain words."""
    found = _CALL.search(action.content.lower())
    return [found[0]] if found else []


def deeds(env: Any) -> frozenset[str]:
    """What a user who holds a device has done with it."""
    return getattr(getattr(env.state, "user", None), "did", frozenset[str]())


def stage(env: Any) -> int:
    """Which of a user's requests is talked about."""
    return getattr(getattr(env.state, "user", None), "stage", 0)


def main() -> None:
    registry, tasks = (
        importlib.import_module("turnwise.envs.registry"),
        importlib.import_module("turnwise.tasks.core"),
    )
    try:
        walks = importlib.import_module("turnwise.envs.check.walks")
    except ModuleNotFoundError:
        walks = importlib.import_module("turnwise.envs.walks")
    make: Any = registry.make
    for name in sys.argv[1:]:
        suite = registry.get_suite(name)
        drawn = list(registry.suite_tasks(suite, tasks.Split.TRAIN, TASKS))
        env, skeletons, requests = make(suite.env), set[tuple[str, ...]](), set[tuple[str, ...]]()
        for task in drawn:
            done: list[str] = []
            part: list[str] = []
            actions = walks.walk(env, task, "gold").actions
            env.reset(seed=0, options={"task": task})
            for action in actions:
                did, request = deeds(env), stage(env)
                env.step(action)
                found = verbs(action) or sorted(deeds(env) - did)
                for verb in found or (command(action) if name.startswith(("lab/", "household/")) else []):
                    for so_far in (done, part):
                        if so_far[-1:] != [verb]:
                            so_far.append(verb)
                if stage(env) != request:
                    requests.add(tuple(part))
                    part = []
            requests.add(tuple(part))
            skeletons.add(tuple(done))
        kinds = {kind(task.prompt) for task in drawn}
        print(
            json.dumps(
                {
                    "suite": name,
                    "tasks": len(drawn),
                    "kinds": len(kinds),
                    "skeletons": len(skeletons),
                    "requests": len(requests),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
