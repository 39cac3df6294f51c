"""Serve one episode of an environment by MCP over stdio, for an agent that starts its servers itself.

    python -m turnwise.envs.mcp.serve shop/easy --split test --index 3 --result result.json

A suite of episodes over HTTP, with statistics, is what `turnwise serve` offers.

The task is told in the server's instructions and by the tool ``task``; where the environment also listens to
plain words, the tool ``say`` speaks them. However the episode stops, ``--result`` gets a file:

    {"task": "…", "end": "solved", "score": 1.0, "turns": 4, "reason": "the environment ended the episode"}

An agent that leaves before the end (it closes its connection, or the server is stopped) gave up, with the score
that it had by then; where the environment itself failed there is neither end nor score. Only a server that is
killed outright leaves no file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnwise.blame import describe
from turnwise.durable import write_whole
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json, Split, Task
from turnwise.terminal import guard
from turnwise.tools.core import ToolCall, ToolError, ToolSpec, find_tool, tool
from turnwise.tools.mcp_server import serve_stdio


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
        result: how the episode ended, what it scored and why it stopped; None while it runs.
    """

    def __init__(self, env: AgentEnv[Any], task: Task, *, seed: int = 0, result: Path | None = None) -> None:
        self.env = env
        self.name = task.env
        told, _ = env.reset(seed=seed, options={"task": task})
        self.instructions = "\n\n".join(message.content for message in told)
        self.result: dict[str, Json] | None = None
        self._file = result
        self._score = 0.0
        self._calls = self._turns = 0

    def specs(self) -> Sequence[ToolSpec]:
        own = [one.spec for one in self.env.tools]
        names = {spec.name for spec in own}
        return [*own, *(one.spec for one in (_TASK, _SAY) if one.spec.name not in names)]

    def call(self, call: ToolCall) -> str:
        if self.result is not None:
            raise ToolError(f"The episode is over: {self.result['end'] or self.result['reason']}.")
        own = {one.spec.name for one in self.env.tools}
        if call.name not in own:
            chosen = find_tool((*self.env.tools, _TASK, _SAY), call.name)
            arguments = chosen.validate(call)
            return (
                self.instructions
                if call.name == "task"
                else self._play(Message("assistant", arguments["text"]))
            )
        self._calls += 1
        linked = ToolCall(call.name, call.arguments, f"call_{self._calls}")
        return self._play(Message("assistant", "", (linked,)))

    def stop(self, reason: str) -> None:
        """The agent is gone, for this reason; nothing where the episode has ended."""
        if self.result is None:
            self._finish(EndReason.GAVE_UP, self._score, reason)

    def _play(self, action: Message) -> str:
        try:
            step = self.env.step(action)
        except Exception as error:
            self._finish(None, None, describe(error, type(self.env)))
            raise
        self._turns += 1
        self._score += step.info.get("rewards", {}).get("outcome", 0.0)
        said = "\n".join(message.content for message in step.observation)
        end = step.info.get("end")
        if end is not None:
            self._finish(end, self._score, "the environment ended the episode")
            said = f"{said}\n[the episode is over: {end}]".strip()
        elif step.info.get("bad_action"):
            raise ToolError(said)
        return said

    def _finish(self, end: EndReason | None, score: float | None, reason: str) -> None:
        self.result = {
            "task": self.env.task.id,
            "end": end and end.value,
            "score": score,
            "turns": self._turns,
            "reason": reason,
        }
        if self._file is not None:
            write_whole(self._file, json.dumps(self.result) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line (see the module)."""
    from turnwise.envs.registry import get_suite, make, suite_task

    parser = argparse.ArgumentParser("turnwise.envs.mcp.serve", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suite")
    parser.add_argument("--split", default="test", choices=[split.value for split in Split])
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, help="a JSON file for the score")
    given = parser.parse_args(arguments)
    guard()
    suite = get_suite(given.suite)
    chosen = suite_task(suite, Split(given.split), given.index)
    env = make(suite.env)
    toolbox = EpisodeToolbox(env, chosen, seed=given.seed, result=given.result)

    def stopped(number: int, _: object) -> None:
        # The thread that reads a client's input cannot be interrupted, so nobody is waited for.
        toolbox.stop(f"the server was stopped by {signal.Signals(number).name}")
        env.close()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stopped)
    try:
        serve_stdio(toolbox)
    finally:
        toolbox.stop("the agent left before the episode ended")
        env.close()


if __name__ == "__main__":
    main()
