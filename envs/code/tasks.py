"""How tasks of ``turnwise/Code-v0`` are made: generated families, the small language, published data sets."""

from __future__ import annotations

from random import Random
from typing import Literal

import pydantic

from turnwise.envs.code.datasets import Form, load_problems
from turnwise.envs.code.families.core import FAMILIES, build_problem, templates
from turnwise.envs.code.problem import Problem
from turnwise.envs.code.quick import build_expression_problem, draw_wish
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, derive_rng

ENV = "turnwise/Code-v0"
_VARIANTS = 100  # test suites per exercise


class CodeKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What a suite of programming tasks may set."""

    language: Literal["python", "expression"] = "python"  # expression: one line of a small language
    families: tuple[Literal["strings", "sequences", "parsing", "simulation", "graphs", "structures"], ...] = (
        FAMILIES  # type: ignore[assignment]
    )
    levels: tuple[int, ...] = (1, 2, 3)  # of the templates: 1 short loops, 3 several rules at once
    batch: bool = False  # the function is applied to a list of inputs, by a rule of its own
    visible: int = pydantic.Field(default=3, ge=1, le=20)  # tests that are shown
    hidden: int = pydantic.Field(default=40, ge=4, le=200)  # tests that decide
    dataset: str = ""  # a JSONL file of problems instead of generated ones
    form: Form = "humaneval"  # of that file
    turn_limit: int = pydantic.Field(default=8, ge=1)


def generate_task(rng: Random, split: Split, knobs: dict[str, Json]) -> Task:
    """A task of a suite with these knobs."""
    chosen = check_knobs(CodeKnobs, knobs, "code")
    if chosen.dataset:
        return _from_dataset(rng, split, chosen)
    draw = _draw_expression if chosen.language == "expression" else _draw_exercise
    return first_drawn(lambda rng: draw(rng, split, chosen), rng, split, "code")


def problem_of(task: Task) -> Problem:
    """The problem of a task."""
    return Problem.from_json(task.options["problem"], task.gold["solution"])


def task_of(problem: Problem, knobs: CodeKnobs, **origin: Json) -> Task:
    """A task that sets a problem; ``origin`` says where it comes from."""
    options = {"problem": problem.to_json(), "turn_limit": knobs.turn_limit, "origin": origin}
    return Task(ENV, problem.statement, options, {"solution": problem.solution})


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
        template.name, params, visible=knobs.visible, hidden=knobs.hidden, variant=variant, batch=batch
    )
    return task_of(problem, knobs, template=template.name, params=params, variant=variant, batch=batch)


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
