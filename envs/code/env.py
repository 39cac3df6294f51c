"""``turnwise/Code-v0``: write a function to a specification, with turns to test, run and submit.

Programs run in a sandbox (bubblewrap or docker, whichever works here) and are judged by hidden tests outside of
it: inputs go in, plain values come out, and what is expected never enters. See docs/code.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.code import solver
from turnwise.envs.code.actions import TOOLS, possible, read
from turnwise.envs.code.contest.core import SECONDS, large_case
from turnwise.envs.code.expression import ExpressionError, evaluate
from turnwise.envs.code.official import RULES, agrees
from turnwise.envs.code.problem import CodeCase, CodeProblem, same
from turnwise.envs.code.quick import SYSTEM as SHORT_SYSTEM
from turnwise.envs.code.quick import shown
from turnwise.envs.code.render import ONE_TRY, SYSTEM, feedback, opening
from turnwise.envs.code.runner import Ran, RunAnswer, evaluated, get_runner
from turnwise.envs.code.state import CodeState
from turnwise.envs.code.tasks import generate_task, kept_problem, without_solution
from turnwise.envs.core import EndReason, Guard, RewardKind, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError


class CodeEnv(LiveEnv[CodeState]):
    """Program to a specification.

    Args:
        backend: where programs run: ``auto`` (bubblewrap, else docker), or a backend's name. ``process``
            isolates nothing and is refused without ``unsafe``.
        unsafe: says that the policy is trusted with this machine; only ``process`` asks for it.
        compiles: paid once, for the first draft that compiles.
        shaping: weight of the share of visible tests that the draft passes, as a potential.
        seconds: for one run of a program, all inputs together.
    """

    tools = TOOLS
    system = SYSTEM
    calls_per_turn: ClassVar[int | None] = 1
    max_trivial_score: ClassVar[float] = 0.05
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"": {}, "quick": {"language": "expression", "visible": 2, "hidden": 8}}  # fmt: skip

    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "backend": Guard("says where a model's code runs"),
        "unsafe": Guard("runs a model's code without a sandbox"),
    }

    def __init__(
        self,
        *,
        backend: str = "auto",
        unsafe: bool = False,
        compiles: float = 0.0,
        shaping: float = 0.0,
        seconds: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.backend, self.unsafe, self.compiles, self.seconds = backend, unsafe, compiles, seconds
        if backend != "auto":
            get_runner(backend, unsafe=unsafe)  # a wrong name is told now
        if compiles:
            self.reward_components = {**self.reward_components, "compiles": RewardKind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return generate_task(rng, split, knobs)

    @classmethod
    def impossible(cls, task: Task, rng: Random) -> Task | None:
        """The same problem, one of whose hidden tests expects a word that follows from nothing."""
        return without_solution(task, rng)

    def system_for(self, agent: str) -> str:
        if not self._problem().visible:
            return ONE_TRY
        return SHORT_SYSTEM if self._problem().mode == "expression" else SYSTEM

    def initial(self, task: Task) -> tuple[CodeState, str]:
        return CodeState(task.id), opening(kept_problem(task))

    def transition(self, state: CodeState, action: Message) -> Transition[CodeState]:
        problem, act = self._problem(), read(action)
        if act.name == "run":
            return Transition(state, self._printed(problem, state.draft, act.code))
        if act.name == "test" and problem.visible:
            return self._test(problem, state, act.code)
        code = act.code if act.code.strip() else state.draft
        if not code:
            raise ToolError("There is no draft to submit: test a program first, or submit one.")
        return self._submit(problem, state, code)

    def gold(self, state: CodeState) -> str:
        return solver.gold(self.task, state)

    def demonstrate(self, state: CodeState, rng: Random) -> str:
        """Tests half of the time, misreads one thing half of the time, and gives up on a failing draft too soon."""
        return solver.demonstrate(self.task, state, rng)

    def potential(self, state: CodeState) -> float:
        """The share of visible tests that the draft passes."""
        return state.passed / max(len(self._problem().visible), 1)

    @classmethod
    def failure_report(cls, task: Task, details: Mapping[str, Json]) -> str:
        """Say how many hidden tests an earlier program passed, or that none was submitted."""
        if "hidden" not in details:
            return "an earlier attempt submitted nothing ."
        passed, hidden = details["hidden_passed"], details["hidden"]
        slow = " but was too slow" if passed == hidden else ""
        return f"an earlier program passed {passed} of {hidden} hidden tests{slow} ."

    def admissible(self, state: CodeState) -> Sequence[str]:
        """Programs that do too little, for trivial baselines: what an agent without understanding may try."""
        return possible(self._problem())

    # --- the live world: a run leaves nothing behind, so there is nothing to copy -------------------------

    def capture(self) -> None:
        return None

    def revive(self, captured: object) -> None:
        return None

    def detach(self) -> None:
        return None

    # --- inside -------------------------------------------------------------------------------------------

    def _problem(self) -> CodeProblem:
        return kept_problem(self.task)

    def _ran(self, problem: CodeProblem, code: str, cases: Sequence[CodeCase]) -> Ran:
        given = [case.given for case in cases]
        if problem.mode == "expression":
            return evaluated(code, given)
        return get_runner(self.backend, unsafe=self.unsafe).answers(
            code, problem.entry, given, problem.mode, self.seconds
        )

    def _printed(self, problem: CodeProblem, draft: str, code: str) -> str:
        if problem.mode == "expression":
            try:
                return f"{shown(evaluate(code, []))} ."
            except ExpressionError as error:
                return f"failed : {error} ."
        done = get_runner(self.backend, unsafe=self.unsafe).script(f"{draft}\n{code}", self.seconds)
        return done.text or "(nothing was printed)"

    def _test(self, problem: CodeProblem, state: CodeState, code: str) -> Transition[CodeState]:
        ran = self._ran(problem, code, problem.visible)
        passed = [
            _right(problem, case, answer) for case, answer in zip(problem.visible, ran.answers, strict=False)
        ]
        after = state._replace(draft=code, passed=sum(passed), compiled=state.compiled or ran.compiled)
        return Transition(after, feedback(problem, ran, passed), self._for_compiling(state, ran))

    def _submit(self, problem: CodeProblem, state: CodeState, code: str) -> Transition[CodeState]:
        ran = self._ran(problem, f"{problem.prefix}{code}{problem.suffix}", problem.hidden)
        cases = zip(self._expected(problem), ran.answers, strict=False)
        right = sum(_right(problem, case, answer) for case, answer in cases)
        details: dict[str, Json] = {"hidden_passed": right, "hidden": len(problem.hidden)}
        solved = right == len(problem.hidden)
        if solved and problem.large:
            details["large_passed"], details["large"] = self._large_passed(problem, code), len(problem.large)
            solved = details["large_passed"] == details["large"]
        after = state._replace(draft=code, submitted=True, compiled=state.compiled or ran.compiled)
        rewards = {"outcome": float(solved), **self._for_compiling(state, ran)}
        return Transition(
            after, "submitted .", rewards, EndReason.SOLVED if solved else EndReason.FAILED, details
        )

    def _large_passed(self, problem: CodeProblem, code: str) -> int:
        """Count the large tests that a program passes in the time for all of them."""
        cases = [large_case(test) for test in problem.large]
        given = [case.given for case in cases]
        runner = get_runner(self.backend, unsafe=self.unsafe)
        ran = runner.answers(code, problem.entry, given, problem.mode, self.seconds, SECONDS)
        return sum(_right(problem, case, answer) for case, answer in zip(cases, ran.answers, strict=False))

    def _expected(self, problem: CodeProblem) -> Sequence[CodeCase]:
        """The hidden tests, with what the solution answers where that is what counts."""
        if not problem.by_reference:
            return problem.hidden
        right = self._ran(problem, problem.solution, problem.hidden)
        if any(answer.error for answer in right.answers):
            raise EnvError(f"The solution of {self.task.id} fails on its own tests.", "Look at its row.")
        return [
            case._replace(expected=answer.value)
            for case, answer in zip(problem.hidden, right.answers, strict=True)
        ]

    def _for_compiling(self, state: CodeState, ran: Ran) -> dict[str, float]:
        return {"compiles": self.compiles} if self.compiles and ran.compiled and not state.compiled else {}


def _right(problem: CodeProblem, case: CodeCase, answer: RunAnswer) -> bool:
    if problem.compare in RULES:
        is_same = agrees(problem.compare, problem.entry, case.given, case.expected, answer.value)
    else:
        is_same = same(answer.value, case.expected, problem.compare)
    return is_same and not answer.error
