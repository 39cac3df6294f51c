"""The side of verifiers v1: its program asks a model, and the model is whoever plays here. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import queue
import sys
import threading
from pathlib import Path
from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found]
from aiohttp import web

FOLDERS: dict[str, Path] = {}  # whose modules are imported
SESSION = "X-Session-ID"  # another one for each episode
CHAT = "/chat/completions"
STOPS = {"max_turns": "turn_limit", "timeout": "time_limit"}
ENDS = ("solved", "failed", "gave_up", "turn_limit", "token_limit", "time_limit")


class VerifiersSide:
    """One episode at a time: it waits wherever its program waits for a model."""

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.loop = asyncio.new_event_loop()
        self.envs: dict[str, vf.Env] = {}
        self.serving = contextlib.AsyncExitStack()
        self.run: Any = None
        self.turn = asyncio.Lock()
        self.session, self.gone = "none", set[str]()
        self.reply: asyncio.Future[dict[str, Any]] | None = None
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.url = self._now(self._listen())

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin a task's episode, and return what its program asks first."""
        self._now(self._give_up())
        self.heard, self.calls, self.told_tools = 0, [], None
        key = json.dumps([options["taskset"], options.get("knobs", {})])
        if key not in self.envs:
            self.envs[key] = self._now(self._env(options["taskset"], options.get("knobs", {})))
        env = self.envs[key]
        task = next(itertools.islice(iter(env.taskset), options["index"], None), None)
        if task is None:
            raise ValueError(f"{options['taskset']} has no task {options['index']}")
        client = vf.EvalClientConfig(base_url=self.url, api_key_var="NO_KEY")
        self._now(self._begin(env, task, client))
        return self._next(opening=True)

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Answer what was asked, and return what is asked next, or the end."""
        calls = [
            {"id": f"call_{self.heard}_{n}", "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for n, call in enumerate(act.get("calls", []))
        ]  # fmt: skip
        message = {"role": "assistant", "content": act["text"], **({"tool_calls": calls} if calls else {})}
        self.loop.call_soon_threadsafe(self.reply.set_result, message)
        return self._next()

    def gold(self) -> None:
        """Nobody knows it."""

    def list(self, asked: dict[str, Any]) -> int | None:
        """Return the number of a taskset's tasks; None where it has no end."""
        taskset = _config(asked["taskset"], {}).taskset
        found = vf.load_taskset(taskset)
        return None if found.INFINITE else sum(1 for _ in found)

    # --- inside ----------------------------------------------------------------------------------

    def _now(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _listen(self) -> str:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post(CHAT, self._ask)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        """A program asks for a message: wait until one is said, and stream it where that is wanted."""
        body = await request.json()
        if request.headers.get(SESSION, "") in self.gone:
            raise web.HTTPGone  # of an episode that was given up
        async with self.turn:  # a program that asks twice at once is answered in order
            return await self._answered(request, body)

    async def _answered(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        self.reply = self.loop.create_future()
        self.session = request.headers.get(SESSION, "")
        self.asked.put(("asked", body))
        message = await self.reply
        about = {"id": "turn", "created": 0, "model": body["model"]}
        end = "tool_calls" if "tool_calls" in message else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": end}
            return web.json_response({**about, "object": "chat.completion", "choices": [choice]})
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for n, call in enumerate(message.get("tool_calls", ())):
            call["index"] = n
        for delta, reason in ((message, None), ({}, end)):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            line = json.dumps({**about, "object": "chat.completion.chunk", "choices": [choice]})
            await answer.write(f"data: {line}\n\n".encode())
        await answer.write(b"data: [DONE]\n\n")
        return answer

    async def _env(self, taskset: str, knobs: dict[str, Any]) -> vf.Env:
        env = vf.load_environment(_config(taskset, knobs))
        await self.serving.enter_async_context(env.serving())
        return env

    async def _played(self, env: vf.Env, task: vf.Task, client: Any) -> None:
        try:
            episode = await env.run_episode(task, vf.ModelContext("turnwise", client, vf.Sampling()))
            self.asked.put(("ended", episode))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whoever waits must hear of it)
            self.asked.put(("broke", error))

    async def _begin(self, env: vf.Env, task: vf.Task, client: Any) -> None:
        self.run = asyncio.ensure_future(self._played(env, task, client))

    async def _give_up(self) -> None:
        """End an episode that waits for a message: what it asked for is refused, for it ends only once nothing is under way."""
        if self.run is not None:
            self.run.cancel()
            self.gone |= {self.session} - {""}
            while not self.run.done():
                if self.reply is not None and not self.reply.done():
                    self.reply.set_exception(web.HTTPServiceUnavailable())
                await asyncio.wait([self.run], timeout=0.05)
        while not self.asked.empty():
            self.asked.get_nowait()

    def _next(self, opening: bool = False) -> dict[str, Any]:
        what, told = self.asked.get()
        if what == "broke":
            raise RuntimeError(str(told)) from told
        return self._asking(told, opening) if what == "asked" else _ended(told)

    def _asking(self, body: dict[str, Any], opening: bool) -> dict[str, Any]:
        messages = body["messages"]
        new = messages if opening else messages[self.heard + 1 :]
        self.heard = len(messages)
        said: dict[str, Any] = {
            "text": "\n\n".join(_text(m) for m in new if m["role"] not in ("system", "assistant"))
        }
        if opening:
            said["system"] = "\n\n".join(_text(m) for m in new if m["role"] == "system")
        if (tools := body.get("tools") or []) != self.told_tools:
            self.told_tools = tools
            said["tools"] = [_whole(tool["function"]) for tool in tools]
        return said


def _config(taskset: str, knobs: dict[str, Any]) -> Any:
    """The configuration of a taskset's environment, in which everything runs on this machine."""
    if Path(taskset).is_dir():
        taskset = _found(Path(taskset))
    data: dict[str, Any] = {"taskset": {"id": taskset, **knobs}}
    kind = vf.env_config_type(taskset) if taskset else vf.EnvConfig
    seats = [name for name, field in kind.model_fields.items() if isinstance(field.default, vf.AgentConfig)]
    if len(seats) != 1:
        raise ValueError(f"{taskset} is played by {', '.join(seats)}, and one agent plays here")
    harness = {} if vf.default_harness_id(taskset) == taskset else {"harness": {"id": "null"}}
    return kind.model_validate({**data, seats[0]: {"runtime": {"type": "subprocess"}, **harness}})


def _found(folder: Path) -> str:
    """The name under which a package's folder is imported: that of the module in it. Another folder's of this name is forgotten."""
    inside = [path.parent.name for path in folder.glob("*/__init__.py")]
    if len(inside) != 1:
        raise ValueError(f"{folder} has {len(inside)} modules, and a package of verifiers has one")
    name = inside[0]
    if FOLDERS.setdefault(name, folder) != folder:
        FOLDERS[name] = folder
        for known in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[known]
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(folder))]
    importlib.invalidate_caches()
    return name


def _whole(function: dict[str, Any]) -> dict[str, Any]:
    """A function as chat completions name it, which may leave out its description, and parameters if it takes none."""
    said = {key: value for key, value in function.items() if value is not None}
    return {"description": "", "parameters": {"type": "object", "properties": {}}, **said}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _ended(episode: Any) -> dict[str, Any]:
    trace = episode.traces[0] if episode.traces else None
    errors = [*episode.errors, *(trace.errors if trace else ())]
    if trace is None or not episode.ok:
        raise RuntimeError(f"the episode failed: {[str(one)[:500] for one in errors]}")
    reward = float(trace.reward)
    end = getattr(trace.state, "end", "") or STOPS.get(trace.stop_condition or "", "")
    return {
        "text": getattr(trace.state, "heard", ""),  # after the last turn, as our own packages keep it
        "rewards": {"outcome": reward},
        "end": end if end in ENDS else "solved" if reward >= 1.0 else "failed",
    }


SIDE = VerifiersSide
