"""Induction: a program is described by inputs and a message, and found from half of what it gives (Absolute Zero)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.code.kernel import decode, encode
from turnwise.envs.code.problem import same
from turnwise.envs.code.triple_parts import (
    ENV,
    LONGEST,
    MISSING,
    Triple,
    TripleVerdict,
    arguments,
    block,
)
from turnwise.tasks.core import Json, Task

RUNS = 3
Run = Callable[[str, Sequence[tuple[object, ...]], int], "list[object] | None"]
"""(program, inputs, how many runs must agree) → the outputs; None where it gives none, or they differ."""


class Induction(NamedTuple):
    """A program, inputs as Python writes them, what it gives for each, encoded, and a message about it."""

    program: str
    inputs: Sequence[str]
    outputs: Sequence[Json]
    message: str

    def shown(self) -> str:
        """The first half of the pairs, rounded up.

        >>> print(Induction("def f(x):\\n    return -x", ("1", "2", "3"), (-1, -2, -3), "the sign").shown())
        f(1) = -1
        f(2) = -2
        """
        half = (len(self.inputs) + 1) // 2
        pairs = zip(self.inputs[:half], self.outputs[:half], strict=True)
        return "\n".join(f"f({given}) = {decode(output)!r}" for given, output in pairs)


def propose_task(known: Triple, number: int, inputs: int) -> Task:
    """Ask for inputs of a known program and a message about it; the ``number`` tells one such task from another."""
    prompt = (
        f"{block('python', known.program)}\n\nWrite {inputs} inputs of f, one a line in an ```input block, and a ```message block that hints at what f does "
        "without its text . Whoever solves it sees the message and half of the inputs with what f gives, and writes f ."
    )
    options = {
        "role": "propose induction", "ask": "induction", "program": known.program, "given": known.given, "inputs": inputs, "number": number,
    }  # fmt: skip
    gold = f"{block('input', chr(10).join([known.given] * inputs))}\n{block('message', 'f')}"
    return Task(ENV, prompt, options, gold)


def solve_task(one: Induction) -> Task:
    """Hide the program."""
    prompt = f"{one.message}\n\n{one.shown()}\n\nWhich f gives these, and what it should for other inputs ? Write a ```python block ."
    options = {
        "role": "solve induction",
        "ask": "induction",
        "triple": [one.program, [*one.inputs], [*one.outputs], one.message],
    }
    return Task(ENV, prompt, options, block("python", one.program))


def proposed(found: Mapping[str, str], options: Mapping[str, Json], run: Run) -> TripleVerdict:
    """Accept inputs for all of which the program gives the same in every run."""
    if "input" not in found or "message" not in found:
        return MISSING
    lines = [line.strip() for line in found["input"].splitlines() if line.strip()][: options["inputs"]]
    inputs = [values for line in lines if (values := arguments(line)) is not None]
    if len(inputs) < options["inputs"]:
        return TripleVerdict(False, "there are too few inputs, or one is not plain .")
    outputs = run(options["program"], inputs, RUNS)
    if outputs is None or len(repr(outputs)) > LONGEST["output"]:
        return TripleVerdict(False, "it does not run to plain outputs .")
    made = [options["program"], lines, [encode(value) for value in outputs], found["message"]]
    return TripleVerdict(True, "accepted .", {"triple": made})


def solved(found: Mapping[str, str], options: Mapping[str, Json], run: Run) -> TripleVerdict:
    """Accept a program that gives the same as the hidden one for all inputs, those that were not shown too."""
    if "python" not in found:
        return MISSING
    _, lines, outputs, _ = options["triple"]
    inputs = [values for line in lines if (values := arguments(line)) is not None]
    ran = run(found["python"], inputs, 1) if "def f(" in found["python"] else None
    right = ran is not None and all(same(*pair) for pair in zip(ran, map(decode, outputs), strict=True))
    return TripleVerdict(right, "noted .")


def described(rng: Random, options: Mapping[str, Json]) -> str:
    """Inputs by chance of the kind that the program is known to take: lists of three digits, or numbers."""
    is_list = str(options["given"]).startswith("[")
    drawn = [
        repr([rng.randrange(10) for _ in range(3)] if is_list else rng.randrange(10))
        for _ in range(options["inputs"])
    ]
    return f"{block('input', chr(10).join(drawn))}\n{block('message', 'f')}"
