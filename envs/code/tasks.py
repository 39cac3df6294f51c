"""Tasks of ``turnwise/Code-v0``: generated families, the small language, published data sets."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from random import Random

from turnwise.envs.code.contest.core import build_contest, held_out
from turnwise.envs.code.datasets import load_problems
from turnwise.envs.code.families.core import build_problem, templates
from turnwise.envs.code.knobs import CodeKnobs
from turnwise.envs.code.problem import CodeProblem
from turnwise.envs.code.published import published_task
from turnwise.envs.code.quick import build_expression_problem, draw_wish
from turnwise.envs.planted import nonce
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, derive_rng

ENV = "turnwise/Code-v0"
_VARIANTS = 100  # test suites per exercise


def generate_task(rng: Random, split: Split, knobs: dict[str, Json]) -> Task:
    """A task of a suite with these knobs."""
    chosen = check_knobs(CodeKnobs, knobs, "code")
    if chosen.published:
        return published_task(chosen.published, chosen.dataset, chosen.index)
    if chosen.dataset:
        return _from_dataset(rng, split, chosen)
    draw = (
        _draw_contest
        if chosen.contest
        else _draw_expression
        if chosen.language == "expression"
        else _draw_exercise
    )
    return first_drawn(lambda rng: draw(rng, split, chosen), rng, split, "code")


def problem_of(task: Task) -> CodeProblem:
    """The problem of a task."""
    return CodeProblem.from_json(task.options["problem"], task.gold["solution"])


def task_of(problem: CodeProblem, knobs: CodeKnobs, **origin: Json) -> Task:
    """A task that sets a problem; ``origin`` says where it comes from."""
    options = {"problem": problem.to_json(), "turn_limit": knobs.turn_limit, "origin": origin}
    return Task(ENV, problem.statement, options, {"solution": problem.solution})


def without_solution(task: Task, rng: Random) -> Task | None:
    """Return a task with a hidden test that no right program passes; None where the solution's answers are what is expected."""
    problem = problem_of(task)
    if problem.by_reference or not problem.hidden:
        return None
    first, *others = problem.hidden
    told = dataclasses.replace(problem, hidden=(first._replace(expected=nonce(rng)), *others))
    return Task(task.env, task.prompt, {**task.options, "problem": told.to_json()}, task.gold)


def _draw_exercise(rng: Random, split: Split, knobs: CodeKnobs) -> Task | None:
    known = [t for t in templates().values() if t.family in knobs.families and t.level in knobs.levels]
    if not known:
        raise EnvError("No code template has these families and levels.", "Levels are 1, 2 and 3.")
    template = rng.choice(known)
    params = template.sample(rng)
    batch = rng.choice(("reverse", "fresh", "second")) if knobs.batch else ""
    if not in_split(split, ENV, template.name, params):
        return None
    variant = rng.randrange(_VARIANTS)
    problem = build_problem(
        template.name,
        params,
        visible=knobs.visible,
        hidden=knobs.hidden,
        variant=variant,
        batch=batch,
        split=split,
    )
    return task_of(problem, knobs, template=template.name, params=params, variant=variant, batch=batch)


def _draw_contest(rng: Random, split: Split, knobs: CodeKnobs) -> Task | None:
    family = rng.choice(held_out(split))
    params = family.sample(rng)
    variant = rng.randrange(_VARIANTS)
    problem = build_contest(family.name, params, visible=knobs.visible, hidden=knobs.hidden, variant=variant)
    return task_of(problem, knobs, family=family.name, params=params, variant=variant)


def _draw_expression(rng: Random, split: Split, knobs: CodeKnobs) -> Task | None:
    wish = draw_wish(rng)
    if not in_split(split, ENV, "expression", list(wish)):
        return None
    variant = rng.randrange(_VARIANTS)
    tests = derive_rng(ENV, "expression", list(wish), variant)
    problem = build_expression_problem(wish, tests, visible=knobs.visible, hidden=knobs.hidden)
    return task_of(problem, knobs, wish=list(wish), variant=variant)


def _from_dataset(rng: Random, split: Split, knobs: CodeKnobs) -> Task:
    found = load_problems(knobs.dataset, knobs.form).problems
    names = [name for name in found if in_split(split, ENV, knobs.form, name)]
    if not names:
        raise EnvError(
            f"{knobs.dataset} has no problem in the {split} split.", "Choose another split or a larger file."
        )
    name = rng.choice(names)
    return task_of(found[name], knobs, form=knobs.form, name=name)


_REMEMBERED = 4096
_problems: OrderedDict[str, CodeProblem] = OrderedDict()


def kept_problem(task: Task) -> CodeProblem:
    """The problem of a task, read once: tasks are asked for it at every turn."""
    if task.id not in _problems:
        _problems[task.id] = problem_of(task)
        while len(_problems) > _REMEMBERED:
            _problems.popitem(last=False)
    return _problems[task.id]
