"""Serve one episode of an environment over MCP, for agents that live elsewhere.

    python -m turnwise.envs.mcp.serve shop/easy --split test --index 3            # over stdio
    python -m turnwise.envs.mcp.serve shop/easy --http 8765 --result result.json  # http://127.0.0.1:8765/mcp

The task is told in the server's instructions and by the tool ``task``; where the environment also listens to
plain words, the tool ``say`` speaks them. When the episode ends, ``--result`` gets its score.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolCall, ToolError, ToolSpec, find_tool, tool
from turnwise.tools.mcp_server import serve_http, serve_stdio


def task() -> str:
    """What is to be done, as it was told at the beginning."""
    raise NotImplementedError


def say(text: str) -> str:
    """Say something in plain words, to the user or as the environment's own commands."""
    raise NotImplementedError


_TASK, _SAY = tool(task), tool(say)


class EpisodeToolbox:
    """An episode as a toolbox: each call is a turn.

    Attributes:
        result: how the episode ended and what it scored; None while it runs.
    """

    def __init__(self, env: AgentEnv[Any], task: Task, *, seed: int = 0, result: Path | None = None) -> None:
        self.env = env
        self.name = task.env
        told, _ = env.reset(seed=seed, options={"task": task})
        self.instructions = "\n\n".join(message.content for message in told)
        self.result: dict[str, Json] | None = None
        self._file = result
        self._score = 0.0
        self._turn = 0

    def specs(self) -> Sequence[ToolSpec]:
        own = [one.spec for one in self.env.tools]
        names = {spec.name for spec in own}
        return [*own, *(one.spec for one in (_TASK, _SAY) if one.spec.name not in names)]

    def call(self, call: ToolCall) -> str:
        if self.result is not None:
            raise ToolError(f"The episode is over: {self.result['end']}.")
        own = {one.spec.name for one in self.env.tools}
        if call.name not in own:
            chosen = find_tool((*self.env.tools, _TASK, _SAY), call.name)
            arguments = chosen.validate(call)
            return (
                self.instructions
                if call.name == "task"
                else self._play(Message("assistant", arguments["text"]))
            )
        self._turn += 1
        linked = ToolCall(call.name, call.arguments, f"call_{self._turn}")
        return self._play(Message("assistant", "", (linked,)))

    def _play(self, action: Message) -> str:
        step = self.env.step(action)
        self._score += step.info.get("rewards", {}).get("outcome", 0.0)
        said = "\n".join(message.content for message in step.observation)
        end = step.info.get("end")
        if end is not None:
            self.result = {"task": self.env.task.id, "end": str(end), "score": self._score}
            if self._file is not None:
                self._file.write_text(json.dumps(self.result) + "\n", "utf-8")
            said = f"{said}\n[the episode is over: {end}]".strip()
        elif step.info.get("bad_action"):
            raise ToolError(said)
        return said


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line (see the module)."""
    from turnwise.envs.registry import get_suite, make, suite_task

    parser = argparse.ArgumentParser("turnwise.envs.mcp.serve", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suite")
    parser.add_argument("--split", default="test", choices=[split.value for split in Split])
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--http", type=int, metavar="PORT", help="serve over HTTP at this port, not over stdio"
    )
    parser.add_argument("--result", type=Path, help="a JSON file for the score")
    given = parser.parse_args(arguments)
    suite = get_suite(given.suite)
    chosen = suite_task(suite, Split(given.split), given.index)
    toolbox = EpisodeToolbox(make(suite.env), chosen, seed=given.seed, result=given.result)
    if given.http is None:
        serve_stdio(toolbox)
    else:
        serve_http(toolbox, port=given.http)


if __name__ == "__main__":
    main()
