"""A verifiers environment, loaded and asked in a sandbox: its rows, and what its rubric says of a completion.

Where the packages verifiers and datasets are not installed, stand-ins with their documented names take their place.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false, reportIndexIssue=false

import asyncio
import importlib.util
import inspect
import json
import sys
import types

import sitecustomize as spy


class Rows(list):
    """Stands in for a datasets.Dataset."""

    @classmethod
    def from_list(cls, rows, **_):
        return cls(dict(row) for row in rows)

    @classmethod
    def from_dict(cls, columns, **_):
        return cls(dict(zip(columns, values)) for values in zip(*columns.values()))

    @property
    def column_names(self):
        return list(self[0]) if self else []

    def __getitem__(self, key):
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)

    def map(self, function, **_):
        return Rows({**row, **(function(row) or {})} for row in self)

    def filter(self, function, **_):
        return Rows(row for row in self if function(row))

    def select(self, places):
        return Rows(self[place] for place in places)

    def shuffle(self, seed=None, **_):
        import random

        rows = Rows(self)
        random.Random(seed).shuffle(rows)
        return rows

    def add_column(self, name, values):
        return Rows({**row, name: value} for row, value in zip(self, values))

    def rename_column(self, old, new):
        return Rows({(new if key == old else key): value for key, value in row.items()} for row in self)

    def remove_columns(self, names):
        return Rows(
            {
                key: value
                for key, value in row.items()
                if key not in ([names] if isinstance(names, str) else names)
            }
            for row in self
        )

    def to_list(self):
        return list(self)


class Parser:
    """Takes the last message of a completion as it is, or through a function."""

    def __init__(self, extract_fn=None, **_):
        self.extract_fn = extract_fn or (lambda text: text)

    def parse(self, text):
        return self.extract_fn(text)

    def parse_answer(self, completion):
        if isinstance(completion, str):
            return self.parse(completion)
        said = [one for one in completion if one.get("role") == "assistant"]
        return self.parse(str(said[-1].get("content") or "")) if said else None

    def get_assistant_messages(self, completion):
        return [one for one in completion if one.get("role") == "assistant"]

    def get_format_reward_func(self):
        return lambda completion, **_: 1.0


class ThinkParser(Parser):
    def parse(self, text):
        return self.extract_fn(text.split("</think>")[-1].strip() if "</think>" in text else "")


class MaybeThinkParser(Parser):
    def parse(self, text):
        return self.extract_fn(text.split("</think>")[-1].strip())


class XMLParser(Parser):
    def __init__(self, fields, answer_field="answer", extract_fn=None, **_):
        super().__init__(extract_fn)
        self.fields = [one if isinstance(one, str) else one[0] for one in fields]
        self.answer_field = answer_field

    def parse(self, text, **_):
        import re

        found = {}
        for name in self.fields:
            match = re.findall("<%s>\\s*(.*?)\\s*</%s>" % (name, name), text, re.DOTALL)
            found[name] = match[-1] if match else None
        return types.SimpleNamespace(**found)

    def parse_answer(self, completion):
        text = (
            completion
            if isinstance(completion, str)
            else str(self.get_assistant_messages(completion)[-1].get("content") or "")
        )
        return getattr(self.parse(text), self.answer_field, None)


class RewardRubric:
    """Weighs reward functions."""

    def __init__(self, funcs=None, weights=None, parser=None, **_):
        self.funcs = list(funcs or [])
        self.weights = list(weights or [1.0] * len(self.funcs))
        self.parser = parser or Parser()
        self.class_objects = {"parser": self.parser}

    def add_reward_func(self, func, weight=1.0):
        self.funcs.append(func)
        self.weights.append(weight)

    def add_metric(self, func, weight=0.0):
        self.add_reward_func(func, weight)

    def add_class_object(self, name, value):
        self.class_objects[name] = value


class JudgeRubric(RewardRubric):
    """Asks a model; here that is noted as a wish for the network."""

    def __init__(self, judge_client=None, judge_model="a judge model", **more):
        super().__init__(**more)

        def judge(*a, **k):
            spy.note(net="a judge model (%s)" % judge_model)
            raise ConnectionError("no judge model can be reached")

        self.judge = judge
        self.class_objects["judge"] = judge


class RubricGroup(RewardRubric):
    def __init__(self, rubrics, **_):
        super().__init__()
        self.rubrics = list(rubrics)


class Environment:
    """Holds datasets, a rubric and a parser."""

    def __init__(
        self,
        dataset=None,
        eval_dataset=None,
        rubric=None,
        parser=None,
        system_prompt=None,
        message_type="chat",
        **more,
    ):
        self.dataset, self.eval_dataset = dataset, eval_dataset
        self.rubric, self.parser = (
            rubric or RewardRubric(),
            parser or getattr(rubric, "parser", None) or Parser(),
        )
        self.system_prompt, self.message_type = system_prompt, message_type
        self.more = more

    def get_dataset(self, n=-1, **_):
        rows = self.dataset() if callable(self.dataset) else self.dataset
        return rows if n < 0 or rows is None else rows[:n]

    def get_eval_dataset(self, n=-1, **_):
        rows = self.eval_dataset() if callable(self.eval_dataset) else self.eval_dataset
        return self.get_dataset(n) if rows is None else rows


def stand_in():
    """Put the stand-ins where the packages are missing."""
    if importlib.util.find_spec("datasets") is None:
        module = types.ModuleType("datasets")
        module.Dataset = Rows

        def load_dataset(name, *a, **k):
            spy.note(net="huggingface.co/datasets/%s" % name)
            raise ConnectionError("the data set %s lies in the network" % name)

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


def _boxed(text):
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

    def __init__(self, load, arguments):
        stand_in()
        self.env = load().load_environment(**arguments)
        self.given = None

    def rows(self, most):
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

    def functions(self, rubric):
        """Reward functions with their weights, of a group too."""
        for inner in getattr(rubric, "rubrics", ()):
            yield from self.functions(inner)
        funcs = getattr(rubric, "funcs", None) or getattr(rubric, "reward_funcs", None) or ()
        weights = (
            getattr(rubric, "weights", None) or getattr(rubric, "reward_weights", None) or [1.0] * len(funcs)
        )
        for function, weight in zip(funcs, weights):
            yield rubric, function, weight

    def __call__(self, job):
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


async def _wait(one):
    return await one


def _wanted(function, known):
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return known
    return {name: known[name] for name in parameters if name in known}
