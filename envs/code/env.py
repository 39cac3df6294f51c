"""``turnwise/Code-v0``: write a function to a specification, with turns to test, run and submit.

Programs run in a sandbox (bubblewrap or docker, whichever works here) and are judged by hidden tests outside of
it: inputs go in, plain values come out, and what is expected never enters. See docs/code.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.code.acts import TOOLS, read_act
from turnwise.envs.code.expression import ExpressionError, evaluate
from turnwise.envs.code.mutants import mutants
from turnwise.envs.code.problem import Case, Problem, same
from turnwise.envs.code.quick import SYSTEM as SHORT_SYSTEM
from turnwise.envs.code.quick import Wish, shown, slipped
from turnwise.envs.code.runner import Answer, Ran, evaluated, get_runner
from turnwise.envs.code.tasks import ENV, generate_task, problem_of
from turnwise.envs.core import End, Kind, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_SYSTEM = """\
You write a program in Python 3 (standard library only). Each turn do one thing:
- test: a program in a ```python block becomes your draft, and the visible tests are run on it;
- run: a ```python block and a line "run": the block is run behind your draft, and you see what it prints;
- submit: a line "submit", alone for your draft or with a ```python block. Hidden tests then decide.
Your program must return values of exactly the types that are asked for."""
_FAILURES = 3  # failed tests that are told
_REMEMBERED = 4096
_WIDE = 300  # characters of a value that is told


class CodeState(NamedTuple):
    """The draft and what is known of it."""

    task: str
    draft: str = ""
    passed: int = 0  # visible tests that the draft passes
    compiled: bool = False  # whether any draft so far compiled
    submitted: bool = False


class CodeEnv(LiveEnv[CodeState]):
    """Program to a specification.

    Args:
        backend: where programs run: ``auto`` (bubblewrap, else docker), or a back end's name. ``process``
            isolates nothing; naming it says that the policy is trusted.
        compiles: paid once, for the first draft that compiles.
        shaping: weight of the share of visible tests that the draft passes, as a potential.
        seconds: for one run of a program, all inputs together.
    """

    tools = TOOLS
    system = _SYSTEM
    floor: ClassVar[float] = 0.05
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"": {}, "quick": {"language": "expression", "visible": 2, "hidden": 8}}  # fmt: skip

    def __init__(
        self,
        *,
        backend: str = "auto",
        compiles: float = 0.0,
        shaping: float = 0.0,
        seconds: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.backend, self.compiles, self.seconds = backend, compiles, seconds
        if compiles:
            self.ledger = {**self.ledger, "compiles": Kind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return generate_task(rng, split, knobs)

    def system_for(self, agent: str) -> str:
        return SHORT_SYSTEM if self._problem().mode == "expression" else _SYSTEM

    def initial(self, task: Task) -> tuple[CodeState, str]:
        problem = _problem_of(task)
        if problem.mode == "expression":
            tests = "\n".join(f"f ( {shown(c.given[0])} ) is {shown(c.expected)} ." for c in problem.visible)  # type: ignore[index]
        else:
            tests = "\n".join(("Visible tests:", *(_told(problem, case) for case in problem.visible)))
        return CodeState(task.id), f"{problem.statement}\n{tests}"

    def transition(self, state: CodeState, action: Message) -> Transition[CodeState]:
        problem, act = self._problem(), read_act(action)
        if act.name == "run":
            return Transition(state, self._printed(problem, state.draft, act.code))
        if act.name == "test":
            return self._test(problem, state, act.code)
        code = act.code if act.code.strip() else state.draft
        if not code:
            raise ToolError("There is no draft to submit: test a program first, or submit one.")
        return self._submit(problem, state, code)

    def gold(self, state: CodeState) -> str:
        problem = self._problem()
        if not problem.solution:
            raise EnvError(
                f"Task {self.task.id} comes without a solution.", "Use data with solutions for gold."
            )
        if state.draft == problem.solution.strip():
            return _said(problem, "submit")
        return _said(problem, "submit", problem.solution.strip())

    def demonstrate(self, state: CodeState, rng: Random) -> str:
        """Tests half of the time, misreads one thing half of the time, and gives up on a failing draft too soon."""
        problem = self._problem()
        if state.draft and (state.passed == len(problem.visible) or rng.random() < 0.4):
            return _said(problem, "submit")
        code = self._attempt(problem, rng)
        return _said(problem, "test" if rng.random() < 0.5 else "submit", code)

    def potential(self, state: CodeState) -> float:
        """The share of visible tests that the draft passes."""
        return state.passed / len(self._problem().visible)

    def admissible(self, state: CodeState) -> Sequence[str]:
        """Programs that do too little, for floors: what an agent without understanding may try."""
        problem = self._problem()
        if problem.mode == "expression":
            tries = ("xs", "sum ( xs )", "max ( xs )", "sorted ( xs )", "len ( xs )")
        elif problem.mode == "stdin":
            tries = ("print(input())", "print(0)", "import sys\nprint(sys.stdin.read())")
        else:
            values = ("a[0]", "0", "''", "[]", "sorted(a[0])", "len(a[0])", "None")
            tries = tuple(f"def {_name(problem)}(*a):\n    return {value}" for value in values)
        verbs = ("test", "submit")
        return tuple(_said(problem, verb, code) for code in tries for verb in verbs)

    # --- the live world: a run leaves nothing behind, so there is nothing to copy -------------------------

    def capture(self) -> None:
        return None

    def revive(self, captured: object) -> None:
        return None

    def detach(self) -> None:
        return None

    # --- inside -------------------------------------------------------------------------------------------

    def _problem(self) -> Problem:
        return _problem_of(self.task)

    def _ran(self, problem: Problem, code: str, cases: Sequence[Case]) -> Ran:
        given = [case.given for case in cases]
        if problem.mode == "expression":
            return evaluated(code, given)
        return get_runner(self.backend).answers(code, problem.entry, given, problem.mode, self.seconds)

    def _printed(self, problem: Problem, draft: str, code: str) -> str:
        if problem.mode == "expression":
            try:
                return f"{shown(evaluate(code, []))} ."
            except ExpressionError as error:
                return f"failed : {error} ."
        done = get_runner(self.backend).script(f"{draft}\n{code}", self.seconds)
        return done.text or "(nothing was printed)"

    def _test(self, problem: Problem, state: CodeState, code: str) -> Transition[CodeState]:
        ran = self._ran(problem, code, problem.visible)
        passed = [
            _right(problem, case, answer) for case, answer in zip(problem.visible, ran.answers, strict=False)
        ]
        after = state._replace(draft=code, passed=sum(passed), compiled=state.compiled or ran.compiled)
        return Transition(after, _feedback(problem, ran, passed), self._for_compiling(state, ran))

    def _submit(self, problem: Problem, state: CodeState, code: str) -> Transition[CodeState]:
        ran = self._ran(problem, code, problem.hidden)
        right = sum(
            _right(problem, case, answer) for case, answer in zip(problem.hidden, ran.answers, strict=False)
        )
        solved = right == len(problem.hidden)
        after = state._replace(draft=code, submitted=True, compiled=state.compiled or ran.compiled)
        rewards = {"outcome": float(solved), **self._for_compiling(state, ran)}
        details = {"hidden_passed": right, "hidden": len(problem.hidden)}
        return Transition(after, "submitted .", rewards, End.SOLVED if solved else End.FAILED, details)

    def _for_compiling(self, state: CodeState, ran: Ran) -> dict[str, float]:
        return {"compiles": self.compiles} if self.compiles and ran.compiled and not state.compiled else {}

    def _wish(self) -> Wish:
        take, change, by, choose, bound = self.task.options["origin"]["wish"]
        return Wish(take, change, by, choose, bound)

    def _attempt(self, problem: Problem, rng: Random) -> str:
        """A program that is right half of the time."""
        if problem.mode == "expression":
            wish = self._wish()
            wish = wish.turned() if rng.random() < 0.5 else wish
            return (slipped(wish, rng) if rng.random() < 0.5 else wish).expression
        if not problem.solution:
            return rng.choice(
                [f"def {_name(problem)}(*a):\n    return {value}" for value in ("a[0]", "0", "[]")]
            )
        wrong = _mutants(problem.solution) if rng.random() < 0.5 else ()
        return rng.choice(wrong) if wrong else problem.solution.strip()


@lru_cache(4096)
def _mutants(source: str) -> tuple[str, ...]:
    return tuple(mutants(source, 40))


_problems: OrderedDict[str, Problem] = OrderedDict()


def _problem_of(task: Task) -> Problem:
    """The problem of a task, read once: tasks are asked for it at every turn."""
    if task.id not in _problems:
        _problems[task.id] = problem_of(task)
        while len(_problems) > _REMEMBERED:
            _problems.popitem(last=False)
    return _problems[task.id]


def _right(problem: Problem, case: Case, answer: Answer) -> bool:
    return not answer.error and same(answer.value, case.expected, problem.compare)


def _name(problem: Problem) -> str:
    return problem.entry.rpartition(".")[2]


def _said(problem: Problem, verb: str, code: str = "") -> str:
    """An action in words: one line in the small language, a block of Python else."""
    if problem.mode == "expression":
        return f"{verb} {code} ." if code else f"{verb} ."
    return f"```python\n{code}\n```\n{verb}" if code else verb


def _told(problem: Problem, case: Case) -> str:
    """A visible test as text."""
    if problem.mode == "stdin":
        return f"Input:\n{case.given}\nOutput:\n{case.expected}"
    return f"{_call(problem, case)} == {case.expected!r}"


def _call(problem: Problem, case: Case) -> str:
    assert isinstance(case.given, tuple)
    return f"{_name(problem)}({', '.join(_cut(repr(item), 1000) for item in case.given)})"  # pyright: ignore


def _feedback(problem: Problem, ran: Ran, passed: Sequence[bool]) -> str:
    """What a test run tells: how many pass, and the first that fail."""
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


def _short_feedback(problem: Problem, ran: Ran, passed: Sequence[bool]) -> str:
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


__all__ = ["ENV", "CodeEnv", "CodeState"]
