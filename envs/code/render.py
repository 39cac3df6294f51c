"""Texts of the environment: the rules, the visible tests and the result of a test run."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.code.problem import CodeCase, CodeProblem, function_name
from turnwise.envs.code.quick import shown
from turnwise.envs.code.runner import Ran

SYSTEM = """\
You write a program in Python 3 (standard library only). Each turn do one thing:
- test: a program in a ```python block becomes your draft, and the visible tests are run on it;
- run: a ```python block and a line "run": the block is run behind your draft, and you see what it prints;
- submit: a line "submit", alone for your draft or with a ```python block. Hidden tests then decide.
Your program must return values of exactly the types that are asked for."""
ONE_TRY = "You write programs in Python 3. Answer with your whole program in one ```python block: it is judged at once."
_FAILURES = 3  # failed tests that are told
_WIDE = 300  # characters of a value that is told


def opening(problem: CodeProblem) -> str:
    """The statement and the visible tests."""
    if not problem.visible:
        return problem.statement
    if problem.mode == "expression":
        tests = "\n".join(f"f ( {shown(c.given[0])} ) is {shown(c.expected)} ." for c in problem.visible)  # type: ignore[index]
    else:
        tests = "\n".join(("Visible tests:", *(_told(problem, case) for case in problem.visible)))
    return f"{problem.statement}\n{tests}"


def _told(problem: CodeProblem, case: CodeCase) -> str:
    """A visible test as text."""
    if problem.mode == "stdin":
        return f"Input:\n{case.given}\nOutput:\n{case.expected}"
    return f"{_call(problem, case)} == {case.expected!r}"


def _call(problem: CodeProblem, case: CodeCase) -> str:
    assert isinstance(case.given, tuple)
    return f"{function_name(problem)}({', '.join(_cut(repr(item), 1000) for item in case.given)})"  # pyright: ignore


def feedback(problem: CodeProblem, ran: Ran, passed: Sequence[bool]) -> str:
    """Report a test run: how many tests pass, and the first that fail."""
    if problem.mode == "expression":
        return _short_feedback(problem, ran, passed)
    if not ran.compiled:
        return f"It does not compile: {ran.error}"
    lines = [f"{sum(passed)} of {len(problem.visible)} visible tests pass."]
    for case, answer, right in zip(problem.visible, ran.answers, passed, strict=False):
        if not right and len(lines) <= _FAILURES:
            gave = (
                f"failed with {answer.error}" if answer.error else f"gave {_cut(repr(answer.value), _WIDE)}"
            )
            what = (
                f"Input {_cut(repr(case.given), _WIDE)}" if problem.mode == "stdin" else _call(problem, case)
            )
            lines.append(f"{what} {gave}, not {_cut(repr(case.expected), _WIDE)}.")
    return "\n".join(lines)


def _short_feedback(problem: CodeProblem, ran: Ran, passed: Sequence[bool]) -> str:
    if not ran.compiled:
        return f"failed : {ran.error} ."
    text = f"{sum(passed)} of {len(problem.visible)} pass"
    for case, answer, right in zip(problem.visible, ran.answers, passed, strict=True):
        if not right:
            gave = (
                f"failed : {answer.error}"
                if answer.error
                else f"gave {shown(answer.value)} not {shown(case.expected)}"
            )
            return f"{text} ; f ( {shown(case.given[0])} ) {gave} ."  # type: ignore[index]
    return f"{text} ."


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
