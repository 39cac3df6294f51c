#!/usr/bin/env python3
"""Change every part a little, and see whether its tests notice: ``scripts/mutants.py [KIND/NAME …] [--write]``.

A mutant is the part's file with one thing changed: a sign, a term left out, a comparison, a constant, an option taken for
another, a bound or a mask left out. It is run in this process, in place of the part, against what is quick: the example of
its docstring, its formula (tests/reference), and what is required of its kind. What survives is explained in
tests/reference/survivors.yaml, or is a gap in the tests. ``--write`` puts the report into benchmarks/mutants.json and
docs/references.md, part by part, so that a run that was interrupted goes on with ``--resume``; ``--jobs 2`` takes two processes.
``--stale`` says of which parts the report is no longer, in seconds.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import doctest
import functools
import hashlib
import inspect
import io
import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "reference"
SURVIVORS = FOLDER / "survivors.yaml"
REPORT = ROOT / "benchmarks" / "mutants.json"
PAGE = ROOT / "docs" / "references.md"
SECONDS = 20  # of processor time: a mutant that takes longer never ends, and is noticed
WAITS = 30
EMPTY = ("credit", "filter", "shape")  # kinds that are tried on batches in which nothing was sampled
SLOW = ("the bias is as declared", "an update points uphill", "unbiased also where turns have several tokens")

sys.path[:0] = [str(FOLDER), str(ROOT / "tests" / "kit")]

from mutate import FUNCTIONS, Mutant, mutants_of  # pyright: ignore[reportMissingImports]
from reach import Defined, Read, reached  # pyright: ignore[reportMissingImports]


@functools.cache
def read_here(module: str) -> str | None:
    """The text of this file and of modules beside the formulas, by name."""
    files = [FOLDER / f"{module}.py", ROOT / "tests" / "kit" / f"{module}.py"]
    found = [file for file in (*files, Path(__file__)) if file.is_file() and file.stem == module]
    return found[0].read_text("utf-8") if found else None


# --- running ----------------------------------------------------------------------------------------------------


class Took(BaseException):
    """A mutant that does not end."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise Took


def made(mutant: Mutant, module: str, function: str) -> tuple[Any, dict[str, Any]]:
    """The changed function and its module's names; nothing is registered, and the module itself stays."""
    tree = copy.deepcopy(mutant.tree)
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            node.decorator_list = [d for d in node.decorator_list if "component(" not in ast.unparse(d)]
    names: dict[str, Any] = {"__name__": module, "__file__": module}
    exec(compile(tree, module, "exec"), names)  # noqa: S102  (our own file, changed)
    return names[function], names


def example_fails(function: Any, names: dict[str, Any]) -> bool:
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(function) or "", dict(names), "example", None, 0
    )
    return doctest.DocTestRunner(verbose=False).run(test, out=io.StringIO().write).failed > 0


def notices(
    mutant: Mutant, module: str, function: str, tests: list[Callable[[Any], object]], seconds: int = SECONDS
) -> bool:
    """Whether the example or one of the tests fails on the mutant; one that breaks or never ends is noticed."""
    for bell in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(bell, _ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of this process's own time, however busy the machine is
    signal.alarm(WAITS * seconds)  # for one that waits for ever
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target, names = made(mutant, module, function)
            if example_fails(target, names):
                return True
            for test in tests:
                test(target)
        return False
    except (Exception, Took):  # noqa: BLE001  (whatever it is, it was noticed)
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def tests_of(kind: str, name: str) -> list[Callable[[Any], object]]:
    """The formula of a part, and the quick requirements of its kind."""
    import test_references  # pyright: ignore[reportMissingImports]  # noqa: F401  (registers all formulas)
    from law import SHARED, check, law_of_the_empty, part_of, variants  # pyright: ignore[reportMissingImports]

    from turnwise.requirements import NotTested, requirements

    def formula(target: Any) -> None:
        for options in variants(kind, name):
            check(kind, name, options, target)

    def required(target: Any) -> None:
        entry = dataclasses.replace(part_of(kind, name), target=target)
        for said, test in requirements(kind).items():
            if said not in SLOW:
                try:
                    test(entry)
                except NotTested:
                    continue

    def empty(target: Any) -> None:
        if kind in EMPTY:
            law_of_the_empty(kind, name, target)

    return [formula, empty] if (kind, name) in SHARED else [formula, empty, required]


class Tried(NamedTuple):
    """What became of a part's mutants: how many there were, and those that nothing noticed."""

    mutants: int
    survived: list[str]


def try_part(kind: str, name: str) -> Tried:
    """All mutants of a part.

    Raises:
        RuntimeError: the part fails its tests as it is, so that they would notice whatever is done to it.
    """
    from law import part_of  # pyright: ignore[reportMissingImports]

    entry = part_of(kind, name)
    function = entry.target.__name__
    source = _source(kind, name)
    tests, count, survived = tests_of(kind, name), 0, list[str]()
    began = time.process_time()
    if notices(Mutant("nothing", ast.parse(source)), entry.module, function, tests, 600):
        raise RuntimeError(f"{kind}/{name} fails its tests as it is.")
    limit = max(SECONDS, 5 * math.ceil(time.process_time() - began))
    for mutant in mutants_of(source, function):
        count += 1
        if not notices(mutant, entry.module, function, tests, limit):
            survived.append(mutant.said)
    return Tried(count, survived)


def _source(kind: str, name: str) -> str:
    from law import part_of  # pyright: ignore[reportMissingImports]

    return Path(inspect.getsourcefile(part_of(kind, name).target) or "").read_text("utf-8")


MEASURING = ("made", "example_fails", "tests_of", "SLOW", "EMPTY")
"""What of this file a row rests on; how long a mutant may take, and that one which never ends is noticed, changes no other's verdict."""
ALL = (Defined("law", "LAWS"), Defined("law", "SHARED"), Defined("plain", "REFERENCES"))
"""Tables of all parts, of which a row rests on its own entry alone."""
EMPTY_LAW = {True: (), False: (Defined("law", "law_of_the_empty"),)}


def digest(kind: str, name: str, read: Read = read_here, part: str = "") -> str:
    """Of all that a part's row is made of: its file, and those definitions of formula, law and this tool that it rests on.

    Comments do not count, nor does what is imported from elsewhere. ``part`` is the text of its file, if that is another than today's.
    """
    from law import LAWS  # pyright: ignore[reportMissingImports]
    from plain import REFERENCES  # pyright: ignore[reportMissingImports]

    known = REFERENCES[kind, name]
    roots = [
        *(Defined(Path(one.__code__.co_filename).stem, one.__name__) for one in (known.formula, known.law or LAWS[kind])),
        *(Defined("law", one) for one in ("check", "variants", "part_of")),
        Defined("mutate", ""),
        *(Defined("mutants", one) for one in MEASURING),
    ]  # fmt: skip
    texts = [
        ast.dump(ast.parse(part or _source(kind, name))),
        *reached(roots, read, (*ALL, *EMPTY_LAW[kind in EMPTY])),
    ]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def explained() -> dict[str, dict[str, str]]:
    """Part → mutant → why nothing can notice it."""
    written = yaml.safe_load(SURVIVORS.read_text("utf-8")) if SURVIVORS.is_file() else {}
    return {
        part: {one: why for why, several in reasons.items() for one in several}
        for part, reasons in written.items()
    }


def row_of(part: tuple[str, str]) -> dict[str, Any]:
    """A part's row of the report; says what was found."""
    import torch
    from law import options_of  # pyright: ignore[reportMissingImports]
    from plain import REFERENCES  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    began, (kind, name), why = time.process_time(), part, explained().get("/".join(part), {})
    found = try_part(kind, name)
    open_ = [said for said in found.survived if said not in why]
    told = [
        f"{kind}/{name}: {found.mutants} mutants, {len(found.survived)} survived, {len(open_)} unexplained"
    ]
    told += [f"    {said}" for said in open_]
    told += [
        f"    explained, and yet noticed or gone: {said}" for said in sorted(set(why) - set(found.survived))
    ]
    print("\n".join(told), flush=True)
    return {
        "mutants": found.mutants,
        "killed": found.mutants - len(found.survived),
        "explained": len(found.survived) - len(open_),
        "unexplained": open_,
        "options": {
            option: [repr(x) for x in REFERENCES[kind, name].options[option]]
            for option in options_of(kind, name)
        },
        "seconds": round(time.process_time() - began, 1),
        "digest": digest(kind, name),
    }


def rows_of(parts: list[tuple[str, str]], jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Row by row as they are done, in ``jobs`` processes."""
    names = ["/".join(part) for part in parts]
    if jobs == 1:
        yield from zip(names, map(row_of, parts), strict=True)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from zip(names, pool.map(row_of, parts), strict=True)


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

Every reward, credit rule, filter, shape, correction, loss, denominator and schedule has a second form in `tests/reference`:
loops over plain numbers, written from the formula in its docstring and its paper. On random ragged batches (groups of one to
six, truncated trajectories, trajectories in several rows, tokens that were not sampled) both must agree to eight digits, with
the defaults and with the options of the third column. Samplers, strategies, guides, judges, sources, teachers and signals have
a requirement there: what they must give on small suites, logs and models, from forward passes over one row at a time, replays,
and counts of what was drawn. `refill` and `bracket` are arithmetic that samplers and judges share. A part without either fails
the tests, and so does an option that is not varied.

A mutant is a part with one thing changed: a sign, a term, a comparison, a constant, an option, a bound. Of {total["mutants"]}
mutants the example, the formula and the requirements of the kind notice {total["killed"]}; {total["explained"]} are explained in
`tests/reference/survivors.yaml` (of most of them no batch could tell), and {sum(len(row["unexplained"]) for row in parts.values())} are not.
A row is of the part, its formula and the tools as they were when it was measured: `scripts/mutants.py --stale` says which have changed since.

| part | kind | options varied | mutants | noticed | explained | unexplained |
|---|---|---|---|---|---|---|
"""
        + "\n".join(lines)
        + "\n"
    )


def _listed(options: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in options.items()) or "–"


def written() -> dict[str, Any]:
    """The report that is there."""
    return json.loads(REPORT.read_text("utf-8")) if REPORT.is_file() else {"parts": {}}


def summary(rows: dict[str, Any], chosen: list[tuple[str, str]]) -> str:
    """How many mutants of each kind were tried, noticed, explained and not, and in how many seconds."""
    lines: list[str] = []
    for kind in dict.fromkeys(kind for kind, _ in chosen):
        of = [rows[f"{k}/{name}"] for k, name in chosen if k == kind]
        total = {key: sum(row[key] for row in of) for key in ("mutants", "killed", "explained", "seconds")}
        lines.append(
            f"{kind:>12}: {len(of)} parts, {total['mutants']} mutants, {total['killed']} noticed, "
            f"{total['explained']} explained, {sum(len(row['unexplained']) for row in of)} not; {total['seconds']:.0f} s"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="KIND/NAME or KIND; all without")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write benchmarks/mutants.json, part by part, and docs/references.md",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="leave out parts that are in the report and have not changed since",
    )
    parser.add_argument(
        "--stale", action="store_true", help="say which rows of the report are of other files, and end"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    from test_references import PARTS  # pyright: ignore[reportMissingImports]

    from turnwise.machine import describe

    chosen = [
        part for part in PARTS if not given.parts or "/".join(part) in given.parts or part[0] in given.parts
    ]
    order, kept = ["/".join(part) for part in PARTS], written()["parts"]
    kept = {part: row for part, row in kept.items() if part in order}
    if given.resume or given.stale:
        known = {part: row.get("digest") for part, row in kept.items()}
        every, chosen = len(chosen), [part for part in chosen if known.get("/".join(part)) != digest(*part)]
        if given.stale:
            print("\n".join("/".join(part) for part in chosen))
            print(
                f"{len(chosen)} of {every} rows are of other files, or missing: --write --resume measures them anew."
            )
            return
    rows: dict[str, Any] = {}
    for part, row in rows_of(chosen, given.jobs):
        rows[part] = row
        if given.write:
            every = {**kept, **rows}
            parts = {name: every[name] for name in order if name in every}
            whole = {"machine": describe(), "parts": parts}
            REPORT.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")
            PAGE.write_text(page(whole), "utf-8")
    print(summary(rows, chosen), flush=True)
    if any(row["unexplained"] for row in rows.values()):
        sys.exit("Some mutants survive without an explanation.")


if __name__ == "__main__":
    main()
