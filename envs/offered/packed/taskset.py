"""A suite of Turnwise as a taskset of verifiers v1: its rows, and the harness that plays an episode of it.

Turnwise wrote this file (`turnwise tasks --form verifiers`). It runs in a process of its own, since its pins and those of verifiers exclude each other:
the harness starts `turnwise serve-openenv` once in each process, and each rollout is a connection to it. The model is asked by verifiers alone.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import atexit
import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import verifiers.v1 as vf  # type: ignore[import-not-found]
from pydantic import Field

HERE = Path(__file__).parent
SUITE = json.loads((HERE / "suite.json").read_text("utf-8"))
_servers: dict[str, tuple[subprocess.Popen, str]] = {}
_lock = threading.Lock()


class SuiteData(vf.TaskData):
    """A row: the place of its task, and the tools that its first turn offers."""

    index: int
    seed: int
    hash: str
    tools: list[dict[str, Any]] = Field(default_factory=list)


class SuiteState(vf.State):
    """The rewards of an episode by turn, their sum, why it ended, and what was heard last, which no model is told."""

    begun: bool = False
    rewards: list[dict[str, float]] = Field(default_factory=list)
    reward: float = 0.0
    end: str = ""
    heard: str = ""


class SuiteTask(vf.Task[SuiteData, SuiteState]):
    """One task; the environment owns its reward."""

    @vf.reward(weight=1.0)
    async def episode(self, trace: vf.Trace) -> float:
        if not trace.state.begun:
            raise ValueError(f"{SUITE['suite']} is played by its own harness: leave harness.id out")
        return trace.state.reward


class SuiteConfig(vf.TasksetConfig):
    n: int | None = None
    """How many of the package's tasks; all if left out."""


class SuiteTaskset(vf.Taskset[SuiteTask, SuiteConfig]):
    def load(self) -> Iterator[SuiteTask]:
        with open(HERE / "tasks.jsonl", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number == self.config.n:
                    return
                yield SuiteTask(_data(json.loads(line)), self.config.task)


def _data(row: dict[str, Any]) -> SuiteData:
    system = "\n\n".join(one["content"] for one in row["prompt"] if one["role"] == "system")
    rest = [one for one in row["prompt"] if one["role"] != "system"]
    kept = {key: row[key] for key in ("index", "seed", "hash", "tools")}
    name = f"{row['suite']}#{row['index']}"
    return SuiteData(id=row["task"], name=name, prompt=rest, system_prompt=system or None, **kept)


class SuiteHarnessConfig(vf.HarnessConfig):
    turnwise: str = "turnwise"
    """The command that starts Turnwise, such as "/path/to/python -m turnwise"."""
    url: str = ""
    """The address of a server that runs already (`turnwise serve-openenv SUITE`); no other is started then."""


class SuiteHarness(vf.Harness[SuiteHarnessConfig]):
    """Asks the model, tells the episode what it said and the model what it heard, until the episode ends."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        row, state = trace.task.data, trace.state
        url = self.config.url or await asyncio.to_thread(_server, self.config.turnwise)
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http,
            http.ws_connect(f"{url}/ws", max_msg_size=0) as socket,
        ):
            seen = await _asked(socket, "reset", {"index": row.index, "seed": row.seed})
            state.begun, tools = True, seen["observation"].get("tools") or []
            _check(row, seen["observation"]["messages"], tools)
            system, prompt = self.resolve_prompt(data)
            messages = [{"role": "system", "content": system}] if system else []
            messages += [{"role": one.role, "content": one.content} for one in prompt]
            while not seen["done"]:
                body = {"model": ctx.model, "messages": messages, **({"tools": tools} if tools else {})}
                async with http.post(
                    f"{endpoint}/chat/completions",
                    json=body,
                    headers={"Authorization": f"Bearer {secret}"},
                ) as answer:
                    if answer.status >= 400:  # a limit of the run, or the model's server
                        return vf.ProgramResult(exit_code=1, stdout="", stderr=await answer.text())
                    said = (await answer.json())["choices"][0]["message"]
                messages.append({key: value for key, value in said.items() if value is not None})
                seen = await _asked(socket, "step", _action(said))
                heard = seen["observation"]
                messages += heard["messages"]
                tools = heard.get("tools", tools)
                state.rewards = [*state.rewards, heard["rewards"]]
                state.reward, state.end = state.reward + (seen["reward"] or 0.0), heard["end"]
                state.heard = heard["text"]
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


def _action(said: dict[str, Any]) -> dict[str, Any]:
    calls, unread = [], ""
    for call in said.get("tool_calls") or ():
        told = call["function"]
        try:
            arguments = json.loads(told["arguments"] or "{}")
            if not isinstance(arguments, dict):
                raise ValueError("they are no object")  # noqa: TRY004
        except (ValueError, RecursionError) as error:
            unread, arguments = f"The arguments of {told['name']} cannot be read: {error}.", {}
        calls.append({"name": told["name"], "arguments": arguments, "id": call["id"]})
    return {"text": said.get("content") or "", "calls": calls, "malformed": unread}


def _check(row: SuiteData, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
    """See that the Turnwise that plays has the task that was written down."""
    told = "\n\n".join(one["content"] for one in messages if one["role"] != "system")
    if told != row.prompt_text or tools != row.tools:
        raise ValueError(
            f"Task {row.index} of {SUITE['suite']} is another one in the Turnwise that plays than in this package, which "
            f"{SUITE['version']} wrote: write the package anew with the Turnwise that plays"
        )


async def _asked(socket: aiohttp.ClientWebSocketResponse, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    await socket.send_json({"type": kind, "data": data})
    answer = await socket.receive_json()
    if answer["type"] == "error":
        raise RuntimeError(f"Turnwise: {answer['data']['code']}: {answer['data']['message']}")
    return answer["data"]


def _server(command: str) -> str:
    """The address of this process's server, which the first rollout starts."""
    with _lock:
        if command in _servers and _servers[command][0].poll() is None:
            return _servers[command][1]
        asked = ["serve-openenv", SUITE["suite"], "--split", SUITE["split"], "--port", "0", "--with-parent"]
        process = subprocess.Popen(
            [*shlex.split(command), *asked, "--sessions", "100000", "--idle-s", "86400"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        atexit.register(process.terminate)
        said: list[str] = []
        for line in process.stderr:
            if line.startswith("ready: "):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                _servers[command] = process, line.split()[1]
                return _servers[command][1]
            said.append(line)
        raise RuntimeError(f"`{command} serve-openenv {SUITE['suite']}` says: {''.join(said)[-1000:]}")


class SuiteEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class SuiteEnv(vf.Env[SuiteEnvConfig]):
    """One agent plays a task. The harness starts nothing for the model, so it needs no container."""

    async def run(self, task: SuiteTask, agents: vf.Agents) -> None:
        await agents.agent.run(task)
