"""BFCL v4's side: function calls judged by its own checkers, in one turn or several. Runs in the world's interpreter.

The checkers import every vendor's client by way of one module, which is replaced here: its packages are not needed then.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import ast
import collections
import json
import sys
import types
from pathlib import Path
from typing import Any

_models: Any = types.ModuleType("bfcl_eval.constants.model_config")
_models.MODEL_CONFIG_MAPPING = collections.defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=True))
sys.modules["bfcl_eval.constants.model_config"] = _models

import bfcl_eval  # type: ignore[import-not-found]
from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
from bfcl_eval.constants.executable_backend_config import (  # type: ignore[import-not-found]
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
)
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI  # type: ignore[import-not-found]
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]
from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
    multi_turn_checker as checking,
)
from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
    multi_turn_utils as running,
)

_DATA = Path(bfcl_eval.__file__).parent / "data"
_NEW_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
_AT_ONCE = (
    10  # calls of the published solution in one message: some turns have more than the limit of messages
)
_MOST_STEPS = 20  # calls without a word in one turn; the published limit


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class BfclSide:
    """A row of a category."""

    def __init__(self) -> None:
        self.read: dict[str, list[dict[str, Any]]] = {}
        self.count = 0

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin a row."""
        self.category = options["category"]
        rows, answers = self._category(self.category)
        self.row = rows[options["index"]]
        self.answer = next((each["ground_truth"] for each in answers if each["id"] == self.row["id"]), [])
        self.turn, self.steps = 0, [[]]
        if not self.category.startswith("multi_turn"):
            self.functions = self.row["function"]
            text = "\n\n".join(message["content"] for message in self.row["question"][0])
            return {"text": text, "tools": self._tools()}
        for name in [name for name in vars(running) if name.endswith("_instance")]:
            delattr(running, name)
        self.count += 1  # instances are kept by name, so that a row played again needs another
        missed = self.row.get("missed_function", {})
        self.late = {int(turn): set(names) for turn, names in missed.items()}
        files = [MULTI_TURN_FUNC_DOC_FILE_MAPPING[name] for name in self.row["involved_classes"]]
        self.every = [each for file in files for each in _rows(_DATA / "multi_turn_func_doc" / file)]
        return self._asked()

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Judge the calls of a row of one turn; carry them out in one of several, where words end a turn."""
        calls = act.get("calls", [])
        if not self.category.startswith("multi_turn"):
            return self._ended(self._is_right(calls))
        if calls:
            if len(self.steps[-1]) >= _MOST_STEPS:
                return self._ended(False, "Too many steps in one turn.")
            written = [
                f"{call['name']}({', '.join(f'{k}={v!r}' for k, v in call['arguments'].items())})"
                for call in calls
            ]
            self.steps[-1].append(written)
            results, _ = running.execute_multi_turn_func_call(
                func_call_list=written, initial_config=self.row["initial_config"],
                involved_classes=self.row["involved_classes"], model_name=f"played_{self.count}",
                test_entry_id=self.row["id"], long_context="long_context" in self.category,
            )  # fmt: skip
            return {"text": "\n".join(results), "tools": self._tools()}
        self.turn += 1
        if self.turn < len(self.row["question"]):
            self.steps.append([])
            return self._asked()
        found = checking.multi_turn_checker(
            self.steps, self.answer, self.row, self.category, f"judged_{self.count}"
        )
        return self._ended(found["valid"], str(found.get("error_type", "")))

    def gold(self) -> list[Any]:
        """The first of the possible answers, or the published calls turn by turn."""
        if self.category.startswith("multi_turn"):
            acts: list[Any] = []
            for written in self.answer:
                calls = [self._parsed(call) for call in written]
                acts += [{"calls": calls[n : n + _AT_ONCE]} for n in range(0, len(calls), _AT_ONCE)]
                acts.append("That is done.")
            return acts
        calls = [
            {
                "name": name.replace(".", "_"),
                "arguments": {k: v for k, given in arguments.items() if (v := _first(given)) != ""},
            }
            for each in self.answer
            for name, arguments in each.items()
        ]
        return [{"calls": calls} if calls or "irrelevance" not in self.category else "None of them fits."]

    def list(self, asked: dict[str, Any]) -> dict[str, int]:
        """How many rows each category has."""
        names = sorted(path.stem.removeprefix("BFCL_v4_") for path in _DATA.glob("BFCL_v4_*.json"))
        played = [
            name
            for name in names
            if not name.endswith(
                ("memory", "web_search", "java", "javascript", "sensitivity", "live_relevance")
            )
        ]
        return {name: len(self._category(name)[0]) for name in played}

    # --- inside ----------------------------------------------------------------------------------

    def _category(self, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        for kind in ("", "possible_answer/"):
            path = _DATA / f"{kind}BFCL_v4_{name}.json"
            if kind + name not in self.read:
                self.read[kind + name] = _rows(path) if path.is_file() else []
        return self.read[name], self.read[f"possible_answer/{name}"]

    def _asked(self) -> dict[str, Any]:
        held = {name for turn, names in self.late.items() if turn > self.turn for name in names}
        self.functions = [each for each in self.every if each["name"] not in held]
        said = "\n\n".join(message["content"] for message in self.row["question"][self.turn])
        return {"text": said or _NEW_FUNCTIONS, "tools": self._tools()}

    def _is_right(self, calls: list[Any]) -> bool:
        if "irrelevance" in self.category:
            return not calls
        made = [{call["name"]: call["arguments"]} for call in calls]
        judged = ast_checker(
            self.row["function"], made, self.answer, Language.PYTHON, self.category, "turnwise"
        )
        return bool(judged["valid"])

    def _ended(self, right: bool, why: str = "") -> dict[str, Any]:
        text = "Right." if right else f"Wrong. {why}".strip()
        return {"text": text, "rewards": {"outcome": float(right)}, "end": "solved" if right else "failed"}

    def _parsed(self, call: str) -> dict[str, Any]:
        node = ast.parse(call, mode="eval").body
        assert isinstance(node, ast.Call)
        name = ast.unparse(node.func).rpartition(".")[2]
        names = next(
            (list(each["parameters"]["properties"]) for each in self.every if each["name"] == name), []
        )
        arguments = {key: ast.literal_eval(value) for key, value in zip(names, node.args, strict=False)}
        return {
            "name": name,
            "arguments": arguments | {k.arg: ast.literal_eval(k.value) for k in node.keywords},
        }

    def _tools(self) -> list[dict[str, Any]]:
        return [
            {
                "name": each["name"].replace(".", "_"),
                "description": each["description"],
                "parameters": _schema(each["parameters"]),
            }
            for each in self.functions
        ]


def _schema(value: Any) -> Any:
    """A schema with the names of types that JSON Schema has."""
    if isinstance(value, list):
        return [_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    known = {"type": GORILLA_TO_OPENAPI.get(kind, "string")} if isinstance(kind, str) else {}
    return {key: _schema(each) for key, each in value.items()} | known


def _first(given: Any) -> Any:
    """The first of the possible values; inside of a dict each has its own."""
    value = given[0] if isinstance(given, list) and given else given
    if isinstance(value, dict):
        return {key: found for key, each in value.items() if (found := _first(each)) != ""}
    if isinstance(value, list):
        return [_first([each]) if isinstance(each, dict) else each for each in value]
    return value


SIDE = BfclSide
