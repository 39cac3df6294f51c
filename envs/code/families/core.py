"""Templates of exercises, and the building of a problem with tests from an exercise."""

from __future__ import annotations

import functools
import inspect
import string
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.code.problem import CodeCase, CodeProblem
from turnwise.envs.wordings import ways
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json, Split, derive_rng

Arguments: TypeAlias = tuple[Any, ...]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 40


class Exercise(NamedTuple):
    """One draw of a template.

    ``solution`` is a right program in Python with a function ``entry``; ``draw`` makes random arguments, and
    ``edges`` are those that matter most: empty, smallest, equal, at the boundaries of the parameters.
    """

    entry: str
    signature: str
    statement: str
    solution: str
    draw: Callable[[Random], Arguments]
    edges: tuple[Arguments, ...] = ()


Builder: TypeAlias = Callable[..., Exercise]


class ExerciseTemplate(NamedTuple):
    """A kind of exercise. ``params`` are the values that each parameter may have; the builder takes one of each."""

    name: str
    family: str
    level: int  # 1 short loops, 2 some state, 3 several rules at once
    params: Mapping[str, tuple[Json, ...]]
    build: Builder

    def sample(self, rng: Random) -> dict[str, Json]:
        """Values for the parameters."""
        return {name: rng.choice(values) for name, values in self.params.items()}


_templates: dict[str, ExerciseTemplate] = {}
FAMILIES = ("strings", "sequences", "parsing", "simulation", "graphs", "structures")


def template(family: str, level: int, **params: tuple[Json, ...]) -> Callable[[Builder], Builder]:
    """Declare a function of the parameters as a template of this family."""

    def declare(build: Builder) -> Builder:
        name = build.__name__
        _templates[name] = ExerciseTemplate(name, family, level, params, build)
        return build

    return declare


@functools.cache
def templates() -> Mapping[str, ExerciseTemplate]:
    """All templates by name."""
    for family in FAMILIES:
        import_module(f"turnwise.envs.code.families.{family}")
    return dict(sorted(_templates.items()))


def get_template(name: str) -> ExerciseTemplate:
    """The template of this name.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    if name not in templates():
        raise NotFoundError("code template", name, templates())
    return templates()[name]


def program(text: str, **values: Json) -> str:
    """The source of a solution: a raw text without its indentation, ``$name`` replaced by the values' literals."""
    return string.Template(inspect.cleandoc(text)).substitute({k: repr(v) for k, v in values.items()}) + "\n"


def reference(source: str, entry: str) -> Callable[..., Any]:
    """A solution of ours as a function. Only for sources of this package: they run in this process."""
    space: dict[str, Any] = {}
    exec(compile(source, f"<{entry}>", "exec"), space)  # noqa: S102 (a reference of ours)
    return space[entry]


def expected(solve: Callable[..., Any], arguments: Arguments) -> Any:
    """Return the reference's answer; it gets arguments of its own, since it may change them."""
    return solve(*(_copy(argument) for argument in arguments))


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else value


def inputs(exercise: Exercise, rng: Random, count: int) -> list[Arguments]:
    """``count`` different inputs: the edges, then random ones."""
    found = {repr(edge): edge for edge in exercise.edges[:count]}
    for _ in range(_TRIES * count):
        if len(found) >= count:
            break
        drawn = exercise.draw(rng)
        found.setdefault(repr(drawn), drawn)
    return list(found.values())


@functools.lru_cache(512)
def _exercise(name: str, params: tuple[tuple[str, Json], ...]) -> Exercise:
    return get_template(name).build(**dict(params))


def exercise_of(name: str, params: Mapping[str, Json]) -> Exercise:
    """The exercise of a template with these parameters."""
    return _exercise(name, tuple(sorted(params.items())))


def build_problem(
    name: str,
    params: Mapping[str, Json],
    *,
    visible: int,
    hidden: int,
    variant: int = 0,
    batch: str = "",
    split: Split = Split.TRAIN,
) -> CodeProblem:
    """The problem of a template with these parameters; its tests are a function of all that is given.

    Visible tests are random ones, so that the edges are left to the hidden tests and to the statement.
    ``split`` says whose words it is set in; ``batch`` names how it is applied to a list of inputs (:func:`batched`).
    """
    exercise = exercise_of(name, params)
    if batch:
        exercise = batched(exercise, batch)
    solve = reference(exercise.solution, exercise.entry)
    rng = derive_rng("code", name, dict(params), variant, batch)
    shown = inputs(exercise._replace(edges=()), rng, visible)
    seen = {repr(given) for given in shown}
    unseen = [given for given in inputs(exercise, rng, hidden + visible) if repr(given) not in seen][:hidden]
    return CodeProblem(
        worded(exercise.signature, exercise.statement, split),
        exercise.entry,
        tuple(CodeCase(given, expected(solve, given)) for given in shown),
        tuple(CodeCase(given, expected(solve, given)) for given in unseen),
        exercise.solution,
    )


_WRITE = ways(
    "Write {signature}. {statement} | Implement {signature}. {statement} | The function that is wanted: {signature}. {statement}"
)
_OTHERWISE = (
    ("Return ", "Give back "), ("return ", "give back "), ("Where there is none", "If there is none"),
    ("parted by", "separated by"), ("at least", "not less than"), ("at most", "not more than"),
    (" are 0 to n - 1", " are numbered from 0 to n - 1"), ("each leading both ways", "each of which can be gone in both directions"),
    ("of equally long ones", "of those with the same length"), ("in the order of the list", "in the list's own order"),
    ("the smallest first", "in rising order"), ("as long as possible", "taken as long as it goes"),
    ("Each item is a list of the arguments of", "An item is made up of the arguments of"),
    ("Count the pairs", "Find the number of the pairs"),
    (" holds ", " has room for "), ("divided by", "after a division by"), ("Sort the numbers", "Put the numbers in order"),
    ("Find the longest", "Look for the longest"), ("Work it out", "Compute it"), ("Count from", "Begin to count with"),
)  # fmt: skip
"""Phrases of train, each with the one that dev and test use instead."""


def worded(signature: str, statement: str, split: Split) -> str:
    """A statement in the words of a split.

    >>> worded("f(x: int) -> int", "Return x.", Split.TEST)
    'The function that is wanted: f(x: int) -> int. Give back x.'
    """
    if split is not Split.TRAIN:
        for usual, otherwise in _OTHERWISE:
            statement = statement.replace(usual, otherwise)
    return _WRITE.of(split)[0].format(signature=signature, statement=statement)


_BATCHES = {
    "reverse": ("in the order from the last item to the first", "answers[::-1]"),
    "second": ("for the first, third, fifth … item only", "answers[::2]"),
    "fresh": (
        "leaving out each that equals an earlier one",
        "[a for i, a in enumerate(answers) if a not in answers[:i]]",
    ),
}


def batched(exercise: Exercise, how: str) -> Exercise:
    """An exercise about a list of inputs of another one."""
    words, result = _BATCHES[how]
    entry = f"{exercise.entry}_all"
    solution = (
        f"{exercise.solution}\n\ndef {entry}(items):\n"
        f"    answers = [{exercise.entry}(*item) for item in items]\n    return {result}\n"
    )
    statement = (
        f"Each item is a list of the arguments of {exercise.signature}, which is this: {exercise.statement} "
        f"Return the list of what {exercise.entry} returns for the items, {words}."
    )

    def draw(rng: Random) -> Arguments:
        made = [list(exercise.draw(rng)) for _ in range(rng.randint(1, 4))]
        return ([*made, rng.choice(made)] if rng.random() < 0.4 else made,)

    edges = (([],), *(([list(edge), list(edge)],) for edge in exercise.edges))
    return Exercise(entry, f"{entry}(items: list) -> list", statement, solution, draw, edges)


def word(rng: Random, low: int = 1, high: int = 7, letters: str = LETTERS) -> str:
    """A random word."""
    return "".join(rng.choice(letters) for _ in range(rng.randint(low, high)))


def numbers(rng: Random, low: int, high: int, fewest: int = 0, most: int = 9) -> list[int]:
    """A list of random whole numbers."""
    return [rng.randint(low, high) for _ in range(rng.randint(fewest, most))]
