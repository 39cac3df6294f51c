"""A verifiers environment, loaded and asked in a sandbox: its rows, and what its rubric says of a completion.

Where the packages verifiers and datasets are not installed, stand-ins with their documented names take their place.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sitecustomize as spy


class Rows(list):
    """Stands in for a datasets.Dataset."""

    @classmethod
    def from_list(cls, rows: Any, **_: Any) -> Any:
        return cls(dict(row) for row in rows)

    @classmethod
    def from_dict(cls, columns: dict[str, list[Any]], **_: Any) -> Any:
        return cls(
            dict(zip(columns, values, strict=False)) for values in zip(*columns.values(), strict=False)
        )

    @property
    def column_names(self) -> Any:
        return list(self[0]) if self else []

    def __getitem__(self, key: Any) -> Any:
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)

    def map(self, function: Callable[..., Any], **_: Any) -> Any:
        return Rows({**row, **(function(row) or {})} for row in self)

    def filter(self, function: Callable[..., Any], **_: Any) -> Any:
        return Rows(row for row in self if function(row))

    def select(self, places: Sequence[int]) -> Any:
        return Rows(self[place] for place in places)

    def shuffle(self, seed: Any = None, **_: Any) -> Any:
        import random

        rows = Rows(self)
        random.Random(seed).shuffle(rows)
        return rows

    def add_column(self, name: str, values: Sequence[Any]) -> Any:
        return Rows({**row, name: value} for row, value in zip(self, values, strict=False))

    def rename_column(self, old: str, new: str) -> Any:
        return Rows({(new if key == old else key): value for key, value in row.items()} for row in self)

    def remove_columns(self, names: Sequence[str]) -> Any:
        return Rows(
            {
                key: value
                for key, value in row.items()
                if key not in ([names] if isinstance(names, str) else names)
            }
            for row in self
        )

    def to_list(self) -> Any:
        return list(self)


class Parser:
    """Takes the last message of a completion as it is, or through a function."""

    def __init__(self, extract_fn: Callable[[str], Any] | None = None, **_: Any) -> None:
        self.extract_fn = extract_fn or (lambda text: text)

    def parse(self, text: str) -> Any:
        return self.extract_fn(text)

    def parse_answer(self, completion: Any) -> Any:
        if isinstance(completion, str):
            return self.parse(completion)
        said = [one for one in completion if one.get("role") == "assistant"]
        return self.parse(str(said[-1].get("content") or "")) if said else None

    def get_assistant_messages(self, completion: Any) -> list[Any]:
        return [one for one in completion if one.get("role") == "assistant"]

    def get_format_reward_func(self) -> Any:
        return lambda completion, **_: 1.0


class ThinkParser(Parser):
    def parse(self, text: str) -> Any:
        return self.extract_fn(text.split("</think>")[-1].strip() if "</think>" in text else "")


class MaybeThinkParser(Parser):
    def parse(self, text: str) -> Any:
        return self.extract_fn(text.split("</think>")[-1].strip())


class XMLParser(Parser):
    def __init__(
        self,
        fields: Sequence[Any],
        answer_field: str = "answer",
        extract_fn: Callable[[str], Any] | None = None,
        **_: Any,
    ) -> None:
        super().__init__(extract_fn)
        self.fields = [one if isinstance(one, str) else one[0] for one in fields]
        self.answer_field = answer_field

    def parse(self, text: str, **_: Any) -> Any:
        import re

        found = {}
        for name in self.fields:
            match = re.findall(f"<{name}>\\s*(.*?)\\s*</{name}>", text, re.DOTALL)
            found[name] = match[-1] if match else None
        return types.SimpleNamespace(**found)

    def parse_answer(self, completion: Any) -> Any:
        text = (
            completion
            if isinstance(completion, str)
            else str(self.get_assistant_messages(completion)[-1].get("content") or "")
        )
        return getattr(self.parse(text), self.answer_field, None)


class RewardRubric:
    """Weighs reward functions."""

    def __init__(
        self,
        funcs: Sequence[Callable[..., Any]] | None = None,
        weights: Sequence[float] | None = None,
        parser: Any = None,
        **_: Any,
    ) -> None:
        self.funcs = list(funcs or [])
        self.weights = list(weights or [1.0] * len(self.funcs))
        self.parser = parser or Parser()
        self.class_objects = {"parser": self.parser}

    def add_reward_func(self, func: Callable[..., Any], weight: float = 1.0) -> None:
        self.funcs.append(func)
        self.weights.append(weight)

    def add_metric(self, func: Callable[..., Any], weight: float = 0.0) -> None:
        self.add_reward_func(func, weight)

    def add_class_object(self, name: str, value: Any) -> None:
        self.class_objects[name] = value


class JudgeRubric(RewardRubric):
    """Asks a model; here that is noted as a wish for the network."""

    def __init__(self, judge_client: Any = None, judge_model: str = "a judge model", **more: Any) -> None:
        super().__init__(**more)

        def judge(*a: Any, **k: Any) -> None:
            spy.note(net=f"a judge model ({judge_model})")
            raise ConnectionError("no judge model can be reached")

        self.judge = judge
        self.class_objects["judge"] = judge


class RubricGroup(RewardRubric):
    def __init__(self, rubrics: Sequence[Any], **_: Any) -> None:
        super().__init__()
        self.rubrics = list(rubrics)


class Environment:
    """Holds datasets, a rubric and a parser."""

    def __init__(
        self,
        dataset: Any = None,
        eval_dataset: Any = None,
        rubric: Any = None,
        parser: Any = None,
        system_prompt: str | None = None,
        message_type: str = "chat",
        **more: Any,
    ) -> None:
        self.dataset, self.eval_dataset = dataset, eval_dataset
        self.rubric, self.parser = (
            rubric or RewardRubric(),
            parser or getattr(rubric, "parser", None) or Parser(),
        )
        self.system_prompt, self.message_type = system_prompt, message_type
        self.more = more

    def get_dataset(self, n: int = -1, **_: Any) -> Any:
        rows = self.dataset() if callable(self.dataset) else self.dataset
        return rows if n < 0 or rows is None else rows[:n]

    def get_eval_dataset(self, n: int = -1, **_: Any) -> Any:
        rows = self.eval_dataset() if callable(self.eval_dataset) else self.eval_dataset
        return self.get_dataset(n) if rows is None else rows


def stand_in() -> None:
    """Put the stand-ins where the packages are missing."""
    if importlib.util.find_spec("datasets") is None:
        module = types.ModuleType("datasets")
        module.Dataset = Rows

        def load_dataset(name: str, *a: Any, **k: Any) -> None:
            spy.note(net=f"huggingface.co/datasets/{name}")
            raise ConnectionError(f"the data set {name} lies in the network")

        module.load_dataset, module.DatasetDict = load_dataset, dict
        sys.modules["datasets"] = module
    try:
        import verifiers

        if hasattr(verifiers, "Rubric"):
            return
    except ImportError:
        pass
    module = types.ModuleType("verifiers")
    for one in (
        Parser,
        ThinkParser,
        MaybeThinkParser,
        XMLParser,
        RewardRubric,
        JudgeRubric,
        RubricGroup,
        Environment,
    ):
        setattr(module, one.__name__.replace("RewardRubric", "Rubric"), one)
    for name in ("SingleTurnEnv", "MultiTurnEnv", "ToolEnv", "StatefulToolEnv", "EnvGroup"):
        setattr(module, name, type(name, (Environment,), {}))
    module.State = module.Messages = module.Info = dict
    module.extract_boxed_answer = _boxed
    module.load_example_dataset = lambda name="gsm8k", *a, **k: sys.modules["datasets"].load_dataset(name)
    for name in ("reward", "stop", "cleanup", "setup"):
        setattr(module, name, lambda *a, **k: a[0] if a and callable(a[0]) else (lambda function: function))
    sys.modules["verifiers"] = module
    for name in (
        "types",
        "rubrics",
        "parsers",
        "envs",
        "utils",
        "utils.data_utils",
        "rubrics.rubric",
        "parsers.parser",
    ):
        sys.modules["verifiers." + name] = module


def _boxed(text: str) -> Any:
    place = text.rfind("\\boxed{")
    if place < 0:
        return text
    depth, start = 0, place + 7
    for at in range(start - 1, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if not depth:
            return text[start:at]
    return text


class RubricCaller:
    """Gives the rows of an environment, and asks its rubric."""

    def __init__(self, load: Callable[[], Any], arguments: dict[str, Any]) -> None:
        stand_in()
        self.env = load().load_environment(**arguments)
        self.given = None

    def rows(self, most: int) -> Iterator[Any]:
        """Rows as a reader of rows wants them."""
        rows = None
        for name in ("get_eval_dataset", "get_dataset"):
            try:
                rows = getattr(self.env, name)()
            except (AttributeError, ValueError, TypeError):
                continue
            if rows is not None:
                break
        for at, row in enumerate(rows or ()):
            if at >= most:
                return
            row = dict(row)
            row.setdefault("prompt", row.get("question", ""))
            yield json.loads(json.dumps(row, default=str))

    def functions(self, rubric: Any) -> Iterator[Any]:
        """Reward functions with their weights, of a group too."""
        for inner in getattr(rubric, "rubrics", ()):
            yield from self.functions(inner)
        funcs = getattr(rubric, "funcs", None) or getattr(rubric, "reward_funcs", None) or ()
        weights = (
            getattr(rubric, "weights", None) or getattr(rubric, "reward_weights", None) or [1.0] * len(funcs)
        )
        for function, weight in zip(funcs, weights, strict=False):
            yield rubric, function, weight

    def __call__(self, job: dict[str, Any]) -> Any:
        chat = getattr(self.env, "message_type", "chat") == "chat"
        completion = [{"role": "assistant", "content": job["text"]}] if chat else job["text"]
        row = job["row"]
        prompt = row.get("prompt")
        if chat and isinstance(prompt, str):
            prompt = [{"role": "user", "content": prompt}]
        info = row.get("info") or {}
        info = json.loads(info) if isinstance(info, str) and info.startswith("{") else info
        state = {
            "prompt": prompt,
            "completion": completion,
            "answer": row.get("answer", ""),
            "info": info,
            "task": row.get("task", "default"),
            "turn": 1,
            "responses": [],
            "trajectory": [],
            "timing": {},
            "is_completed": True,
            "input": row,
            **{k: v for k, v in row.items() if k not in ("prompt",)},
        }
        total = 0.0
        for rubric, function, weight in self.functions(self.env.rubric):
            if not weight:
                continue
            known = {
                **row,
                "prompt": prompt,
                "completion": completion,
                "answer": state["answer"],
                "state": state,
                "info": info,
                "task": state["task"],
                "parser": getattr(rubric, "parser", None) or getattr(self.env, "parser", None),
            }
            known.update(getattr(rubric, "class_objects", None) or {})
            found = function(**_wanted(function, known))
            if inspect.isawaitable(found):
                found = asyncio.run(_wait(found))
            total += weight * float(found)
        return total


async def _wait(one: Any) -> Any:
    return await one


def _wanted(function: Callable[..., Any], known: dict[str, Any]) -> Any:
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return known
    return {name: known[name] for name in parameters if name in known}
