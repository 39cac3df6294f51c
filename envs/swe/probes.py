"""Values that are compared outside of the process: what an expression of a test comes to, for other inputs.

``assert add(["1", " ", "2"]) == 300`` gives ``add(["1", " ", "5"])``; what the true repair makes of it never enters the
sandbox. As in Code-v0, all that code can forge there is its own answers, and a table of the tests' inputs has none. Only
inputs whose values the bug changes are kept. An honest repair may differ on some of them, so most decide, not all.
"""

from __future__ import annotations

import ast
import copy
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.code.kernel import NotPlain, decode
from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import LIMITS, read_program, start
from turnwise.envs.swe.twins import assertions_of, cell, changed_constant, find_function, function_of, rows_of
from turnwise.tasks.core import derive_rng
from turnwise.texts import kept
from turnwise.tools.sandbox.core import MIB, Backend, Sandbox

_SECONDS = 10.0
_TRIED, _KEPT, _FEWEST = 40, 6, 3


class Probe(NamedTuple):
    """Python text whose function ``probe`` is called, and what it returns with the true repair (as JSON of the kernel)."""

    text: str
    value: str


def make_probes(
    backend: Backend,
    package: Package,
    fixed: Mapping[str, bytes],
    broken: Mapping[str, bytes],
    tests: Sequence[str],
) -> tuple[Probe, ...]:
    """Probes of the expressions that failing tests compare, where they are about plain values; a few, or none.

    Raises:
        SandboxError: the sandbox failed.
    """
    rng = derive_rng("swe probes", package.name, package.version, *tests)
    texts = list(dict.fromkeys(islice(_texts(fixed, tests, rng), 10 * _TRIED)))
    texts = rng.sample(texts, min(_TRIED, len(texts)))
    if not texts:
        return ()
    answers: list[list[Any]] = []
    for contents, seed in ((fixed, 0), (fixed, 1), (broken, 0)):
        with start(backend, package, contents) as sandbox:
            answers.append(answers_to(sandbox, package, texts, hash_seed=seed))
    kept = [
        Probe(text, json.dumps(right[0]))
        for text, right, again, wrong in zip(texts, *answers, strict=True)
        if right and again and _same(right[0], again[0]) and not (wrong and _same(right[0], wrong[0]))
    ]
    return tuple(kept[:_KEPT]) if len(kept) >= _FEWEST else ()


def agreeing(sandbox: Sandbox, package: Package, probes: Sequence[Probe]) -> int:
    """To how many probes the code in a sandbox answers what the true repair does.

    Raises:
        SandboxError: the sandbox failed.
    """
    said = answers_to(sandbox, package, [probe.text for probe in probes])
    return sum(
        bool(one) and _same(json.loads(probe.value), one[0]) for probe, one in zip(probes, said, strict=True)
    )


def answers_to(
    sandbox: Sandbox, package: Package, texts: Sequence[str], *, hash_seed: int = 0
) -> list[tuple[Any, ...]]:
    """Return what each text's ``probe()`` returns, encoded, in a tuple.

    The tuple is empty where it is no plain value, or none came.
    """
    nonce = secrets.token_hex(16)
    paths = [f"{sandbox.workdir}/{part}".rstrip("/.") for part in ("", package.path)]
    source = (
        f"{read_program('plain')}\nsys.path[:0] = {paths!r}\n_TEXTS = {list(texts)!r}\n"
        "def answer(number):\n    space = {}\n    exec(_TEXTS[number], space)\n    return plain(space['probe']())\n"
    )
    asked = {
        "mode": "calls", "nonce": nonce, "source": source, "entry": "answer",
        "inputs": [[number] for number in range(len(texts))],
    }  # fmt: skip
    variables = {
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    result = sandbox.exec(
        ["python3", "-s", "-P", "-c", _kernel()],
        stdin=json.dumps(asked).encode(),
        env=variables,
        timeout=min(_SECONDS, LIMITS.seconds),
        output=4 * MIB,
    )
    found: dict[int, tuple[Any, ...]] = {}
    for line in result.stdout.split(b"\n"):
        if line.startswith(nonce.encode()):
            try:
                said = json.loads(line[len(nonce) :])
                if type(said.get("index")) is int and "value" in said:
                    found.setdefault(said["index"], (said["value"],))
            except (ValueError, AttributeError, RecursionError):
                continue
    return [found.get(number, ()) for number in range(len(texts))]


def _same(right: object, said: object) -> bool:
    """Say whether two encoded values are equal, as ``==`` has it, and are values at all."""
    try:
        return bool(decode(right) == decode(said))
    except (NotPlain, RecursionError, TypeError):
        return False


def _texts(contents: Mapping[str, bytes], tests: Sequence[str], rng: Random) -> Iterator[str]:
    """Programs whose ``probe()`` is what a test compares, each with other constants."""
    for test in sorted({function_of(test) for test in tests}):
        path = test.partition("::")[0]
        try:
            source = SourceText(kept(contents[path]))
        except (SyntaxError, ValueError):
            continue
        function = find_function(source, test)
        if function is not None and not any(arg.arg == "self" for arg in function.args.args):
            head = _imports(source.tree)
            for body, left in _expressions(function):
                yield from (f"{head}\n{one}" for one in _variants(body, left, rng))


def _expressions(function: ast.FunctionDef) -> Iterator[tuple[Sequence[ast.stmt], ast.expr]]:
    """Yield the statements before an assertion, and the side of it that calls something.

    Of a table, only some rows are taken.
    """
    names, rows = rows_of(function)
    if {arg.arg for arg in function.args.args} - set(names):
        return  # it takes fixtures
    for node in assertions_of(function):
        assert isinstance(node.test, ast.Compare)
        before = [
            item
            for item in function.body[: function.body.index(node)]
            if isinstance(item, (ast.Assign, ast.Expr))
        ]
        for side in (node.test.left, node.test.comparators[0]):
            if not any(isinstance(inner, ast.Call) for inner in ast.walk(side)):
                continue
            if not names:
                yield before, side
            for row in rows[:6]:
                given = {name: value for name in names if (value := cell(row, names, name)) is not None}
                yield [_filled(item, given) for item in before], _filled(side, given)


def _variants(before: Sequence[ast.stmt], left: ast.expr, rng: Random) -> Iterator[str]:
    for _ in range(8):
        body = [copy.deepcopy(item) for item in before]
        whole = ast.Module([*body, ast.Return(copy.deepcopy(left))], [])
        constants = [
            node
            for node in ast.walk(whole)
            if isinstance(node, ast.Constant) and type(node.value) in (int, str, float, bytes)
        ]
        if not constants:
            return
        for node in rng.sample(constants, min(len(constants), rng.choice((1, 1, 2)))):
            node.value = changed_constant(node.value, rng)  # pyright: ignore[reportAttributeAccessIssue]
        lines = ast.unparse(ast.fix_missing_locations(whole)).splitlines()
        yield "def probe():\n" + "".join(f"    {line}\n" for line in lines)


def _imports(tree: ast.Module) -> str:
    """Return the imports of a file of tests, but for pytest and its neighbours."""
    found = [
        ast.unparse(node)
        for node in tree.body
        if (isinstance(node, ast.Import) and not any(name.name == "pytest" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and node.module not in ("pytest", "_pytest"))
    ]
    return "\n".join(found)


class _Filled(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self._given.get(node.id, node))


def _filled(node: Any, given: Mapping[str, ast.expr]) -> Any:
    return _Filled(given).visit(copy.deepcopy(node))


@cache
def _kernel() -> str:
    return files("turnwise.envs.code").joinpath("kernel.py").read_text("utf-8") + "\nmain()\n"
