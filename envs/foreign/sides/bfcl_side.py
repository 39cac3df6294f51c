"""BFCL v4's side: function calls judged by its own checkers, in one turn or several. Runs in the world's interpreter.

Rows, tools and judgements are the package's. What it imports beside them (every vendor's client, parsers of prompted text, locks of
files) takes no part in these, and is replaced here: its packages are not needed then.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import ast
import collections
import json
import sys
import types
from typing import Any
from unittest import mock

_models: Any = types.ModuleType("bfcl_eval.constants.model_config")
_models.MODEL_CONFIG_MAPPING = collections.defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=True))
sys.modules["bfcl_eval.constants.model_config"] = _models
for _unused in ("filelock", "tenacity", "tree_sitter", "tree_sitter_java", "tree_sitter_javascript"):
    sys.modules.setdefault(_unused, mock.MagicMock())

from bfcl_eval.constants.default_prompts import (  # type: ignore[import-not-found]
    DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC,
    MAXIMUM_STEP_LIMIT,
)
from bfcl_eval.constants.enums import Language, ModelStyle  # type: ignore[import-not-found]
from bfcl_eval.constants.eval_config import (  # type: ignore[import-not-found]
    POSSIBLE_ANSWER_PATH,
    PROMPT_PATH,
)
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI  # type: ignore[import-not-found]
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]
from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
    multi_turn_checker as checking,
)
from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
    multi_turn_utils as running,
)
from bfcl_eval.model_handler.utils import convert_to_tool  # type: ignore[import-not-found]
from bfcl_eval.utils import (  # type: ignore[import-not-found]
    is_multi_turn,
    load_dataset_entry,
    load_ground_truth_entry,
)

_AT_ONCE = (
    10  # calls of the published solution in one message: some turns have more than the limit of messages
)
_ELSEWHERE = ("memory", "web_search", "sensitivity")  # need judges of text, backends, prompted calls
_LANGUAGES = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}


class BfclRows:
    """A category: its rows as a model is shown them, as they are judged, and their answers, in their published order."""

    def __init__(self, name: str) -> None:
        self.shown = load_dataset_entry(name, include_prereq=False)
        self.judged = load_dataset_entry(name, include_prereq=False, include_language_specific_hint=False)
        answered = (POSSIBLE_ANSWER_PATH / f"BFCL_v4_{name}.json").is_file()
        self.answers = [each["ground_truth"] for each in load_ground_truth_entry(name)] if answered else []


class BfclSide:
    """A row of a category."""

    def __init__(self) -> None:
        self.read: dict[str, BfclRows] = {}
        self.count = 0

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin a row."""
        self.category, number = options["category"], options["index"]
        if self.category not in self.read:
            self.read[self.category] = BfclRows(self.category)
        rows = self.read[self.category]
        self.row, self.answer = rows.judged[number], rows.answers[number] if rows.answers else []
        self.functions = list(rows.shown[number]["function"])
        self.turn, self.steps = 0, [[]]
        if is_multi_turn(self.category):
            for name in [name for name in vars(running) if name.endswith("_instance")]:
                delattr(running, name)
            self.count += 1  # instances are kept by name, so that a row played again needs another
            self.late = rows.shown[number].get("missed_function", {})
        return self._asked()

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Judge the calls of a row of one turn; carry them out in one of several, where words end a turn."""
        calls = act.get("calls", [])
        if not is_multi_turn(self.category):
            return self._ended(self._is_right(calls))
        if calls:
            if len(self.steps[-1]) >= MAXIMUM_STEP_LIMIT:
                return self._ended(False, "Too many steps in one turn.")
            written = [
                f"{call['name']}({','.join(f'{k}={v!r}' for k, v in call['arguments'].items())})"
                for call in calls
            ]
            self.steps[-1].append(written)
            results, _ = running.execute_multi_turn_func_call(
                func_call_list=written, initial_config=self.row["initial_config"],
                involved_classes=self.row["involved_classes"], model_name=f"played_{self.count}",
                test_entry_id=self.row["id"], long_context="long_context" in self.category,
            )  # fmt: skip
            return {"results": results}
        self.turn += 1
        if self.turn < len(self.row["question"]):
            self.steps.append([])
            return self._asked()
        found = checking.multi_turn_checker(
            self.steps, self.answer, self.row, self.category, f"judged_{self.count}"
        )
        return self._ended(found["valid"], str(found.get("error_type", "")))

    def gold(self) -> list[Any] | None:
        """The first of the possible answers, or the published calls turn by turn; none where any call is right."""
        if "irrelevance" not in self.category and not self.answer:
            return None
        if is_multi_turn(self.category):
            acts: list[Any] = []
            for written in self.answer:
                calls = [self._parsed(call) for call in written]
                acts += [{"calls": calls[n : n + _AT_ONCE]} for n in range(0, len(calls), _AT_ONCE)]
                acts.append("That is done.")
            return acts
        calls = [
            {"name": name.replace(".", "_"), "arguments": self._arguments(name, arguments)}
            for each in self.answer
            for name, arguments in each.items()
        ]
        return [{"calls": calls} if calls or "irrelevance" not in self.category else "None of them fits."]

    def list(self, asked: dict[str, Any]) -> dict[str, int]:
        """How many rows each category has."""
        names = sorted(path.stem.removeprefix("BFCL_v4_") for path in PROMPT_PATH.glob("BFCL_v4_*.json"))
        return {
            name: len((PROMPT_PATH / f"BFCL_v4_{name}.json").read_text("utf-8").splitlines())
            for name in names
            if not name.endswith(_ELSEWHERE)
        }

    # --- inside ----------------------------------------------------------------------------------

    def _asked(self) -> dict[str, Any]:
        """What the user says in this turn, and the functions that there are; those that were missing come with a sentence."""
        added = getattr(self, "late", {}).get(str(self.turn), []) if is_multi_turn(self.category) else []
        self.functions += added
        messages = self.row["question"][self.turn]
        said = [message["content"] for message in messages if message["role"] != "system"]
        rules = [message["content"] for message in messages if message["role"] == "system"]
        text = "\n\n".join(said) or DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
        asked = {"text": text, "system": "\n\n".join(rules)}
        if self.turn and not added:
            return asked  # the tools are as before
        made = convert_to_tool(self.functions, GORILLA_TO_OPENAPI, ModelStyle.OPENAI_COMPLETIONS)
        return asked | {
            "tools": [
                {key: tool["function"][key] for key in ("name", "description", "parameters")} for tool in made
            ]
        }

    def _is_right(self, calls: list[Any]) -> bool:
        if "relevance" in self.category:
            return bool(calls) != ("irrelevance" in self.category)
        made = [{call["name"]: call["arguments"]} for call in calls]
        language = _LANGUAGES.get(self.category, Language.PYTHON)
        judged = ast_checker(self.row["function"], made, self.answer, language, self.category, "turnwise")
        return bool(judged["valid"])

    def _ended(self, right: bool, why: str = "") -> dict[str, Any]:
        text = "Right." if right else f"Wrong. {why}".strip()
        return {"text": text, "rewards": {"outcome": float(right)}, "end": "solved" if right else "failed"}

    def _arguments(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The first possible value of each argument; in Java and JavaScript as it is written there."""
        chosen = {key: value for key, values in given.items() if (value := _first(values)) != ""}
        language = _LANGUAGES.get(self.category)
        if language is None:
            return chosen
        about = next(each for each in self.row["function"] if each["name"] == name)["parameters"][
            "properties"
        ]
        return {key: _literal(value, about[key], language) for key, value in chosen.items()}

    def _parsed(self, call: str) -> dict[str, Any]:
        node = ast.parse(call, mode="eval").body
        assert isinstance(node, ast.Call)
        name = ast.unparse(node.func).rpartition(".")[2]
        every = [*self.functions, *(each for held in self.late.values() for each in held)]
        names = next((list(each["parameters"]["properties"]) for each in every if each["name"] == name), [])
        arguments = {key: ast.literal_eval(value) for key, value in zip(names, node.args, strict=False)}
        return {
            "name": name,
            "arguments": arguments | {k.arg: ast.literal_eval(k.value) for k in node.keywords},
        }


def _first(given: Any) -> Any:
    """The first of the possible values; inside of a dict each has its own."""
    value = given[0] if isinstance(given, list) and given else given
    if isinstance(value, dict):
        return {key: found for key, each in value.items() if (found := _first(each)) != ""}
    if isinstance(value, list):
        return [_first([each]) if isinstance(each, dict) else each for each in value]
    return value


def _literal(value: Any, about: dict[str, Any], language: Any) -> str:
    """A value as Java or JavaScript write it, by the type that the function's row names."""
    kind, nested = about.get("type", "any"), {"type": about.get("items", {}).get("type", "any")}
    if isinstance(value, str):
        return value
    if language == Language.JAVASCRIPT:
        return f"{value}n" if kind == "Bigint" else json.dumps(value)
    if isinstance(value, dict):
        puts = " ".join(f'put("{key}", {_quoted(each, {}, language)});' for key, each in value.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}"
    if isinstance(value, list):
        inner = ", ".join(_quoted(each, nested, language) for each in value)
        if kind == "Array":
            return f"new {nested['type']}[]{{{inner}}}"
        return (
            f"new ArrayList<{nested['type']}>(Arrays.asList({inner}))"
            if value
            else f"new ArrayList<{nested['type']}>()"
        )
    return json.dumps(value) + {"long": "L", "float": "f"}.get(kind, "")


def _quoted(value: Any, about: dict[str, Any], language: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _literal(value, about, language)


SIDE = BfclSide
