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


class ReasoningGym:
    """One item and one answer."""

    def open(self, options: dict[str, Any]) -> None:
        import reasoning_gym  # type: ignore[import-not-found]

        self.data = reasoning_gym.create_dataset(options["dataset"], size=1, seed=options["seed"])
        self.item = self.data[0]

    def step(self, act: dict[str, Any]) -> float:
        return float(self.data.score_answer(act["text"], self.item))


class TextArena:
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


class ScienceWorld:
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


class TextWorldExpress:
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


class Bfcl:
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
            path = Path(bfcl_eval.__file__).parent / "data" / f"{kind}BFCL_v4_{self.category}.json"
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


class Tau2:
    """A conversation between an agent and a user, and its evaluation."""

    def __init__(self) -> None:
        import os

        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        from loguru import logger  # type: ignore[import-not-found]

        logger.remove()
        self.tasks: dict[str, Any] = {}

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
            return 0.0
        if "###STOP###" in act["text"]:
            run = SimulationRun(
                id="0", task_id=self.task.id, start_time="", end_time="", duration=0.0,
                termination_reason=TerminationReason.USER_STOP, messages=self.messages,
            )  # fmt: skip
            return float(evaluate_simulation(run, self.task, EvaluationType.ALL, False, self.domain).reward)
        self.speaker = "agent" if self.speaker == "user" else "user"
        return 0.0


class OpenEnv:
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


PACKAGES = {
    "reasoning-gym": ReasoningGym,
    "textarena": TextArena,
    "scienceworld": ScienceWorld,
    "textworld-express": TextWorldExpress,
    "bfcl": Bfcl,
    "tau2": Tau2,
    "openenv": OpenEnv,
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
        paid = sum(self.played.step(each) for each in act["acts"])
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
