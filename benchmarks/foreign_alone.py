"""The packages of others by their own interfaces alone: what benchmarks/foreign_costs.py times beside our environments.

It runs in a world's interpreter under our host.py, and so does the other side that it stands beside; there is nothing of the
contract in it. A whole list of acts is one request, so that the pipe costs nothing.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any


class Package:
    """A package's own interface: an episode begins, and acts are done one by one."""

    def open(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def step(self, act: dict[str, Any]) -> float:
        raise NotImplementedError

    def play(self, acts: list[dict[str, Any]]) -> float:
        """Do all acts, and return what they were paid in all."""
        return sum(self.step(each) for each in acts)


class ReasoningGym(Package):
    """One item and one answer."""

    def open(self, options: dict[str, Any]) -> None:
        import reasoning_gym  # type: ignore[import-not-found]

        self.data = reasoning_gym.create_dataset(options["dataset"], size=1, seed=options["seed"])
        self.item = self.data[0]

    def step(self, act: dict[str, Any]) -> float:
        return float(self.data.score_answer(act["text"], self.item))


class TextArena(Package):
    """A game for one player."""

    def open(self, options: dict[str, Any]) -> None:
        import random

        import numpy  # type: ignore[import-not-found]
        import textarena  # type: ignore[import-not-found]

        random.seed(options["seed"])
        numpy.random.seed(options["seed"] % 2**32)
        self.game = textarena.make(f"{options['game']}-raw")
        self.game.reset(num_players=1, seed=options["seed"])
        self.game.get_observation()

    def step(self, act: dict[str, Any]) -> float:
        done, _ = self.game.step(act["text"])
        if not done:
            self.game.get_observation()
            return 0.0
        paid = self.game.close()[0].get(0)
        return min(1.0, max(0.0, float(paid))) if isinstance(paid, (int, float)) else 0.0


class ScienceWorld(Package):
    """A variation."""

    env: Any = None

    def open(self, options: dict[str, Any]) -> None:
        from scienceworld import ScienceWorldEnv  # type: ignore[import-not-found]

        self.env = self.env or ScienceWorldEnv("", envStepLimit=2**30)
        self.env.load(options["task"], options["variation"], options["simplification"], generateGoldPath=True)
        self.env.reset()
        self.env.get_task_description()
        self.score = 0.0

    def step(self, act: dict[str, Any]) -> float:
        score = max(0.0, self.env.step(act["text"])[3]["score"] / 100)
        paid, self.score = score - self.score, score
        return paid


class TextWorldExpress(Package):
    """A game of a fold."""

    env: Any = None

    def open(self, options: dict[str, Any]) -> None:
        from textworld_express import TextWorldExpressEnv  # type: ignore[import-not-found]

        self.env = self.env or TextWorldExpressEnv(envStepLimit=2**30)
        self.env.reset(
            seed=options["seed"], gameFold=options["fold"], gameName=options["game"], gameParams="", generateGoldPath=True
        )  # fmt: skip
        self.score = 0.0

    def step(self, act: dict[str, Any]) -> float:
        info = self.env.step(act["text"])[3]
        score = 1.0 if info["tasksuccess"] else max(0.0, float(info["score"]))
        paid, self.score = score - self.score, score
        return paid


class Bfcl(Package):
    """A row: one judgement, or the calls of several turns and a judgement at the end."""

    count = 0

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def open(self, options: dict[str, Any]) -> None:
        import collections
        import json
        import sys
        import types

        name = "bfcl_eval.constants.model_config"
        if name not in sys.modules:
            stub: Any = types.ModuleType(name)
            stub.MODEL_CONFIG_MAPPING = collections.defaultdict(
                lambda: types.SimpleNamespace(underscore_to_dot=True)
            )
            sys.modules[name] = stub
        import bfcl_eval  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker.ast_eval import ast_checker  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
            multi_turn_checker,
            multi_turn_utils,
        )

        self.judge, self.several, self.running = ast_checker, multi_turn_checker, multi_turn_utils
        self.category = options["category"]
        for kind in ("", "possible_answer/"):
            path = Path(str(bfcl_eval.__file__)).parent / "data" / f"{kind}BFCL_v4_{self.category}.json"
            if kind + self.category not in self.rows:
                self.rows[kind + self.category] = [json.loads(line) for line in path.open(encoding="utf-8")]
        self.row = self.rows[self.category][options["index"]]
        self.answer = self.rows["possible_answer/" + self.category][options["index"]]["ground_truth"]
        self.steps, self.turn = [[]], 0
        for name in [name for name in vars(multi_turn_utils) if name.endswith("_instance")]:
            delattr(multi_turn_utils, name)
        type(self).count += 1

    def step(self, act: dict[str, Any]) -> float:
        calls = act["calls"]
        if not self.category.startswith("multi_turn"):
            made = [{call["name"]: call["arguments"]} for call in calls]
            python = self.judge.Language.PYTHON
            found = self.judge.ast_checker(
                self.row["function"], made, self.answer, python, self.category, "alone"
            )
            return float(found["valid"])
        if calls:
            self.steps[-1].append(
                [f"{call['name']}({', '.join(f'{k}={v!r}' for k, v in call['arguments'].items())})" for call in calls]
            )  # fmt: skip
            self.running.execute_multi_turn_func_call(
                func_call_list=self.steps[-1][-1], initial_config=self.row["initial_config"],
                involved_classes=self.row["involved_classes"], model_name=f"alone_{self.count}",
                test_entry_id=self.row["id"], long_context="long_context" in self.category,
            )  # fmt: skip
            return 0.0
        self.turn += 1
        if self.turn < len(self.row["question"]):
            self.steps.append([])
            return 0.0
        found = self.several.multi_turn_checker(
            self.steps, self.answer, self.row, self.category, f"judged_{self.count}"
        )
        return float(found["valid"])


class Tau2(Package):
    """A conversation between an agent and a user, and its evaluation. Garbage is looked for as seldom as in our side of it."""

    def __init__(self) -> None:
        import gc

        _import_tau2()
        self.tasks: dict[str, Any] = {}
        gc.freeze()
        gc.set_threshold(100_000, 50, 50)

    def open(self, options: dict[str, Any]) -> None:
        from tau2.orchestrator.orchestrator import DEFAULT_FIRST_AGENT_MESSAGE  # type: ignore[import-not-found]
        from tau2.registry import registry  # type: ignore[import-not-found]

        self.domain = options["domain"]
        if self.domain not in self.tasks:
            self.tasks[self.domain] = {task.id: task for task in registry.get_tasks_loader(self.domain)(None)}
        self.task = self.tasks[self.domain][options["id"]]
        self.env = registry.get_env_constructor(self.domain)()
        state = self.task.initial_state
        self.env.set_state(state and state.initialization_data, state and state.initialization_actions, [])
        self.messages: list[Any] = [DEFAULT_FIRST_AGENT_MESSAGE.model_copy()]
        self.speaker = "user"

    def step(self, act: dict[str, Any]) -> float:
        from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage  # type: ignore[import-not-found]
        from tau2.data_model.simulation import (  # type: ignore[import-not-found]
            SimulationRun,
            TerminationReason,
        )
        from tau2.evaluator.evaluator import (  # type: ignore[import-not-found]
            EvaluationType,
            evaluate_simulation,
        )

        role = "user" if self.speaker == "user" else "assistant"
        calls = [
            ToolCall(id=f"{len(self.messages)}_{n}", name=call["name"], arguments=call["arguments"], requestor=role)
            for n, call in enumerate(act.get("calls", []))
        ]  # fmt: skip
        kind = UserMessage if role == "user" else AssistantMessage
        self.messages.append(kind(role=role, content=act["text"] or None, tool_calls=calls or None))
        self.messages += [self.env.get_response(call) for call in calls]
        if calls:
            self.env.sync_tools()  # as its orchestrator does
            return 0.0
        if "###STOP###" in act["text"]:
            run = SimulationRun(
                id="0", task_id=self.task.id, start_time="", end_time="", duration=0.0,
                termination_reason=TerminationReason.USER_STOP, messages=self.messages,
            )  # fmt: skip
            return float(evaluate_simulation(run, self.task, EvaluationType.ALL, False, self.domain).reward)
        self.speaker = "agent" if self.speaker == "user" else "user"
        return 0.0


class Tau2Stock(Tau2):
    """The same with Python's own collector, as whoever installs the package has it."""

    def __init__(self) -> None:
        _import_tau2()
        self.tasks = {}


def _import_tau2() -> None:
    import os

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from loguru import logger  # type: ignore[import-not-found]

    logger.remove()
    import tau2.evaluator.evaluator
    import tau2.orchestrator.orchestrator  # type: ignore[import-not-found]  # noqa: F401


class OpenEnv(Package):
    """An episode at a server, by OpenEnv's own client."""

    client: Any = None

    def open(self, options: dict[str, Any]) -> None:
        from openenv.core import GenericEnvClient  # type: ignore[import-not-found]

        if self.client is None:
            self.client = GenericEnvClient(base_url=options["url"]).sync()
            self.client.connect()
        self.client.reset(seed=options["seed"])

    def step(self, act: dict[str, Any]) -> float:
        return float(self.client.step({"text": act["text"], "calls": act.get("calls", [])}).reward or 0.0)


class Verifiers(Package):
    """A package of verifiers that brings its own harness, with its own client and scoring; the model says what it is given, in the same loop."""

    SESSION = "X-Session-ID"  # another one for each episode

    def __init__(self) -> None:
        import asyncio
        import contextlib
        import threading

        self.loop = asyncio.new_event_loop()
        self.serving = contextlib.AsyncExitStack()
        self.envs: dict[str, Any] = {}
        self.episode: Any = None
        self.session, self.gone = "", set[str]()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.url = self._now(self._listen())

    def open(self, options: dict[str, Any]) -> None:
        self._now(self._begin(options))

    def play(self, acts: list[dict[str, Any]]) -> float:
        return self._now(self._go_on(acts))

    def _now(self, work: Any) -> Any:
        import asyncio

        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _listen(self) -> str:
        from aiohttp import web

        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/chat/completions", self._say)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def _say(self, request: Any) -> Any:
        """Say the next message; where none is left, wait until the episode is given up."""
        import json

        from aiohttp import web

        body = await request.json()
        self.session = request.headers.get(self.SESSION, "")
        if self.session in self.gone:
            raise web.HTTPGone
        if not self.asked.done():
            self.asked.set_result(None)
        given = await self.given
        act = next(given, None)
        if act is None:
            self.short.set_result(None)
            await self.left
            raise web.HTTPServiceUnavailable
        calls = [
            {"id": f"call_{n}", "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for n, call in enumerate(act.get("calls", []))
        ]  # fmt: skip
        message = {"role": "assistant", "content": act["text"], **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        about = {"id": "turn", "created": 0, "model": body["model"], "object": "chat.completion"}
        return web.json_response({**about, "choices": [choice]})

    async def _begin(self, options: dict[str, Any]) -> None:
        """Begin an episode, and come back once its program asks for a message."""
        import asyncio
        import itertools

        import verifiers.v1 as vf  # type: ignore[import-not-found]

        await self._give_up()
        if options["taskset"] not in self.envs:
            self.envs[options["taskset"]] = await self._env(options["taskset"])
        env = self.envs[options["taskset"]]
        task = next(itertools.islice(iter(env.taskset), options["index"], None))
        self.asked, self.given, self.short, self.left = (self.loop.create_future() for _ in range(4))
        client = vf.EvalClientConfig(base_url=self.url, api_key_var="NO_KEY")
        played = env.run_episode(task, vf.ModelContext("alone", client, vf.Sampling()))
        self.episode = asyncio.ensure_future(played)
        await asyncio.wait([self.episode, self.asked], return_when=asyncio.FIRST_COMPLETED)

    async def _give_up(self) -> None:
        import asyncio

        if self.episode is not None and not self.episode.done():
            self.gone.add(self.session)
            self.episode.cancel()
            self.left.set_result(None)
            await asyncio.wait([self.episode])

    async def _env(self, folder: str) -> Any:
        import sys

        import verifiers.v1 as vf  # type: ignore[import-not-found]

        (name,) = [path.parent.name for path in Path(folder).glob("*/__init__.py")]
        sys.path.insert(0, folder)
        agent = {"runtime": {"type": "subprocess"}}
        config = vf.env_config_type(name).model_validate({"taskset": {"id": name}, "agent": agent})
        env = vf.load_environment(config)
        await self.serving.enter_async_context(env.serving())
        return env

    async def _go_on(self, acts: list[dict[str, Any]]) -> float:
        """Give the model all its messages, and return what the episode is paid; 0 where it needs more of them."""
        import asyncio

        self.given.set_result(iter(acts))
        await asyncio.wait([self.episode, self.short], return_when=asyncio.FIRST_COMPLETED)
        if not self.episode.done():
            return 0.0
        found = self.episode.result()
        if not found.ok:
            raise RuntimeError(f"the episode failed: {[str(one)[:300] for one in found.errors]}")
        return float(found.traces[0].reward)


PACKAGES = {
    "reasoning-gym": ReasoningGym,
    "textarena": TextArena,
    "scienceworld": ScienceWorld,
    "textworld-express": TextWorldExpress,
    "bfcl": Bfcl,
    "tau2": Tau2,
    "tau2-stock": Tau2Stock,
    "openenv": OpenEnv,
    "verifiers": Verifiers,
}


class AloneSide:
    """A package, asked for whole lists of acts; clocks are read here, so that the pipe is not in them."""

    def __init__(self) -> None:
        self.played: Any = None

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin an episode of the package that ``options`` names."""
        if self.played is None:
            self.played = PACKAGES[options["package"]]()
        before = spent()
        self.played.open(options)
        return told(before, 0.0)

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Do all acts; ``rewards`` is what they were paid in all."""
        before = spent()
        paid = self.played.play(act["acts"])
        return told(before, paid)


def spent() -> tuple[float, float]:
    """Seconds by the clock, and of the processors for this process and what it started (Java), as something begins."""
    children = _started()
    return time.perf_counter(), time.process_time() + children


def _started() -> float:
    return sum(_children(thread) for thread in Path("/proc/self/task").iterdir())


def _children(thread: Path) -> float:
    seconds = 0.0
    for child in (thread / "children").read_text().split():
        for each in Path(f"/proc/{child}/task").iterdir():
            with contextlib.suppress(OSError):
                seconds += int((each / "schedstat").read_text().split()[0]) / 1e9
                seconds += _children(each)
    return seconds


def told(before: tuple[float, float], paid: float) -> dict[str, Any]:
    """The answer to a request that began then."""
    wall, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
    return {"rewards": {"outcome": paid}, "details": {"wall": wall, "cpu": cpu + _started()}}


SIDE = AloneSide
