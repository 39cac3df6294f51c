#!/usr/bin/env python3
"""Change every part a little, and see whether its tests notice: ``scripts/mutants.py [KIND/NAME …] [--write]``.

A mutant is the part's file with one thing changed: a sign, a term left out, a comparison, a constant, an option taken for
another, a bound or a mask left out. It is run in this process, in place of the part, against what is quick: the example of
its docstring, its formula (tests/reference), and what is required of its kind. What survives is explained in
tests/reference/survivors.yaml, or is a gap in the tests. ``--write`` puts the report into benchmarks/mutants.json and
docs/references.md.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import doctest
import inspect
import io
import json
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "reference"
SURVIVORS = FOLDER / "survivors.yaml"
REPORT = ROOT / "benchmarks" / "mutants.json"
PAGE = ROOT / "docs" / "references.md"
SECONDS = 20  # a mutant that takes longer never ends, and is noticed
SLOW = ("the bias is as declared", "an update points uphill", "unbiased also where turns have several tokens")

sys.path[:0] = [str(FOLDER)]

OPERATORS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult], ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip
NAMES = {
    "min": "max", "minimum": "maximum", "amin": "amax", "any": "all", "ceil": "floor", "group_mean": "group_sum",
    "cummax": "cummin", "ones_like": "zeros_like",
}  # fmt: skip
NAMES |= {new: old for old, new in NAMES.items()}
LEFT_OUT = frozenset(
    (
        "clamp",
        "abs",
        "masked_fill",
        "where",
        "exp",
        "log",
        "sqrt",
        "ceil",
        "floor",
        "round",
        "detach",
        "cumsum",
        "flip",
    )
)  # methods without which the receiver is still a tensor of that shape


class Mutant(NamedTuple):
    """A changed module: what was changed in words, which do not name lines, and its code."""

    said: str
    tree: ast.Module


def mutants_of(source: str, function: str) -> Iterator[Mutant]:
    """All mutants of the functions of a module; ``function`` is the part, whose options may stand for each other."""
    tree, seen = ast.parse(source), Counter[str]()
    for number, node in enumerate(_bodies(tree)):
        for said, change in _changes(node, _options(tree, function)):
            mutated = copy.deepcopy(tree)
            change([*_bodies(mutated)][number])
            ast.fix_missing_locations(mutated)
            seen[said] += 1
            yield Mutant(said if seen[said] == 1 else f"{said} ({seen[said]})", mutated)


def _bodies(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of what functions do and of their defaults, without docstrings and annotations."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.FunctionDef):
            roots = [d for d in statement.args.kw_defaults if d is not None]
            body = statement.body
            documented = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            for root in [*roots, *body[bool(documented) :]]:
                if not isinstance(root, (ast.FunctionDef, ast.Raise)):
                    yield from _inside(root)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        strict = isinstance(child, ast.keyword) and child.arg == "strict"  # of zip: lengths agree
        if not strict and not isinstance(child, (ast.FunctionDef, ast.Raise, ast.Assert, ast.expr_context)):
            yield from _inside(child)


def _options(tree: ast.Module, function: str) -> dict[str, str]:
    """The part's keyword-only parameters with their annotations; of a class, those of its making."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == function:
            makers = [x for x in ast.walk(node) if isinstance(x, ast.FunctionDef)]
            maker = next((x for x in makers if x.name in ("__init__", function)), None)
            if maker is not None:
                return {a.arg: ast.unparse(a.annotation) for a in maker.args.kwonlyargs if a.annotation}
    return {}


Change = tuple[str, Callable[[Any], None]]


def _changes(node: ast.AST, options: dict[str, str]) -> Iterator[Change]:
    """What can be changed at this very node; each change is made in place."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        yield from _operators(node, type(node.op), lambda n, new: setattr(n, "op", new()))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _operators(node, type(node.ops[0]), lambda n, new: n.ops.__setitem__(0, new()))
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr)
    ):
        for kept in ("left", "right"):
            yield _replaced(node, ast.unparse(getattr(node, kept)), lambda n, k=kept: getattr(n, k))
    if isinstance(node, ast.UnaryOp) and ast.unparse(node) != "-1":  # the last axis, mostly
        yield _replaced(node, ast.unparse(node.operand), lambda n: n.operand)
    if isinstance(node, ast.IfExp):
        yield _replaced(node, ast.unparse(node.body), lambda n: n.body)
        yield _replaced(node, ast.unparse(node.orelse), lambda n: n.orelse)
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        yield f"`if {test}` → `if not {test}`", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    if isinstance(node, ast.Constant):
        for value in _neighbours(node.value):
            yield _set(node, repr(value), "value", value)
    if isinstance(node, ast.Name) and node.id in options:
        for other, kind in options.items():
            if other != node.id and kind == options[node.id]:
                yield _set(node, other, "id", other)
    if isinstance(node, ast.Call):
        yield from _calls(node)


def _operators(node: ast.AST, old: type[ast.AST], put: Callable[[Any, Any], None]) -> Iterator[Change]:
    for new in OPERATORS.get(old, []):
        trial = copy.deepcopy(node)
        put(trial, new)
        yield f"`{ast.unparse(node)}` → `{ast.unparse(trial)}`", lambda n, new=new: put(n, new)


def _calls(node: ast.Call) -> Iterator[Change]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        said = f"`{ast.unparse(node)}` with {NAMES[name]}"
        yield said, lambda n: setattr(n.func, field, NAMES[name])
    if (
        isinstance(node.func, ast.Attribute)
        and name in LEFT_OUT
        and not isinstance(node.func.value, ast.Name)
    ) or (
        isinstance(node.func, ast.Attribute)
        and name in LEFT_OUT
        and getattr(node.func.value, "id", "") != "torch"
    ):
        yield _replaced(node, ast.unparse(node.func.value), lambda n: n.func.value)
    if [keyword.arg for keyword in node.keywords] in (["min"], ["max"]):
        new = {"min": "max", "max": "min"}[node.keywords[0].arg or ""]
        said = f"`{ast.unparse(node)}` with {new}="
        yield said, lambda n: setattr(n.keywords[0], "arg", new)


def _set(node: ast.AST, shown: str, field: str, value: Any) -> Change:
    return f"`{ast.unparse(node)}` → `{shown}`", lambda n: setattr(n, field, value)


def _replaced(node: ast.AST, shown: str, by: Callable[[Any], ast.AST]) -> Change:
    """The node becomes another of its own parts."""

    def change(n: Any) -> None:
        new = by(n)
        n.__class__, n.__dict__ = new.__class__, new.__dict__

    return f"`{ast.unparse(node)}` → `{shown}`", change


def _neighbours(value: object) -> list[Any]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return [not value] if isinstance(value, bool) else []
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 0.25 if value == 0 else value * 10 if abs(value) < 1e-3 else value * 1.25]
    return []


# --- running ----------------------------------------------------------------------------------------------------


class Took(Exception):
    """A mutant that does not end."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise Took


def made(mutant: Mutant, module: str, function: str) -> tuple[Any, dict[str, Any]]:
    """The changed function and its module's names; nothing is registered, and the module itself stays."""
    tree = copy.deepcopy(mutant.tree)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.decorator_list = []
    names: dict[str, Any] = {"__name__": module, "__file__": module}
    exec(compile(tree, module, "exec"), names)  # noqa: S102  (our own file, changed)
    return names[function], names


def example_fails(function: Any, names: dict[str, Any]) -> bool:
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(function) or "", dict(names), "example", None, 0
    )
    return doctest.DocTestRunner(verbose=False).run(test, out=io.StringIO().write).failed > 0


def notices(mutant: Mutant, module: str, function: str, tests: list[Callable[[Any], object]]) -> bool:
    """Whether the example or one of the tests fails on the mutant; one that breaks or never ends is noticed."""
    signal.signal(signal.SIGALRM, _ring)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target, names = made(mutant, module, function)
            if example_fails(target, names):
                return True
            for test in tests:
                test(target)
        return False
    except Exception:  # noqa: BLE001  (whatever it is, it was noticed)
        return True
    finally:
        signal.alarm(0)


def tests_of(kind: str, name: str) -> list[Callable[[Any], object]]:
    """The formula of a part, and the quick requirements of its kind."""
    import test_references  # pyright: ignore[reportMissingImports]  # noqa: F401  (registers all formulas)
    from law import check, law_of_the_empty, variants  # pyright: ignore[reportMissingImports]

    from turnwise.registry import get_component
    from turnwise.requirements import NotTested, requirements

    def formula(target: Any) -> None:
        for options in variants(kind, name):
            check(kind, name, options, target)

    def required(target: Any) -> None:
        entry = dataclasses.replace(get_component(kind, name), target=target)
        for said, test in requirements(kind).items():
            if said not in SLOW:
                try:
                    test(entry)
                except NotTested:
                    continue

    def empty(target: Any) -> None:
        if kind in ("credit", "filter", "shape"):
            law_of_the_empty(kind, name, target)

    return [formula, empty, required]


class Tried(NamedTuple):
    """What became of a part's mutants: how many there were, and those that nothing noticed."""

    mutants: int
    survived: list[str]


def try_part(kind: str, name: str) -> Tried:
    from turnwise.registry import get_component

    entry = get_component(kind, name)
    function = entry.target.__name__
    source = Path(inspect.getsourcefile(entry.target) or "").read_text("utf-8")
    tests, count, survived = tests_of(kind, name), 0, list[str]()
    for mutant in mutants_of(source, function):
        count += 1
        if not notices(mutant, entry.module, function, tests):
            survived.append(mutant.said)
    return Tried(count, survived)


def explained() -> dict[str, dict[str, str]]:
    """Part → mutant → why nothing can notice it."""
    written = yaml.safe_load(SURVIVORS.read_text("utf-8")) if SURVIVORS.is_file() else {}
    return {
        part: {one: why for why, several in reasons.items() for one in several}
        for part, reasons in written.items()
    }


def report(parts: list[tuple[str, str]]) -> dict[str, Any]:
    from law import options_of  # pyright: ignore[reportMissingImports]
    from plain import REFERENCES  # pyright: ignore[reportMissingImports]

    from turnwise.machine import describe

    began, rows, known = time.monotonic(), dict[str, Any](), explained()
    for kind, name in parts:
        part = f"{kind}/{name}"
        found = try_part(kind, name)
        why = known.get(part, {})
        open_ = [said for said in found.survived if said not in why]
        rows[part] = {
            "mutants": found.mutants,
            "killed": found.mutants - len(found.survived),
            "explained": len(found.survived) - len(open_),
            "unexplained": open_,
            "options": {
                option: [repr(x) for x in REFERENCES[kind, name].options[option]]
                for option in options_of(kind, name)
            },
        }
        print(
            f"{part}: {found.mutants} mutants, {len(found.survived)} survived, {len(open_)} unexplained",
            flush=True,
        )
        for said in open_:
            print(f"    {said}", flush=True)
        for said in sorted(set(why) - set(found.survived)):
            print(f"    explained, and yet noticed or gone: {said}", flush=True)
    return {"machine": describe(), "seconds": round(time.monotonic() - began, 1), "parts": rows}


def page(found: dict[str, Any]) -> str:
    """docs/references.md."""
    parts: dict[str, Any] = found["parts"]
    total = {key: sum(row[key] for row in parts.values()) for key in ("mutants", "killed", "explained")}
    lines = [
        f"| `{part.partition('/')[2]}` | {part.partition('/')[0]} | {_listed(row['options'])} | {row['mutants']} | {row['killed']} | "
        f"{row['explained']} | {len(row['unexplained'])} |"
        for part, row in parts.items()
    ]
    return (
        f"""# Formulas and mutants

This page is written by `scripts/mutants.py --write` (`make mutants`).

Every reward, credit rule, filter, shape, correction, loss and denominator has a second form in `tests/reference`: loops over
plain numbers, written from the formula in its docstring and its paper. On random ragged batches (groups of one to six,
truncated trajectories, trajectories in several rows, tokens that were not sampled) both must agree to eight digits, with the
defaults and with the options of the third column. A part without a formula fails the tests, and so does an option that is not
varied.

A mutant is a part with one thing changed: a sign, a term, a comparison, a constant, an option, a bound. Of {total["mutants"]}
mutants the example, the formula and the requirements of the kind notice {total["killed"]}; {total["explained"]} are explained in
`tests/reference/survivors.yaml` (of most of them no batch could tell), and {sum(len(row["unexplained"]) for row in parts.values())} are not.

| part | kind | options varied | mutants | noticed | explained | unexplained |
|---|---|---|---|---|---|---|
"""
        + "\n".join(lines)
        + "\n"
    )


def _listed(options: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in options.items()) or "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="KIND/NAME; all without")
    parser.add_argument(
        "--write", action="store_true", help="write benchmarks/mutants.json and docs/references.md"
    )
    given = parser.parse_args()
    import torch
    from test_references import PARTS  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    chosen = [
        part for part in PARTS if not given.parts or "/".join(part) in given.parts or part[0] in given.parts
    ]
    found = report(chosen)
    if given.write:
        if given.parts and REPORT.is_file():
            kept = json.loads(REPORT.read_text("utf-8"))  # with the time of the last whole run
            found = {**kept, "parts": {**kept["parts"], **found["parts"]}}
        REPORT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(page(found), "utf-8")
    if any(row["unexplained"] for row in found["parts"].values()):
        sys.exit("Some mutants survive without an explanation.")


if __name__ == "__main__":
    main()
