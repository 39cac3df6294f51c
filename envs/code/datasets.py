"""Problems out of published data: JSONL in the forms of HumanEval, MBPP and LiveCodeBench.

Their tests compare inside the solver's process; here they are read into inputs and expected values, so that the
answer-blind kernel judges them. Tests that cannot be read that way are left out and counted; a
problem of which too few are left is left out too.
"""

from __future__ import annotations

import ast
import base64
import functools
import io
import json
import pickle
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from turnwise.envs.code.kernel import NotPlain, encode
from turnwise.envs.code.problem import CodeCase, CodeProblem, Compare, Mode
from turnwise.errors import EnvError
from turnwise.texts import lines_of, read_json_lines

Form: TypeAlias = Literal["humaneval", "mbpp", "livecodebench"]
_LARGEST = 200 * 2**20  # bytes that packed tests may unpack to
_SHOWN = 2


class LoadedProblems(NamedTuple):
    """Contents of a file: problems by name, how many tests were read, and what was left out and why."""

    problems: Mapping[str, CodeProblem]
    tests: int
    left_out: Mapping[str, str]


@functools.lru_cache(8)
def load_problems(path: str, form: Form) -> LoadedProblems:
    """The problems of a JSONL file.

    Raises:
        EnvError: there is no such file, or a line is not of this form.
    """
    readers = {"humaneval": _humaneval, "mbpp": _mbpp, "livecodebench": _livecodebench}
    problems: dict[str, CodeProblem] = {}
    left_out: dict[str, str] = {}
    for number, row in read_json_lines(path, "Name a JSONL file."):
        try:
            name, found = readers[form](row)
        except (ValueError, KeyError, TypeError, SyntaxError) as error:
            raise EnvError(
                f"{path}:{number} is not a problem in the form {form!r}: {type(error).__name__}: {error}.",
                "Check the knob `form`.",
            ) from None
        if isinstance(found, CodeProblem):
            problems[name] = found
        else:
            left_out[name] = found
    tests = sum(len(p.visible) + len(p.hidden) for p in problems.values())
    return LoadedProblems(problems, tests, left_out)


def _humaneval(row: Mapping[str, Any]) -> tuple[str, CodeProblem | str]:
    entry = row["entry_point"]
    cases, compare = read_asserts(row["test"], ("candidate", entry))
    solution = row["prompt"] + row.get("canonical_solution", "")
    statement = f"Complete this function.\n{row['prompt'].rstrip()}"
    return str(row["task_id"]), _problem(statement, entry, cases, solution, compare)


def _mbpp(row: Mapping[str, Any]) -> tuple[str, CodeProblem | str]:
    tests = "\n".join([*row["test_list"], *row.get("challenge_test_list", ())])
    entry = _called(tests)
    cases, compare = read_asserts(tests, (entry,))
    text = row.get("text") or row["prompt"]
    statement = f"{text} The function is called {entry}."
    return str(row["task_id"]), _problem(statement, entry, cases, row.get("code", ""), compare, shown=1)


def _livecodebench(row: Mapping[str, Any]) -> tuple[str, CodeProblem | str]:
    public, private = json.loads(row["public_test_cases"]), unpacked_tests(row["private_test_cases"])
    name = str(row["question_id"])
    start = row.get("starter_code") or ""
    statement = "\n".join(part for part in (row["question_content"].rstrip(), start.rstrip()) if part)
    if any(test["testtype"] == "stdin" for test in (*public, *private)):
        shown = tuple(CodeCase(test["input"], test["output"]) for test in public)
        rest = tuple(CodeCase(test["input"], test["output"]) for test in private)
        mode: Mode = "stdin"
        return name, CodeProblem(
            statement, "", shown, rest, "", mode, "text"
        ) if shown and rest else "no tests"
    about = row.get("metadata") or "{}"
    entry = (json.loads(about) if isinstance(about, str) else about)["func_name"]
    entry = f"Solution.{entry}" if "class Solution" in start else entry
    shown = tuple(json_case(test) for test in public)
    rest = tuple(json_case(test) for test in private)
    problem = CodeProblem(statement, entry, shown, rest, "", "calls", "close")
    return name, problem if shown and rest else "no tests"


def json_case(test: Mapping[str, str]) -> CodeCase:
    """Arguments are JSON values, one per line."""
    given = tuple(json.loads(line) for line in lines_of(test["input"]) if line.strip())
    return CodeCase(given, json.loads(test["output"]))


def unpacked_tests(packed: str) -> list[Mapping[str, str]]:
    """Private tests: JSON, or JSON in a pickle in zlib in base64. The pickle may hold a text and nothing else."""
    if packed.lstrip().startswith("["):
        return json.loads(packed)
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(packed), _LARGEST)
    if inflate.unconsumed_tail:
        raise ValueError("the packed tests are too large")
    text = _Texts(io.BytesIO(data)).load()
    return json.loads(text)


class _Texts(pickle.Unpickler):
    """Reads plain values only: no class or function is ever looked up."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise ValueError(f"the packed tests name {module}.{name}")


def _problem(
    statement: str, entry: str, cases: list[CodeCase], solution: str, compare: Compare, *, shown: int = _SHOWN
) -> CodeProblem | str:
    if len(cases) <= shown:
        return f"{len(cases)} of its tests can be read as input and expected value"
    return CodeProblem(
        statement, entry, tuple(cases[:shown]), tuple(cases[shown:]), solution, "calls", compare
    )


def read_asserts(source: str, names: tuple[str, ...]) -> tuple[list[CodeCase], Compare]:
    """The asserts in a text as cases, where they compare a call of one of ``names`` with a literal.

    Understood are ``f(…) == value``, ``value == f(…)``, a bare ``f(…)`` and ``not f(…)``, ``f(…) is value`` and
    ``abs(f(…) - value) < bound``; others are left out.

    >>> read_asserts("assert f([1]) == 3\\nassert f(0) == g(1)\\nassert abs(f(2) - 0.5) < 1e-6", ("f",))
    ([CodeCase(given=([1],), expected=3), CodeCase(given=(2,), expected=0.5)], 'close')
    """
    cases: list[CodeCase] = []
    compare: Compare = "exact"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            read = _read_assert(node.test, names)
            if read is not None:
                cases.append(read[0])
                compare = "close" if read[1] or isinstance(read[0].expected, float) else compare
    return cases, compare


def _read_assert(test: ast.expr, names: tuple[str, ...]) -> tuple[CodeCase, bool] | None:
    """A case, and whether it is an approximate one."""
    match test:
        case ast.Compare(left, [ast.Eq() | ast.Is()], [right]):
            call, value, near = (left, right, False) if _is_call(left, names) else (right, left, False)
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(call, ast.Sub(), value)]), [ast.Lt() | ast.LtE()], [_]
        ):
            near = True
        case ast.UnaryOp(ast.Not(), call):
            value, near = ast.Constant(False), False
        case _:
            call, value, near = test, ast.Constant(True), False
    if not isinstance(call, ast.Call) or not _is_call(call, names) or call.keywords:
        return None
    try:
        case = CodeCase(tuple(_plain(item) for item in call.args), _plain(value))
        encode((case.given, case.expected))  # raises where it is not plain
    except (ValueError, TypeError, NotPlain, RecursionError, MemoryError):
        return None
    return case, near


def _is_call(node: ast.expr, names: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _plain(node: ast.expr) -> Any:
    """A literal; ``set(…)``, ``tuple(…)`` and the like around one are understood."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and len(node.args) <= 1
        and not node.keywords
    ):
        kinds = {
            "set": set,
            "tuple": tuple,
            "list": list,
            "dict": dict,
            "frozenset": frozenset,
            "float": float,
        }
        if node.func.id in kinds:
            return kinds[node.func.id](*(_plain(item) for item in node.args))
    return ast.literal_eval(node)


def _called(tests: str) -> str:
    """The function that a list of asserts is about: the one that is called first in most of them."""
    counts: dict[str, int] = {}
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS:
            counts[node.func.id] = counts.get(node.func.id, 0) + 1
    if not counts:
        raise ValueError("its tests call no function")
    return max(counts, key=lambda name: counts[name])


_BUILTINS = frozenset(
    [
        "set", "tuple", "list", "dict", "frozenset", "float", "abs", "sorted", "len", "round", "str", "int",
        "isinstance", "math",
    ]
)  # fmt: skip
