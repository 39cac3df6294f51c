"""Quality of the generated test suites: ``python -m turnwise.envs.code.quality [--draws N] [--write]``.

A bank of wrong programs is made of each reference by mutation; a mutant counts as wrong if it differs from the reference
on any of many inputs that are drawn apart from the tests. Over this bank (SAGA/TCGBench):

* detection rate: the share of wrong programs that some test exposes;
* verifier accuracy: the share of problems all of whose wrong programs are exposed;
* AUC@N: the mean verifier accuracy of the first k tests, over k from 1 to N;
* error patterns (DEPC): how many tests expose sets of wrong programs that no other test exposes in the same way, and their share of the tests;
* the number of independent tests that correlated ones are worth, and the bound that SAGA has for such tests;
* false alarms: right programs that a test fails (the references themselves).
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.envs.code.families.core import (
    FAMILIES,
    Exercise,
    ExerciseTemplate,
    build_problem,
    exercise_of,
    expected,
    inputs,
    reference,
    templates,
)
from turnwise.envs.code.mutants import bounded, mutants, ticker
from turnwise.envs.code.problem import CodeCase, same
from turnwise.tasks.core import Json, derive_rng

HIDDEN = 40
_PROBES = 250
_FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "code-quality.json"
_FAILED = object()


class Quality(NamedTuple):
    """Counts of the wrong programs of one exercise and of those that its test suite exposes."""

    name: str
    family: str
    mutants: int
    wrong: int  # of them, differ from the reference somewhere
    caught: int  # of the wrong ones, by the hidden tests
    caught_visible: int  # of the wrong ones, by the visible tests alone
    patterns: int  # distinct error patterns of the hidden tests (DEPC)
    needed: int  # of the hidden tests, in their order, until all wrong programs are exposed; 0: never
    worth: float  # independent tests that the hidden ones are worth
    most: float  # the bound on the detection rate of tests correlated as these
    accepts: bool  # the reference passes

    @property
    def detection(self) -> float:
        return self.caught / self.wrong if self.wrong else 1.0


def measure(
    template: ExerciseTemplate, params: dict[str, Json], *, hidden: int = HIDDEN, visible: int = 3
) -> Quality:
    """The quality of the tests of one exercise."""
    problem = build_problem(template.name, params, visible=visible, hidden=hidden)
    exercise = exercise_of(template.name, params)
    probes = _probes(exercise, template.name, params)
    wrong, caught, by_visible, fails_of, count = 0, 0, 0, list[tuple[bool, ...]](), 0
    for source in mutants(exercise.solution):
        count += 1
        solve = _runnable(source, exercise.entry)
        fails = tuple(not _passes(solve, case) for case in problem.hidden)
        seen = any(not _passes(solve, case) for case in problem.visible)
        if any(fails) or seen or any(not _passes(solve, case) for case in probes):
            wrong += 1
            caught += any(fails)
            by_visible += seen
            fails_of.append(fails)
    right = _runnable(exercise.solution, exercise.entry)
    accepts = all(_passes(right, case) for case in (*problem.visible, *problem.hidden, *probes))
    patterns = error_patterns(fails_of)
    correlated = correlation(fails_of)
    exposed = sum(map(sum, fails_of)) / max(1, len(fails_of) * len(problem.hidden))
    worth, most = effective_tests(len(problem.hidden), correlated), most_detected(exposed, correlated)
    return Quality(
        template.name,
        template.family,
        count,
        wrong,
        caught,
        by_visible,
        patterns,
        needed_tests(fails_of),
        worth,
        most,
        accepts,
    )


def detection_rate(fails: Sequence[Sequence[bool]]) -> float:
    """The share of wrong programs (rows) that any test (columns) exposes.

    >>> detection_rate([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]])
    0.75
    """
    return sum(any(row) for row in fails) / len(fails)


def error_patterns(fails: Sequence[Sequence[bool]]) -> int:
    """DEPC: how many tests (columns) expose sets of wrong programs (rows) that are distinct and not empty.

    >>> error_patterns([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]])
    2
    """
    return len({column for column in zip(*fails, strict=True) if any(column)})


def verifier_accuracy(rates: Sequence[float]) -> float:
    """The share of problems whose tests expose every wrong program.

    >>> verifier_accuracy([1.0, 0.75])
    0.5
    """
    return sum(rate == 1.0 for rate in rates) / len(rates)


def needed_tests(fails: Sequence[Sequence[bool]]) -> int:
    """The number of tests, in their order, that expose every wrong program; 0 where all of them together do not.

    >>> needed_tests([[1, 0, 0], [0, 1, 0], [1, 1, 0]]), needed_tests([[1, 0], [0, 0]]), needed_tests([])
    (2, 0, 1)
    """
    firsts = [next((k for k, failed in enumerate(row, 1) if failed), 0) for row in fails]
    return max(firsts, default=1) if all(firsts) else 0


def area(needed: Sequence[int], tests: int, least: int = 1) -> float:
    """AUC@N: the mean of verifier accuracy over k from ``least`` to N tests, by trapezes; ``needed`` of each problem.

    The book's problem needs 2 of 3 tests: VAcc@1..3 = 0, 1, 1.

    >>> area([2], 3)
    0.75
    """
    curve = [verifier_accuracy([float(0 < one <= k) for one in needed]) for k in range(least, tests + 1)]
    return sum((a + b) / 2 for a, b in itertools.pairwise(curve)) / (len(curve) - 1)


def correlation(fails: Sequence[Sequence[bool]]) -> float:
    """ρ̄, the mean correlation of two tests over the wrong programs; tests that expose all or none of them are left out.

    >>> correlation([[1, 1, 0], [0, 0, 1]]), correlation([[1, 0], [1, 1]])
    (-0.3333333333333333, 0.0)
    """
    columns = [column for column in zip(*fails, strict=True) if 0 < sum(column) < len(column)]
    pairs = [statistics.correlation(a, b) for a, b in itertools.combinations(columns, 2)]
    return statistics.fmean(pairs) if pairs else 0.0


def effective_tests(tests: int, correlated: float) -> float:
    """n / (1 + (n − 1)·ρ̄), the number of independent tests that n are worth; ρ̄ < 0 counts as 0 (ours).

    >>> round(effective_tests(20, 0.1), 4)
    6.8966
    """
    return tests / (1 + (tests - 1) * max(0.0, correlated))


def most_detected(mean: float, correlated: float) -> float:
    """1 − (1 − p̄)^(1/ρ̄), SAGA's bound on the detection rate of any number of tests; 1 where they are not correlated.

    It takes tests of one mean and one correlation of each two. Ours differ, and expose more than it says.

    >>> round(most_detected(0.2, 0.1), 4), most_detected(0.2, 0.0)
    (0.8926, 1.0)
    """
    return 1 - (1 - mean) ** (1 / correlated) if correlated > 0 else 1.0


def survey(draws: int) -> list[Quality]:
    """Every template with ``draws`` draws of its parameters."""
    found: list[Quality] = []
    for template in templates().values():
        rng = derive_rng("quality", template.name)
        found += [measure(template, template.sample(rng)) for _ in range(draws)]
    return found


def summary(found: Sequence[Quality]) -> dict[str, Json]:
    """Rates over exercises, also by family."""
    measured = [family for family in FAMILIES if any(q.family == family for q in found)]
    return {name: _rates([q for q in found if name in ("all", q.family)]) for name in ("all", *measured)}


def _rates(found: Sequence[Quality]) -> dict[str, Json]:
    wrong = sum(q.wrong for q in found)
    rates = [q.detection for q in found]
    return {
        "exercises": len(found),
        "mutants": sum(q.mutants for q in found),
        "wrong": wrong,
        "detection_rate": round(sum(q.caught for q in found) / wrong, 4),
        "lowest_detection_rate": round(min(rates), 4),
        "verifier_accuracy": round(verifier_accuracy(rates), 4),
        "auc_at_n": round(area([q.needed for q in found], HIDDEN), 4),
        "diversity": round(statistics.fmean(q.patterns for q in found) / HIDDEN, 4),
        "most_detected": round(statistics.fmean(q.most for q in found), 4),
        "effective_tests": round(statistics.fmean(q.worth for q in found), 4),
        "visible_detection_rate": round(sum(q.caught_visible for q in found) / wrong, 4),
        "false_alarms": sum(not q.accepts for q in found),
    }


def _probes(exercise: Exercise, name: str, params: dict[str, Json]) -> list[CodeCase]:
    solve = reference(exercise.solution, exercise.entry)
    rng = derive_rng("code probes", name, params)
    return [CodeCase(given, expected(solve, given)) for given in inputs(exercise, rng, _PROBES)]


def _runnable(source: str, entry: str) -> Callable[..., Any]:
    """A program of ours, which ends; a fresh one for each call, so that one endless call does not use up the others."""
    code = compile(bounded(source), "<mutant>", "exec")

    def call(*arguments: Any) -> Any:
        space: dict[str, Any] = {"tick": ticker(5000)}
        exec(code, space)  # noqa: S102 (a mutant of a reference of ours)
        return space[entry](*arguments)

    return call


def _passes(solve: Callable[..., Any], case: CodeCase) -> bool:
    try:
        given = case.given
        assert isinstance(given, tuple)
        return same(expected(solve, given), case.expected)
    except Exception:  # noqa: BLE001 (a mutant may fail in any way)
        return False


def main() -> None:
    """Measure, print a table, and write it down if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3, help="draws of the parameters of each template")
    parser.add_argument("--write", action="store_true", help=f"write {_FILE.name}")
    options = parser.parse_args()
    started = time.process_time()
    found = survey(options.draws)
    rates = summary(found)
    for name, row in rates.items():
        print(f"{name:12}", *(f"{key}={value}" for key, value in row.items()))
    for q in sorted(found, key=lambda q: q.detection)[:8]:
        print(f"  {q.name:16} {q.caught}/{q.wrong} wrong programs exposed, {q.patterns} patterns")
    if options.write:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        data = {"command": f"python -m turnwise.envs.code.quality --draws {options.draws} --write", **machine}
        data |= {"seconds": round(time.process_time() - started, 1), "rates": rates, "exercises": [{**q._asdict(), "detection": round(q.detection, 4)} for q in found]}  # fmt: skip
        _FILE.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
