"""Choice of the next action: gold, and an imperfect scripted policy."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from turnwise.envs.code.actions import write
from turnwise.envs.code.mutants import mutants
from turnwise.envs.code.problem import CodeProblem, function_name
from turnwise.envs.code.quick import Wish, slipped
from turnwise.envs.code.state import CodeState
from turnwise.envs.code.tasks import kept_problem
from turnwise.errors import EnvError
from turnwise.tasks.core import Task


def gold(task: Task, state: CodeState) -> str:
    """Hand in the solution, if the task has one."""
    problem = kept_problem(task)
    if not problem.solution:
        raise EnvError(f"Task {task.id} comes without a solution.", "Use data with solutions for gold.")
    if state.draft == problem.solution.strip():
        return write(problem, "submit")
    return write(problem, "submit", problem.solution.strip())


def demonstrate(task: Task, state: CodeState, rng: Random) -> str:
    """An imperfect scripted policy: tests half of the time, misreads one thing half of the time, and gives up on a
    failing draft too soon."""
    problem = kept_problem(task)
    if state.draft and (state.passed == len(problem.visible) or rng.random() < 0.4):
        return write(problem, "submit")
    code = _attempt(task, problem, rng)
    return write(problem, "test" if rng.random() < 0.5 else "submit", code)


def _attempt(task: Task, problem: CodeProblem, rng: Random) -> str:
    """A program that is right half of the time."""
    if problem.mode == "expression":
        wish = wish_of(task)
        wish = wish.turned() if rng.random() < 0.5 else wish
        return (slipped(wish, rng) if rng.random() < 0.5 else wish).expression
    if not problem.solution:
        return rng.choice(
            [f"def {function_name(problem)}(*a):\n    return {value}" for value in ("a[0]", "0", "[]")]
        )
    wrong = _mutants(problem.solution) if rng.random() < 0.5 else ()
    return rng.choice(wrong) if wrong else problem.solution.strip()


def wish_of(task: Task) -> Wish:
    """Return the request of a task in the small language."""
    take, change, by, choose, bound = task.options["origin"]["wish"]
    return Wish(take, change, by, choose, bound)


@lru_cache(4096)
def _mutants(source: str) -> tuple[str, ...]:
    return tuple(mutants(source, 40))
